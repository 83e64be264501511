"""What a full room costs: `python benchmarks/room.py [--quick] [--save]`; --save writes ROOM.md.

Followers are connections of their own on loopback, with an event stream each and a second connection for documents, in
a process beside the dashboard's. Their time runs from the beginning of the lecturer's PUT to the last byte of the
document. A lecturer clicks on heads in Chromium, before and meanwhile. The same number of Streamlit sessions, each a
websocket that asks for a view as a browser does and draws nothing, then does without a room: time runs from the request
to the end of the script.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from explore import OURS, Size, clicks, make_run
from kit.pages import give_up, load, machine, options, page, spread, table
from kit.tabs import one_chromium, open_tab
from playwright.sync_api import Browser
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect

PAGE = "ROOM.md"
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from tests.kit.driving import free_port, serving  # noqa: E402

FULL, QUICK = (200, 10, 20, 300_000), (2, 2, 2, 3_000)
"""Followers, steps, clicks, and bytes of a document, compressed."""
PAUSE = 1.5
"""Seconds between two steps while the lecturer clicks."""
CLICKED = Size(8, 2, 4)
VIEWS = ("run=reverse&query=9", "run=reverse&query=10")
"""What Streamlit sessions ask for in turn."""


@dataclass
class Server:
    """The dashboard as a process of its own."""

    port: int
    process: subprocess.Popen[bytes]

    def memory(self) -> int:
        """Bytes in memory now."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return 1024 * int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])

    def processor(self) -> float:
        """Seconds of processor time until now, without those of trainings kept ready."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def started(runs: Path, ready: bool = True) -> Iterator[Server]:
    """The dashboard, once it answers; or once it is `ready`, with nothing left to do in the background."""
    port = free_port()
    command = [sys.executable, "-m", "streamlit", "run", "dashboard/app.py", "--server.headless", "true"]
    environment = os.environ | {"ATTENTION_LAB_RUNS": str(runs)}
    address, command = f"http://localhost:{port}", [*command, "--server.port", str(port)]
    with serving(command, address, cwd=HERE.parent, env=environment) as process:
        if ready:
            wait_until_ready(port)
        yield Server(port, process)


def wait_until_ready(port: int) -> None:
    """Until PyTorch is there and a process for training is kept ready."""
    while True:
        try:
            urllib.request.urlopen(f"http://localhost:{port}/ready").close()
        except urllib.error.HTTPError as missing:
            missing.close()
            time.sleep(0.1)
        else:
            return


def document(size: int) -> bytes:
    """Random numbers as JSON, as many as have this size compressed."""
    rng = random.Random(time.perf_counter_ns())
    numbers = [round(rng.random(), 6) for _ in range(size // 3)]
    compressed = len(gzip.compress(json.dumps(numbers).encode()))
    return gzip.compress(json.dumps(numbers[: int(len(numbers) * size / compressed)]).encode())


# --- a room


class Connection:
    """HTTP/1.1 by hand, for a client that costs little beside what it measures."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def open(cls, port: int) -> Connection:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> dict[str, str]:
        """Send a request and read the head of its answer. Raises RuntimeError for a refusal."""
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().splitlines()
        if not 200 <= int(head[0].split()[1]) < 300:
            raise RuntimeError(f"{method} {path}: {head[0]}")
        return {name.lower(): value for name, value in (line.split(": ", 1) for line in head[1:] if line)}

    async def whole(self, method: str, path: str, body: bytes = b"", **headers: str) -> bytes:
        head = await self.ask(method, path, body, **headers)
        return await self.reader.readexactly(int(head["content-length"]))


@dataclass
class Arrivals:
    """When a step's document was whole at each follower, seconds since time.perf_counter's zero; and bytes received."""

    times: list[float] = field(default_factory=list)
    received: int = 0
    all_there: asyncio.Event = field(default_factory=asyncio.Event)


class FullRoom:
    """A lecturer and followers."""

    def __init__(self, port: int, followers: int, size: int) -> None:
        self.port, self.count, self.size = port, followers, size
        self.arrivals = Arrivals()
        self._tasks: list[asyncio.Task[None]] = []
        self._ready = asyncio.Semaphore(0)

    async def open(self) -> None:
        """Returns when every follower has its stream."""
        self._desk = await Connection.open(self.port)
        opened = json.loads(await self._desk.whole("POST", "/rooms"))
        self._room, self._key = f"/room/{opened['code']}", opened["key"]
        self._tasks = [asyncio.create_task(self._follow()) for _ in range(self.count)]
        for _ in range(self.count):
            await self._ready.acquire()

    async def show(self) -> list[float]:
        """Show a new document. Seconds until each follower has it."""
        shown = document(self.size)
        self.arrivals = Arrivals()
        began = time.perf_counter()
        await self._desk.whole("PUT", f"{self._room}/document", shown, X_Room_Key=self._key)
        await self.arrivals.all_there.wait()
        return [each - began for each in self.arrivals.times]

    async def close(self) -> None:
        await self._desk.ask("DELETE", self._room, X_Room_Key=self._key)
        await asyncio.gather(*self._tasks)

    async def _follow(self) -> None:
        stream, desk = await Connection.open(self.port), await Connection.open(self.port)
        await stream.ask("GET", f"{self._room}/events")
        while line := await stream.reader.readline():
            if line.startswith(b"event: over"):
                break
            if not line.startswith(b"data: "):
                continue
            name = json.loads(line[6:])["document"]
            if not name:
                self._ready.release()
                continue
            body = await desk.whole("GET", f"{self._room}/document/{name}", Accept_Encoding="gzip")
            self.arrivals.times.append(time.perf_counter())
            self.arrivals.received += len(line) + len(body)
            if len(self.arrivals.times) == self.count:
                self.arrivals.all_there.set()
        for each in (stream, desk):
            each.writer.close()


@dataclass
class Cost:
    """Of followers or sessions: seconds of each step at each, and what the server paid a head."""

    name: str
    count: int
    seconds: list[float]
    steps: int
    received: float
    memory: float
    processor: float

    def row(self) -> str:
        late = statistics.quantiles(self.seconds, n=20, method="inclusive")[-1]
        heads = self.count * self.steps
        return (
            f"| {self.count} {self.name} | {statistics.median(self.seconds):.3f} | {late:.3f} | "
            f"{max(self.seconds):.3f} | {self.received / heads / 1000:,.0f} | "
            f"{self.memory / self.count / 1000:,.0f} | {1000 * self.processor / heads:.2f} |"
        )


async def followed(server: Server, followers: int, steps: int, size: int) -> Cost:
    """A room and its steps, one as soon as the one before is everywhere."""
    room, before = FullRoom(server.port, followers, size), server.memory()
    await room.open()
    memory, processor = server.memory() - before, server.processor()
    seconds, received = [], 0
    for _ in range(steps):
        seconds += await room.show()
        received += room.arrivals.received
    processor = server.processor() - processor
    await room.close()
    return Cost("followers" if followers > 1 else "follower", followers, seconds, steps, received, memory, processor)


# --- Streamlit sessions


async def viewed(server: Server, sessions: int, steps: int) -> Cost:
    """As many sessions, which all ask for the next view as soon as each has the one before."""
    before = server.memory()
    address = f"ws://127.0.0.1:{server.port}/_stcore/stream"
    tabs = [
        await connect(address, subprotocols=["streamlit"], max_size=None, ping_interval=None) for _ in range(sessions)
    ]
    await asyncio.gather(*(view(tab, VIEWS[0]) for tab in tabs))
    memory, processor = server.memory() - before, server.processor()
    seconds, received = [], 0
    for step in range(steps):
        for took, size in await asyncio.gather(*(view(tab, VIEWS[(step + 1) % 2]) for tab in tabs)):
            seconds.append(took)
            received += size
    processor = server.processor() - processor
    for tab in tabs:
        await tab.close()
    return Cost("Streamlit sessions", sessions, seconds, steps, received, memory, processor)


async def view(tab: ClientConnection, query: str) -> tuple[float, int]:
    """Ask for a view of the page of heads. Seconds until its script has ended, and bytes received."""
    began, size = time.perf_counter(), 0
    asked = BackMsg()
    asked.rerun_script.query_string = query
    asked.rerun_script.page_name = "heads"
    await tab.send(asked.SerializeToString())
    while True:
        data = await tab.recv()
        size += len(data)
        if ForwardMsg.FromString(data).WhichOneof("type") == "script_finished":
            return time.perf_counter() - began, size


# --- the lecturer's clicks


class Storm:
    """A full room in a thread of its own, with a step every PAUSE seconds until it is over."""

    def __init__(self, port: int, followers: int, size: int) -> None:
        self._port, self._followers, self._size = port, followers, size
        self._over = threading.Event()
        self._going = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._rage()))
        self.seconds: list[float] = []

    def __enter__(self) -> Storm:
        self._thread.start()
        self._going.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    async def _rage(self) -> None:
        room = FullRoom(self._port, self._followers, self._size)
        await room.open()
        self._going.set()
        while not self._over.is_set():
            self.seconds += await room.show()
            await asyncio.sleep(PAUSE)
        await room.close()


def clicked(chromium: Browser, server: Server, followers: int, count: int, size: int) -> None:
    """From a click on a head to its repaint: alone, and while a full room gets steps."""
    print(
        f"\n## The lecturer's own clicks\n\n{count} clicks on heads in a browser on this machine, alone and while "
        f"{followers} followers get a new document every {PAUSE} s; all share the machine's cores."
    )
    table("", "ms, median", "least to most", "9 of 10 within, ms")
    with open_tab(chromium) as tab:
        tab.open(f"http://localhost:{server.port}/heads?run={CLICKED.name}", OURS % (CLICKED.layers * CLICKED.heads))
        clicks(tab, CLICKED, 3)  # a layer's first click computes its details
        found = {"alone": clicks(tab, CLICKED, count).whole}
        with Storm(server.port, followers, size):
            found["meanwhile"] = clicks(tab, CLICKED, count).whole
    for name, milliseconds in found.items():
        most = statistics.quantiles(milliseconds, n=10, method="inclusive")[-1]
        print(f"| {name} | {spread(milliseconds, 0)} | {most:.0f} |", flush=True)


def beside(work: Coroutine[Any, Any, Cost]) -> Cost:
    """What comes of some work, done in a thread of its own: in this one runs Playwright's event loop."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, work).result()


def report(chromium: Browser, busy: str, quick: bool) -> None:
    followers, steps, count, size = QUICK if quick else FULL
    with tempfile.TemporaryDirectory() as folder, started(Path(folder), ready=not quick) as server:
        place = "in Redis" if os.environ.get("ATTENTION_LAB_ROOMS") else "in the server's own process"
        print(f"{machine(torch.device('cpu'), busy)}; rooms {place}.")
        make_run(Path(folder), CLICKED)
        print(
            f"\n## A step, from the lecturer to everybody\n\n{steps} documents of random numbers, {size // 1000} kB "
            "compressed, one as soon as the one before is everywhere. Memory: what the server grew by when they came. "
            "Processor: the server's. Sessions: the page of heads, rerun for another view."
        )
        table(
            "", "s, median", "95 of 100 within, s", "slowest, s", "kB a step", "memory each, kB", "processor a step, ms"
        )
        beside(followed(server, 1, 1, size))  # the first imports what it needs
        costs = []
        rooms = (followed(server, each, steps, size) for each in (1, followers))
        for make in (*rooms, viewed(server, followers, steps)):
            costs.append(beside(make))
            print(costs[-1].row(), flush=True)
        room, sessions = costs[1:]
        ratio = sessions.processor / max(room.processor, 0.01)
        later = statistics.median(sessions.seconds) / statistics.median(room.seconds)
        print(
            f"\nA session costs the server {ratio:,.0f} times the processor time of a follower, and has the next view "
            f"{later:,.1f} times as late."
        )
        clicked(chromium, server, followers, count, size)


def main() -> None:
    arguments, busy = options(__doc__, PAGE).parse_args(), load()
    if not Path("/proc/self/status").exists():
        give_up("memory and processor time of another process are read from /proc, which is not here")
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with one_chromium() as chromium, page(PAGE, "A full room", save=arguments.save):
        report(chromium, busy, arguments.quick)


if __name__ == "__main__":
    main()
