"""All heads in a file and in a notebook: a click makes another head large, by the model's numbers, asking nobody."""

from __future__ import annotations

import base64
import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

import dashboard
from dashboard.components.documents.pages import widget_script
from tests.kit.driving import click_head, colours, grid
from tests.kit.models import small, tokens_of
from transformer import observe
from transformer.observation import Observation

LETTERS = tuple("abcdef")
SHOWN = """host => host.querySelector('.js-plotly-plot')._fullData.find(({ type }) => type === 'heatmap').z
  .map((row) => Array.from(row, (value) => Number.isNaN(value) ? null : value))"""
"""The numbers that a large head shows, as Plotly holds them."""


@pytest.fixture(scope="module")
def seen() -> Observation:
    return observe(small(), tokens_of(1, 6))


def large(page: Page, head: str) -> Locator:
    """The large head of this path, once it is painted."""
    return page.locator(f".al-plot[data-state=ready][data-head='{head}']")


def assert_shows(head: Locator, pattern: np.ndarray) -> None:
    numbers = np.array(head.evaluate(SHOWN), dtype=float)
    allowed = np.tril(np.ones(pattern.shape, dtype=bool))
    np.testing.assert_array_equal(np.isnan(numbers), ~allowed)
    np.testing.assert_allclose(numbers[allowed], pattern[allowed], atol=1e-6)


@pytest.mark.smoke
def test_a_click_in_the_file_makes_another_head_large(offline: Page, seen: Observation, tmp_path: Path) -> None:
    path = dashboard.to_html(seen, tmp_path / "heads.html", LETTERS, focus="0.1")
    offline.goto(path.as_uri())
    for number, (layer, head) in ((None, (0, 1)), (6, (1, 2)), (3, (0, 3))):
        if number is not None:
            click_head(offline, number)
        shown = large(offline, f"decoder.{layer}.self_attention.{head}")
        shown.wait_for()
        assert_shows(shown, seen[f"decoder.{layer}.self_attention.pattern"][0, head].numpy())
        expect(offline.locator(".caption").last).to_contain_text(f"Head {layer}.{head}, decoder self-attention.")
        expect(grid(offline)).to_have_attribute("data-focus", str(4 * layer + head))
    assert colours(offline.locator(".grid canvas.base")) > 8
    assert Axe().run(offline).response["violations"] == []


def test_the_file_is_used_by_key_and_on_a_projector_and_its_head_is_saved_as_its_numbers(
    offline: Page, seen: Observation, tmp_path: Path
) -> None:
    offline.goto(dashboard.to_html(seen, tmp_path / "heads.html", LETTERS, focus="0.1", dark=True).as_uri())
    large(offline, "decoder.0.self_attention.1").wait_for()
    grid(offline).focus()
    offline.keyboard.press("ArrowRight")
    head = large(offline, "decoder.0.self_attention.2")
    head.hover()
    head.get_by_role("button", name="Save head").click()
    with offline.expect_download() as download:
        offline.get_by_role("menuitem", name="CSV").click()
    assert download.value.suggested_filename == "head.csv"
    lines = Path(download.value.path()).read_text().splitlines()
    said, rows = [line for line in lines if line[0] == "#"], [line for line in lines if line[0] != "#"]
    assert [line.split(":")[0] for line in said] == ["# made", "# software"]
    found = [float(row["value"]) for row in csv.DictReader(io.StringIO("\n".join(rows))) if row["value"]]
    pattern = seen["decoder.0.self_attention.pattern"][0, 2].numpy()
    np.testing.assert_allclose(found, pattern[np.tril_indices(6)], atol=1e-6)
    assert Axe().run(offline).response["violations"] == []
    for width in (1024, 390):
        offline.set_viewport_size({"width": width, "height": 768})
        offline.wait_for_function("(width) => document.documentElement.scrollWidth === width", arg=width)


NOTEBOOK = """async ([script, state]) => {
  document.body.innerHTML = '<div id="output" style="width: 1000px"></div>';
  const { default: widget } = await import(URL.createObjectURL(new Blob([script], { type: 'text/javascript' })));
  const bytes = (text) => new DataView(Uint8Array.from(atob(text), (each) => each.charCodeAt(0)).buffer);
  const heard = {};
  const tell = (event, ...what) => [...(heard[event] ?? [])].forEach((handler) => handler(...what));
  const changed = {};
  state.message = bytes(state.message);
  const model = {
    get: (name) => state[name],
    set: (name, value) => (changed[name] = state[name] = value),
    on: (event, handler) => (heard[event] ??= []).push(handler),
    off: (event, handler) => (heard[event] = heard[event].filter((each) => each !== handler)),
    save_changes: async () => {
      const answer = await window.changed({ ...changed });
      state.document = answer.document;
      state.message = bytes(answer.message);
      if ('dark' in changed) tell('change:document');
      tell('change:message');
      for (const name of Object.keys(changed)) delete changed[name];
    },
    send: async (content) => tell('msg:custom', content, [bytes(await window.asked(content))]),
  };
  widget.render({ model, el: document.getElementById('output') });
}"""
"""What a notebook does for a widget (https://anywidget.dev/en/afm/): its state, changes both ways, and messages."""


def test_a_click_in_a_notebook_asks_python_for_the_head(offline: Page, seen: Observation) -> None:
    widget = dashboard.show(seen, names=LETTERS, focus="0.1")
    asked: list[str] = []

    def state() -> dict[str, Any]:
        message = base64.b64encode(widget.message).decode()
        names = ("document", "focus", "dark", "chooses", "changes")
        return {name: getattr(widget, name) for name in names} | {"message": message}

    def changed(changes: dict[str, Any]) -> dict[str, Any]:
        for name, value in changes.items():
            setattr(widget, name, value)
        return state()

    def answer(content: str) -> str:
        sent: list[bytes] = []
        widget.send = lambda _, buffers: sent.extend(buffers)
        widget._handle_custom_msg(content, [])
        asked.append(content)
        return base64.b64encode(sent[0]).decode()

    offline.expose_function("changed", changed)
    offline.expose_function("asked", answer)
    offline.evaluate(NOTEBOOK, [widget_script(), state()])
    for number, (layer, head) in ((None, (0, 1)), (6, (1, 2))):
        if number is not None:
            click_head(offline, number)
        shown = large(offline, f"decoder.{layer}.self_attention.{head}")
        shown.wait_for()
        assert_shows(shown, seen[f"decoder.{layer}.self_attention.pattern"][0, head].numpy())
    assert str(widget.head) == "decoder.1.self_attention.2"
    assert asked == ["plotly"]
    picture = shown.locator(".main-svg").first
    assert picture.evaluate("each => getComputedStyle(each).position") == "absolute"  # Plotly's style sheet is there
    assert not widget.dark
    offline.evaluate("() => (document.body.style.background = 'rgb(20, 20, 20)')")
    expect(offline.locator(".attention-lab")).to_have_css("--st-background-color", "#0f131b")
    assert widget.dark
