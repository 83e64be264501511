"""The first question: what waits for what, against the textbook's counts, and the page that shows it."""

from __future__ import annotations

import itertools
import re
from graphlib import CycleError

import numpy as np
import pytest
import torch

from dashboard.app_pages.learn.questions import recurrence
from dashboard.app_pages.learn.questions.figures.schedule import Schedule, Timing, pass_lines, schedule_heatmaps
from tests.kit.pages import array, figures, link, open_page
from transformer.analysis.accuracy.ceilings import reachable
from transformer.analysis.sequential.dependencies import moments, waits_for, way
from transformer.analysis.sequential.timing import parameters, same_size, time_passes
from transformer.masks import parse

SIZES = list(itertools.product((1, 2, 5), (1, 2, 3)))  # tokens, layers


def causal(length: int) -> np.ndarray:
    return np.arange(length)[:, None] >= np.arange(length)[None, :]


@pytest.mark.parametrize(("length", "layers"), SIZES)
def test_moments_and_ways_are_those_of_the_textbook(length, layers):
    """A staircase, columns, and one token after the other: from the definitions, not from a graph."""
    waits = {kind: waits_for(kind, layers, causal(length)) for kind in ("recurrent", "attention", "writing")}
    taken = {kind: moments(each) for kind, each in waits.items()}
    for layer, place in itertools.product(range(layers), range(length)):
        assert taken["recurrent"][layer, place] == 1 + layer + place
        assert taken["attention"][layer, place] == 1 + layer
        assert taken["writing"][layer, place] == 1 + place * layers + layer
    assert way(waits["recurrent"]) == length - 1 + layers
    assert way(waits["attention"]) == layers


@pytest.mark.parametrize("mask", ["causal", "full", "sliding-window:1", "sliding-window:3", "anti-causal", "hide:1"])
@pytest.mark.parametrize("layers", [1, 2, 4])
def test_there_is_a_way_exactly_where_the_mask_lets_something_arrive(mask, layers):
    matrix = parse(mask).matrix(6)
    found = way(waits_for("attention", layers, matrix))
    assert (found == layers) if reachable(matrix, layers)[-1, 0] else (found is None)


def test_nobody_can_write_what_waits_for_itself():
    with pytest.raises(CycleError):
        moments(waits_for("writing", 2, np.ones((3, 3), dtype=bool)))


def test_a_schedule_shows_each_state_once_at_its_moment():
    schedules = [Schedule(kind, moments(waits_for(kind, 2, causal(4)))) for kind in ("attention", "recurrent")]
    figure = schedule_heatmaps(schedules)
    for each, panel in zip(schedules, figure.data, strict=True):
        drawn = np.array(panel.z)
        assert drawn.shape == (4, 5)  # all on the clock of the slowest
        assert np.isfinite(drawn).sum() == 8
        for layer, place in itertools.product(range(2), range(4)):
            assert drawn[place, each.moments[layer, place] - 1] == layer
    said = [re.findall(r"\d+ sequential steps?", note.text) for note in figure.layout.annotations]
    assert said == [["2 sequential steps"], ["5 sequential steps"]]


@pytest.mark.parametrize(("length", "layers"), [(2, 1), (8, 2), (7, 3), (32, 6)])
def test_the_ticks_of_a_schedule_are_regular(length, layers):
    taken = {kind: moments(waits_for(kind, layers, causal(length))) for kind in ("attention", "recurrent", "writing")}
    layout = schedule_heatmaps([Schedule(kind, each) for kind, each in taken.items()]).layout
    for axis, last in ((layout.xaxis3, length * layers), (layout.yaxis, length)):
        ticks = list(axis.tickvals)
        assert {later - tick for tick, later in itertools.pairwise([0, *ticks])} == {ticks[0]}
        assert len(ticks) <= 9
        assert last - ticks[-1] < ticks[0]
    assert layout.margin.t > 30  # over the words on the right, where the buttons come up


@pytest.mark.parametrize("layers", [1, 2, 4])
def test_what_is_timed_is_of_one_size(layers):
    gates, blocks = same_size(layers)
    width = 64
    block = 4 * (width * width + width) + 2 * 4 * width * width + 4 * width + width + 4 * width
    assert parameters(blocks) == layers * block
    assert abs(parameters(gates) / parameters(blocks) - 1) < 0.02


def test_every_length_is_timed():
    found = time_passes(1, (4, 9), torch.device("cpu"), repeats=1)
    assert found.lengths == (4, 9)
    assert found.recurrent.shape == found.attention.shape == (2,)
    assert (found.recurrent > 0).all()
    assert (found.attention > 0).all()
    drawn = pass_lines(found.lengths, [Timing("a", found.attention), Timing("g", found.recurrent)])
    np.testing.assert_allclose(drawn.data[1].y, found.recurrent, rtol=1e-6)


@pytest.mark.daily(1)
@pytest.mark.parametrize(("tokens", "layers"), [(8, 3), (32, 6)])
def test_the_title_counts_moments(tokens, layers):
    app = open_page("questions", run="reverse", unrolled=str(tokens), stacked=str(layers))
    numbers = [int(number) for number in re.findall(r"\d+", app.title[0].value)]
    assert numbers == [tokens + layers - 1, tokens, layers]
    panels = [array(panel["z"]) for panel in figures(app)["schedule"]["data"]]
    assert [panel.shape for panel in panels] == [(tokens, tokens * layers)] * 3
    assert [int(np.isfinite(panel).sum()) for panel in panels] == [tokens * layers] * 3


def test_passes_are_timed_when_asked_for():
    app = open_page("questions", run="reverse")
    assert "passes" not in figures(app)
    next(button for button in app.button if button.label.startswith("Time one pass")).click().run()
    assert not app.exception
    assert link(app) == {"run": "reverse", "timed": "1"}
    lines = figures(app)["passes"]["data"]
    found = recurrence.timed(2).passes
    np.testing.assert_allclose(array(lines[0]["y"]), found.attention, rtol=1e-6)
    np.testing.assert_allclose(array(lines[1]["y"]), found.recurrent, rtol=1e-6)
