"""What the tests of several pages share."""

from collections.abc import Iterator

import pytest

from transformer.foundation import claims as marked
from transformer.foundation.claims import Claim


@pytest.fixture
def heard() -> Iterator[list[Claim]]:
    """What claims are made."""
    found: list[Claim] = []
    marked.listeners.append(found.append)
    yield found
    marked.listeners.remove(found.append)
