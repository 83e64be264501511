"""The private parts of Streamlit that the dashboard leans on, all of them: nothing else here imports an inside of it.

Streamlit promises none of these names, and no public one does the same in Streamlit 1.67. Each says what it is for and
what breaks without it. Each has a test in tests/dashboard/server/test_streamlit_private.py, whose name says after an
upgrade what is gone. What is private in Streamlit's page stands in frame/style.css and in web/kit/streamlit_private.js.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.components.v2 import manifest_scanner
from streamlit.components.v2.get_bidi_component_manager import get_bidi_component_manager
from streamlit.delta_generator import DeltaGenerator as DeltaGenerator
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime import Runtime, app_session, exists, get_instance
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
from streamlit.runtime.scriptrunner_utils.exceptions import StopException
from streamlit.runtime.scriptrunner_utils.script_requests import (
    RerunData,
    ScriptRequest,
    ScriptRequests,
    ScriptRequestType,
)
from streamlit.runtime.scriptrunner_utils.script_requests import _coalesce_widget_states as coalesce_widget_states
from streamlit.runtime.scriptrunner_utils.script_run_context import (
    ThreadState,
    get_script_run_ctx,
    in_cached_function,
)
from streamlit.runtime.state import SafeSessionState, SessionState

from transformer.foundation.checks import ConfigError

# DeltaGenerator is what `st.container` and `st.columns` return; `streamlit.typing` has no name for it. Without it six
# signatures of pages say `Any`.


PAGE = '[data-testid="stMain"]'
"""What holds the page beside the sidebar, as a selector. Without it a step of a lecture leaves out no control."""
SIDEBAR = ('[data-testid="stSidebar"]', '[data-testid="stExpandSidebarButton"]')
"""The sidebar, and the button that opens it. Without them it stands beside every step of a lecture."""
STOPS_WITHIN = 0.05
"""Seconds after which a run that waits for the state asks again whether it is to stop."""


def serve(script: Path, options: Sequence[str]) -> None:
    """Run `streamlit run SCRIPT OPTIONS` in this process, until it is stopped. Raises ConfigError for wrong options.

    Without it the server is a process beside the command that starts it, and has to be ended by it.
    """
    from click import ClickException
    from streamlit.web.cli import main

    try:
        main(["run", str(script), *options], prog_name="streamlit", standalone_mode=False)
    except ClickException as error:
        raise ConfigError(error.format_message()) from None


def is_served() -> bool:
    """Does a server run the script? Not in a test, nor where a lecture is checked, whose runtime only looks like one.

    Without it nobody is taken for a stranger, or everybody (view/permission.py).
    """
    return exists() and type(get_instance()) is Runtime


def may_draw() -> bool:
    """Does this thread run a page, and no function whose answer Streamlit remembers with all that it drew?

    Without it, what is drawn while somebody waits in such a function is drawn again at each look-up (models/cache.py).
    """
    return get_script_run_ctx(suppress_warning=True) is not None and not in_cached_function.get()


def fragments_asked() -> list[str] | None:
    """The ids of the fragments that the browser's request asked for; None where it asked for everything.

    Without it a timer's late report of a menu is taken for a choice (view/clicks.py).
    """
    context = get_script_run_ctx()
    return context.fragment_ids_this_run if context else None


def fragment_here() -> str | None:
    """The id of the fragment in which this stands; in a callback, of the one that holds its widget. None outside all.

    Without it a timer's late report of a menu is taken for a choice (view/clicks.py).
    """
    return ThreadState.get().fragment_id


def run_again(page: st.Page) -> None:
    """Run a page that may have run in this rerun already: a page runs once, its copies once each.

    Without it the page cannot be a fragment, and each click draws the sidebar and everything else anew (frame/main.py).
    """
    copy(page).run()


def register_components(declared: Mapping[str, Any], folder: Path) -> None:
    """Make the components known that a `pyproject.toml` in `folder` declares, unless they are known already.

    Streamlit's own scan looks for a package named like the distribution, so it finds an installed wheel but not an
    editable install; and each runtime (every AppTest has one) starts empty. Without it no component can be mounted from
    a checkout.
    """
    components = declared["tool"]["streamlit"]["component"]["components"]
    ours = manifest_scanner.ComponentManifest(
        name=declared["project"]["name"],
        version=declared["project"]["version"],
        components=[manifest_scanner.ComponentConfig.from_dict(component) for component in components],
    )
    manager = get_bidi_component_manager()
    if any(manager.get_component_asset_root(f"{ours.name}.{each.name}") is None for each in ours.components):
        manager.register_from_manifest(ours, folder)


def scan_packages_once() -> None:
    """Let all runtimes of this process share one scan for packages that bring components; the tests have hundreds.

    Without it every AppTest takes 0.2 s longer.
    """
    manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)


def compile_scripts_once() -> None:
    """Let all runs of the tests share the compiled scripts of pages, as the runs of a server do.

    Without it an AppTest compiles the router and its page in every run, which takes 15 ms.
    """
    from streamlit.testing.v1 import app_test, local_script_runner

    shared = ScriptCache()
    for module in (app_test, local_script_runner):
        module.ScriptCache = lambda: shared  # type: ignore[attr-defined]


def show_of_the_state_what_is_asked_for() -> None:
    """Let a field that asks for its own value in the session's state find that, and nothing else.

    Each number field and menu makes a copy of the whole state, every component's part of it in a new class of its own,
    and looks at one value. Without this that is a fifteenth of the time that a page takes to be drawn.
    """
    SessionState.filtered_state = property(_Shown)  # type: ignore[assignment]


_shown_at_once = SessionState.filtered_state


class _Shown(Mapping[str, Any]):
    """What `SessionState.filtered_state` holds, each value made where it is asked for."""

    def __init__(self, state: SessionState) -> None:
        self._state = state

    def __getitem__(self, key: str) -> Any:
        return self._state[key]

    def __iter__(self) -> Iterator[str]:
        return iter(_shown_at_once.fget(self._state))  # type: ignore[attr-defined]

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _OneLock:
    """The lock of a session's state, which every run of that session takes: an attribute of `SafeSessionState`.

    A run that was asked to stop does so here: while it waits, so that a callback may wait for what that run holds, and
    once it has the lock, so that it changes nothing after the callbacks.
    """

    def __set__(self, safe: SafeSessionState, lock: threading.RLock) -> None:
        held_by = vars(safe._state.query_params)  # a state has slots; this part of it lasts as long
        vars(safe)["_lock"] = held_by.setdefault("lock", lock)

    def __get__(self, safe: SafeSessionState, owner: type[SafeSessionState]) -> AbstractContextManager[None]:
        return self._taken(vars(safe)["_lock"], safe._yield_callback)

    @staticmethod
    @contextmanager
    def _taken(lock: threading.RLock, stop_if_asked: Callable[[], None]) -> Iterator[None]:
        while not lock.acquire(timeout=STOPS_WITHIN):
            stop_if_asked()
        try:
            stop_if_asked()
            yield
        finally:
            lock.release()


def let_one_run_at_the_state() -> None:
    """Let the runs of one session touch its state one at a time.

    A click starts a new thread at once, and the thread of the run before goes on to its next call of Streamlit. Each of
    the two has a lock of its own over the one state. Without it a click or key is lost now and then: "dictionary
    changed size during iteration", and no callback runs.
    """
    SafeSessionState._lock = _OneLock()  # type: ignore[assignment]


def let_callbacks_end() -> None:
    """Let a run that is asked to stop answer its click to the end first.

    The next click stops the run before at its next call of Streamlit, and a look at the session's state is one. Without
    this a callback is cut off in the middle now and then, and what it had not done yet is never done: a key is lost.
    """
    SessionState.on_script_will_rerun = _answer  # type: ignore[assignment, method-assign]
    ScriptRunner._maybe_handle_execution_control_request = _stop_if_asked  # type: ignore[assignment, method-assign]


_answering = threading.local()
_answer_as_long_as_it_may = SessionState.on_script_will_rerun
_stop_even_while_answering = ScriptRunner._maybe_handle_execution_control_request


def _answer(state: SessionState, *args: Any, **kwargs: Any) -> None:
    context = get_script_run_ctx(suppress_warning=True)
    if context is not None and context.script_requests is not None:
        _take(context.script_requests)
    _answering.now = True
    try:
        _answer_as_long_as_it_may(state, *args, **kwargs)
    finally:
        _answering.now = False


def _stop_if_asked(runner: ScriptRunner) -> None:
    if not getattr(_answering, "now", False):
        _stop_even_while_answering(runner)


def hand_on_unanswered_clicks() -> None:
    """Give the clicks of a run that is stopped before it answers them to the run that takes its place.

    A request for everything stops the run before, and the browser tells of a click once. Without this a click is lost
    when another request follows within milliseconds, as from a part of the page that reports its size: nothing happens.
    """
    ScriptRequests._request_rerun_locked = _request  # type: ignore[assignment, method-assign]
    SessionState.on_script_will_rerun = _answer  # type: ignore[assignment, method-assign]
    AppSession._create_scriptrunner = _start  # type: ignore[assignment, method-assign]


_start_alone = AppSession._create_scriptrunner


def _start(session: AppSession, asked: RerunData) -> None:
    """Start a run for a request, with the clicks that the run before was told of and will not answer."""
    before: ScriptRequests | None = vars(session).get("requests_before")
    if before is not None:
        with before._lock:
            unanswered = vars(before).pop("unanswered", None)
        asked = replace(asked, widget_states=coalesce_widget_states(unanswered, asked.widget_states))
    _start_alone(session, asked)
    vars(session)["requests_before"] = session._scriptrunner and session._scriptrunner._requests


def _note(requests: ScriptRequests, asked: RerunData) -> None:
    """Note what a request tells of the widgets. The caller holds the lock of the requests."""
    told = vars(requests).get("unanswered")
    vars(requests)["unanswered"] = coalesce_widget_states(told, asked.widget_states)


def _take(requests: ScriptRequests) -> None:
    """Begin to answer what was told so far; where the run was stopped before, leave it to the next and end."""
    with requests._lock:
        if requests._state is ScriptRequestType.STOP:
            raise StopException
        waits = requests._state is ScriptRequestType.RERUN
        vars(requests)["unanswered"] = requests._rerun_data.widget_states if waits else None


def send_nothing_into_a_block_that_was_dropped() -> None:
    """Take out of the queue to the browser, when a click clears it, whatever stands in a block that is cleared too.

    A click in a fragment drops what its last run has queued, but neither what other fragments inside it have, nor what
    the browser is only referred to, for a reference no longer says whose it is. Without this, such a message names a
    place in a block that is still to come again, and the browser shows no page any more ("Bad delta path").
    """
    ForwardMsgQueue.clear = _clear  # type: ignore[assignment, method-assign]


_clear_one_by_one = ForwardMsgQueue.clear


def _clear(
    queue: ForwardMsgQueue, retain_lifecycle_msgs: bool = False, fragment_ids_this_run: list[str] | None = None
) -> None:
    before = queue._queue
    _clear_one_by_one(queue, retain_lifecycle_msgs, fragment_ids_this_run)
    if not queue._queue:
        return
    kept = {id(message) for message in queue._queue}
    dropped = {_place(message) for message in before if id(message) not in kept} - {()}
    queue._queue = [
        message
        for message in queue._queue
        if not any(_place(message)[:depth] in dropped for depth in range(1, len(_place(message))))
    ]


def _place(message: ForwardMsg) -> tuple[int, ...]:
    """Where on the page a message belongs; () where it is about something else."""
    return tuple(message.metadata.delta_path)


def keep_the_page_when_a_fragment_is_asked_for() -> None:
    """Let no request for a fragment change the page that the session is on, or is about to go to.

    The browser names the page before in each request until it has heard of the new one, also where a timer asks.
    Without this such a late request makes the browser drop the new page, and nobody draws it again: a lecture shows its
    strip above an empty page.
    """
    ScriptRequests.on_scriptrunner_ready = _ready  # type: ignore[assignment, method-assign]
    ScriptRequests.on_scriptrunner_yield = _yield  # type: ignore[assignment, method-assign]
    ScriptRequests._request_rerun_locked = _request  # type: ignore[assignment, method-assign]


_ready_where_the_browser_says = ScriptRequests.on_scriptrunner_ready
_yield_where_the_browser_says = ScriptRequests.on_scriptrunner_yield
_request_where_the_browser_says = ScriptRequests._request_rerun_locked


def _ready(requests: ScriptRequests) -> ScriptRequest:
    return _here(_ready_where_the_browser_says(requests))


def _yield(requests: ScriptRequests) -> ScriptRequest | None:
    request = _yield_where_the_browser_says(requests)
    return request and _here(request)


def _here(request: ScriptRequest) -> ScriptRequest:
    """The request, which is run at once in this thread: one for fragments names the page that the session is on."""
    context = get_script_run_ctx()
    if context is None or request.type is not ScriptRequestType.RERUN or not request.rerun_data.fragment_id_queue:
        return request
    return replace(request, _rerun_data=replace(request.rerun_data, page_script_hash=context.page_script_hash))


def _request(requests: ScriptRequests, asked: RerunData) -> bool:
    """Ask; what waits for its turn already and is about the whole page says which page, not a fragment's request."""
    waiting = requests._rerun_data
    of_fragments = asked.fragment_id or asked.fragment_id_queue
    if of_fragments and requests._state is ScriptRequestType.RERUN and not waiting.fragment_id_queue:
        asked = replace(asked, page_script_hash=waiting.page_script_hash, page_name=waiting.page_name)
    if requests._state is not ScriptRequestType.STOP:
        _note(requests, asked)
    return _request_where_the_browser_says(requests, asked)


def open_event_loops_on_demand() -> None:
    """Let a session open the event loop of its script where something uses it: none of our pages does.

    Without it each tab takes four descriptors in place of one, and each that was closed keeps three of them.
    """
    AppSession._script_event_loop = _SessionLoop()  # type: ignore[assignment]
    app_session._close_script_event_loop = _close_what_was_opened


_close_loop = app_session._close_script_event_loop


class _SessionLoop:
    """The attribute of a session that holds the event loop of its script."""

    def __set__(self, session: AppSession, made: asyncio.AbstractEventLoop) -> None:
        made.close()
        vars(session)["_script_event_loop"] = _LoopOnDemand()

    def __get__(self, session: AppSession, owner: type[AppSession]) -> asyncio.AbstractEventLoop:
        loop: asyncio.AbstractEventLoop = vars(session)["_script_event_loop"]
        return loop


class _LoopOnDemand(asyncio.AbstractEventLoop):
    """An event loop that opens its selector and its two sockets where it is asked for more than how it stands."""

    opened: asyncio.AbstractEventLoop | None = None

    def is_running(self) -> bool:
        return self.opened is not None and self.opened.is_running()

    def is_closed(self) -> bool:
        return self.opened is not None and self.opened.is_closed()

    def __getattribute__(self, name: str) -> Any:
        if name in ("opened", "is_running", "is_closed") or name.startswith("__"):
            return super().__getattribute__(name)
        if self.opened is None:
            self.opened = asyncio.new_event_loop()
        return getattr(self.opened, name)


def _close_what_was_opened(loop: asyncio.AbstractEventLoop) -> None:
    opened = loop.opened if isinstance(loop, _LoopOnDemand) else loop
    if opened is not None:
        _close_loop(opened)


def served_page() -> str:
    """The HTML of the page that Streamlit serves.

    Without it the script written into that page is forbidden by our security policy (server/http.py).
    """
    return (Path(st.__file__).parent / "static" / "index.html").read_text(encoding="utf-8")


def connecting_script(origins: Sequence[str]) -> str:
    """The script, written into that page, by which it opens its socket at once; `origins` may talk to it from a frame.

    It says where the server is, namely where the page's own files are, and what the server's host-config would say.
    Without it the page asks for both first, and a page with an address of its own asks in vain below that one: its
    title stands 0.1 s later.
    """
    config = json.dumps({"allowedOrigins": [*origins], "useExternalAuthToken": False})
    return f'window.__streamlit = {{ BACKEND_BASE_URL: new URL("./", location.href).href, HOST_CONFIG: {config} }}'
