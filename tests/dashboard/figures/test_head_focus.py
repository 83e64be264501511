"""The figure of one head: its matrices, its arcs, and where they stand at every width."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from dashboard.components.plot import pack_figure
from dashboard.figures import head_focus
from dashboard.figures.head_focus import FAINT, Subject, View, Whole, head_figure
from tests.kit.figures import decoded

N = 9
TOKENS = tuple("314159265")
RANDOM = np.random.default_rng(0)
MASK = np.tri(N, dtype=bool)
PATTERN = np.where(MASK, RANDOM.random((N, N)) ** 4, 0)
PATTERN /= PATTERN.sum(axis=1, keepdims=True)
SUBJECT = Subject("decoder.1.self_attention.2", 6, TOKENS, TOKENS, MASK, (N, N), marks=np.eye(N, dtype=bool))
VIEWS = [
    View("pattern", "Pattern", PATTERN, 0.0, 1.0),
    View("contribution", "Contribution: ‖pattern · v · W_O‖", 7 * PATTERN, 0.0, 7.0),
    View("difference", "Pattern − head 0.1", PATTERN - PATTERN[:, ::-1], -1.0, 1.0),
]


def sent(figure: go.Figure) -> dict[str, Any]:
    """The figure as the browser gets it."""
    made: dict[str, Any] = json.loads(figure.to_json())
    return made


def matrices(figure: go.Figure) -> dict[str, dict[str, Any]]:
    """The heatmaps with numbers, by what they are called."""
    return {trace["meta"]["view"]: trace for trace in sent(figure)["data"] if "view" in trace.get("meta", {})}


def arcs(figure: go.Figure) -> dict[tuple[float, float], tuple[float, float]]:
    """Width and opacity of each arc, by where it begins and ends."""
    found = {}
    for shape in sent(figure)["layout"].get("shapes", []):
        if shape["type"] == "path":
            for start, *bends, end in re.findall(r"M0,([\d.]+)C0.45,([\d.]+) 0.55,([\d.]+) 1,([\d.]+)", shape["path"]):
                assert bends == [start, end], "its ends run level"
                found[float(start), float(end)] = shape["line"]["width"], shape["opacity"]
    return found


def frames(figure: go.Figure) -> list[tuple[str, tuple[float, ...]]]:
    rectangles = [shape for shape in sent(figure)["layout"].get("shapes", []) if shape["type"] == "rect"]
    return [(each["xref"], tuple(each[side] for side in ("x0", "x1", "y0", "y1"))) for each in rectangles]


# --- its matrices


def test_each_matrix_holds_its_numbers_where_something_may_be_seen() -> None:
    figure = head_figure(SUBJECT, VIEWS)
    found = matrices(figure)
    assert list(found) == ["pattern", "contribution", "difference"]
    for view in VIEWS:
        np.testing.assert_allclose(decoded(found[view.name]["z"]), np.where(MASK, view.values, np.nan), rtol=1e-6)
    grey = [trace for trace in sent(figure)["data"] if trace.get("meta", {}).get("forbidden")]
    assert [trace["xaxis"] for trace in grey] == ["x", "x2", "x3"]
    for trace in grey:
        np.testing.assert_array_equal(np.isnan(decoded(trace["z"])), MASK)
    assert [trace["name"] for trace in sent(figure)["data"]].count("hatching") == 3
    assert [trace["name"] for trace in sent(figure)["data"]].count("expected") == 3


def test_each_matrix_has_the_scale_it_was_given() -> None:
    layout = head_figure(SUBJECT, VIEWS).layout
    ends = [(layout[name].cmin, layout[name].cmax) for name in ("coloraxis", "coloraxis2", "coloraxis3")]
    assert ends == [(0, 1), (0, 7), (-1, 1)]
    assert layout.coloraxis.colorscale == layout.coloraxis2.colorscale != layout.coloraxis3.colorscale
    written = [note.text for note in layout.annotations]
    assert written[:9] == [
        *("<b>Pattern</b>", "1", "0"),
        *("<b>Contribution</b>", "7", "0"),  # its formula has no room
        *("<b>Pattern − head 0.1</b>", "1", "−1"),
    ]


def test_matrices_zoom_together_and_count_from_one() -> None:
    figure = head_figure(SUBJECT, VIEWS)
    assert [figure.layout[f"xaxis{n}"].matches for n in ("2", "3")] == ["x", "x"]
    assert [figure.layout[f"yaxis{n}"].matches for n in ("2", "3")] == ["y", "y"]
    assert figure.layout.yaxis.range == (N + 0.5, 0.5)
    assert figure.layout.xaxis.range == (0.5, N + 0.5)
    assert figure.layout.xaxis.tickvals == tuple(range(1, N + 1))
    assert figure.layout.xaxis.ticktext == TOKENS
    assert (figure.layout.xaxis.title.text, figure.layout.yaxis.title.text) == ("key: looked at", "query: who looks")
    for trace in matrices(figure).values():
        assert (trace["x0"], trace["dx"], trace["y0"], trace["dy"]) == (1, 1, 1, 1)
    frame = next(trace for trace in sent(figure)["data"] if trace["name"] == "expected")
    assert decoded(frame["x"])[:5].mean() == pytest.approx(1, abs=0.2), "the first outlined cell is (1, 1)"


def test_with_a_scale_for_each_row_its_greatest_is_one_and_the_numbers_are_kept() -> None:
    found = matrices(head_figure(SUBJECT, VIEWS, by_row=True))
    for view in VIEWS[:2]:
        trace = found[view.name]
        np.testing.assert_allclose(np.nanmax(decoded(trace["z"]), axis=1), 1, rtol=1e-6)
        np.testing.assert_allclose(decoded(trace["customdata"]), np.where(MASK, view.values, np.nan), rtol=1e-6)
        assert "customdata" in trace["hovertemplate"]
        assert trace["meta"]["numbers"] == "customdata"
    np.testing.assert_allclose(decoded(found["difference"]["z"]), np.where(MASK, VIEWS[2].values, np.nan), rtol=1e-6)


def test_a_row_of_zeros_has_a_scale_too() -> None:
    (trace,) = matrices(head_figure(SUBJECT, [replace(VIEWS[0], values=np.zeros((N, N)))], by_row=True)).values()
    np.testing.assert_array_equal(decoded(trace["z"]), np.where(MASK, 0, np.nan))


# --- its arcs


def test_an_arc_for_each_key_that_is_read_and_heavier_where_more_is_read() -> None:
    found = arcs(head_figure(SUBJECT, VIEWS[:1]))
    expected = {(row + 1.0, key + 1.0) for row, key in np.argwhere(MASK & (PATTERN >= FAINT)).tolist()}
    assert set(found) == expected
    weights = {ends: PATTERN[int(ends[0]) - 1, int(ends[1]) - 1] for ends in found}
    for ends, (width, opacity) in found.items():
        assert width == pytest.approx(0.5 + 2.5 * weights[ends], abs=2.5 / 16 + 1e-9)
        assert opacity == pytest.approx(0.08 + 0.92 * weights[ends], abs=0.92 / 16 + 1e-9)


def test_keys_have_the_whole_height_however_many_they_are() -> None:
    subject = replace(SUBJECT, keys=TOKENS[:3], mask=np.ones((N, 3), dtype=bool), size=(N, 3), marks=None)
    figure = head_figure(subject, [replace(VIEWS[0], values=np.full((N, 3), 1 / 3))])
    ends = sorted({end for _, end in arcs(figure)})
    # A third of the height each; the queries' axis goes from 0.5 to 9.5.
    np.testing.assert_allclose(ends, [2, 5, 8])
    assert (figure.layout.yaxis2.range, figure.layout.yaxis3.range) == ((9.5, 0.5), (3.5, 0.5))


def test_rows_too_close_to_be_told_apart_have_arcs_only_where_they_have_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head_focus, "SMALLEST_ROW", 60)
    monkeypatch.setattr("dashboard.figures.kit.token_axis.MOST_LABELS", 3)
    figure = head_figure(SUBJECT, VIEWS[:1])
    assert {start for start, _ in arcs(figure)} == {1, 4, 7} == set(figure.layout.yaxis2.tickvals)
    assert "<b>3 of 9 rows</b>" in [note.text for note in figure.layout.annotations]


def test_a_locked_query_is_framed_in_each_matrix_and_the_others_arcs_stand_back() -> None:
    plain, locked = arcs(head_figure(SUBJECT, VIEWS)), head_figure(SUBJECT, VIEWS, locked=4)
    assert frames(locked) == [(axis, (0.5, N + 0.5, 4.5, 5.5)) for axis in ("x", "x2", "x3")]
    for ends, (width, opacity) in arcs(locked).items():
        assert width == plain[ends][0]
        assert opacity == pytest.approx(plain[ends][1] * (1 if ends[0] == 5 else 0.1))
    assert locked.layout.meta["head"]["locked"] == 4
    assert frames(head_figure(SUBJECT, VIEWS)) == []


# --- long inputs

WINDOW = replace(SUBJECT, size=(40, 50), first=(20, 10))
WHOLE = Whole(np.arange(100).reshape(10, 10) / 100, np.tri(10, dtype=bool), 5)


def test_a_window_stands_at_its_positions() -> None:
    figure = head_figure(WINDOW, VIEWS, whole=WHOLE)
    assert (figure.layout.yaxis.range, figure.layout.xaxis.range) == ((29.5, 20.5), (10.5, 19.5))
    assert figure.layout.yaxis.tickvals == tuple(range(21, 30))
    assert {start for start, _ in arcs(figure)} <= set(range(21, 30))
    found = matrices(figure)
    assert (found["pattern"]["x0"], found["pattern"]["y0"]) == (11, 21)
    assert found["pattern"]["meta"]["cells"] == {"first": [20, 10], "whole": [40, 50], "factor": 1}
    assert figure.layout.meta["note"] == (
        "Exact for a window: queries 21 to 29 of 40, keys 11 to 19 of 50. The whole is downsampled 5×."
    )


def test_what_is_forbidden_stands_at_the_same_places() -> None:
    """Plotly leaves out a heatmap without any number: where a whole window is forbidden, this one must do."""
    figure = head_figure(replace(WINDOW, mask=np.zeros((N, N), dtype=bool), marks=None), VIEWS[:1])
    numbers, grey = (trace for trace in sent(figure)["data"] if trace["type"] == "heatmap")
    assert np.isnan(decoded(numbers["z"])).all()
    assert grey["meta"]["cells"] == numbers["meta"]["cells"]
    assert [grey[name] for name in ("x0", "y0", "dx", "dy")] == [numbers[name] for name in ("x0", "y0", "dx", "dy")]
    assert arcs(figure) == {}


def test_the_whole_shows_where_the_window_is() -> None:
    figure = head_figure(WINDOW, VIEWS, whole=WHOLE)
    whole = matrices(figure)["whole"]
    np.testing.assert_allclose(decoded(whole["z"]), np.where(WHOLE.mask, WHOLE.pattern, np.nan), rtol=1e-6)
    assert whole["meta"]["cells"] == {"whole": [40, 50], "factor": 5}
    ((axis, (x0, x1, y0, y1)),) = frames(figure)
    assert axis == "x4"
    # A block of five begins half a block before its place: position p lies (p - 1) / 5 blocks from the edge.
    edge = 1 - 5 / 2
    assert [(each - edge) / 5 for each in (y0, y1, x0, x1)] == [20 / 5, 29 / 5, 10 / 5, 19 / 5]
    assert figure.layout.xaxis4.range == (edge, edge + 50)
    assert "<b>All 40 × 50: click to move the frame</b>" in [note.text for note in figure.layout.annotations]


@pytest.mark.parametrize(("query", "row"), [(20, 0), (28, 8), (19, None), (29, None)])
def test_a_query_outside_the_window_is_locked_but_not_framed(query: int, row: int | None) -> None:
    figure = head_figure(WINDOW, VIEWS[:1], locked=query)
    assert frames(figure) == ([] if row is None else [("x", (10.5, 19.5, query + 0.5, query + 1.5))])
    assert figure.layout.meta["head"]["locked"] == query


def test_blocks_stand_at_the_position_of_their_first_token() -> None:
    figure = head_figure(replace(SUBJECT, size=(26, 26), factor=3), VIEWS[:1], locked=10)
    trace = matrices(figure)["pattern"]
    assert (trace["x0"], trace["dx"]) == (1, 3)
    assert figure.layout.xaxis.tickvals == tuple(range(1, 27, 3))
    assert trace["hovertemplate"].startswith("pattern: at most")
    assert figure.layout.meta["head"]["locked"] == 9, "the first of its block"
    assert frames(figure) == [("x", (-0.5, 26.5, 8.5, 11.5))]


# --- places

SUBJECTS = {
    "tokens": SUBJECT,
    "words": replace(SUBJECT, queries=("brother’s keeper",) * N, keys=("brother’s keeper",) * N),
    "many": replace(
        SUBJECT, queries=TOKENS * 9, keys=TOKENS * 9, mask=np.tri(81, dtype=bool), size=(81, 81), marks=None
    ),
    "oblong": replace(SUBJECT, keys=TOKENS[:4], mask=np.ones((N, 4), dtype=bool), size=(N, 4), marks=None),
}


@pytest.mark.parametrize("subject", SUBJECTS.values(), ids=SUBJECTS)
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("long", [False, True])
def test_at_every_width_everything_has_a_place_of_its_own(subject: Subject, count: int, long: bool) -> None:
    shape = subject.mask.shape
    views = [replace(view, values=np.zeros(shape)) for view in VIEWS[:count]]
    figure = head_figure(subject, views, whole=WHOLE if long else None)
    places = figure.layout.meta["panels"]
    assert places[-1]["least"] == min(place["least"] for place in places), "which is taken where none fits"
    for place in places:
        boxes = {}
        panels = count + long + 1
        for n in ["", *map(str, range(2, panels + 1))]:
            left, right = place["axes"][f"xaxis{n}"]
            top, bottom = place["axes"][f"yaxis{n}"]
            boxes[n] = left, right if right > 0 else place["least"] + right, top, bottom
        for n, (left, right, top, bottom) in boxes.items():
            assert 0 <= left < right <= place["least"]
            assert 0 < top < bottom < place["height"]
            rows, columns = WHOLE.mask.shape if long and n == str(count + 1) else shape
            if n != str(panels):
                assert (right - left) / columns == pytest.approx((bottom - top) / rows), "cells are squares"
        for one in boxes:
            for other in boxes:
                a, b = boxes[one], boxes[other]
                assert one == other or a[1] < b[0] or b[1] < a[0] or a[3] < b[2] or b[3] < a[2]
        right, bottom = place["pattern"]
        assert boxes[""][1] < right
        assert boxes[""][3] < bottom
        others = [box for n, box in boxes.items() if n]
        assert all(left > right or top > bottom for left, _, top, _ in others), "it holds no other panel"
    beside = [place["axes"][f"yaxis{panels}"] == place["axes"]["yaxis"] for place in places]
    half = len(places) // 2
    assert beside == [True] * half + [False] * half, "the arcs are beside the pattern, row for row, or below it"


def test_the_figure_as_it_is_made_stands_where_its_widest_place_says() -> None:
    """Whoever takes the figure itself, as a notebook does, sees what the page shows."""
    layout = head_figure(SUBJECT, VIEWS).layout
    place = layout.meta["panels"][0]
    assert (layout.width, layout.height) == (place["least"], place["height"])
    for n in ("", "2", "3"):
        left, right = layout[f"xaxis{n}"].domain
        bottom, top = layout[f"yaxis{n}"].domain
        np.testing.assert_allclose([left * layout.width, right * layout.width], place["axes"][f"xaxis{n}"])
        down = [(1 - end) * layout.height for end in (top, bottom)]
        np.testing.assert_allclose(down, place["axes"][f"yaxis{n}"])
        bar = layout[f"coloraxis{n}"].colorbar
        np.testing.assert_allclose([bar.x * layout.width, (1 - bar.y) * layout.height], place["bars"][f"coloraxis{n}"])
    assert layout.xaxis4.domain[1] * layout.width == pytest.approx(layout.width + place["axes"]["xaxis4"][1])


# --- what cannot be drawn, and how much is sent


@pytest.mark.parametrize(
    ("subject", "views", "sentence"),
    [
        (SUBJECT, [], "at least one view"),
        (SUBJECT, [replace(VIEWS[0], values=np.eye(3))], r"pattern is \[3, 3\], the mask \[9, 9\]"),
        (SUBJECT, [replace(VIEWS[0], high=0.0)], "scale of pattern must rise"),
        (replace(SUBJECT, marks=np.ones((1, 2), dtype=bool)), VIEWS, r"marks are \[1, 2\]"),
        (replace(SUBJECT, keys=TOKENS[1:]), VIEWS, "9 query labels and 8 key labels for a pattern of 9 × 9"),
    ],
)
def test_a_head_that_cannot_be_drawn_is_refused_in_words(subject: Subject, views: list[View], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        head_figure(subject, views)


def test_a_click_at_512_tokens_sends_less_than_a_megabyte() -> None:
    tokens = tuple(str(i) for i in range(64))
    open_mask = np.tri(64, dtype=bool)
    subject = Subject("h", 0, tokens, tokens, open_mask, (512, 512), (9, 9), says=tokens)
    values = np.where(open_mask, RANDOM.random((64, 64)), 0)
    views = [replace(view, values=values) for view in VIEWS]
    whole = Whole(RANDOM.random((128, 128)), np.tri(128, dtype=bool), 4)
    figure = head_figure(subject, views, whole=whole)
    assert len(pack_figure(figure, key="head", alt="A head.", height=None)) < 1_000_000


def test_a_figure_that_says_how_high_it_is_need_not_be_told() -> None:
    figure = head_figure(SUBJECT, VIEWS)
    told = pack_figure(figure, key="head", alt="A head.", height=figure.layout.height)
    assert pack_figure(figure, key="head", alt="A head.", height=None) == told
