"""What a class costs: `python benchmarks/serving.py [--quick] [--save]`; --save writes SERVING.md.

Readers are websockets of their own on loopback, in a process beside the dashboard's. Each opens the page of heads as a
browser does, draws nothing, and then clicks every 10 s, each at a moment of its own: it switches "Scale by row", which
draws the page anew, but not what stands around it. Time runs from the request to the end of the script. Processor time
is the server's, without that of trainings kept ready. At the end all click without a pause, which shows whether memory
grows with clicks, and then leave, which shows what stays open.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from kit.pages import load, machine, options, page, table
from room import Server, started
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect

PAGE = "SERVING.md"
ROOT = Path(__file__).resolve().parents[1]
RUN = "reverse"
FULL = (1, 30, 100), 60.0, 60, 5.0
QUICK = (1,), 0.5, 1, 0.1
"""How many readers, seconds for which they click, clicks without a pause, and seconds after the last has left."""
EVERY = 10.0
"""Seconds between two clicks of a reader."""
PATIENCE = 30.0
"""Seconds after which a click is not answered."""
SWITCH = "control-by_row"


class Reader:
    """Somebody who looks at a page."""

    def __init__(self, tab: ClientConnection) -> None:
        self.tab = tab
        self.widget = self.fragment = ""
        self.on = False

    @classmethod
    async def come(cls, server: Server) -> Reader:
        """A connection, and the page drawn for the first time."""
        address = f"ws://127.0.0.1:{server.port}/_stcore/stream"
        reader = cls(await connect(address, subprotocols=["streamlit"], max_size=None, ping_interval=None))
        asked = BackMsg()
        asked.rerun_script.query_string = f"run={RUN}"
        asked.rerun_script.page_name = "heads"
        await reader.ask(asked)
        return reader

    async def click(self) -> float:
        """Switch "Scale by row". Seconds until the script has ended."""
        self.on = not self.on
        asked = BackMsg()
        asked.rerun_script.query_string = f"run={RUN}"
        asked.rerun_script.page_name = "heads"
        asked.rerun_script.fragment_id = self.fragment
        state = asked.rerun_script.widget_states.widgets.add()
        state.id, state.bool_value = self.widget, self.on
        return await self.ask(asked)

    async def ask(self, asked: BackMsg) -> float:
        """Send a request. Seconds until its script has ended."""
        began = time.perf_counter()
        await self.tab.send(asked.SerializeToString())
        while True:
            message = ForwardMsg.FromString(await asyncio.wait_for(self.tab.recv(), PATIENCE))
            kind = message.WhichOneof("type")
            if kind == "script_finished":
                return time.perf_counter() - began
            if kind == "delta" and message.delta.new_element.checkbox.id.endswith(SWITCH):
                self.widget, self.fragment = message.delta.new_element.checkbox.id, message.delta.fragment_id


async def look(reader: Reader, seconds: float) -> list[float]:
    """Click every EVERY seconds for so long, from a moment of one's own; infinite where nothing answered."""
    end, found = time.monotonic() + seconds, []
    await asyncio.sleep(random.uniform(0, min(EVERY, seconds)))
    while time.monotonic() < end:
        began = time.monotonic()
        try:
            found.append(await reader.click())
        except TimeoutError:
            found.append(float("inf"))
        await asyncio.sleep(max(0.0, min(began + EVERY, end) - time.monotonic()))
    return found


def open_files(server: Server) -> int:
    return len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))


async def measured(server: Server, counts: Sequence[int], seconds: float, without_pause: int, left: float) -> None:
    print(f"\n## A click every {EVERY:.0f} s\n")
    print(f"Each reader for {seconds:.0f} s. Files: the server's open descriptors, sockets included.")
    table("readers", "clicks", "ms, median", "95 of 100 within, ms", "unanswered", "ms of processor a click", "files")
    readers: list[Reader] = []
    for count in counts:
        while len(readers) < count:
            readers.append(await Reader.come(server))
        await asyncio.gather(*(reader.click() for reader in readers))
        processor = server.processor()
        found = [each for some in await asyncio.gather(*(look(each, seconds) for each in readers)) for each in some]
        processor = server.processor() - processor
        within = statistics.quantiles(found, n=20, method="inclusive")[-1] if len(found) > 1 else found[0]
        lost = sum(each == float("inf") for each in found)
        print(
            f"| {count} | {len(found)} | {1000 * statistics.median(found):.0f} | {1000 * within:.0f} | {lost} | "
            f"{1000 * processor / len(found):.0f} | {open_files(server)} |",
            flush=True,
        )
    print(f"\n## Clicks without a pause\n\n{len(readers)} readers, {without_pause} clicks each, all at once.")
    table("clicks so far", "memory of the server, MB", "clicks a second")
    tenth = max(1, without_pause // 6)
    for turn in range(0, without_pause, tenth):
        began = time.monotonic()
        for _ in range(min(tenth, without_pause - turn)):
            await asyncio.gather(*(reader.click() for reader in readers))
        done = len(readers) * min(tenth, without_pause - turn)
        so_far = len(readers) * min(without_pause, turn + tenth)
        print(f"| {so_far:,} | {server.memory() / 1e6:,.0f} | {done / (time.monotonic() - began):.0f} |", flush=True)
    before = open_files(server)
    for reader in readers:
        await reader.tab.close()
    await asyncio.sleep(left)
    print(f"\nOpen files: {before} with {len(readers)} readers, {open_files(server)} {left:.0f} s after they had left.")


def report(busy: str, quick: bool) -> None:
    with tempfile.TemporaryDirectory() as folder, started(Path(folder), ready=not quick) as server:
        shutil.copytree(ROOT / "checkpoints" / RUN, Path(folder) / RUN)
        print(f"{machine(torch.device('cpu'), busy)}.")
        asyncio.run(measured(server, *(QUICK if quick else FULL)))


def main() -> None:
    asked = options(__doc__, PAGE).parse_args()
    busy = load()
    with page(PAGE, "What a class costs", save=asked.save):
        report(busy, asked.quick)


if __name__ == "__main__":
    main()
