"""Rooms without a network: an ASGI application that is asked by hand, by lecturers and followers; and a real Redis."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Hashable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette

from dashboard.server.rooms import routes
from dashboard.server.rooms.rooms import Rooms
from tests.kit.driving import free_port
from tests.kit.waiting import PATIENCE, in_time

HOST = "lab.example:8501"
HERE = "192.0.2.7"
"""Where requests come from, if nothing else is said: a lecture hall behind one address."""


def packed(document: Any) -> bytes:
    """A document as a lecturer's browser sends it."""
    return gzip.compress(json.dumps(document).encode(), mtime=0)


@dataclass(frozen=True)
class Answer:
    """What the server said."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def sentence(self) -> str:
        """Of a refusal: the one thing in it."""
        (said,) = self.json.items()
        assert said[0] == "error"
        return str(said[1])


@dataclass(frozen=True)
class Event:
    """One of an event stream; a comment has no name."""

    name: str
    data: Any = None


OVER = Event("over", {})
in_memory = pytest.mark.parametrize("make", ["memory"], indirect=True)
"""For a test of what is the same wherever rooms live."""


def sha(document: Any) -> str:
    return hashlib.sha256(packed(document)).hexdigest()


def step(document: Any, question: str = "", shown: bool = False) -> Event:
    """What followers hear of a document that is shown."""
    return Event("step", {"document": sha(document), "question": question, "shown": shown})


class Stream:
    """A follower's event stream. `read` is cleared to let the follower be slow."""

    task: asyncio.Task[None]

    def __init__(self) -> None:
        self.read = asyncio.Event()
        self.read.set()
        self.gone = asyncio.Event()
        self.begun: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._text = ""
        self._came: asyncio.Queue[str | None] = asyncio.Queue()

    async def receive(self) -> dict[str, Any]:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.begun.set_result(Answer(message["status"], _headers(message), b""))
            return
        await self.read.wait()
        self._came.put_nowait(message.get("body", b"").decode())
        if not message.get("more_body"):
            self._came.put_nowait(None)

    async def next(self, comments: bool = False) -> Event | None:
        """The next event, None at the end; comments only if they are asked for."""
        while True:
            while "\n\n" not in self._text:
                async with in_time(f"the next event of a room, after {self._text!r}"):
                    piece = await self._came.get()
                if piece is None:
                    return None
                self._text += piece
            block, self._text = self._text.split("\n\n", 1)
            fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
            if "event" in fields:
                return Event(fields["event"], json.loads(fields["data"]))
            if comments:
                return Event("")

    async def leave(self) -> None:
        self.read.set()
        self.gone.set()
        async with in_time("the end of the events of a room, whose follower is gone"):
            await self.task


class House:
    """Everything that answers for rooms."""

    def __init__(self, rooms: Rooms, base: str = "", clock: Callable[[], float] = lambda: 0.0) -> None:
        self.rooms = rooms
        self.base = base
        self._app = Starlette(routes=routes(base, rooms, lambda: f'<base href="{base}/">', clock=clock))

    async def ask(self, method: str, path: str, body: bytes = b"", *, sender: str = HERE, **headers: str) -> Answer:
        """An answer. Headers are written with _ for -; what is sent comes in pieces."""
        pieces = [body[start : start + 100_000] for start in range(0, len(body), 100_000)] or [b""]
        sent = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
        sent[-1]["more_body"] = False
        said: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            assert sent, "the server waits for more than was sent"
            return sent.pop(0)

        async def send(message: dict[str, Any]) -> None:
            said.append(message)

        async with in_time(f"an answer to {method} {path}"):
            await self._app(self._scope(method, path, headers, sender), receive, send)
        return Answer(said[0]["status"], _headers(said[0]), b"".join(each.get("body", b"") for each in said[1:]))

    @asynccontextmanager
    async def follow(self, code: str, sender: str = HERE) -> AsyncIterator[Stream]:
        """A follower, who leaves at the end."""
        stream = await self.begin(code, sender=sender)
        try:
            assert stream.begun.result().status == 200
            yield stream
        finally:
            await stream.leave()

    async def begin(self, code: str, cookie: str = "", sender: str = HERE) -> Stream:
        """The stream of a follower, which has been answered."""
        stream = Stream()
        scope = self._scope("GET", f"/room/{code}/events", {"cookie": cookie}, sender)
        stream.task = asyncio.create_task(self._app(scope, stream.receive, stream.send))
        async with in_time(f"the beginning of the events of {code}"):
            await asyncio.wait([stream.task, stream.begun], return_when=asyncio.FIRST_COMPLETED)
        return stream

    async def lecturer(self) -> Lecturer:
        """Somebody who has just opened a room."""
        opened = await self.ask("POST", "/rooms")
        assert opened.status == 201
        return Lecturer(self, **opened.json)

    async def come(self, code: str, sender: str = HERE) -> str:
        """Open the page of a room. Returns the cookie that came with it, as it is sent back; empty where none came."""
        page = await self.ask("GET", f"/room/{code}", sender=sender)
        assert page.status == 200
        return page.headers.get("set-cookie", "").partition(";")[0]

    def _scope(self, method: str, path: str, headers: dict[str, str], sender: str) -> dict[str, Any]:
        path, _, query = path.partition("?")
        named = {"host": HOST} | {name.replace("_", "-"): value for name, value in headers.items()}
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "scheme": "http",
            "method": method,
            "path": self.base + path,
            "raw_path": (self.base + path).encode(),
            "root_path": "",
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in named.items()],
            "client": (sender, 4711),
            "server": ("127.0.0.1", 8501),
        }


@dataclass(frozen=True)
class Lecturer:
    """Who has a room's key."""

    house: House
    code: str
    key: str
    ends: str
    cookies: dict[Hashable, str] = field(default_factory=dict)
    """Of who has voted, by whatever they are called."""

    async def show(self, document: Any, query: str = "", key: str | None = None) -> Answer:
        """Show something; bytes are sent as they are."""
        body = document if isinstance(document, bytes) else packed(document)
        path = f"/room/{self.code}/document{f'?{query}' if query else ''}"
        return await self.house.ask("PUT", path, body, x_room_key=self.key if key is None else key)

    async def document(self, document: Any) -> Answer:
        """What the room gives for a document that was shown."""
        return await self.house.ask("GET", f"/room/{self.code}/document/{sha(document)}")

    async def votes(self) -> dict[str, Any]:
        answer = await self.house.ask("GET", f"/room/{self.code}/votes", x_room_key=self.key)
        assert answer.status == 200
        found: dict[str, Any] = answer.json
        return found

    async def vote(self, question: str, answer: Any, voter: Hashable = 0, sender: str = HERE) -> Answer:
        """What somebody in the room answers, who has opened its page."""
        return await self.send(json.dumps({"question": question, "answer": answer}).encode(), voter, sender)

    async def send(self, vote: bytes, voter: Hashable = 0, sender: str = HERE) -> Answer:
        """The same of whatever somebody sends."""
        if voter not in self.cookies:
            self.cookies[voter] = await self.house.come(self.code, sender)
        return await self.house.ask("POST", f"/room/{self.code}/votes", vote, sender=sender, cookie=self.cookies[voter])

    async def close(self) -> Answer:
        return await self.house.ask("DELETE", f"/room/{self.code}", x_room_key=self.key)


def _headers(message: dict[str, Any]) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in message["headers"]}


# --- Redis


class RedisServer:
    """Debian's redis-server on a port of its own; what it holds outlives a stop."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.address = f"redis://127.0.0.1:{self.port}/0"
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Returns as soon as it can be asked."""
        options = {"port": self.port, "bind": "127.0.0.1", "dir": self._folder, "save": "", "appendonly": "yes"}
        self._process = subprocess.Popen(
            ["redis-server", *(word for name, value in options.items() for word in (f"--{name}", str(value)))],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self._process.stdout is not None
        said = ""
        for line in self._process.stdout:
            said += line
            if "eady to accept connections" in line:
                return
        raise RuntimeError(said)

    def stop(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        self._process.terminate()
        self._process.wait(PATIENCE)
        self._process.stdout.close()


@contextmanager
def redis_server(folder: Path) -> Iterator[RedisServer]:
    server = RedisServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def without_redis() -> str:
    """Why the tests with a real Redis cannot run; empty where they can."""
    return "" if shutil.which("redis-server") else "redis-server is not installed (Debian's package redis-server)"
