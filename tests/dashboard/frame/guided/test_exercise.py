"""The strip of an exercise: on which page it begins, what is reached, and the ways into it and out of it."""

from __future__ import annotations

from tests.kit.pages import link, open_page, shown


def strip(app) -> str:
    """All words of a page, the strip's among them."""
    return shown("\n".join(each.value for each in app.markdown))


def test_an_exercise_that_is_not_here_is_said_and_leaves_the_link() -> None:
    app = open_page("exercises", run="reverse", exercise="nonsense")
    assert ["There is no exercise “nonsense” here." in shown(each.value) for each in app.warning] == [True]
    assert link(app) == {"run": "reverse"}


def test_an_exercise_is_begun_anew_followed_by_the_next_and_left() -> None:
    app = open_page("exercises", run="reverse", exercise="reading-head", step="13")
    assert "It begins on the page *Attention heads*." in strip(app)
    app.button(key="exercise-again").click().run()
    assert not app.exception
    assert "It begins on the page" not in strip(app)
    assert link(app) == {"run": "reverse", "head": "decoder.1.self_attention.0", "exercise": "reading-head"}
    assert "(not yet)" in strip(app)
    app.button(key="exercise-next").click().run()
    assert link(app) == {"run": "reverse", "step": "13", "exercise": "known-by-a-beginner"}
    app.button(key="exercise-leave").click().run()
    assert link(app) == {"run": "reverse", "step": "13"}
    assert not app.warning
    assert not [each for each in app.button if (each.key or "").startswith("exercise-")]
