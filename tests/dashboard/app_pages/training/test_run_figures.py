"""Curves of several runs on one clock: their data, their names' places, and the words beside them."""

from __future__ import annotations

import re
from html import unescape
from itertools import pairwise

import numpy as np
import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.app_pages.training.runs.figures.curves import (
    LINE,
    MARKS,
    MOST_POINTS,
    Curve,
    colours,
    learning_curves,
    stagger,
)
from dashboard.app_pages.training.runs.figures.standings import STROKES, Row, standings_list
from dashboard.figures.kit.lines import DASHES, SYMBOLS, round_up
from dashboard.figures.kit.numbers import share_text
from dashboard.theme import DARK, LIGHT, contrast


def curve(name: str, values: list[float], place: int = 0, **options: object) -> Curve:
    n = len(values)
    return Curve(name, 5 * np.arange(1, n + 1), 0.25 * np.arange(1, n + 1), np.array(values), place=place, **options)


def lines(figure: go.Figure) -> list[go.Scatter]:
    return [trace for trace in figure.data if trace.mode == "lines"]


def ends(figure: go.Figure) -> list[go.Scatter]:
    return [trace for trace in figure.data if trace.mode == "markers"]


def names(figure: go.Figure) -> list[go.layout.Annotation]:
    """The names at the curves' ends."""
    return [note for note in figure.layout.annotations if note.showarrow]


FOUR = [
    curve("a", [0.1, 0.5, 1.0], 0, solved=True),
    curve("b", [0.1, 0.4, 0.9, 1.0], 1, solved=True),
    curve("c", [0.1, 0.12], 2),
    curve("d", [0.1, 0.11], 3),
]


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_each_run_has_its_colour_dash_and_mark(palette):
    figure = learning_curves(FOUR, chance=[0.1] * 4, palette=palette)
    assert [line.line.color for line in lines(figure)] == list(colours(palette))
    assert [line.line.dash for line in lines(figure)] == list(DASHES)
    assert [end.marker.symbol for end in ends(figure)] == list(SYMBOLS)
    assert len(set(colours(palette))) == len(set(DASHES)) == len(set(SYMBOLS)) == len(set(MARKS)) == 4
    for colour in colours(palette):
        assert contrast(colour, palette.background) >= 3  # WCAG 2.2, 1.4.11
    for note in names(figure):
        assert contrast(note.font.color, palette.background) >= 4.5


@pytest.mark.parametrize(("clock", "scale"), [("steps", 5), ("seconds", 0.25)])
@pytest.mark.parametrize("measure", ["accuracy", "loss"])
def test_the_data_are_drawn_on_the_clock(clock, scale, measure):
    figure = learning_curves(FOUR, clock=clock, measure=measure)
    for line, end, drawn in zip(lines(figure), ends(figure), FOUR, strict=True):
        n = len(drawn.values)
        np.testing.assert_allclose(line.x, scale * np.arange(1, n + 1))
        np.testing.assert_allclose(line.y, drawn.values, rtol=1e-6)
        assert (end.x[0], end.y[0]) == pytest.approx((scale * n, drawn.values[-1]))
        assert (end.marker.size > 10) == drawn.solved
    assert figure.layout.xaxis.title.text == ("step" if clock == "steps" else "seconds since its start")
    assert figure.layout.xaxis.range[1] >= 4 * scale


def test_hovering_is_a_sentence():
    (line,) = lines(learning_curves([curve("no <positions>", [0.25, 0.5])]))
    assert line.hovertext[1] == "no &lt;positions&gt;, step 10, 0.50 s: last part right in 0.500"
    (line,) = lines(learning_curves([curve("a", [2.25])], measure="loss"))
    assert line.hovertext[0] == "a, step 5, 0.25 s: loss 2.250 nats"
    (end,) = ends(learning_curves([curve("a", [1.0], solved=True)]))
    assert end.hovertext[0].endswith(": solved")


def test_names_say_what_became_of_each():
    def said(**options: object) -> list[str]:
        return sorted(re.sub("<.*?>", "", note.text)[2:] for note in names(learning_curves(FOUR, **options)))

    assert said() == ["a ✓ step 15", "b ✓ step 20", "c: 0.12", "d: 0.11"]
    assert said(clock="seconds") == ["a ✓ 0.8 s", "b ✓ 1.0 s", "c: 0.12", "d: 0.11"]
    long = learning_curves([curve("x" * 60, [0.1])])
    assert names(long)[0].text.endswith(f"{'x' * 25}…: 0.10")
    assert lines(long)[0].name == "x" * 60


def test_nearly_all_is_not_all():
    said = {1.0: "1.00", 0.9999: "0.999", 0.996: "0.996", 0.994: "0.99", 0.1: "0.10"}
    assert {share: share_text(share) for share in said} == said


def placed(figure: go.Figure, height: int) -> list[float]:
    """The middle of each name, in pixels from the top of the axes."""
    low, high = figure.layout.yaxis.range
    room = height - figure.layout.margin.t - figure.layout.margin.b
    return [(high - note.y) / (high - low) * room + note.ay for note in names(figure)]


@given(
    st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=5), min_size=1, max_size=4),
    st.sampled_from(["accuracy", "loss"]),
    st.sampled_from([300, 360, 500]),
)
def test_names_never_touch_and_stay_within(values, measure, height):
    curves = [curve(f"run {i}", list_, i) for i, list_ in enumerate(values)]
    figure = learning_curves(curves, measure=measure, height=height, chance=[0.1])
    places = sorted(placed(figure, height))
    assert len(places) == len(values)
    assert all(b - a >= LINE - 1.5 for a, b in pairwise(places))
    assert places[0] >= -1.5
    assert places[-1] <= height - figure.layout.margin.t - figure.layout.margin.b


def test_of_ends_on_one_height_the_last_has_its_name_beside_it():
    figure = learning_curves([curve("a", [0.5, 1.0], 0), curve("b", [0.2, 0.5, 0.9, 1.0], 1)])
    notes = {re.sub("<.*?>", "", note.text)[2:3]: note.ay for note in names(figure)}
    assert notes["b"] == 0
    assert notes["a"] > LINE  # lower still: a line below, the other curve runs


def test_a_name_gives_way_to_another_curve():
    """The first run ends early, where the second still climbs: at its height a name would lie on that curve."""
    early = Curve("early", np.arange(0, 50, 10), np.arange(5.0), np.array([0.1, 0.5, 1, 1, 1]), True)
    late = Curve("late", np.arange(0, 210, 10), np.arange(21.0), np.linspace(0.1, 3.1, 21).clip(max=1), True, 1)
    name = next(note for note in learning_curves([early, late]).layout.annotations if "early" in note.text)
    unit = (1.06 + 0.08) / (380 - 14 - 48)  # shares a pixel
    height = name.y - name.ay * unit
    pixels = np.linspace(16, 130, 50) * 200 / 260  # the name in a narrow window: 260 pixels for 200 steps
    beside = np.interp(40 + pixels, late.steps, late.values)
    assert np.abs(beside - height).min() > 8 * unit
    alone = next(note for note in learning_curves([early]).layout.annotations if "early" in note.text)
    assert alone.ay == 0


@given(st.lists(st.floats(0, 1), max_size=6))
def test_staggered_places_keep_apart(heights):
    places = stagger(sorted(heights, reverse=True), 0.15, 0, 1)
    assert all(a - b >= 0.15 - 1e-9 for a, b in pairwise(places))
    assert all(-1e-9 <= place <= 1 + 1e-9 for place in places)


def test_what_has_room_stays_where_it_is():
    assert stagger([0.9, 0.5, 0.1], 0.2, 0, 1) == [0.9, 0.5, 0.1]
    assert stagger([0.5, 0.5], 0.2, 0, 1) == pytest.approx([0.5, 0.3])
    assert stagger([0.1, 0.1], 0.2, 0, 1) == pytest.approx([0.2, 0.0])


def shapes(figure: go.Figure) -> list[float]:
    return [shape.y0 for shape in figure.layout.shapes]


def texts(figure: go.Figure) -> list[str]:
    return [note.text for note in figure.layout.annotations if not note.showarrow]


def test_the_levels_to_read_against():
    assert shapes(learning_curves(FOUR, chance=[0.1] * 4)) == [0.1]
    assert texts(learning_curves(FOUR, chance=[0.1] * 4)) == ["chance: 0.10"]
    assert texts(learning_curves(FOUR, chance=[0.1, 0.5])) == ["chance: 0.10 and 0.50"]
    figure = learning_curves(FOUR, measure="loss", chance=[2.3, 2.3], floors=[0.18, 0.0, 0.18])
    assert shapes(figure) == [2.3, 0.0, 0.18]
    assert texts(figure) == ["guessing: 2.30", "loss floor: 0.00 and 0.18"]
    low, high = figure.layout.yaxis.range
    assert low < 0
    assert high > 2.3


def test_without_a_point_it_says_that_it_waits():
    for curves in ([], [curve("a", [])], [curve("a", []), curve("b", [], 1)]):
        for measure in ("accuracy", "loss"):
            figure = learning_curves(curves, measure=measure, chance=[0.1])
            assert not figure.data
            assert texts(figure)[0] == "waiting for the first measurement"


def test_a_run_keeps_its_colour_while_another_has_no_point_yet():
    figure = learning_curves([curve("a", []), curve("b", [0.5], 1)])
    assert [line.line.color for line in lines(figure)] == [colours(LIGHT)[1]]


def test_losses_that_are_no_numbers_and_too_many_runs():
    figure = learning_curves([curve("a", [2.0, float("nan")])], measure="loss", chance=[2.3])
    assert np.isfinite(figure.layout.yaxis.range).all()
    assert np.isfinite([note.y for note in names(figure)]).all()
    with pytest.raises(ValueError, match="at most 4 runs"):
        learning_curves([curve("a", [1.0])] * 5)


def test_long_runs_are_thinned_and_keep_their_last_point():
    values = np.linspace(0, 1, 10_007)
    (line,) = lines(learning_curves([curve("long", values.tolist())]))
    assert len(line.x) <= MOST_POINTS + 1
    assert line.x[-1] == 5 * len(values)
    kept = np.array(line.x) // 5 - 1
    np.testing.assert_allclose(line.y, values[kept], rtol=1e-6)


@given(st.floats(0.1, 1e7))
def test_an_axis_moves_seldom(value):
    assert value * (1 - 1e-6) <= round_up(value) <= 2.0001 * value
    assert round_up(0) == 0.1


# --- the list


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_the_list_has_the_same_marks_and_every_word_is_only_a_word(palette):
    rows = [
        Row("seed 1", "solved at step 30 after 0.4 s", "The mask holds.", "run-1"),
        Row("<script>alert(1)</script>", "<b>", "&", '"><img src=x>'),
    ]
    text = standings_list(rows, palette)
    for place, row in enumerate(rows):
        assert MARKS[place] in text
        assert STROKES[place].format(colours(palette)[place]) in text
        for word in (row.name, row.outcome, row.meaning, row.folder):
            assert word in unescape(text)
    assert "<script" not in text
    assert "<img" not in text
    assert standings_list([], palette).count("<li") == 0
