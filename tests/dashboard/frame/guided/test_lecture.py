"""The strip of a lecture: the words of a step with their numbers, the way on and back, out and home again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import streamlit as st

from dashboard.components.payload import unpack
from dashboard.frame.guided import reaching
from dashboard.frame.guided.lecture import _filled, style
from dashboard.lectures import shelf
from dashboard.lectures.lecture import read
from dashboard.lectures.shelf import lectures
from dashboard.lectures.values import ViewValues
from dashboard.view.pages import PAGES
from tests.kit.pages import link, open_page, press_counted

ABOUT = "---\ntitle: x\nminutes: 1\nlanguage: en\naudience: x\n---\n"


def strip(app) -> str:
    return " ".join(each.value for each in [*app.main.markdown, *app.main.caption])


def press(app, key: str):
    return next(each for each in app.button if each.key == key).click().run()


def test_to_explore_shows_every_control_and_return_the_step_as_it_was_written() -> None:
    app = open_page("heads", run="reverse", query="9", lecture="attention", lecture_step="4")
    assert "step 4 of 14" in strip(app)
    assert "with a weight of 0.99" in strip(app)
    assert "{{" not in strip(app)
    assert "You have changed the view" not in strip(app)
    hidden = [each.value for each in app.get("html") if '[class*="st-key-control-"]' in each.value]
    assert len(hidden) == 1
    app = press(app, "lecture-explore")
    assert not [each.value for each in app.get("html") if '[class*="st-key-control-"]' in each.value]
    app.toggle(key="control-mean").set_value(True).run()
    assert "You have changed the view" in strip(app)
    app = press(app, "lecture-return")
    assert link(app) == {"run": "reverse", "lecture": "attention", "lecture_step": "4", "query": "9"}
    assert "You have changed the view" not in strip(app)
    app = press(app, "lecture-leave")
    assert link(app) == {"run": "reverse", "query": "9"}
    assert "Attention in 20 minutes" not in strip(app)


def test_a_step_that_names_no_run_is_as_it_was_written_after_a_reload() -> None:
    again = link(open_page("bottleneck", lecture="bottleneck"))
    assert "run" in again
    app = open_page("bottleneck", **again)
    assert "You have changed the view" not in strip(app)
    assert "lecture-explore" in {each.key for each in app.button}


def test_another_page_keeps_the_way_home_and_no_late_request_undoes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A timer's request, which names the page before, may come while the way is gone, and after it."""
    app = open_page("layers", run="reverse", query="9", lecture="attention", lecture_step="4")
    assert "stand on the page “Attention heads”" in strip(app)
    assert "with a weight of" not in strip(app)
    with monkeypatch.context() as patched:
        patched.setattr(st, "switch_page", lambda script: st.stop())
        press(app, "lecture-return")
    app.run()
    assert "with a weight of 0.99" in strip(app)
    before = PAGES["layers"].script
    app.switch_page(before).run()
    assert app.title[0].value.startswith("Head 0.2")
    monkeypatch.setattr(reaching, "LATE", 0.0)
    app.switch_page(before).run()
    assert "stand on the page “Attention heads”" in strip(app)  # a reader who goes there stays there
    app = press(app, "lecture-return")
    assert app.title[0].value.startswith("Head 0.2")


def test_presses_count_from_the_step_that_the_press_before_has_led_to_though_it_was_not_drawn_yet() -> None:
    app = open_page("heads", run="reverse", lecture="attention", lecture_step="4")
    # What was answered and not drawn yet: its run was stopped before the strip.
    app.session_state.settings = app.session_state.settings.with_(lecture_step=3)
    app = press_counted(app, "lecture-back", times=2)
    assert app.session_state.settings.lecture_step == 1


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"lecture": "nowhere"}, "There is no lecture “nowhere” here."),
        ({"lecture": "attention", "lecture_step": "55"}, "has 14 steps, and no step 55; this is the last."),
    ],
)
def test_what_a_link_names_in_vain_is_said(query: dict[str, str], said: str) -> None:
    app = open_page("overview", run="reverse", **query)
    assert any(said in each.value for each in app.warning)


def test_every_lecture_is_offered_and_one_begins_with_its_first_step() -> None:
    app, files = open_page("lectures"), lectures().files
    assert "lecture-leave" not in {each.key for each in app.button}
    assert all(lecture.title in strip(app) for lecture in files.values())
    assert {f"start-{name}" for name in files} <= {each.key for each in app.button}
    name, lecture = next(iter(files.items()))
    app = press(app, f"start-{name}")
    assert f"step 1 of {len(lecture.steps)}" in strip(app)
    assert link(app)["lecture"] == name


def test_only_the_controls_of_a_step_stay() -> None:
    assert style("", None) == "<style></style>"
    rules = style("head-pattern", ("head",))
    assert ".st-key-head-pattern { outline" in rules
    assert re.search(r'\[class\*="st-key-control-"\]:not\(\.st-key-control-head\) \{ display: none; \}', rules)
    assert "stSidebar" in rules
    assert "stSidebar" not in style("", ("sidebar",))
    assert "stButton" in style("", ())
    assert "stButton" not in rules  # who may change something may also press what changes it


def test_a_page_ends_where_its_step_does_until_one_explores() -> None:
    def covered(app) -> list[str]:
        return [each.value for each in app.get("html") if "st-key-overview-tokens)) ~ *" in each.value]

    app = open_page("overview", run="reverse", lecture="attention")
    assert len(covered(app)) == 1
    assert not covered(press(app, "lecture-explore"))


def test_notes_say_their_numbers() -> None:
    (step,) = read("x", f"{ABOUT}## A\nview: heads?run=reverse\n\nB.\n\n> It has {{{{ heads }}}}.\n").steps
    assert _filled(step, ViewValues(step.view)) == ("B.", "It has 4.")
    assert _filled(step, None) == ("B.", "It has –.")


def test_the_presenter_is_told_what_the_next_step_asks_with_its_numbers(
    monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    asks = "ask: Of {{ heads }} heads?\nnumber: layers"
    (tmp_path / "mine.md").write_text(
        f"{ABOUT}## A\nview: heads?run=reverse\n\nB.\n\n## C\nview: heads\n{asks}\n\nD.\n"
    )
    monkeypatch.setattr(shelf, "OWN", str(tmp_path))
    app = open_page("heads", run="reverse", lecture="mine")
    told = next(unpack(each.proto.bytes)[0] for each in app.get("bidi_component") if "podium" in each.proto.id)
    assert told["presenter"]["next"] == "C. It asks: Of 4 heads?"


def test_no_page_binds_a_key_of_the_lecturer() -> None:
    """R and C are Streamlit's, and R the lecture's; B is a page's where a page has it (web/podium)."""
    bound = re.compile(r"""\b(?:shortcut|letter)=["'](.)["']|^LETTER = ["'](.)["']""", re.MULTILINE)
    sources = [*Path("dashboard").rglob("*.py")]
    found = {key for path in sources for pair in bound.findall(path.read_text()) for key in pair if key}
    assert {"T", "B", "F"} <= found
    assert found.isdisjoint({"R", "C", "Q", ".", "+", "-"})
