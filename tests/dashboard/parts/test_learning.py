"""The words beside the curve of a training."""

from __future__ import annotations

import math

import pytest

from dashboard.parts import learning
from dashboard.parts.learning import loss_sentence
from tests.kit.pages import network
from tests.kit.runs import tiny
from transformer.analysis.accuracy import ceilings


@pytest.mark.parametrize(("step", "words"), [(1, "after 1 step."), (2, "after 2 steps."), (40, "after 40 steps.")])
def test_one_step_is_not_called_several(step: int, words: str) -> None:
    assert f"The loss is 2.30 nats {words}" in loss_sentence(tiny(), [{"step": step, "loss": 2.3}])


@pytest.mark.parametrize(
    ("run", "worked", "value"),
    [
        # By hand: x2 … x8 and SEP are asked (weight 0.1), y1 … y8 answered; nobody can predict x2 … x8.
        ("reverse", "7 × 0.1 × 2.30 / (8 × 0.1 + 8)", 7 * 0.1 * math.log(10) / (8 * 0.1 + 8)),
        # In place and causal, the first half of the answer is about tokens yet to come.
        ("reverse-aligned-causal", "4 × 2.30 / 8", 4 * math.log(10) / 8),
    ],
)
def test_the_loss_floor_is_worked_out(run: str, worked: str, value: float) -> None:
    _, config = network(run)
    assert ceilings.loss_floor(config) == pytest.approx(value)
    found = ceilings.floor_terms(config)
    assert found is not None
    assert found.floor == pytest.approx(value)
    said = learning.floor_sentence(config)
    assert said.endswith(f"So it is {worked} = {value:.2f}.")
    assert "can only be guessed, which costs ln 10 = 2.30 each." in said


@pytest.mark.parametrize("run", ["reverse-aligned", "reverse-translate"])
def test_a_floor_of_nothing_is_not_worked_out(run: str) -> None:
    assert learning.floor_sentence(network(run)[1]) == ""
