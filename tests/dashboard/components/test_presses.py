"""A button of which no press is lost: what Python makes of the browser's count."""

from __future__ import annotations

from functools import partial
from typing import Any
from unittest.mock import Mock

import pytest
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData
from streamlit.testing.v1 import AppTest, local_script_runner

from dashboard.components import presses
from dashboard.components.presses import counted_button
from tests.kit.pages import press_counted


@pytest.mark.parametrize(
    ("answered", "told", "made"),
    [
        (None, [(7, 1), (7, 2), (7, 3)], [1, 1, 1]),
        (None, [(7, 1), (7, 1)], [1]),  # told once more after a change of page
        (None, [(7, 1), (7, 4)], [1, 3]),  # three came while the first was being answered
        (None, [(7, 2), (8, 1), (8, 2)], [2, 1, 1]),  # a panel that is drawn elsewhere counts anew
        ((7, 5), [(7, 5), (7, 6)], [1]),  # the server was started anew: it is told of all presses ever made
    ],
)
def test_every_press_is_told_of_once(
    answered: tuple[int, int] | None, told: list[tuple[int, int]], made: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    state: dict[str, Any] = {}
    if answered:
        state["step"] = {"presses": dict(zip(("since", "count"), answered, strict=True))}
    mount, heard = Mock(), Mock()
    monkeypatch.setattr(presses, "renderer", lambda *args, **options: mount)
    monkeypatch.setattr(presses.st, "session_state", state)
    for since, count in told:
        counted_button("Step", heard, key="step", icon="skip_next", letter="N", help_="One step")
        state["step"] = {"presses": {"since": since, "count": count}}
        mount.call_args.kwargs["on_presses_change"]()
    assert [call.args[0] for call in heard.call_args_list] == made


def test_a_press_that_the_request_of_another_part_brings_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The browser sends what two parts tell at one moment together, as a request for one of them."""

    def script() -> None:
        import streamlit as st

        from dashboard.components.presses import counted_button

        def pressed(presses: int) -> None:
            st.session_state.count += presses

        st.session_state.setdefault("count", 0)
        counted_button("Next", pressed, key="next", letter="N")
        st.text(st.session_state.count)
        st.fragment(lambda: st.caption("another part"))()

    app = AppTest.from_function(script).run()
    (another,) = app._fragment_storage._fragments
    monkeypatch.setattr(local_script_runner, "RerunData", partial(RerunData, fragment_id_queue=[another]))
    press_counted(app, "next", times=2)
    assert [each.value for each in app.text] == ["2"]
