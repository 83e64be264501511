"""One process in which what students write is checked, however many files of tests ask for it."""

from collections.abc import Iterator

import pytest

from transformer.checking.isolation.process import Warm


@pytest.fixture(scope="session")
def warm() -> Iterator[Warm]:
    with Warm() as warm:
        yield warm
