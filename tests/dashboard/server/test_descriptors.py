"""File descriptors: how many are left, who is turned away before none is, and that those who leave give theirs back."""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import shutil
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from dashboard.server import descriptors, readiness
from dashboard.server.descriptors import FULL, KEPT, OWN, SCARCE, Door
from tests.kit.driving import ROOT, dashboard
from tests.kit.driving import descriptors as open_by
from tests.kit.rooms.asgi import messages
from tests.kit.runs import playing
from tests.kit.waiting import PATIENCE, wait_for

resource = pytest.importorskip("resource")
PAGE = {"type": "http", "method": "GET", "headers": [(b"accept", b"text/html,*/*;q=0.8")]}
STEPS = {"type": "http", "method": "GET", "headers": [(b"accept", b"text/event-stream")]}
SCRIPT = {"type": "http", "method": "GET", "headers": [(b"accept", b"*/*")]}
TAB = {"type": "websocket", "headers": [], "extensions": {"websocket.http.response": {}}}
BARE = {"type": "websocket", "headers": []}


@pytest.fixture
def limits() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_soft_limit_becomes_the_hard_one_and_what_is_open_is_counted(limits: None) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    before = descriptors.left()
    assert 0 < before < 256
    pipes = [os.pipe() for _ in range(5)]
    assert descriptors.left() == before - 10
    for each in (end for pipe in pipes for end in pipe):
        os.close(each)
    descriptors.raise_limit()
    assert resource.getrlimit(resource.RLIMIT_NOFILE) in ((hard, hard), (descriptors.MACOS, hard))
    assert descriptors.left() > before


def answer(scope: dict[str, Any], left: float, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the door sends; nothing where it lets somebody in."""

    async def inside(*_: object) -> None:
        pass

    monkeypatch.setattr(descriptors, "left", lambda: left)
    return messages(Door(inside), scope)


@pytest.mark.parametrize("scope", [PAGE, STEPS, TAB])
def test_a_visitor_is_told_while_few_are_left(scope: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert answer(scope, KEPT + 1, monkeypatch) == []
    start, body = answer(scope, KEPT, monkeypatch)
    assert start["status"] == 503
    assert (b"retry-after", b"30") in start["headers"]
    assert body["body"].decode() == FULL


def test_a_tab_of_an_older_server_is_closed_with_the_words(monkeypatch: pytest.MonkeyPatch) -> None:
    assert answer(BARE, 0, monkeypatch) == [{"type": "websocket.close", "code": 1013, "reason": FULL}]


def test_whoever_is_here_is_served_to_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    assert answer(SCRIPT, 0, monkeypatch) == answer({"type": "lifespan"}, 0, monkeypatch) == []


def test_people_are_sent_elsewhere_before_one_is_turned_away(monkeypatch: pytest.MonkeyPatch) -> None:
    for left in (math.inf, SCARCE + 1, SCARCE, KEPT, 0):
        monkeypatch.setattr(descriptors, "left", lambda left=left: left)
        assert ("nearly full" in readiness.lacks()) == (left <= SCARCE), left


def test_a_connection_waits_while_only_the_last_ones_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """asyncio's own server, and a rush at it: none is accepted before there is room, and none is lost."""
    monkeypatch.setattr(socket.socket, "accept", socket.socket.accept)  # put back afterwards
    left = OWN
    monkeypatch.setattr(descriptors, "left", lambda: left)
    descriptors.leave_the_last_ones()
    complaints: list[str] = []

    async def rush() -> int:
        nonlocal left
        met = asyncio.Semaphore(0)

        async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            met.release()
            writer.close()

        asyncio.get_running_loop().set_exception_handler(lambda _, told: complaints.append(told["message"]))
        server = await asyncio.start_server(greet, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        tabs = [await asyncio.open_connection("127.0.0.1", port) for _ in range(5)]
        while not complaints:
            await asyncio.sleep(0.01)
        before = not met.locked()
        left = OWN + 1
        for _ in tabs:
            await met.acquire()
        for _, writer in tabs:
            writer.close()
        server.close()
        return before

    with ThreadPoolExecutor(1) as pool:  # Playwright leaves its own loop running in this thread
        assert pool.submit(lambda: asyncio.run(rush())).result(PATIENCE) is False
    assert complaints == ["socket.accept() out of system resource"]


FILES = KEPT + 120


@pytest.mark.nightly
@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="nothing lists what another process has open")
def test_a_server_that_fills_refuses_in_words_and_is_as_before_when_all_have_left(tmp_path: Path) -> None:
    """A tab takes one descriptor, refusals are sentences, `ready` says so first, and all come back."""
    with dashboard(tmp_path / "runs", files=FILES) as address:
        wait_for("the server is ready", lambda: ready(address), (200, "ready").__eq__)
        before = open_by(address)
        with ExitStack() as tabs:
            come, said_before = 0, ""
            while not (told := enter(address, tabs)):
                come, said_before = come + 1, ready(address)[1]
                assert come < FILES
            assert told == FULL
            assert "nearly full" in said_before
            assert abs(open_by(address) - before - come) <= 3  # one each
            assert [enter(address, tabs) for _ in range(30)] == [FULL] * 30
            assert get(address, "text/html") == (503, FULL)
            assert ready(address)[0] == 503
            assert get(f"{address}/assets/plotly.min.js", "*/*")[0] == 200  # of a page that is open
        wait_for("all descriptors are back", lambda: open_by(address), lambda open_: open_ <= before + 2)
        wait_for("the server is ready", lambda: ready(address), (200, "ready").__eq__)
        with ExitStack() as tabs:
            assert enter(address, tabs) == ""


MANY = 100
TOKEN = re.compile(rb'"token": ?"([\w-]{20,})"')


@pytest.mark.nightly
@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="nothing lists what another process has open")
def test_a_hundred_tabs_that_follow_a_training_hear_of_it_and_leave_no_descriptor_behind(tmp_path: Path) -> None:
    """A tab that follows something takes two: Streamlit's socket, and that of news."""
    runs = tmp_path / "runs"
    shutil.copytree(ROOT / "checkpoints" / "reverse", runs / "reverse")
    with playing(runs / "played") as training, dashboard(runs, files=KEPT + 2 * MANY + 250) as address:
        wait_for("the server is ready", lambda: ready(address), (200, "ready").__eq__)
        before = open_by(address)
        with ExitStack() as tabs:
            heard = [follow(address, tabs) for _ in range(MANY)]
            told = [json.loads(news.recv(PATIENCE)) for news in heard]
            assert abs(open_by(address) - before - 2 * MANY) <= 8
            training.step()
            for news, last in zip(heard, told, strict=True):
                assert json.loads(news.recv(PATIENCE)) == {token: version + 1 for token, version in last.items()}
        wait_for("all descriptors are back", lambda: open_by(address), lambda open_: open_ <= before + 2)


def follow(address: str, tabs: ExitStack) -> ClientConnection:
    """Open a tab that shows a training, and the socket over which it hears of that."""
    socket_of = address.replace("http", "ws", 1)
    page = tabs.enter_context(connect(f"{socket_of}/_stcore/stream", subprotocols=["streamlit"], max_size=None))  # type: ignore[list-item]
    asked = BackMsg()
    asked.rerun_script.query_string = "run=reverse"
    page.send(asked.SerializeToString())
    found = None
    while found is None:
        message = page.recv(PATIENCE)
        assert isinstance(message, bytes)
        found = TOKEN.search(message)
    news = tabs.enter_context(connect(f"{socket_of}/news"))
    news.send(json.dumps({"follow": [found[1].decode()]}))
    return news


def enter(address: str, tabs: ExitStack) -> str:
    """Open a tab; what is said where it is refused, which has the status 503."""
    try:
        tabs.enter_context(connect(f"ws{address.removeprefix('http')}/_stcore/stream", subprotocols=["streamlit"]))  # type: ignore[list-item]
    except InvalidStatus as refused:
        return refused.response.body.decode() if refused.response.status_code == 503 else str(refused)
    return ""


def get(address: str, accept: str) -> tuple[int, str]:
    asked = urllib.request.Request(address, headers={"Accept": accept})
    try:
        with urllib.request.urlopen(asked, timeout=30) as found:
            return found.status, found.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def ready(address: str) -> tuple[int, str]:
    return get(f"{address}/ready", "*/*")
