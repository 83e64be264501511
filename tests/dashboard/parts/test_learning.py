"""The words beside the curve of a training."""

from __future__ import annotations

import pytest

from dashboard.parts.learning import loss_sentence
from tests.kit.runs import tiny


@pytest.mark.parametrize(("step", "words"), [(1, "after 1 step."), (2, "after 2 steps."), (40, "after 40 steps.")])
def test_one_step_is_not_called_several(step: int, words: str) -> None:
    assert f"The loss is 2.30 nats {words}" in loss_sentence(tiny(), [{"step": step, "loss": 2.3}])
