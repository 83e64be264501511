"""What is said of a head, at the very borders of what was measured."""

from __future__ import annotations

import numpy as np
import pytest

from dashboard.parts import claims
from transformer.analysis.heads.metrics import Estimate


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.5, "Head 0.2 looks most at the answer: 0.50 of its attention is there."),
        (0.4999, "No head looks mostly at the answer: nearest, head 0.2 has 0.50 of its attention there."),
        (1.0, "Head 0.2 looks most at the answer: 1.00 of its attention is there."),
    ],
)
def test_attention_is_said_to_look_and_never_to_work(share: float, words: str) -> None:
    assert claims.looks("0.2", share, "the answer") == words
    assert "work" not in words


def lost(*mean: float, half: float = 0.01) -> Estimate:
    means = np.array(mean)
    return Estimate(means, means - half, means + half, 1000)


@pytest.mark.parametrize(
    ("drop", "words"),
    [
        (lost(0.0, 0.51), "Head b does the work: removing it costs 0.51 of the accuracy."),
        (lost(0.0, 0.509), "No head does the work alone: removing head b costs most, 0.51 of the accuracy."),
        (lost(0.004, 0.045), "No head does the work alone: removing head b costs most, 0.045 of the accuracy."),
        (lost(0.75, 0.65), "Several heads are needed: removing any of a, b costs at least a half of the accuracy."),
        (lost(0.0, 0.0049), "No head is needed by itself: removing any one costs less than 0.005 of the accuracy."),
        (lost(-0.01, 0.005), "No head does the work alone: removing head b costs most, 0.005 of the accuracy."),
        (lost(np.nan, 0.9), "Head b does the work: removing it costs 0.90 of the accuracy."),
    ],
)
def test_only_removal_says_who_does_the_work(drop: Estimate, words: str) -> None:
    assert claims.works(["a", "b"], drop) == words
