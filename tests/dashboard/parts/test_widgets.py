"""One way to bind a widget to the view, and no widget without its guard."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

import dashboard
from dashboard.parts import widgets
from dashboard.view import clicks
from dashboard.view.link import View
from tests.kit.pages import State


class Drawn:
    """A widget as it was drawn, and as the browser reports of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, view: View | None = None) -> None:
        self.state = State({"settings": view or View(), "said": []})
        monkeypatch.setattr(st, "session_state", self.state)
        monkeypatch.setattr(clicks, "is_asked_for", lambda: self.asked == "page")

    def __call__(self, label: str, *args: Any, key: str, on_change: Any, **options: Any) -> None:
        self.key, self.answer, self.options = key, on_change, options

    def report(self, value: object, *, of: str = "page") -> None:
        self.state[self.key], self.asked = value, of
        self.answer()


def test_a_widget_shows_what_it_is_told_and_answers_in_time_only(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, found = Drawn(monkeypatch), []
    drawn.state["control-x"] = "what was picked before"
    widgets.controlled(drawn, "A label", key="control-x", value=3, picked=found.append)
    assert drawn.state["control-x"] == 3
    drawn.report(4, of="timer")
    assert found == []
    drawn.report(5)
    assert found == [5]


def _typed() -> None:
    """A page with one field, whose value is the view's."""
    import streamlit as st

    from dashboard.parts.widgets import controlled

    view = st.session_state.setdefault("view", {"number_input": 2, "text_input": "two"})
    for name, value in list(view.items()):
        field = getattr(st.container(), name)
        controlled(field, name, key=name, value=value, picked=lambda found, name=name: view.update({name: found}))


@pytest.mark.parametrize(("name", "typed", "elsewhere"), [("number_input", 5, 7), ("text_input", "five", "seven")])
def test_a_field_is_told_its_value_again_only_where_that_is_another(name: str, typed: Any, elsewhere: Any) -> None:
    """Told again, the browser would take back what was typed meanwhile. What it draws anew begins with the default."""
    app = AppTest.from_function(_typed).run()
    app.run()
    assert not getattr(app, name)(key=name).proto.set_value
    assert getattr(app, name)(key=name).proto.default == app.session_state["view"][name]
    getattr(app, name)(key=name).set_value(typed).run()
    assert app.session_state["view"][name] == typed
    assert getattr(app, name)(key=name).value == typed
    assert not getattr(app, name)(key=name).proto.set_value
    assert getattr(app, name)(key=name).proto.default == typed
    app.session_state["view"][name] = elsewhere
    app.run()
    assert getattr(app, name)(key=name).value == elsewhere
    assert getattr(app, name)(key=name).proto.set_value


def test_what_is_picked_changes_its_field_and_what_changes_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = Drawn(monkeypatch, View(word=7))
    widgets.bound(drawn, "Top-k", "top_k", also={"word": None})
    drawn.report(5)
    assert drawn.state.settings == View(top_k=5)


@pytest.mark.parametrize("widget", ["slider", "number_input"])
def test_a_number_has_the_limits_of_its_field(widget: str, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = Drawn(monkeypatch)
    monkeypatch.setattr(st, widget, drawn)
    widgets.bound(drawn, "Layers", "deep")
    assert drawn.options == {"min_value": 1, "max_value": 8}
    widgets.bound(drawn, "Length", "length", max_value=64)
    assert drawn.options == {"min_value": 1, "max_value": 64}


@pytest.mark.parametrize(
    ("view", "shown", "notices"),
    [
        (View(), 2, []),
        (View(through=0), 0, []),
        (View(through=9), 2, ["There is no layer “9” here; this is the last. The link may say 0, 1 or 2."]),
    ],
)
def test_a_menu_shows_what_the_view_names_and_falls_back(
    view: View, shown: int, notices: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = Drawn(monkeypatch, view)
    menu, call = range(3), lambda layer: "the last" if layer == 2 else str(layer)
    assert widgets.bound_choice(drawn, "Layer", "through", menu, 2, format_func=call) == shown
    assert drawn.state["control-through"] == shown
    assert [sentence for _, sentence in drawn.state.get("notices", [])] == notices
    drawn.report(1)
    assert drawn.state.settings.through == 1
    drawn.report(0)
    assert drawn.state.settings.through == 0
    for default in (2, None):  # picked, or nothing any more: the link need not say it
        drawn.report(default)
        assert drawn.state.settings.through is None


def test_no_widget_goes_without_the_guard() -> None:
    """A widget of its own callback would take a timer's word for a choice. What cannot be set needs none: a file."""
    alone = []
    for file in sorted(Path(dashboard.__file__).parent.rglob("*.py")):
        if file == Path(widgets.__file__) or "on_change" not in (text := file.read_text()):
            continue
        for call in ast.walk(ast.parse(text)):
            if not isinstance(call, ast.Call):
                continue
            answers = [word.value for word in call.keywords if word.arg == "on_change"]
            if answers and not isinstance(answers[0], ast.Constant) and "file_uploader" not in ast.unparse(call.func):
                alone.append(f"{file.name}:{call.lineno}")
    assert alone == []
