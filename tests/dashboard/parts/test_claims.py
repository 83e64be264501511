"""What is said of a head, at the very borders of what was measured."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from dashboard.parts import claims
from tests.kit.claims.written import are_largest
from transformer.analysis.heads.metrics import Estimate
from transformer.tasks import TASKS


def works(*mean: float, half: float = 0.01) -> str:
    """What is said of two heads by what removing each costs."""
    means = np.array(mean)
    return claims.works(["a", "b"], Estimate(means, means - half, means + half, 1000))


def map_of(share: float) -> str:
    return claims.map_of("head 0.2", "position–content", share)


def together(extra: float, *alone: float) -> str:
    return claims.together("heads a and b", extra, 0.004, alone or (0.2, 0.3))


MEASURED = "Removing two heads together costs the sum of removing each alone, to within 0.005."


@pytest.mark.parametrize(
    ("said", "words"),
    [
        # Attention is said to look, and never to work.
        (
            claims.looks(["0.2"], 0.5, "the answer"),
            "Head 0.2 looks most at the answer: 0.50 of its attention is there.",
        ),
        (
            claims.looks(["0.2"], 0.4999, "the answer"),
            "No head looks mostly at the answer. Head 0.2 comes closest: 0.50 of its attention is there.",
        ),
        # Several that two decimals cannot tell apart are all named, and many are counted.
        (
            claims.looks(["0.2", "1.0"], 1.0, "the answer"),
            "Heads 0.2 and 1.0 look most at the answer: 1.00 of their attention is there.",
        ),
        (
            claims.looks(["0.0", "0.1", "0.2", "0.3", "1.0"], 0.25, "the answer"),
            "No head looks mostly at the answer. 5 heads come closest: 0.25 of their attention is there.",
        ),
        # Only removal says who does the work.
        (works(0.0, 0.51), "Head b does the work: removing it costs 0.51 of the accuracy."),
        (works(0.0, 0.509), "No head does the work alone: removing head b costs most, 0.51 of the accuracy."),
        (works(0.004, 0.045), "No head does the work alone: removing head b costs most, 0.045 of the accuracy."),
        (works(0.75, 0.65), "Several heads are needed: removing any of a, b costs at least a half of the accuracy."),
        (works(0.0, 0.0049), "No head is needed by itself: removing any one costs less than 0.005 of the accuracy."),
        (
            works(-0.01, 0.005),
            "No head does the work alone: removing head b or a costs about as much, up to 0.005 of the accuracy.",
        ),
        (works(-0.02, 0.005), "No head does the work alone: removing head b costs most, 0.005 of the accuracy."),
        (works(np.nan, 0.9), "Head b does the work: removing it costs 0.90 of the accuracy."),
        # A map is said only where little else tells keys apart.
        (map_of(0.8), "Head 0.2 is nearly a position-to-content map: 0.80 of its scores’ variance."),
        (map_of(0.799), "The term position–content makes up 0.80 of the variance of head 0.2’s scores."),
        (map_of(0.499), "No term makes up most of head 0.2’s score variance: position–content has 0.50."),
        # Two heads are said to make up for each other only where that was felt.
        (together(0.0049), MEASURED),
        (together(-0.0049), MEASURED),
        (
            together(0.0051),
            "Removing heads a and b together costs 0.01 more than the sum of removing each alone: one makes up for "
            "the other.",
        ),
        (
            together(-0.2),
            "Removing heads a and b together costs 0.20 less than the sum of removing each alone: they are links of "
            "one chain.",
        ),
        # Where one alone costs nothing, or less, neither is an explanation.
        (
            together(-0.2, 0.0, 0.3),
            "Removing heads a and b together costs 0.20 less than the sum of removing each alone. Alone they cost 0.00 "
            "and 0.30, together 0.10.",
        ),
        (
            together(-0.3, 0.0, 0.0),
            "Removing heads a and b together costs 0.30 less than the sum of removing each alone. Alone they cost 0.00 "
            "and 0.00, together −0.30. Below 0, accuracy rises.",
        ),
        (
            together(0.2, -0.2, 0.0),
            "Removing heads a and b together costs 0.20 more than the sum of removing each alone. Alone they cost "
            "−0.20 and 0.00, together 0.00. Below 0, accuracy rises.",
        ),
    ],
)
def test_what_is_said_of_heads_is_what_was_measured_of_them(said: str, words: str) -> None:
    assert said == words


@pytest.mark.parametrize(
    ("layers", "share", "said"), [(2, 0.49, False), (2, 0.499, False), (2, 0.501, True), (1, 0.93, False)]
)
def test_a_second_layer_is_explained_only_where_it_beats_the_bag(layers: int, share: float, said: bool) -> None:
    words = claims.second_layer(layers, share, 0.4)
    assert bool(words) == said
    assert not said or words.startswith(
        "Without positions 2 layers reach 0.50, but one layer can reach at most 0.40: the causal mask"
    )


@pytest.mark.parametrize("task", ["reverse", "reverse-translate", "reverse-aligned"])
def test_what_answers_in_place_is_not_said_to_read_answers(task: str) -> None:
    words = claims.read(SimpleNamespace(task=TASKS[task]()))  # type: ignore[arg-type]
    assert ("the right answers so far" in words) == bool(words) == (task != "reverse-aligned")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ((0.2, -1.25, 1.0), "The largest in size is −1.25, in dimension 1."),
        ((0.2, -1.251, 1.249), "The largest in size are −1.25 in dimension 1 and 1.25 in dimension 2."),
        ((-0.251, 0.249), "All 2 lie 0.25 from 0."),
        ((0.1, *(0.25, -0.25) * 3), "The largest in size are 6 of these 7: each lies 0.25 from 0."),
        ((-0.5,), "It is −0.50."),
        ((0.0, 0.0), "All are 0."),
        ((0.004, -0.001), "All are nearer to 0 than 0.005."),
    ],
)
def test_what_is_farthest_from_0_is_named_with_all_that_no_digit_tells_from_it(
    values: tuple[float, ...], words: str
) -> None:
    found = np.array(values)
    assert claims.largest_in_size("Here.", found) == f"Here. {words}"
    assert are_largest(found, words)
    assert not are_largest(np.append(found, 2.0), words)
