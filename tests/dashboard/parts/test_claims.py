"""What is said of a head, at the very borders of what was measured."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from dashboard.parts import claims
from transformer.analysis.heads.metrics import Estimate
from transformer.tasks import TASKS


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.5, "Head 0.2 looks most at the answer: 0.50 of its attention is there."),
        (0.4999, "No head looks mostly at the answer. Head 0.2 comes closest: 0.50 of its attention is there."),
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


@pytest.mark.parametrize(
    ("layers", "share", "said"), [(2, 0.49, False), (2, 0.499, False), (2, 0.501, True), (1, 0.93, False)]
)
def test_a_second_layer_is_explained_only_where_it_beats_the_bag(layers: int, share: float, said: bool) -> None:
    words = claims.second_layer(layers, share, 0.4)
    assert bool(words) == said
    assert not said or words.startswith(
        "Without positions 2 layers reach 0.50, but one layer can reach at most 0.40: the causal mask"
    )


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (
            0.8,
            "Head 0.2 is nearly a position-to-content map: 0.80 of its scores’ variance.",
        ),
        (
            0.799,
            "The term position–content makes up 0.80 of the variance of head 0.2’s scores.",
        ),
        (
            0.499,
            "No term makes up most of head 0.2’s score variance: position–content has 0.50.",
        ),
    ],
)
def test_a_map_is_said_only_where_little_else_tells_keys_apart(share: float, words: str) -> None:
    assert claims.map_of("head 0.2", "position–content", share) == words


@pytest.mark.parametrize(
    ("task", "reads"),
    [
        ("reverse", "the right answers so far"),
        ("reverse-translate", "the right answers so far"),
        ("reverse-aligned", ""),
    ],
)
def test_what_answers_in_place_is_not_said_to_read_answers(task: str, reads: str) -> None:
    model = SimpleNamespace(task=TASKS[task]())
    words = claims.read(model)  # type: ignore[arg-type]
    assert (reads in words) if reads else not words


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        (0.0049, "Removing two heads together costs the sum of removing each alone, to within 0.005."),
        (-0.0049, "Removing two heads together costs the sum of removing each alone, to within 0.005."),
        (
            0.0051,
            "Removing heads a and b together costs 0.01 more than the sum of removing each alone: one "
            "makes up for the other.",
        ),
        (
            -0.2,
            "Removing heads a and b together costs 0.20 less than the sum of removing each alone: they are "
            "links of one chain.",
        ),
    ],
)
def test_two_heads_are_said_to_make_up_for_each_other_only_where_that_was_felt(extra: float, words: str) -> None:
    assert claims.together("heads a and b", extra) == words
