"""A hidden mistake: nothing on the page names it before it is answered, and the answer is judged by its detectors."""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.app_pages.learn.mistakes import riddle
from dashboard.components.payload import unpack
from dashboard.models.on_the_spot import hidden as hidden_mistakes
from tests.kit.pages import figures, link, open_page, press, shown
from transformer.mistakes import signature


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test asks how good the models are."""
    monkeypatch.setattr("transformer.mistakes._base.STEPS", 6)


def sent(app: AppTest) -> str:
    """All that a browser is sent, but for the menus of names."""
    elements = [
        shown(each.value) for kind in ("title", "markdown", "caption", "html", "info") for each in app.get(kind)
    ]
    messages = [element.proto.bytes.decode("utf-8", "ignore") for element in app.get("bidi_component")]
    return "\n".join([*elements, *messages])


def score(app: AppTest) -> dict[str, Any]:
    headers = [unpack(element.proto.bytes)[0] for element in app.get("bidi_component")]
    return next(header for header in headers if "round" in header)


def test_all_that_leave_a_trace_may_be_drawn_and_no_others() -> None:
    names = {each.name for each in hidden_mistakes.pool()}
    assert names == {
        *("along-the-batch", "heads-merged-without-transpose", "heads-never-transposed"),
        *("heads-split-without-transpose", "mask-hides-self", "mask-sees-one-ahead", "mask-transposed"),
        *("masked-after-softmax", "masked-with-minus-one", "masked-with-zero", "no-mask", "no-positions"),
        *("positions-as-integers", "softmax-over-heads", "softmax-over-queries", "target-not-shifted"),
    }
    assert {hidden_mistakes.drawn(number)[0].name for number in range(1, 200)} == names
    assert {hidden_mistakes.drawn(number)[1] for number in range(1, 50)} == {0, 1, 2}
    assert hidden_mistakes.drawn(7) == hidden_mistakes.drawn(7)


def test_the_name_is_nowhere_until_it_is_answered() -> None:
    hidden, seed = hidden_mistakes.drawn(5)
    app = open_page("mistakes", run="reverse", riddle="5")
    assert app.title[0].value == "Which mistake is this?"
    assert link(app) == {"run": "reverse", "riddle": "5"}
    for secret in (hidden.name, hidden.title, hidden.exposes, hidden.mend, hidden.code()[0].splitlines()[1].strip()):
        assert secret not in sent(app)
    assert "✕" not in "".join(each.value for each in app.get("html") if "Detector" in each.value)
    assert "mistake-accuracy" in figures(app)
    assert score(app) == {"round": "r5", "right": None}
    assert [each.label for each in app.button if each.disabled] == ["Answer"]
    assert app.session_state["lesson-mistake"].config.training.seed == seed


def answered(name: str, ticked: list[str]) -> AppTest:
    app = open_page("mistakes", run="reverse", riddle="5")
    app.selectbox(key="riddle-name-5").set_value(name).run()
    app.button_group(key="riddle-ticked-5").set_value(ticked).run()
    return press(app, "Answer")


def test_a_right_answer_is_said_and_the_code_is_shown() -> None:
    hidden, seed = hidden_mistakes.drawn(5)
    app = answered(hidden.name, ["probe"])
    assert shown(app.title[0].value) == f"Right: “{hidden.title}”."
    assert score(app) == {"round": "r5", "right": True}
    rings = signature(hidden, seed).exposed_by()
    assert riddle.gave_away(["probe"], rings) in [shown(each.value.strip("*")) for each in app.markdown]
    assert hidden.mend in sent(app)
    app = press(app, "Open it in the gallery")
    assert link(app).get("mistake", "heads-merged-without-transpose") == hidden.name
    assert "riddle" not in link(app)
    assert app.session_state["settings"].mistake_seed == seed


def test_a_wrong_answer_names_both() -> None:
    hidden, _ = hidden_mistakes.drawn(5)
    other = next(each for each in hidden_mistakes.pool() if each is not hidden)
    app = answered(other.name, [])
    assert shown(app.title[0].value) == f"No: it is not “{other.title}”, it is “{hidden.title}”."
    assert score(app) == {"round": "r5", "right": False}
    app = press(app, "Another one")
    assert app.title[0].value == "Which mistake is this?"
    assert link(app)["riddle"] != "5"
    assert score(app)["right"] is None


def test_what_was_ticked_is_counted() -> None:
    assert riddle.gave_away(["probe", "floor"], ("first half", "floor", "probe")) == (
        "These ring: first half, loss and probe. You ticked 2 of 3."
    )
    assert riddle.gave_away(["batch"], ("probe",)) == ("These ring: probe. You ticked 0 of 1, and 1 that is silent.")
    assert riddle.gave_away(["batch", "future", "probe"], ("probe",)).endswith("1 of 1, and 2 that are silent.")
    assert riddle.gave_away([], ("probe", "batch")) == "These ring: probe and batch."
    assert riddle.gave_away([], ()) == "No detector rings."
    assert riddle.gave_away(["batch"], ()) == "No detector rings. You ticked 1."


def test_the_part_is_chosen_above_the_page() -> None:
    app = open_page("mistakes", run="reverse")
    app.button_group(key="control-riddle").set_value(riddle.QUESTION).run()
    assert int(link(app)["riddle"]) > 0
    app.button_group(key="control-riddle").set_value("The gallery").run()
    assert link(app) == {"run": "reverse"}
