"""What is written in a figure that was updated in place is what is written in a fresh one."""

from __future__ import annotations

from random import Random
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from dashboard.view.link import from_query
from dashboard.view.pages import PAGES as MENU
from tests.kit.driving import PATIENCES

CHANGES = 3
TEXTS = """(gd) => {
  const shown = [...gd.querySelectorAll('.main-svg text')].filter(
    (text) => !text.closest('.hoverlayer') && !text.closest('[display=none]') && text.textContent.trim());
  const point = (text) => text.closest('.textpoint') !== null;
  const words = (texts) => texts.map(({ textContent }) => textContent);
  return [words(shown.filter(point)), words(shown.filter((text) => !point(text))).sort()];
}"""
"""The texts that a figure shows: those of its points, in their order, and all others."""
COMPARED = f"""async () => {{
  const texts = {TEXTS}, found = [];
  for (const host of document.querySelectorAll('.al-plot[data-state=ready]')) {{
    const gd = host.querySelector('.js-plotly-plot'), fresh = document.createElement('div');
    if (!gd.clientWidth) continue;
    Object.assign(fresh.style, {{ position: 'fixed', left: 0, top: 0 }});
    fresh.style.width = `${{gd.clientWidth}}px`;
    fresh.style.height = `${{gd.clientHeight}}px`;
    host.append(fresh);
    await Plotly.newPlot(fresh, structuredClone(gd.data), structuredClone(gd.layout), {{ responsive: false }});
    const key = [...host.closest('[class*=st-key-]').classList].find((name) => name.startsWith('st-key-'));
    found.push([key, texts(gd), texts(fresh)]);
    Plotly.purge(fresh);
    fresh.remove();
  }}
  return found;
}}"""
"""Each figure of the page: its key, its texts, and those of the same figure drawn for the first time."""
SETTLED = """(wanted) => {
  const [newest] = [...document.querySelectorAll('.al-origin')].sort((one, other) => other.dataset.at - one.dataset.at);
  const query = newest && JSON.parse(newest.dataset.origin).query;
  const plots = [...document.querySelectorAll('.al-plot')];
  return document.querySelector('[data-test-script-state=notRunning]') && query
    && wanted.split('&').every((part) => `&${query}&`.includes(`&${part}&`))
    && plots.every((host) => host.dataset.state === 'ready' && !host.__plot.wanted && !host.__plot.drawing);
}"""
GO = "link => { history.pushState({}, '', link); dispatchEvent(new PopStateEvent('popstate')); }"
"""As the browser's own way back does, to a view of one's choice."""
STEPS, INPUTS = ("0", "13", "20", "40"), ("9 8 7 6 5 4 3 2", "1 1 2 2 3 3 4 4", "0 5 0 5 0 5 0 5", "7 7 7 7 7 7 7 7")
HEADS = tuple(f"decoder.{layer}.self_attention.{head}" for layer in (0, 1) for head in range(4))
REMOVED = tuple(f"zero:{head}" for head in HEADS)
MASKS = ("causal", "full", "sliding-window:2", "sliding-window:5")
OF_MODEL = {"step": STEPS, "input": INPUTS, "head": HEADS}
VIEWS: dict[str, dict[str, tuple[str, ...]]] = {
    "heads": {**OF_MODEL, "mean": ("0", "1"), "removal": ("0", "1")},
    "block": {
        "part": ("dropout", "logits"),
        "query": ("9", "12"),
        "dropped": ("0.0", "0.4"),
        "dropout_seed": ("0", "3"),
        "softened": ("0.5", "3.0"),
        "step": STEPS,
        "input": INPUTS,
    },
    "layers": {**OF_MODEL, "through": ("0", "1"), "query": ("9", "12")},
    "positions": {"encoding": ("learned", "sinusoidal", "alibi", "rotary"), "pe_heads": ("2", "4", "8"), "step": STEPS},
    "order": {**OF_MODEL, "order": ("places-shift:1", "places-shift:3"), "query": ("9", "12")},
    "masks": {**OF_MODEL, "mask": MASKS},
    "information": OF_MODEL,
    "edits": {
        "step": STEPS,
        "edits": (*REMOVED, f"-{REMOVED[0]}", *(f"{one}~{two}" for one in REMOVED[:3] for two in REMOVED[4:7])),
    },
    "film": {"step": STEPS},
    "accuracy": {"step": STEPS, "depth": ("symbol", "confusion", "head"), "confused": ("0", "3")},
    "lengths": {"longer": ("8", "12", "16")},
    "bottleneck": {"spoken": ("4", "8", "12")},
    "corners": {"corner_step": ("0", "20", "50"), "corner_walk": ("upper left, clockwise", "lower right, clockwise")},
    "context": {"scores": ("dot", "cosine", "uniform"), "stretch": ("0.5", "2.0"), "turned": ("45", "-90")},
    "questions": {"asked": ("2", "3"), "unrolled": ("3", "8", "12"), "stacked": ("1", "2", "4")},
    "reading": {"head": HEADS, "read_place": ("1", "2", "3"), "read_word": ("2", "9")},
    "writing": {"writing_seed": ("1", "2", "3"), "top_k": ("0", "5", "40"), "word": ("9", "14")},
}
"""What is changed at random on each page with texts in its figures."""


def expect_texts_of_a_fresh_figure(page: Page) -> int:
    """How many texts were compared."""
    found = page.evaluate(COMPARED)
    for key, updated, fresh in found:
        assert updated == fresh, key
    return sum(len(texts) for _, updated, _ in found for texts in updated)


def go_to_view(page: Page, query: dict[str, str]) -> None:
    """Go to a view; once more where the page has just written the address of the one before."""
    link = urlencode(query)
    for patience in PATIENCES:
        page.evaluate(GO, f"?{link}")
        try:
            page.wait_for_function(SETTLED, arg=link, timeout=patience)
        except PlaywrightTimeout:
            if patience == PATIENCES[-1]:
                raise
        else:
            return


@pytest.mark.parametrize("place", VIEWS)
def test_random_changes_leave_the_texts_of_a_fresh_figure(
    place: str, page: Page, address: str, request: pytest.FixtureRequest
) -> None:
    random, fields = Random(place), VIEWS[place]
    run = request.getfixturevalue("plays") if MENU[place].menu == "Text" else "reverse"
    page.emulate_media(reduced_motion="reduce")  # a figure that still moves has the ticks of where it is
    page.goto(f"{address}/{place}?run={run}")
    page.wait_for_function(SETTLED, arg=f"run={run}")
    compared = 0
    for _ in range(CHANGES):
        changed = [field for field in fields if random.random() < 0.7]
        view, _notices = from_query({"run": run} | {field: random.choice(fields[field]) for field in changed})
        go_to_view(page, view.to_query())
        compared += expect_texts_of_a_fresh_figure(page)
    assert compared
