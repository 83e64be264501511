"""The private parts of Streamlit do what the dashboard leans on. test_private_names.py takes them away."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from streamlit.components.v2.component_manager import BidiComponentManager
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetStates
from streamlit.runtime import Runtime, app_session
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
from streamlit.runtime.scriptrunner_utils import script_run_context
from streamlit.runtime.scriptrunner_utils.exceptions import StopException
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData, ScriptRequest, ScriptRequests
from streamlit.runtime.scriptrunner_utils.script_run_context import ThreadState
from streamlit.runtime.state import SafeSessionState, SessionState
from streamlit.runtime.state.common import WidgetMetadata
from streamlit.testing.v1 import AppTest

from dashboard.server import streamlit_private
from tests.kit.waiting import PATIENCE, wait_for
from transformer.foundation.checks import ConfigError


def put_back(monkeypatch: pytest.MonkeyPatch, owner: Any, *names: str) -> None:
    """What a mending puts into the place of these is taken away again after the test."""
    for name in names:
        monkeypatch.setattr(owner, name, getattr(owner, name))


def test_a_callback_is_asked_for_where_its_fragment_or_everything_is() -> None:
    assert streamlit_private.is_asked_for()  # no run, no request

    def script() -> None:
        import streamlit as st
        from streamlit.runtime.scriptrunner_utils.script_run_context import get_script_run_ctx

        from dashboard.server.streamlit_private import is_asked_for

        def clicked(place: str) -> None:
            context = get_script_run_ctx()
            assert context is not None
            st.session_state[f"everything, {place}"] = is_asked_for()
            for what, asked in (("its own", [st.session_state.fragment]), ("another", ["another"])):
                context.fragment_ids_this_run = asked
                st.session_state[f"{what}, {place}"] = is_asked_for()
            context.fragment_ids_this_run = None

        @st.fragment
        def part() -> None:
            from streamlit.runtime.scriptrunner_utils.script_run_context import ThreadState

            st.session_state.fragment = ThreadState.get().fragment_id
            st.button("Inside", on_click=clicked, args=("inside",))

        st.button("Outside", on_click=clicked, args=("outside",))
        part()

    app = AppTest.from_function(script).run()
    for button in app.button:
        button.click()
    app.run()
    assert not app.exception
    places = [f"{what}, {place}" for what in ("everything", "its own", "another") for place in ("inside", "outside")]
    asked = {place for place in places if app.session_state[place]}
    assert asked == {"everything, inside", "everything, outside", "its own, inside"}


def test_a_page_runs_once_and_each_copy_of_it_once_more(tmp_path: Path) -> None:
    (tmp_path / "page.py").write_text("import streamlit as st\nst.write('drawn')\n", encoding="utf-8")
    (tmp_path / "main.py").write_text(
        "import streamlit as st\n"
        "from dashboard.server.streamlit_private import run_again\n"
        "page = st.navigation([st.Page('page.py')])\n"
        "run_again(page)\n"
        "run_again(page)\n"
        "page.run()\n"
        "page.run()\n",
        encoding="utf-8",
    )
    app = AppTest.from_file(str(tmp_path / "main.py")).run()
    assert [each.value for each in app.markdown] == ["drawn"] * 3
    assert app.exception  # the page itself had its turn


def test_the_component_manager_takes_the_manifest_of_a_checkout(tmp_path: Path) -> None:
    (tmp_path / "web").mkdir()
    declared = {
        "project": {"name": "some-lab", "version": "1"},
        "tool": {"streamlit": {"component": {"components": [{"name": "one", "asset_dir": "web"}]}}},
    }
    manager = BidiComponentManager()
    with pytest.MonkeyPatch.context() as patch:
        module = import_module("streamlit.components.v2.get_bidi_component_manager")
        patch.setattr(module, "get_bidi_component_manager", lambda: manager)
        assert manager.get_component_asset_root("some-lab.one") is None
        assert streamlit_private.register_components(declared, tmp_path)
        assert manager.get_component_asset_root("some-lab.one") == tmp_path.resolve() / "web"


@pytest.fixture
def one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SafeSessionState, "_lock", None, raising=False)  # so that it is taken back afterwards
    streamlit_private.let_one_run_at_the_state()


@pytest.mark.usefixtures("one_at_a_time")
def test_the_run_before_adds_no_widget_while_the_callbacks_of_a_click_run() -> None:
    state, went, asked = SessionState(), list[str](), list[None]()
    # As two threads of a session have it. Who waits asks again and again whether it is to stop.
    before, now = SafeSessionState(state, lambda: asked.append(None)), SafeSessionState(state, lambda: None)
    late = threading.Thread(target=before.register_widget, args=(_widget("late"), None))

    def start_the_other(value: bool) -> bool:
        if value and not late.ident:
            asked.clear()
            late.start()
            wait_for("the other waits for the state", lambda: len(asked), lambda times: times >= 2)
        return value

    for name in ("first", "second"):
        before.register_widget(_widget(name, start_the_other, lambda name=name: went.append(name)), None)
    answer_clicks(now, "first", "second")
    assert went == ["first", "second"]
    late.join(PATIENCE)
    assert _widget("late").id in state


@pytest.mark.usefixtures("one_at_a_time")
def test_a_run_that_is_to_stop_does_not_wait_for_a_callback_and_changes_nothing() -> None:
    """Else a callback that waits for what that run holds would wait for ever."""
    state, asked, waits, stopped = SessionState(), threading.Event(), list[None](), list[str]()

    def stop_if_asked() -> None:
        waits.append(None)
        if asked.is_set():
            raise StopException

    def write() -> None:
        try:
            before["late"] = 1
        except StopException:
            stopped.append("before")

    before, now = SafeSessionState(state, stop_if_asked), SafeSessionState(state, lambda: None)
    with now.query_params():
        thread = threading.Thread(target=write)
        thread.start()
        wait_for("the other waits for the state", lambda: len(waits), lambda times: times >= 2)
        asked.set()  # as a click does
        thread.join(PATIENCE)
    assert stopped == ["before"]
    assert "late" not in now


@pytest.mark.usefixtures("one_at_a_time")
def test_two_sessions_do_not_wait_for_each_other() -> None:
    one, other = (SafeSessionState(SessionState(), lambda: None) for _ in range(2))
    with one.query_params():
        thread = threading.Thread(target=other.__setitem__, args=("key", 1))
        thread.start()
        thread.join(PATIENCE)
    assert other["key"] == 1


@pytest.mark.parametrize("mended", [False, True])
def test_a_run_that_is_to_stop_answers_its_click_first(monkeypatch: pytest.MonkeyPatch, mended: bool) -> None:
    put_back(monkeypatch, SessionState, "on_script_will_rerun")
    put_back(monkeypatch, ScriptRunner, "_maybe_handle_execution_control_request")
    if mended:
        streamlit_private.let_callbacks_end()
    runner = MagicMock(_requests=ScriptRequests(), _execing=True)
    runner._is_in_script_thread.return_value = True
    state = SessionState()
    safe = SafeSessionState(state, lambda: ScriptRunner._maybe_handle_execution_control_request(runner))

    def answer() -> None:
        safe["first"] = 1
        runner._requests.request_stop()  # the next click
        safe["second"] = 2

    safe.register_widget(_widget("clicked", bool, answer), None)
    with nullcontext() if mended else pytest.raises(StopException):
        answer_clicks(safe, "clicked")
    assert ("second" in state) == mended
    with pytest.raises(StopException):
        safe["after"] = 3
    assert "after" not in state


def answer_clicks(state: SafeSessionState, *names: str) -> None:
    """As a run of a script does, which has a context of its own, and with it a thread state."""
    clicked = WidgetStates()
    for name in names:
        clicked.widgets.add(id=_widget(name).id, bool_value=True)
    context = contextvars.copy_context()
    context.run(ThreadState.initialize)
    context.run(state.on_script_will_rerun, clicked)


def _widget(
    name: str, read: Callable[[Any], Any] = bool, callback: Callable[[], None] = lambda: None
) -> WidgetMetadata[Any]:
    return WidgetMetadata(
        id=f"$$ID-{name}-None",
        deserializer=read,
        serializer=lambda value: value,
        value_type="bool_value",
        callback=callback,
    )


def reference(*place: int) -> ForwardMsg:
    """What stands for a large message that the browser has already: it does not say whose it is."""
    message = ForwardMsg(ref_hash="hash")
    message.metadata.delta_path.extend(place)
    return message


def element(*place: int, fragment: str = "") -> ForwardMsg:
    message = ForwardMsg()
    message.metadata.delta_path.extend(place)
    message.delta.new_element.markdown.body = str(place)
    message.delta.fragment_id = fragment
    return message


def block(*place: int, fragment: str = "") -> ForwardMsg:
    """What adds a block to the page."""
    message = element(*place, fragment=fragment)
    message.delta.add_block.allow_empty = True
    return message


def queue_of(messages: list[ForwardMsg]) -> ForwardMsgQueue:
    queue = ForwardMsgQueue()
    for message in messages:
        queue.enqueue(message)
    return queue


def test_what_stands_in_a_dropped_block_is_dropped_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a page with two fragments, one inside the other, whose outer one is asked for again."""
    messages = [
        block(0, 0),
        block(0, 1, fragment="outer"),
        element(0, 1, 0, fragment="outer"),
        block(0, 1, 1, fragment="outer"),
        element(0, 1, 1, 0, fragment="inner"),
        reference(0, 1, 1, 1),
        reference(0, 2),
        element(0, 3, fragment="another"),
    ]
    put_back(monkeypatch, ForwardMsgQueue, "clear")
    orphans = [(0, 1, 1, 0), (0, 1, 1, 1)]
    for mended in (False, True):
        if mended:
            streamlit_private.send_nothing_into_a_block_that_was_dropped()
        queue = queue_of(messages)
        queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=["outer"])
        places = [tuple(message.metadata.delta_path) for message in queue.flush()]
        assert places == [(0, 0), *([] if mended else orphans), (0, 2), (0, 3)], "what the browser cannot place"


def test_a_whole_run_clears_the_queue_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    put_back(monkeypatch, ForwardMsgQueue, "clear")
    streamlit_private.send_nothing_into_a_block_that_was_dropped()
    session = ForwardMsg()
    session.new_session.page_script_hash = "page"
    queue = queue_of([session, block(0, 0), element(0, 0, 0)])
    queue.clear(retain_lifecycle_msgs=True)
    assert queue.flush() == [session]
    queue.enqueue(element(0, 0))
    queue.clear()
    assert queue.is_empty()


@pytest.fixture
def handed_on(monkeypatch: pytest.MonkeyPatch) -> Callable[[ScriptRequests], set[str]]:
    """Which clicks the run that follows is given when a request without any stops this one."""
    put_back(monkeypatch, ScriptRequests, "_request_rerun_locked")
    put_back(monkeypatch, SessionState, "on_script_will_rerun")
    asked: list[RerunData] = []
    monkeypatch.setattr(
        AppSession, "_create_scriptrunner", lambda self, initial_rerun_data: asked.append(initial_rerun_data)
    )
    streamlit_private.hand_on_unanswered_clicks()

    def follow(before: ScriptRequests) -> set[str]:
        before.request_stop()
        session = SimpleNamespace(requests_before=before, _scriptrunner=None)
        AppSession._create_scriptrunner(session, RerunData(widget_states=WidgetStates()))
        return {each.id for each in asked[-1].widget_states.widgets if each.trigger_value}

    return follow


def click(*names: str, fragment: str | None = None) -> RerunData:
    states = WidgetStates()
    for name in names:
        states.widgets.add(id=name, trigger_value=True)
    return RerunData(widget_states=states, fragment_id=fragment)


def begin_to_answer(requests: ScriptRequests) -> None:
    """As a run does before its callbacks."""
    with pytest.MonkeyPatch.context() as patch:
        context = SimpleNamespace(script_requests=requests)
        patch.setattr(script_run_context, "get_script_run_ctx", lambda suppress_warning: context)
        streamlit_private._take(lambda: None)


def test_a_click_is_answered_by_the_next_run_where_the_first_is_stopped_before(
    handed_on: Callable[[ScriptRequests], set[str]],
) -> None:
    for consumed in (False, True):
        requests = ScriptRequests()
        assert requests.request_rerun(click("leave"))
        if consumed:
            requests.on_scriptrunner_ready()
        assert handed_on(requests) == {"leave"}
        with pytest.raises(StopException):  # nor does the first answer it as well
            begin_to_answer(requests)


@pytest.mark.parametrize("waits", [set(), {"second"}])
def test_of_clicks_only_one_that_waits_is_handed_on_and_none_that_is_being_answered(
    waits: set[str], handed_on: Callable[[ScriptRequests], set[str]]
) -> None:
    requests = ScriptRequests()
    assert requests.request_rerun(click("first"))
    requests.on_scriptrunner_ready()
    for name in waits:
        assert requests.request_rerun(click(name, fragment="page"))
    begin_to_answer(requests)
    assert handed_on(requests) == waits


@pytest.mark.parametrize("gone", [False, True], ids=["there", "gone"])
def test_a_request_that_tells_of_a_click_elsewhere_is_one_for_everything(
    monkeypatch: pytest.MonkeyPatch, gone: bool
) -> None:
    """As the browser sends it where a live view asks within the same turn of its loop."""
    asked: list[Any] = []
    widened: dict[str, str] = {}
    monkeypatch.setattr(AppSession, "request_rerun", lambda self, client_state: asked.append(client_state))
    streamlit_private.draw_all_that_a_request_tells_of()
    places = {"news": "live", "leave": None, "paint": "page"}
    known = {
        name: WidgetMetadata(name, str, str, "trigger_value", fragment_id=place)
        for name, place in places.items()
        if not (gone and place == "live")
    }
    state = SimpleNamespace(_new_widget_state=SimpleNamespace(widget_metadata=known))
    session = SimpleNamespace(session_state=state, has_fragment=lambda fragment: not gone)
    for told in (("news",), ("leave", "news"), ("news", "paint"), ()):
        states = click(*told).widget_states
        states.widgets.add(id="menu", string_value="chosen")
        states.widgets.add(id="paint" if "paint" not in told else "leave", trigger_value=False)
        AppSession.request_rerun(session, ClientState(fragment_id="live", query_string="run=a", widget_states=states))
        widened[" ".join(told)] = asked[-1].fragment_id
        assert asked[-1].query_string == ("run=a" if asked[-1].fragment_id else "")
    assert widened == {"news": "live", "leave news": "", "news paint": "", "": "live"}
    AppSession.request_rerun(session, None)
    assert asked[-1] is None


@pytest.mark.parametrize("gone", [False, True], ids=["there", "gone"])
def test_a_request_that_tells_of_a_press_elsewhere_is_one_for_everything_once(
    monkeypatch: pytest.MonkeyPatch, gone: bool
) -> None:
    """A component tells a state, which stands in each request from then on: only the first is about it."""
    asked: list[str] = []
    monkeypatch.setattr(AppSession, "request_rerun", lambda self, client_state: asked.append(client_state.fragment_id))
    streamlit_private.draw_all_that_a_request_tells_of()
    known = {
        name: WidgetMetadata(name, str, str, "json_value", fragment_id=place)
        for name, place in {"next": None, "inside": "live"}.items()
        if not (gone and place == "live")
    }
    state = SimpleNamespace(_new_widget_state=SimpleNamespace(widget_metadata=known))
    session = SimpleNamespace(session_state=state, has_fragment=lambda fragment: not gone)

    def ask(fragment: str, **told: str) -> str:
        states = WidgetStates()
        for name, value in told.items():
            states.widgets.add(id=name, json_value=value)
        AppSession.request_rerun(session, ClientState(fragment_id=fragment, widget_states=states))
        return asked[-1]

    assert ask("", next="0") == ""  # for everything it is already
    assert ask("live", next="0") == "live"
    assert ask("live", next="1") == ""
    assert ask("live", next="1") == "live"
    assert ask("live", next="1", inside="1") == ("" if gone else "live")
    assert ask("live", next="1", inside="1") == "live"
    assert ask("live", next="2", inside="1") == ""


@pytest.fixture
def page_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    put_back(monkeypatch, ScriptRequests, "on_scriptrunner_ready", "on_scriptrunner_yield", "_request_rerun_locked")
    streamlit_private.keep_the_page_when_a_fragment_is_asked_for()
    monkeypatch.setattr(script_run_context, "get_script_run_ctx", lambda **_: SimpleNamespace(page_script_hash="new"))


def page_of(request: ScriptRequest | None) -> str:
    assert request is not None
    return request.rerun_data.page_script_hash


@pytest.mark.usefixtures("page_kept")
@pytest.mark.parametrize("scoped", [False, True], ids=["timer", "st.rerun"])
def test_a_request_for_a_fragment_runs_on_the_page_that_the_session_is_on(scoped: bool) -> None:
    """The browser named the page before, of which it had not yet heard that it is gone."""
    requests = ScriptRequests()
    late = RerunData(page_script_hash="old", fragment_id="timer", is_fragment_scoped_rerun=scoped)
    assert requests.request_rerun(late)
    taken = requests.on_scriptrunner_yield() if scoped else requests.on_scriptrunner_ready()
    assert page_of(taken) == "new"
    assert taken is not None
    assert taken.rerun_data.fragment_id_queue == ["timer"]


@pytest.mark.usefixtures("page_kept")
def test_a_request_for_everything_goes_to_the_page_that_it_names() -> None:
    requests = ScriptRequests()
    assert requests.request_rerun(RerunData(page_script_hash="next", page_name="next"))
    assert requests.request_rerun(RerunData(page_script_hash="old", page_name="old", fragment_id="timer"))
    taken = requests.on_scriptrunner_ready()
    assert page_of(taken) == "next"
    assert taken.rerun_data.page_name == "next"
    assert not taken.rerun_data.fragment_id_queue
    assert requests.request_rerun(RerunData(page_script_hash="old", fragment_id="timer"))
    assert requests.request_rerun(RerunData(page_script_hash="next"))
    assert page_of(requests.on_scriptrunner_yield()) == "next"


@pytest.mark.usefixtures("page_kept")
def test_a_page_that_asks_to_be_drawn_anew_does_not_undo_a_back_that_waits() -> None:
    """As every page does a moment after its first look; what goes to yet another page goes there."""
    requests = ScriptRequests()
    assert requests.request_rerun(RerunData(page_script_hash="before", page_name="before", query_string="run=a"))
    assert requests.request_rerun(RerunData(page_script_hash="new", query_string="run=b"))
    taken = requests.on_scriptrunner_yield()
    assert page_of(taken) == "before"
    assert (taken.rerun_data.page_name, taken.rerun_data.query_string) == ("before", "run=a")
    assert requests.request_rerun(RerunData(page_script_hash="new", query_string="run=old"))  # of the browser
    assert requests.request_rerun(RerunData(page_script_hash="new", query_string="run=written"))
    taken = requests.on_scriptrunner_yield()
    assert (page_of(taken), taken.rerun_data.query_string) == ("new", "run=written")
    assert requests.request_rerun(RerunData(page_script_hash="before"))
    assert requests.request_rerun(RerunData(page_script_hash="another"))
    assert page_of(requests.on_scriptrunner_yield()) == "another"


@pytest.mark.usefixtures("page_kept")
def test_a_script_that_has_no_page_yet_asks_and_is_stopped_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script_run_context, "get_script_run_ctx", lambda **_: None)
    requests = ScriptRequests()
    assert requests.on_scriptrunner_yield() is None
    assert requests.request_rerun(RerunData(page_script_hash="old", fragment_id="timer", is_fragment_scoped_rerun=True))
    assert page_of(requests.on_scriptrunner_yield()) == "old"
    requests.request_stop()
    assert requests.on_scriptrunner_yield() == requests.on_scriptrunner_ready()
    assert not requests.request_rerun(RerunData(fragment_id="timer"))


def test_streamlits_command_line_can_be_called() -> None:
    """`streamlit run` in this process. Wrong options end in one sentence, before anything is served."""
    from click import Command
    from streamlit.web.cli import main

    assert isinstance(main.commands["run"], Command)
    with pytest.raises(ConfigError, match=r"^No such option '?--no\.such\.option'?\.$"):
        streamlit_private.serve(Path("app.py"), ["--no.such.option", "3"])
    with pytest.raises(ConfigError, match=r"File does not exist: no-such-app\.py"):
        streamlit_private.serve(Path("no-such-app.py"), [])


@pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="nothing lists what this process has open")
def test_a_session_opens_its_event_loop_where_something_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The attribute `_script_event_loop` of a session, and the function that closes it with the session."""

    class Session(AppSession):
        def __init__(self) -> None:
            self._script_event_loop = asyncio.new_event_loop()

        def __del__(self) -> None:
            pass

    async def one() -> int:
        return 1

    assert "_script_event_loop" in inspect.getsource(AppSession.__init__)
    assert "_close_script_event_loop(self._script_event_loop)" in inspect.getsource(AppSession.shutdown)
    monkeypatch.setattr(AppSession, "_script_event_loop", None, raising=False)
    monkeypatch.setattr(app_session, "_close_script_event_loop", app_session._close_script_event_loop)
    streamlit_private.open_event_loops_on_demand()

    def use() -> None:
        before = len(os.listdir("/dev/fd"))
        sessions = [Session() for _ in range(3)]
        loop = sessions[0]._script_event_loop
        assert not loop.is_closed()
        asyncio.set_event_loop(loop)
        asyncio.set_event_loop(None)
        app_session._close_script_event_loop(sessions[1]._script_event_loop)
        assert len(os.listdir("/dev/fd")) == before
        assert loop.run_until_complete(one()) == 1
        assert len(os.listdir("/dev/fd")) == before + 3
        app_session._close_script_event_loop(loop)
        assert loop.is_closed()
        assert len(os.listdir("/dev/fd")) == before

    with ThreadPoolExecutor(1) as pool:  # Playwright leaves its own loop running in this thread
        pool.submit(use).result(PATIENCE)


def test_a_server_is_told_from_what_only_looks_like_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """`Runtime._instance` is the server's; a test's page runs with another thing in its place."""
    assert not streamlit_private.is_served()
    monkeypatch.setattr(Runtime, "_instance", MagicMock(spec=Runtime))
    assert not streamlit_private.is_served()
    monkeypatch.setattr(Runtime, "_instance", object.__new__(Runtime))
    assert streamlit_private.is_served()


def test_a_page_is_opened_for_nobody_at_its_address_and_ends_where_it_is_not_to_go_on(tmp_path: Path) -> None:
    (tmp_path / "page.py").write_text(
        "import streamlit as st\nfrom pathlib import Path\n"
        "for place in range(9):\n"
        "    st.write('drawn')\n"
        "    (Path(__file__).parent / st.query_params['name']).write_text(str(place))\n",
        encoding="utf-8",
    )
    (tmp_path / "main.py").write_text(
        "import streamlit as st\n"
        "from dashboard.server.streamlit_private import is_visited, visiting\n"
        "home = st.Page(lambda: None, title='home', url_path='home')\n"
        "page = st.navigation([home, st.Page('page.py', url_path='there')])\n"
        "if is_visited():\n"
        "    visit, asked = visiting(), []\n"
        "    st.session_state.whole = visit('there', 'name=whole', lambda: True)\n"
        "    st.session_state.part = visit('there', 'name=part', lambda: asked.append(1) or len(asked) < 5)\n"
        "page.run()\n",
        encoding="utf-8",
    )
    app = AppTest.from_file(str(tmp_path / "main.py")).run()
    assert not app.exception
    assert (app.session_state.whole, app.session_state.part) == (True, False)
    assert (tmp_path / "whole").read_text() == "8"
    assert int((tmp_path / "part").read_text()) < 8
    assert not app.markdown  # nobody sees it
