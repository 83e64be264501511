"""The yardsticks of a law and of a text: what they say of counts made here, and their one picture by position."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dashboard.figures.accuracy import position_bars
from dashboard.figures.kit.labels import cell_numbers
from dashboard.figures.kit.numbers import between, signed
from dashboard.models.menu import menu
from dashboard.models.model import Model
from dashboard.parts.yardstick import ByAccuracy, ByLoss, Yardstick, yardstick
from dashboard.theme import LIGHT
from tests.kit.pages import array
from transformer.analysis.accuracy.breakdown import Answers, by_token, commonest, confusion_among
from transformer.analysis.accuracy.reading import Reading
from transformer.analysis.accuracy.result import Accuracy

NAMES = (*(f"x{i}" for i in range(2, 9)), "SEP", *(f"y{i}" for i in range(1, 9)))
GROUPS = ("first half",) * 7 + ("separator",) + ("second half",) * 8


def of(run: str, length: int = 8) -> Yardstick:
    choice = menu()[run]
    return yardstick(Model.of(choice, choice.snapshots[-1]), length)


def accuracy(first: int, second: int, sequences: int = 1000) -> Accuracy:
    """So many right of each target of the question's tokens, and of the answer's."""
    return Accuracy(np.array([first] * 7 + [1000] + [second] * 8), sequences, NAMES, GROUPS, 0.1, second)


def reading(nats: float, windows: int = 4, length: int = 10) -> Reading:
    return Reading(np.full((windows, length), nats), np.zeros((windows, length), dtype=bool))


def test_each_kind_of_task_has_its_yardstick() -> None:
    assert isinstance(of("reverse"), ByAccuracy)
    assert isinstance(of("shakespeare"), ByLoss)
    assert of("reverse").quick() == of("reverse")
    assert of("shakespeare", 20).quick().length == 256


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ((100, 1000), (100, 400), "With it the second half falls from 1.00 to 0.40."),
        ((100, 1000), (900, 950), "With it the first half rises from 0.10 to 0.90."),
        ((100, 1000), (103, 996), "With it nothing is lost: the second half keeps its 1.00."),
        ((100, 994), (100, 987), "With it nothing is lost: the second half keeps its 0.99."),  # both say 0.99
    ],
)
def test_a_change_of_accuracy_is_that_of_the_half_that_changes_more(
    before: tuple[int, int], after: tuple[int, int], said: str
) -> None:
    assert of("reverse").change("With it", accuracy(*before), accuracy(*after)) == said


def test_what_can_be_known_is_what_counts_of_a_law() -> None:
    law = of("reverse")
    assert law.mean(accuracy(0, 500)) == 0.5  # the question's tokens cannot be known, the separator is no symbol
    assert (
        law.change_of_mean("So", accuracy(0, 500), accuracy(900, 250))
        == "So, accuracy on the answer falls from 0.50 to 0.25."
    )
    assert law.over() == " Mean over the symbols of the answer that can be known."
    assert law.lost(accuracy(0, 1000), accuracy(0, 300)).startswith("All that can be known is lost")
    assert law.lost(accuracy(0, 1000), accuracy(0, 700)) == "The positions are all still there, but at other tokens."


def test_a_change_of_loss_is_one_of_perplexity() -> None:
    text = of("shakespeare")
    said = text.change("With it", reading(math.log(20)), reading(math.log(30)))
    assert said == "With it perplexity rises from 20.0 to 30.0 in 4 windows of 10 held-out tokens."
    same = text.change("With it", reading(2.0), reading(2.004))
    assert same == "With it a token costs as much as before, 2.00 nats, in 4 windows of 10 held-out tokens."
    assert text.mean(reading(2.5)) == 2.5


def test_nothing_of_an_answer_in_place_is_read() -> None:
    found = accuracy(100, 1000)
    read = "Before each answer it reads the right answers so far (teacher forcing)."
    assert of("reverse").basis(found, None) == f"1,000 fresh sequences of length 8. {read}"
    assert of("reverse-aligned").basis(found, None) == "1,000 fresh sequences of length 8."


@pytest.mark.parametrize("run", ["reverse", "shakespeare"])
def test_before_and_after_stand_side_by_side_on_either(run: str) -> None:
    yard, found = (
        of(run),
        (accuracy(100, 900), accuracy(100, 300)) if run == "reverse" else (reading(2.0), reading(3.0)),
    )
    names = [trace.name for trace in yard.bars(found[1], found[0]).data]
    assert names[-2:] == ["before", "after"]
    assert ("ceiling" in names) == (run == "reverse")
    alone = yard.bars(found[0], None)
    assert [trace.name for trace in alone.data][-2:] == ["measured", "values"]
    assert alone.layout.shapes[0].y0 == yard.against[0]


def test_bars_of_a_text_reach_above_their_intervals_and_their_line() -> None:
    nats = np.array([5.0, 4.0, 3.0])
    figure = position_bars(
        nats,
        ["1", "2", "3–4"],
        ["a", "b<", "c\nd"],
        title="nats",
        against=(4.8, "counts\nalone"),
        interval=(nats - 1, nats + 1),
    )
    bars, values = figure.data
    np.testing.assert_allclose(array(figure.to_plotly_json()["data"][0]["y"]), nats)
    assert bars.error_y.visible
    assert list(bars.hovertext) == ["a", "b&lt;", "c<br>d"]
    assert list(values.text) == ["5.00", "4.00", "3.00"]
    assert figure.layout.yaxis.range[1] == pytest.approx(1.12 * 6)
    assert figure.layout.annotations[0].text == "counts<br>alone<br>4.80"


def test_tokens_are_counted_as_a_loop_counts_them() -> None:
    rng = np.random.default_rng(0)
    targets, said = rng.integers(0, 6, (50, 7)), rng.integers(0, 6, (50, 7))
    answers = Answers(targets, targets, said, -rng.random(targets.shape))
    tokens = commonest(answers, 4)
    pairs = list(zip(targets.ravel().tolist(), said.ravel().tolist(), strict=True))
    times = [sum(true == token for true, _ in pairs) for token in range(6)]
    assert [times[token] for token in tokens] == sorted(times, reverse=True)[:4]
    counts = confusion_among(answers, tokens)
    for row, each in enumerate(by_token(answers, tokens)):
        mine = [other for true, other in pairs if true == each.token]
        assert (each.times, each.right) == (len(mine), mine.count(each.token))
        assert each.often == max(mine.count(other) for other in range(6) if other != each.token)
        assert mine.count(each.instead) == each.often
        assert counts[row, :4].tolist() == [mine.count(token) for token in tokens]
        assert counts[row].sum() == len(mine)


def test_numbers_are_written_once() -> None:
    assert [signed(value, 1, plus=True) for value in (0.04, -0.04, -1.26, 3)] == ["+0.0", "+0.0", "−1.3", "+3.0"]
    assert signed(-2, 0, plus=True) == "−2"
    assert between(0.1, 0.98765) == "95 % interval 0.100 to 0.988"


def test_numbers_stand_in_the_cells_that_have_one() -> None:
    values = np.array([[0.5, np.nan], [-1.0, 1.0]])
    marks = np.array([["", ""], ["✕", ""]])
    trace = cell_numbers(values, signed, (-1, 1), LIGHT.signed, LIGHT, width=100, start=2, marks=marks)
    assert (trace["x"], trace["y"]) == ([2, 2, 3], [0, 1, 1])
    assert trace["text"] == ["0.50", "✕", "1.00"]


def test_which_change_costs_most_is_said_of_one_that_stands_alone() -> None:
    yard = of("reverse")
    kinds, ends = "Positions moved", ("a", "b", "c")
    assert yard.furthest(kinds, ends[:1], 3, 0.25, 0.9) == "Positions moved: accuracy falls lowest with a, to 0.25."
    assert yard.furthest(kinds, ends[:2], 3, 0.25, 0.9) == (
        "Positions moved: accuracy falls lowest with a and b, to about 0.25."
    )
    assert yard.furthest(kinds, ends, 8, 0.25, 0.9) == (
        "Positions moved: accuracy falls lowest with 3 of these 8 changes, to about 0.25."
    )
    assert yard.furthest(kinds, ends, 3, 0.25, 0.9) == (
        "Positions moved: accuracy is about the same with all of them, 0.25 at the lowest."
    )
    assert yard.furthest(kinds, ends, 3, 0.9, 0.9) == "Positions moved: accuracy falls with none of them."


def test_which_change_makes_a_text_dearest_is_said_of_one_that_stands_alone() -> None:
    yard = ByLoss(of("reverse").model, 8)
    assert yard.furthest("", ("a",), 3, 2.5, 1.0) == "A token costs most with a: 2.50 nats, 1.00 before."
    assert yard.furthest("", ("a", "b"), 3, 2.5, 1.0) == (
        "A token costs most, and about as much, with a and b: up to 2.50 nats, 1.00 before."
    )
    assert yard.furthest("", ("a", "b"), 2, 2.5, 1.0) == (
        "A token costs about as much with all of these changes: up to 2.50 nats, 1.00 before."
    )
