"""The private parts of Streamlit that the dashboard leans on, all of them: nothing else here imports an inside of it.

Streamlit promises none of these names, and no public one does the same in Streamlit 1.67. Each function says what it
`needs`, what is lost without it, and what is done in its place (server/private_names.py). So an inside is imported
where it is used, once it is known to be there. tests/dashboard/server/test_streamlit_private.py takes each name away.
What is private in Streamlit's page stands in frame/style.css and in web/kit/streamlit_private.js.

Streamlit's own setting `runner.fastReruns = false` lets one run of a session end before the next begins, which is what
two of the mendings are for. It was tried in their place, on a busy server: 5 of 30 quick moves of the slider of steps
lost a key, and with them none of 30.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from dashboard.server.private_names import Part, needs, put_around
from transformer.foundation.checks import ConfigError

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator as DeltaGenerator
    from streamlit.proto.ClientState_pb2 import ClientState
    from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
    from streamlit.proto.WidgetStates_pb2 import WidgetStates
    from streamlit.runtime.app_session import AppSession
    from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
    from streamlit.runtime.scriptrunner_utils.script_requests import RerunData, ScriptRequest, ScriptRequests
    from streamlit.runtime.state import SafeSessionState
else:
    DeltaGenerator = Any
    """What `st.container` and `st.columns` return; `streamlit.typing` has no name for it. Only signatures name it."""

# What stands in Streamlit's page and in its addresses. Where one is gone, nothing fails.

PAGE = '[data-testid="stMain"]'
"""What holds the page beside the sidebar, as a selector. Without it a step of a lecture leaves out no control."""
SIDEBAR = ('[data-testid="stSidebar"]', '[data-testid="stExpandSidebarButton"]')
"""The sidebar, and the button that opens it. Without them it stands beside every step of a lecture."""
BUTTONS = tuple(
    f'[data-testid="{each}"]'
    for each in ("stButton", "stDownloadButton", "stLinkButton", "stPageLink", "stPopover", "stButtonGroup")
)
"""What one presses on a page. Without them a step of a lecture shows buttons that it does not need."""
CORE = "/_stcore"
"""What stands before Streamlit's own addresses."""
METRICS = f"{CORE}/metrics"
"""What Streamlit says of its memory and sessions. Without it the server tells that to everybody (server/guard.py)."""
UPLOADS = f"{CORE}/upload_file"
"""Where a browser sends a file. Without it a guest may send one, which no page reads (server/entrance.py)."""
HEALTH = f"{CORE}/health"
"""Whether the server lives. Without it no hand-out is written from the command line (lectures/hand_out.py)."""
COMPONENTS = f"{CORE}/bidi-components/"
"""Where the scripts of components are. Without it a page asks for forty, not for one (components/scripts.py)."""

NOBODY = "nobody"
"""The session of a page that is opened for nobody."""
STOPS_WITHIN = 0.05
"""Seconds after which a run that waits for the state asks again whether it is to stop."""
RUNNING = "streamlit.runtime.scriptrunner_utils.script_run_context"
REQUESTS = "streamlit.runtime.scriptrunner_utils.script_requests"
STATE = "streamlit.runtime.state"
RUNNER = "streamlit.runtime.scriptrunner.script_runner"
SCAN = "streamlit.components.v2.manifest_scanner"
MANAGER = "streamlit.components.v2.component_manager:BidiComponentManager"
PROGRAM = "streamlit/static/static/js/index.*.js"
"""The script of Streamlit's page."""


# --- The server, and what a page asks of it


def _serve_instead(script: Path, options: Sequence[str]) -> None:
    """Become the process that `python -m streamlit run` is."""
    os.execv(sys.executable, [sys.executable, "-m", "streamlit", "run", str(script), *options])


@needs("streamlit.web.cli:main", without="wrong options are told in several lines", instead=_serve_instead)
def serve(script: Path, options: Sequence[str]) -> None:
    """Run `streamlit run SCRIPT OPTIONS` in this process, until it is stopped. Raises ConfigError for wrong options."""
    from click import ClickException
    from streamlit.web.cli import main

    try:
        main(["run", str(script), *options], prog_name="streamlit", standalone_mode=False)
    except ClickException as error:
        raise ConfigError(error.format_message()) from None


@needs(
    "streamlit.runtime:exists()",
    "streamlit.runtime:get_instance()",
    "streamlit.runtime:Runtime",
    without="a lecture is checked as a viewer sees it",
    instead=lambda: True,
)
def is_served() -> bool:
    """Does a server run the script? Not in a test, nor where a lecture is checked, whose runtime only looks like one.

    Where that cannot be known, it does: then nobody is taken for the owner who is not (view/permission.py).
    """
    from streamlit.runtime import Runtime, exists, get_instance

    return exists() and type(get_instance()) is Runtime


@needs(
    f"{RUNNING}:get_script_run_ctx(suppress_warning)",
    f"{RUNNING}:in_cached_function.get",
    without="a page is still while it measures",
    instead=lambda: False,
)
def may_draw() -> bool:
    """Does this thread run a page, and no function whose answer Streamlit remembers with all that it drew?

    Without it, what is drawn while somebody waits in such a function is drawn again at each look-up (models/cache.py).
    """
    from streamlit.runtime.scriptrunner_utils.script_run_context import get_script_run_ctx, in_cached_function

    return get_script_run_ctx(suppress_warning=True) is not None and not in_cached_function.get()


@needs(
    f"{RUNNING}:get_script_run_ctx(suppress_warning)",
    f"{RUNNING}:ScriptRunContext.fragment_ids_this_run",
    f"{RUNNING}:ThreadState.get()",
    f"{RUNNING}:FragmentThreadState.fragment_id",
    without="a late report of a menu may be taken for a choice",
    instead=lambda: True,
)
def is_asked_for() -> bool:
    """Whether the browser's request asked for this fragment, or for everything.

    In a callback this fragment is the one that holds its widget (view/clicks.py).
    """
    from streamlit.runtime.scriptrunner_utils.script_run_context import ThreadState, get_script_run_ctx

    context = get_script_run_ctx()
    asked = context.fragment_ids_this_run if context else None
    return not asked or ThreadState.get().fragment_id in asked


@needs(
    f"{RUNNING}:get_script_run_ctx(suppress_warning)",
    f"{RUNNING}:ScriptRunContext.fragment_ids_this_run",
    without="the browser's Back shows nothing else now and then, after a click in a live view",
    instead=lambda: False,
)
def draws_a_part() -> bool:
    """Whether this run draws parts of the page alone: it reads no address."""
    from streamlit.runtime.scriptrunner_utils.script_run_context import get_script_run_ctx

    context = get_script_run_ctx(suppress_warning=True)
    return context is not None and bool(context.fragment_ids_this_run)


@needs(
    f"{RUNNING}:get_script_run_ctx(suppress_warning)",
    f"{RUNNING}:ScriptRunContext.is_history_navigation",
    without="Back is not followed now and then, where it comes at once after a click",
    instead=lambda: False,
)
def went_back() -> bool:
    """Whether the reader went to this run's address in the browser's history, back or forward."""
    from streamlit.runtime.scriptrunner_utils.script_run_context import get_script_run_ctx

    context = get_script_run_ctx(suppress_warning=True)
    return context is not None and bool(context.is_history_navigation)


@needs(
    "streamlit.navigation.page:Page.run(self)",
    "streamlit.navigation.page:Page._can_be_called",
    without="each click draws all of a page anew",
    instead=lambda page: page.run(),
)
def run_again(page: st.Page) -> None:
    """Run a page that may have run in this rerun already: a page runs once, its copies once each.

    Without it a page runs once a rerun, so it cannot be a fragment (frame/main.py).
    """
    copy(page).run()


@needs(
    f"{RUNNING}:get_script_run_ctx(suppress_warning)",
    f"{RUNNING}:ScriptRunContext.session_id",
    without="a page that is opened for nobody is waited for as if somebody looked at it",
    instead=lambda: True,
)
def is_visited() -> bool:
    """Is this page drawn for somebody?"""
    from streamlit.runtime.scriptrunner_utils.script_run_context import get_script_run_ctx

    context = get_script_run_ctx(suppress_warning=True)
    return context is None or context.session_id != NOBODY


Visit = Callable[[str, str, Callable[[], bool]], bool]
"""Opens a page for nobody: its address, the query of its link, and whether to go on; was it drawn to its end?"""


def _no_visits() -> Visit:
    """What opens no page."""
    return lambda address, query, go_on: False


@needs(
    f"{RUNNING}:get_script_run_ctx(suppress_warning)",
    f"{RUNNING}:ScriptRunContext.main_script_path",
    f"{RUNNING}:ScriptRunContext.uploaded_file_mgr",
    f"{REQUESTS}:RerunData.query_string",
    f"{REQUESTS}:RerunData.page_name",
    f"{RUNNER}:ScriptRunner.on_event",
    f"{RUNNER}:ScriptRunner.start(self)",
    f"{RUNNER}:ScriptRunner.request_stop(self)",
    f"{RUNNER}:ScriptRunnerEvent.SHUTDOWN",
    "streamlit.runtime.fragment:MemoryFragmentStorage()",
    "streamlit.runtime.pages_manager:PagesManager",
    "streamlit.runtime.scriptrunner.script_cache:ScriptCache()",
    without="the next page of a lecture is measured only when it is opened",
    instead=_no_visits,
)
def visiting() -> Visit:
    """What opens a page for nobody, so that what it measures is kept for who opens it next. To be asked for in a page.

    It takes the page's address, the query of its link, and a function that is called at each element of the page: it
    may wait, and says whether to go on. It returns whether the page was drawn to its end.
    """
    from streamlit.runtime.fragment import MemoryFragmentStorage
    from streamlit.runtime.pages_manager import PagesManager
    from streamlit.runtime.scriptrunner.script_cache import ScriptCache
    from streamlit.runtime.scriptrunner.script_runner import ScriptRunner, ScriptRunnerEvent
    from streamlit.runtime.scriptrunner_utils.script_requests import RerunData
    from streamlit.runtime.scriptrunner_utils.script_run_context import get_script_run_ctx
    from streamlit.runtime.state import SessionState

    context = get_script_run_ctx()
    if context is None:
        return _no_visits()
    script, files = context.main_script_path, context.uploaded_file_mgr

    def visit(address: str, query: str, go_on: Callable[[], bool]) -> bool:
        scripts, loop, over = ScriptCache(), asyncio.new_event_loop(), threading.Event()
        runner = ScriptRunner(
            session_id=NOBODY,
            main_script_path=script,
            session_state=SessionState(),
            uploaded_file_mgr=files,
            script_cache=scripts,
            initial_rerun_data=RerunData(query_string=query, page_name=address),
            user_info={},
            fragment_storage=MemoryFragmentStorage(),
            pages_manager=PagesManager(script, scripts),
            event_loop=loop,
        )
        stopped = False

        def heard(_: object, event: ScriptRunnerEvent, **__: object) -> None:
            nonlocal stopped
            if event == ScriptRunnerEvent.SHUTDOWN:
                over.set()
            elif event == ScriptRunnerEvent.ENQUEUE_FORWARD_MSG and not stopped and not go_on():
                stopped = True
            if stopped:
                runner.request_stop()

        runner.on_event.connect(heard, weak=False)
        runner.start()
        over.wait()
        loop.close()
        return not stopped

    return visit


@needs(
    f"{SCAN}:ComponentManifest(name, version, components)",
    f"{SCAN}:ComponentConfig.from_dict(config)",
    f"{SCAN}:ComponentConfig.name",
    "streamlit.components.v2.get_bidi_component_manager:get_bidi_component_manager()",
    f"{MANAGER}.get_component_asset_root(self, name)",
    f"{MANAGER}.register_from_manifest(self, manifest, package_root)",
    without="a component comes as a text that finds its script, and a page opens a little later",
    instead=lambda declared, folder: False,
)
def register_components(declared: Mapping[str, Any], folder: Path) -> bool:
    """Make the components known that a `pyproject.toml` in `folder` declares, unless they are known already.

    True once they are. Streamlit's own scan looks for a package named like the distribution, so it finds an installed
    wheel but not an editable install; and each runtime (every AppTest has one) starts empty. Without it a component is
    mounted from a text that leads to its script (components/registration.py).
    """
    from streamlit.components.v2.get_bidi_component_manager import get_bidi_component_manager
    from streamlit.components.v2.manifest_scanner import ComponentConfig, ComponentManifest

    components = declared["tool"]["streamlit"]["component"]["components"]
    ours = ComponentManifest(
        name=declared["project"]["name"],
        version=declared["project"]["version"],
        components=[ComponentConfig.from_dict(component) for component in components],
    )
    manager = get_bidi_component_manager()
    if any(manager.get_component_asset_root(f"{ours.name}.{each.name}") is None for each in ours.components):
        manager.register_from_manifest(ours, folder)
    return True


@needs(
    "streamlit/static/index.html: </head>",
    "streamlit/static/index.html: <script>",
    without="a page opens 0.1 s later, and the browser's console says that a script of Streamlit's was not run",
    instead=lambda: "",
)
def served_page() -> str:
    """The HTML of the page that Streamlit serves. Without it our security policy forbids the script in it (http.py)."""
    return (Path(st.__file__).parent / "static" / "index.html").read_text(encoding="utf-8")


@needs(
    f"{PROGRAM}: window.__streamlit",
    f"{PROGRAM}: BACKEND_BASE_URL",
    f"{PROGRAM}: HOST_CONFIG",
    f"{PROGRAM}: allowedOrigins",
    f"{PROGRAM}: useExternalAuthToken",
    without="a page opens 0.1 s later",
    instead=lambda origins: "",
)
def connecting_script(origins: Sequence[str]) -> str:
    """The script, written into that page, by which it opens its socket at once; `origins` may talk to it from a frame.

    It says where the server is, namely where the page's own files are, and what the server's host-config would say.
    Without it the page asks for both first, and a page with an address of its own asks in vain below that one.
    """
    config = json.dumps({"allowedOrigins": [*origins], "useExternalAuthToken": False})
    return f'window.__streamlit = {{ BACKEND_BASE_URL: new URL("./", location.href).href, HOST_CONFIG: {config} }}'


# --- What is mended, once, when the server starts


def mend() -> None:
    """Mend Streamlit in this process, as far as its insides are known, and log what of this module is left out."""
    for part in PARTS:
        part.is_there()
    for mending in MENDINGS:
        mending()


def _leave() -> None:
    """Leave Streamlit as it is."""


@needs(
    f"{STATE}:SafeSessionState._lock",
    f"{STATE}:SafeSessionState._state",
    f"{STATE}:SafeSessionState._yield_callback",
    f"{STATE}:SessionState.query_params",
    "streamlit.runtime.state.query_params:QueryParams.__dict__",
    without="a click or key is lost now and then, where two runs of a session change its state at once",
    instead=_leave,
)
def let_one_run_at_the_state() -> None:
    """Let the runs of one session touch its state one at a time.

    A click starts a new thread at once, and the thread of the run before goes on to its next call of Streamlit. Each of
    the two has a lock of its own over the one state. Without it a field or a callback fails: "dictionary changed size
    during iteration". Of 80 clicks into a page that was drawn for the first time 1 did so where Python changed threads
    every 10 µs, and none at its own 5 ms.
    """
    from streamlit.runtime.state import SafeSessionState

    SafeSessionState._lock = _OneLock()  # type: ignore[assignment]


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


@needs(
    f"{STATE}:SessionState.on_script_will_rerun",
    "streamlit.runtime.scriptrunner.script_runner:ScriptRunner._maybe_handle_execution_control_request(self)",
    without="a key or click is lost now and then, where the next one follows while it is answered",
    instead=_leave,
)
def let_callbacks_end() -> None:
    """Let a run that is asked to stop answer its click to the end first.

    The next click stops the run before at its next call of Streamlit, and a look at the session's state is one. Without
    this a callback is cut off in the middle now and then, and what it had not done yet is never done: on a busy server
    with 1 of 40 clicks that another request followed within 30 ms, where none of 40 is lost with it.
    """
    from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
    from streamlit.runtime.state import SessionState

    put_around(SessionState, "on_script_will_rerun", _answer)
    put_around(ScriptRunner, "_maybe_handle_execution_control_request", _stop_unless_answering)


_answering = threading.local()


def _answer(callbacks: Callable[..., None], *args: Any, **kwargs: Any) -> None:
    _answering.now = True
    try:
        callbacks(*args, **kwargs)
    finally:
        _answering.now = False


def _stop_unless_answering(stop_if_asked: Callable[..., None], *args: Any, **kwargs: Any) -> None:
    if not getattr(_answering, "now", False):
        stop_if_asked(*args, **kwargs)


@needs(
    f"{REQUESTS}:ScriptRequests._request_rerun_locked(self, new_data)",
    f"{REQUESTS}:ScriptRequests._lock",
    f"{REQUESTS}:ScriptRequests._state",
    f"{REQUESTS}:ScriptRequests._rerun_data",
    f"{REQUESTS}:ScriptRequests.__dict__",
    f"{REQUESTS}:ScriptRequestType.STOP",
    f"{REQUESTS}:ScriptRequestType.RERUN",
    f"{REQUESTS}:RerunData.widget_states",
    f"{REQUESTS}:_coalesce_widget_states(old_states, new_states)",
    f"{STATE}:SessionState.on_script_will_rerun",
    f"{RUNNING}:get_script_run_ctx(suppress_warning)",
    f"{RUNNING}:ScriptRunContext.script_requests",
    "streamlit.runtime.scriptrunner_utils.exceptions:StopException",
    "streamlit.runtime.scriptrunner.script_runner:ScriptRunner._requests",
    "streamlit.runtime.app_session:AppSession._create_scriptrunner(self, initial_rerun_data)",
    "streamlit.runtime.app_session:AppSession._scriptrunner",
    "streamlit.runtime.app_session:AppSession.__dict__",
    without="a click is lost now and then, where another request follows within milliseconds",
    instead=_leave,
)
def hand_on_unanswered_clicks() -> None:
    """Give the clicks of a run that is stopped before it answers them to the run that takes its place.

    A request for everything stops the run before, and the browser tells of a click once. Without this a click is lost
    when another request follows at once, as from a part of the page that reports its size: nothing happens. On a busy
    server that befell 5 of 30 clicks that one followed within 30 ms, where none of 40 is lost with it.
    """
    from streamlit.runtime.app_session import AppSession
    from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequests
    from streamlit.runtime.state import SessionState

    put_around(ScriptRequests, "_request_rerun_locked", _note)
    put_around(SessionState, "on_script_will_rerun", _take)
    put_around(AppSession, "_create_scriptrunner", _start)


def _note(ask: Callable[..., bool], requests: ScriptRequests, asked: RerunData) -> bool:
    """Note what a request tells of the widgets, and ask. The caller holds the lock of the requests."""
    from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequestType, _coalesce_widget_states

    if requests._state is not ScriptRequestType.STOP:
        told = vars(requests).get("unanswered")
        vars(requests)["unanswered"] = _coalesce_widget_states(told, asked.widget_states)
    return ask(requests, asked)


def _join(waits: WidgetStates | None, asked: RerunData) -> RerunData:
    """The request, with what waits to be answered as well. Of one widget the later counts."""
    from streamlit.runtime.scriptrunner_utils.script_requests import _coalesce_widget_states

    return replace(asked, widget_states=_coalesce_widget_states(waits, asked.widget_states))


def _take(callbacks: Callable[..., None], *args: Any, **kwargs: Any) -> None:
    """Answer what was told so far; where the run was stopped before, leave it to the next and end."""
    from streamlit.runtime.scriptrunner_utils.exceptions import StopException
    from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequestType
    from streamlit.runtime.scriptrunner_utils.script_run_context import get_script_run_ctx

    context = get_script_run_ctx(suppress_warning=True)
    requests = context.script_requests if context else None
    if requests is not None:
        with requests._lock:
            if requests._state is ScriptRequestType.STOP:
                raise StopException
            waits = requests._state is ScriptRequestType.RERUN
            vars(requests)["unanswered"] = requests._rerun_data.widget_states if waits else None
    callbacks(*args, **kwargs)


def _start(start: Callable[..., None], session: AppSession, asked: RerunData) -> None:
    """Start a run for a request, with the clicks that the run before was told of and will not answer."""
    before: ScriptRequests | None = vars(session).get("requests_before")
    if before is not None:
        with before._lock:
            unanswered = vars(before).pop("unanswered", None)
        asked = _join(unanswered, asked)
    start(session, asked)
    vars(session)["requests_before"] = session._scriptrunner and session._scriptrunner._requests


@needs(
    "streamlit.runtime.app_session:AppSession.request_rerun(self, client_state)",
    "streamlit.runtime.app_session:AppSession.session_state",
    "streamlit.runtime.app_session:AppSession.has_fragment(self, fragment_id)",
    "streamlit.runtime.app_session:AppSession.__dict__",
    f"{STATE}:SessionState._new_widget_state",
    "streamlit.runtime.state.session_state:WStates.widget_metadata",
    "streamlit.runtime.state.common:WidgetMetadata.fragment_id",
    "streamlit.runtime.scriptrunner_utils.script_requests:_has_active_trigger_value(state)",
    "streamlit.proto.ClientState_pb2:ClientState.fragment_id",
    "streamlit.proto.ClientState_pb2:ClientState.query_string",
    without="a click is answered late now and then, or not at all, where a live view asks at the same moment",
    instead=_leave,
)
def draw_all_that_a_request_tells_of() -> None:
    """Draw everything where one request tells of a click in another part of the page than the one it asks for.

    The browser sends all that is told within one turn of its loop as one request, for one fragment of those that were
    told of. Streamlit calls every answer and draws that fragment alone; and a request for a fragment that is gone it
    drops, with the click. A busy browser takes long turns: on two cores with four busy loops a walk through a lecture
    came to no end in 2 of 3 tries, where none of 5 did so with this.
    """
    from streamlit.runtime.app_session import AppSession

    put_around(AppSession, "request_rerun", _ask_for_everything)


def _ask_for_everything(ask: Callable[..., None], session: AppSession, asked: ClientState | None) -> None:
    """Ask for everything where a request for a fragment tells of something that stands elsewhere.

    It names no address then: that may be the one of before, and only a reader who goes there changes it.
    """
    if asked is not None:
        elsewhere = _tells_of_more(session, asked)
        if asked.fragment_id and elsewhere:
            asked.fragment_id = asked.query_string = ""
    ask(session, asked)


def _tells_of_more(session: AppSession, asked: ClientState) -> bool:
    """Whether a request tells of a click, or of a component, beside the fragment that it asks for.

    What a component tells it tells for good: it is news where it is not what the request before told. Of menus and
    fields a late request tells what was chosen before. What is told from within a fragment that is gone was meant all
    the same, unless that fragment only asks for itself, as a live view does.
    """
    from streamlit.runtime.scriptrunner_utils.script_requests import _has_active_trigger_value

    before = vars(session).get("told", {})
    told = vars(session)["told"] = {
        each.id: each.json_value for each in asked.widget_states.widgets if each.WhichOneof("value") == "json_value"
    }
    known, fragment = session.session_state._new_widget_state.widget_metadata, asked.fragment_id
    clicks = [known.get(each.id) for each in asked.widget_states.widgets if _has_active_trigger_value(each)]
    parts = [known.get(name) for name, value in told.items() if before.get(name) != value]
    return any(each is not None and each.fragment_id != fragment for each in clicks) or any(
        each is None or each.fragment_id != fragment or not session.has_fragment(fragment) for each in parts
    )


@needs(
    "streamlit.runtime.forward_msg_queue:ForwardMsgQueue.clear",
    "streamlit.runtime.forward_msg_queue:ForwardMsgQueue._queue",
    "streamlit.proto.ForwardMsg_pb2:ForwardMsg.metadata",
    "streamlit.proto.ForwardMsg_pb2:ForwardMsgMetadata.delta_path",
    without="a page may have to be loaded anew, where a click is made while it is drawn (“Bad delta path”)",
    instead=_leave,
)
def send_nothing_into_a_block_that_was_dropped() -> None:
    """Take out of the queue to the browser, when a click clears it, whatever stands in a block that is cleared too.

    A click in a fragment drops what its last run has queued, but neither what other fragments inside it have, nor what
    the browser is only referred to, for a reference no longer says whose it is. Without this, such a message names a
    place in a block that is still to come again, and the browser shows no page any more ("Bad delta path"). Of 320
    bursts of two to five requests, on eight pages beside a training, one left such a message to be taken out.
    """
    from streamlit.runtime.forward_msg_queue import ForwardMsgQueue

    put_around(ForwardMsgQueue, "clear", _clear)


def _clear(clear: Callable[..., None], queue: ForwardMsgQueue, *args: Any, **kwargs: Any) -> None:
    before = queue._queue
    clear(queue, *args, **kwargs)
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


@needs(
    f"{REQUESTS}:ScriptRequests.on_scriptrunner_ready(self)",
    f"{REQUESTS}:ScriptRequests.on_scriptrunner_yield(self)",
    f"{REQUESTS}:ScriptRequests._request_rerun_locked(self, new_data)",
    f"{REQUESTS}:ScriptRequests._state",
    f"{REQUESTS}:ScriptRequests._rerun_data",
    f"{REQUESTS}:ScriptRequestType.RERUN",
    f"{REQUESTS}:ScriptRequest.type",
    f"{REQUESTS}:ScriptRequest.rerun_data",
    f"{REQUESTS}:ScriptRequest._rerun_data",
    f"{REQUESTS}:RerunData.fragment_id",
    f"{REQUESTS}:RerunData.fragment_id_queue",
    f"{REQUESTS}:RerunData.page_script_hash",
    f"{REQUESTS}:RerunData.page_name",
    f"{REQUESTS}:RerunData.query_string",
    f"{RUNNING}:get_script_run_ctx(suppress_warning)",
    f"{RUNNING}:ScriptRunContext.page_script_hash",
    without="a page may stay empty until the next click, where a live view asks while one goes to it",
    instead=_leave,
)
def keep_the_page_when_a_fragment_is_asked_for() -> None:
    """Let no request for a fragment change the page that the session is on, or is about to go to.

    The browser names the page before in each request until it has heard of the new one, also where a live view asks.
    Without this such a late request makes the browser drop the new page, and nobody draws it again: a lecture shows its
    strip above an empty page. On a busy server 1 of 30 changes of page beside a training was empty.
    """
    from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequests

    put_around(ScriptRequests, "on_scriptrunner_ready", _here)
    put_around(ScriptRequests, "on_scriptrunner_yield", _here)
    put_around(ScriptRequests, "_request_rerun_locked", _there)


def _here(find: Callable[..., ScriptRequest | None], requests: ScriptRequests) -> ScriptRequest | None:
    """The request, which is run at once in this thread: one for fragments names the page that the session is on."""
    from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequestType
    from streamlit.runtime.scriptrunner_utils.script_run_context import get_script_run_ctx

    request = find(requests)
    if request is None or request.type is not ScriptRequestType.RERUN or not request.rerun_data.fragment_id_queue:
        return request
    context = get_script_run_ctx()
    if context is None:
        return request
    return replace(request, _rerun_data=replace(request.rerun_data, page_script_hash=context.page_script_hash))


def _there(ask: Callable[..., bool], requests: ScriptRequests, asked: RerunData) -> bool:
    """Ask; what waits for its turn already and is about the whole page says which page, not a fragment's request.

    Nor does a page say it that asks to be drawn anew while the reader's Back, or another page, waits.
    """
    from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequestType
    from streamlit.runtime.scriptrunner_utils.script_run_context import get_script_run_ctx

    waiting, context = requests._rerun_data, get_script_run_ctx(suppress_warning=True)
    if requests._state is not ScriptRequestType.RERUN or waiting.fragment_id_queue:
        return ask(requests, asked)
    here, there = None if context is None else context.page_script_hash, waiting.page_script_hash
    if asked.fragment_id or asked.fragment_id_queue:
        asked = replace(asked, page_script_hash=waiting.page_script_hash, page_name=waiting.page_name)
    elif there and asked.page_script_hash == here != there:  # st.rerun of this page
        asked = replace(
            asked,
            page_script_hash=waiting.page_script_hash,
            page_name=waiting.page_name,
            query_string=waiting.query_string,
        )
    return ask(requests, asked)


@needs(
    "streamlit.runtime.app_session:AppSession._script_event_loop",
    "streamlit.runtime.app_session:_close_script_event_loop(loop)",
    without="each tab takes four file descriptors in place of one",
    instead=_leave,
)
def open_event_loops_on_demand() -> None:
    """Let a session open the event loop of its script where something uses it: none of our pages does.

    Without it each of 50 tabs took four descriptors in place of one, and kept three of them when it was closed.
    """
    from streamlit.runtime.app_session import AppSession, _close_script_event_loop

    if not isinstance(vars(AppSession).get("_script_event_loop"), _SessionLoop):
        AppSession._script_event_loop = _SessionLoop()  # type: ignore[assignment]
        closing = partial(_close_what_was_opened, _close_script_event_loop)
        vars(sys.modules[AppSession.__module__])["_close_script_event_loop"] = closing


class _SessionLoop:
    """The attribute of a session that holds the event loop of its script."""

    def __set__(self, session: AppSession, made: asyncio.AbstractEventLoop) -> None:
        made.close()
        vars(session)["_script_event_loop"] = _LoopOnDemand()  # type: ignore[abstract]

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


def _close_what_was_opened(close: Callable[[asyncio.AbstractEventLoop], None], loop: asyncio.AbstractEventLoop) -> None:
    opened = loop.opened if isinstance(loop, _LoopOnDemand) else loop
    if opened is not None:
        close(opened)


MENDINGS = (
    let_one_run_at_the_state,
    let_callbacks_end,
    hand_on_unanswered_clicks,
    draw_all_that_a_request_tells_of,
    send_nothing_into_a_block_that_was_dropped,
    keep_the_page_when_a_fragment_is_asked_for,
    open_event_loops_on_demand,
)
PARTS: tuple[Part[Any, Any], ...] = tuple(each for each in globals().values() if isinstance(each, Part))
