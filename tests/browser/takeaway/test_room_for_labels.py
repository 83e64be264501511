"""Labels of axes in a real browser: as many as do not touch, whatever the window, and all again where there is room."""

from __future__ import annotations

import base64
import re
from itertools import combinations

import numpy as np
import plotly.graph_objects as go
import pytest
from playwright.sync_api import Locator, Page, ViewportSize, expect

from dashboard.components.plot import pack_figure
from dashboard.figures.patterns import scores_heatmap
from tests.kit.driving import PAGES, plot, point_at, point_at_cell, wait_until_painted
from tests.kit.waiting import wait_for

PROJECTOR: ViewportSize = {"width": 1024, "height": 768}
NARROW: ViewportSize = {"width": 1110, "height": 768}
WORDS = ["antony", "␣", "misbecoming", ",␣", "of", "↵", "gypsy", "␣"]


def draw(host: Locator, figure: go.Figure, height: int = 270) -> None:
    """Let a plot of the page draw another figure, as if Python had sent it."""
    message = pack_figure(figure, key="tried", alt="A figure.", height=height)
    draws = host.evaluate(
        """(host, text) => {
          const { draws } = host.__plot;
          host.__plot.update(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)), () => {});
          return draws;
        }""",
        base64.b64encode(message).decode(),
    )
    wait_for("a plot that is drawn anew", lambda: host.evaluate("host => host.__plot.draws"), lambda now: now > draws)


def boxes(host: Locator, axis: str) -> list[tuple[str, float, float, float, float]]:
    """Each label of an axis that is seen: its text, and where it stands: left, top, right, bottom."""
    found = host.evaluate(
        """(host, axis) => Array.from(host.querySelectorAll(`.${axis}tick text`), (label) => {
          const { left, top, right, bottom } = label.getBoundingClientRect();
          return [label.textContent, left, top, right, bottom];
        })""",
        axis,
    )
    return [(text, *places) for text, *places in found if places[2] > places[0]]


def apart(host: Locator, axis: str) -> bool:
    """Does no letter stand on another? Of a line four tenths of the letters' size are free, above them and below."""
    size = host.evaluate(
        "(host, axis) => parseFloat(getComputedStyle(host.querySelector(`.${axis}tick text`)).fontSize)", axis
    )
    return all(
        min(one[2] - other[0], other[2] - one[0], one[3] - other[1], other[3] - one[1]) <= 0.4 * size
        for (_, *one), (_, *other) in combinations(boxes(host, axis), 2)
    )


UPPER_EDGE = """(host) => {
  const { left, top, width } = host.getBoundingClientRect();
  return [left + width / 2, top + 20];
}"""


@pytest.fixture(scope="module")
def masks(common: Page, address: str) -> Page:
    """A page of matrices on a projector."""
    common.set_viewport_size(PROJECTOR)
    common.goto(f"{address}/masks?run=reverse&head=decoder.0.self_attention.2&mask=causal")
    wait_until_painted(common, PAGES["Mask effects"])
    return common


def test_pointing_at_a_cell_says_a_sentence(masks: Page) -> None:
    figure = plot(masks, "after-pattern")
    label = figure.locator(".hoverlayer .hovertext")
    point_at_cell(figure, row=8, column=7)
    expect(label).to_have_text(re.compile(r"^query 'SEP' at 9 reads '6' at 8: (1\.00|0\.9\d)$"))
    point_at_cell(figure, row=2, column=5)
    expect(label).to_have_text("query '4' at 3 may not see '9' at 6")


def test_the_buttons_of_a_plot_stand_beside_it_and_can_be_clicked(masks: Page) -> None:
    """At a projector's width: 4 pixels over the plot's edge, none beyond the window's."""
    for figure in masks.locator(".al-plot[data-state=ready]").all():
        point_at(figure, UPPER_EDGE)
        box = figure.bounding_box()
        assert box
        for button in [figure.locator(":scope > .takeaway"), *figure.locator(".modebar-btn").all()]:
            place = button.bounding_box()
            assert place
            assert place["x"] >= box["x"] + box["width"] - 4.5
            assert place["x"] + place["width"] <= PROJECTOR["width"]
            button.click(trial=True)
    assert masks.get_by_test_id("stMain").evaluate("main => main.scrollWidth <= main.clientWidth")


@pytest.mark.parametrize("n", [48, 160])
def test_labels_of_a_matrix_never_touch(n: int, masks: Page) -> None:
    host = masks.locator(".st-key-before-scores .al-plot")
    labels = [WORDS[place % len(WORDS)] for place in range(n)]
    draw(host, scores_heatmap(np.full((n, n), -19.6), None, labels, labels))
    for axis in ("x", "y"):
        assert apart(host, axis)
        assert 4 <= len(boxes(host, axis)) <= 20
        assert all(any(c.isalpha() for c in text) for text, *_ in boxes(host, axis))
    ends = host.locator(".annotation-text")
    assert ends.all_text_contents() == ["−19.6", "19.6"]
    edge = host.bounding_box()
    assert edge is not None
    for box in [each.bounding_box() for each in ends.all()]:
        assert box is not None
        assert edge["x"] <= box["x"]
        assert box["x"] + box["width"] <= edge["x"] + edge["width"]


def test_labels_come_back_when_there_is_room(masks: Page) -> None:
    host = masks.locator(".st-key-three .al-plot")
    names = [f"at {i}" for i in range(20)]
    axis = {"tickmode": "array", "tickvals": list(range(20)), "ticktext": names, "tickangle": 0}
    figure = go.Figure([{"type": "bar", "y": [1.0] * 20}], {"xaxis": axis, "margin": {"l": 10, "r": 10}})
    masks.set_viewport_size(NARROW)  # two columns still
    draw(host, figure)
    few = [text for text, *_ in boxes(host, "x")]
    assert 4 <= len(few) < 20
    assert apart(host, "x")
    masks.set_viewport_size({"width": 1800, "height": 900})
    masks.wait_for_function("host => host.querySelectorAll('.xtick text').length === 20", arg=host.element_handle())
    assert [text for text, *_ in boxes(host, "x")] == names
    assert apart(host, "x")
    masks.set_viewport_size(NARROW)
    masks.wait_for_function("host => host.querySelectorAll('.xtick text').length < 20", arg=host.element_handle())
    assert [text for text, *_ in boxes(host, "x")] == few
