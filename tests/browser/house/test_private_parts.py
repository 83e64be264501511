"""The private parts of Streamlit and Plotly that our style sheet and scripts lean on are there, each by its name.

Where Streamlit's page has renamed one, all works on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from dashboard.components.documents.bundle import WEB
from dashboard.frame.style import style
from dashboard.server.plotly_js import TRACES
from dashboard.server.streamlit_private import BUTTONS, PAGE, SIDEBAR
from tests.browser.conftest import SCREEN
from tests.kit.driving import PATIENCE, dashboard, listen
from tests.kit.streamlit_insides.other_streamlit import RENAMED, environment, rename_in_page
from tests.kit.waiting import wait_for

PLACES = (
    "heads",
    "heads?run=shakespeare",
    "inside",
    "information",
    "masks",
    "edits?edits=zero:decoder.0.self_attention.0&exercise=two-heads",
    "overview?lecture=attention&sidebar=0&room=K7WQ",
    "machine?box=none",
    "bottleneck",
    "check",
    "film?run=reverse",
)
"""Pages on which together every selector has something to find."""
SELECTORS = [
    re.sub(r":hover|::after|::before", "", selector.strip())
    for rule in re.findall(r"([^{}]+)\{[^{}]*\}", re.sub(r"</?style>", "", style(1)))
    for selector in re.split(r",\s+", rule)
] + [PAGE, *SIDEBAR, *BUTTONS]
"""Of frame/style.css, and of the steps of a lecture."""
WANTED = {
    *(each for each in SELECTORS if "st-key-training" not in each and "stSpinner" not in each),
    ".st-key-inside-numbers .stHtml",
    "[data-test-script-state=running]",
}
"""And of components/web/kit/streamlit_private.js: what st.html drew, and that a rerun is under way.

The panel of a training is on none of these pages, and what is measured at once needs no word that says so:
test_door.py sees that these rules hold.
"""
A_SHEET_S_SCRIPT = re.compile(r"/attention-lab\.sheet/.*\.js")
"""It is held back for a round: its skeleton stands only until it has come, which may be at once."""
SEEN = """(selectors) => {
  window.seenSelectors = [];
  const look = () => {
    const seen = selectors.filter((each) => document.querySelector(each));
    selectors = selectors.filter((each) => !seen.includes(each));
    window.seenSelectors.push(...seen);
  };
  new MutationObserver(look).observe(document, { childList: true, subtree: true, attributes: true });
}"""
"""Notes what was found at any moment: a skeleton stands only until its component has come."""


def test_every_selector_of_our_sheet_and_scripts_finds_something(chromium: Browser, address: str) -> None:
    """On one of the pages, at some moment within PATIENCE."""
    found: set[str] = set()
    held: list[Route] = []
    with chromium.new_context() as context:
        context.add_init_script(f"({SEEN})({json.dumps(sorted(WANTED))})")
        context.route(A_SHEET_S_SCRIPT, lambda route: held.append(route))
        pages = [context.new_page() for _ in PLACES]
        for page, place in zip(pages, PLACES, strict=True):
            page.goto(f"{address}/{place}")

        def missing() -> set[str]:
            for page in pages:
                found.update(page.evaluate("window.seenSelectors"))
            while held:
                held.pop().continue_()
            return WANTED - found

        wait_for("every selector has found something", missing, lambda left: not left)


PRIVATE = (WEB / "kit" / "streamlit_private.js").read_text(encoding="utf-8")
NAMES = sorted({"data-stale", *re.findall(r"\bst[A-Z]\w+|data-test-\w+-state", " ".join([*SELECTORS, PRIVATE]))})
CODES = list(zip(NAMES, combinations(range(8), 4), strict=False))
GROUPS = [[name for name, code in CODES if part in code] for part in range(8)]
"""Of any two names, one group has the first and not the second, and another the second and not the first."""


VIEW = "inside?run=reverse&query=9&operation=dot&lecture=attention&lecture_step=6&exploring=1"
"""A page of figures, tables and a sidebar, in a lecture."""
NOT_KNOWN = "this version of Streamlit makes its pages of parts that are not known here"
WRITTEN = """() => {
  try { return window.__writing.write({ whole: true }).title; } catch (error) { return error.message; }
}"""


def expect_to_work(chromium: Browser, address: str, names: Iterable[str]) -> None:
    """It draws its figures, saves its tables, writes itself down, and answers a button; nothing complains."""
    complaints: list[str] = []
    with chromium.new_context(viewport=SCREEN) as context:
        rename_in_page(context, names)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        listen(page, address, complaints)
        page.goto(f"{address}/{VIEW}")
        expect(page.locator("h1")).to_be_visible()
        expect(page.locator(".al-plot[data-state=ready]")).to_have_count(3)
        place = page.locator(".al-sheet").first
        place.locator("xpath=..").hover()
        place.get_by_role("button").click()
        with page.expect_download() as download:
            place.get_by_role("menuitem", name="HTML").click()
        assert "<" in download.value.path().read_text(encoding="utf-8")
        assert page.evaluate(WRITTEN) in (page.locator("h1").text_content(), NOT_KNOWN)
        step = page.locator(".st-key-lecture-title")
        before = step.text_content() or "nothing"
        page.locator(".st-key-lecture-next button").click()
        expect(step).not_to_have_text(before)
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize("names", GROUPS, ids=lambda names: f"{len(names)}-from-{names[0]}")
def test_a_page_works_where_streamlit_has_renamed_what_is_private_in_it(
    names: list[str], chromium: Browser, address: str
) -> None:
    expect_to_work(chromium, address, names)


def test_a_server_and_its_page_work_where_streamlit_has_renamed_all_that_is_private(
    chromium: Browser, runs: Path, tmp_path: Path
) -> None:
    """All at once: the server starts and logs a line for each part, its components given as texts."""
    log = tmp_path / "log"
    with dashboard(runs, log, **environment({name for part in RENAMED.values() for name in part})) as address:
        expect_to_work(chromium, address, NAMES)
    lines = log.read_text(errors="replace").splitlines()
    assert len([line for line in lines if line.startswith("Streamlit ")]) >= len(RENAMED)
    assert not [line for line in lines if "Traceback" in line]


# --- Plotly: components/web/plot/plotly_private.js


@pytest.fixture(scope="module")
def plots(common: Page, address: str) -> Locator:
    """The figures of a page, among them a heatmap."""
    common.goto(f"{address}/layers")
    common.locator(".al-plot[data-state=ready]").nth(2).wait_for()
    return common.locator(".al-plot[data-state=ready] .al-plot-stage")


def test_the_full_layout_and_the_calcdata_know_pixels_numbers_and_edges(plots: Locator) -> None:
    assert plots.first.evaluate(
        """({ _fullLayout: { xaxis } }) => Number.isFinite(xaxis._offset) && xaxis._length > 0
          && Math.abs(xaxis.c2p(xaxis.p2c(100)) - 100) <= 0.01"""
    )
    found = plots.evaluate_all(
        """stages => stages.flatMap((gd) => gd.calcdata.map(([first]) => first))
          .filter(({ trace }) => trace.type === 'heatmap' && trace.visible === true)
          .map(({ trace, x, y, z }) => ({
            number: trace.index, axes: [trace.xaxis, trace.yaxis],
            edges: [y.length, x.length], shape: [z.length, z[0].length],
          }))"""
    )
    assert found
    for each in found:
        assert each["number"] >= 0
        assert [axis[0] for axis in each["axes"]] == ["x", "y"]
        assert each["edges"] == [each["shape"][0] + 1, each["shape"][1] + 1]


def test_the_bundle_of_plotly_js_draws_every_kind_of_trace_that_a_figure_may_have(plots: Locator) -> None:
    assert set(TRACES).issubset(plots.first.evaluate("() => Object.keys(Plotly.PlotSchema.get().traces)"))


def test_an_empty_text_leaves_a_place_without_a_node(plots: Locator) -> None:
    """And is not drawn again where a text comes later, unless that place is taken away (`emptied`)."""
    left = plots.first.evaluate(
        """async (gd) => {
          const figure = document.createElement('div');
          gd.append(figure);
          await Plotly.react(figure, [{ type: 'scatter', mode: 'text', x: [0, 1], y: [0, 1], text: ['a', ''] }]);
          const left = figure.querySelectorAll('.textpoint:not(:has(text))').length;
          Plotly.purge(figure);
          figure.remove();
          return left;
        }"""
    )
    assert left == 1
