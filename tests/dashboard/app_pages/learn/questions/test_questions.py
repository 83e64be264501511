"""Five questions: each on every model, the way from one to the next, and links that name nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.kit.experiments.bottleneck import made
from tests.kit.pages import figures, is_off, link, open_page, press_counted
from tests.kit.recurrent_by_hand import configured

RUNS = ("reverse", "reverse-aligned-causal", "reverse-translate", "compiled")
FIGURES = {
    "1": {"schedule"},
    "2": {"shapes"},
    "3": {"feeds", "feeds-cosine"},
    "4": {"alike", "gradients"},
    "5": {"two-orders", "bag"},
}


@pytest.mark.daily(4)
@pytest.mark.parametrize(
    ("asked", "run"), [(asked, RUNS[(i + turn) % 4]) for i, asked in enumerate(FIGURES) for turn in (1, 2)]
)
def test_every_question_is_answered_for_every_model(asked, run):
    app = open_page("questions", run=run, asked=asked)
    assert not app.error
    assert not app.warning
    nothing = asked == "3" and run == "compiled"
    assert set(figures(app)) == (set() if nothing else FIGURES[asked])
    assert re.search(r"\d|no dense layers", app.title[0].value)
    assert link(app)["run"] == run


def test_buttons_lead_from_question_to_question_and_back():
    app = open_page("questions", run="reverse")
    assert is_off(app, "asked-back")
    press_counted(app, "asked-on")
    assert link(app)["asked"] == "2"
    press_counted(app, "asked-on", times=9)  # further than there are questions
    assert link(app)["asked"] == "5"
    assert is_off(app, "asked-on")
    press_counted(app, "asked-back")
    assert link(app)["asked"] == "4"
    press_counted(app, "asked-back", times=2)  # the second before the page of the first was drawn
    assert link(app)["asked"] == "2"


def test_a_rate_that_there_is_not_falls_back_with_one_notice():
    app = open_page("questions", run="reverse", asked="4", deep_rate="7")
    assert len(app.warning) == 1
    assert link(app) == {"run": "reverse", "asked": "4"}


@pytest.fixture(scope="module")
def recurrent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an untrained recurrent network."""
    root = tmp_path_factory.mktemp("runs")
    made(root / "recurrent", configured("none", d_model=16))
    return root


@pytest.mark.daily(2)
@pytest.mark.parametrize("asked", FIGURES)
def test_a_recurrent_network_is_no_stumbling_block(asked, recurrent, monkeypatch):
    monkeypatch.setattr("dashboard.models.menu.ROOT", recurrent)
    monkeypatch.setattr("dashboard.frame.health.strip", lambda *_: None)
    app = open_page("questions", run="recurrent", asked=asked)
    assert not app.error
    assert set(figures(app)) == (FIGURES[asked] - {"two-orders"} if asked != "3" else set())
