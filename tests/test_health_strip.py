"""The health strip: quiet on every page, loud when a law is broken, and true in every number it shows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest
from test_pages import PAGES, PI, RUNS, SEP, laid_out, link, network, open_page

from dashboard import closer, models, warm
from transformer import observe
from transformer.analysis.health import CHECKS

NAMES = [check.name for check in CHECKS]
KEPT, BROKEN, SILENT = (
    ":green[:material/check_circle:]",
    ":red[:material/cancel:]",
    ":gray[:material/do_not_disturb_on:]",
)


@pytest.fixture
def forgetting() -> Iterator[None]:
    """Caches that hold nothing of a spoilt model, before and after."""
    for cached in (closer._checkup, models._network):
        cached.clear()
    yield
    for cached in (closer._checkup, models._network):
        cached.clear()


def strip(app: AppTest) -> str:
    """The label of the strip's popover."""
    (label,) = (block.proto.popover.label for block in app.get("popover"))
    return label


def said(app: AppTest) -> str:
    """All that the opened strip says."""
    return "\n".join(element.value for element in (*app.sidebar.markdown, *app.sidebar.caption))


@pytest.mark.parametrize("run", RUNS)
def test_the_strip_has_a_mark_for_each_law_on_every_page(run: str) -> None:
    marks = [KEPT] * 8
    if run.startswith("reverse-aligned"):
        marks[NAMES.index("free")] = SILENT
    if run == "reverse-aligned":
        marks[NAMES.index("probe")] = SILENT
    for page in PAGES if run == "reverse" else ("overview",):
        app = open_page(page, run=run)
        assert strip(app) == f"Health {''.join(marks)}"
        assert not app.dataframe or page in ("heads", "accuracy", "runs", "layers")
        assert not app.error


def test_a_link_opens_a_law_and_a_click_another() -> None:
    app = open_page(run="reverse", health="probe")
    assert link(app) == {"run": "reverse", "health": "probe"}
    assert "bit for bit" in said(app)
    app.button_group(key="control-health").set_value("free").run()
    assert link(app) == {"run": "reverse", "health": "free"}
    assert "one pass over the same tokens" in said(app)
    app.switch_page("app_pages/masks.py").run()
    assert link(app)["health"] == "free"
    assert "unedited and under its own mask (causal), whatever a page tries on it" in said(app)
