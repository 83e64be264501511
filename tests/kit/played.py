"""A training that a test plays, step by step, without a process that trains, and a page that watches it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from playwright.sync_api import Page, WebSocket, expect

from tests.kit.driving import SETTLED, wait_until_painted
from tests.kit.runs import tiny
from transformer.training import lock
from transformer.training.runs import Run


class Played:
    """A training that a test plays: it holds the lock of its folder, and writes what is seen of it."""

    def __init__(self, run: Run, leave: Callable[[], None]) -> None:
        self.run, self.steps, self._leave = run, 0, leave

    def step(self) -> int:
        """Take one, and say so; which it was."""
        self.steps += 1
        line = {"step": self.steps, "loss": 2.0, "learning_rate": 0.001, "gradient_norm": 1.0, "seconds": 0.1}
        with (self.run.folder / "metrics.jsonl").open("a") as lines:
            lines.write(f"{json.dumps(line)}\n")
        self.say("running")
        return self.steps

    def say(self, status: str) -> None:
        self.run.set_state(status, self.steps)

    def end(self) -> None:
        """Be stopped by hand, without a film."""
        self.say("stopped")
        self._leave()


@contextmanager
def playing(folder: Path) -> Iterator[Played]:
    """A training in a new folder, after its first step; it is stopped at last."""
    run = Run.create(folder, tiny(max_steps=1000))
    with ExitStack() as process:
        process.enter_context(lock.hold(run.folder))
        training = Played(run, process.close)
        training.step()
        yield training
        training.end()


def headline(page: Page, step: int) -> None:
    """The panel says this step."""
    words = page.locator(".st-key-training p").first
    expect(words).to_contain_text(f"step {step} of")


class Heard:
    """What a page and its server say to each other: the sockets of news, and how often the page asks Streamlit."""

    def __init__(self, page: Page) -> None:
        self.sockets: list[WebSocket] = []
        self.asked = self.told = 0
        page.on("websocket", self._opened)

    def _opened(self, socket: WebSocket) -> None:
        if socket.url.endswith("/news"):
            self.sockets.append(socket)
            socket.on("framereceived", self._count("told"))
        else:
            socket.on("framesent", self._count("asked"))

    def _count(self, what: str) -> Callable[[object], None]:
        return lambda frame: setattr(self, what, getattr(self, what) + 1)

    @property
    def open(self) -> int:
        return sum(not socket.is_closed() for socket in self.sockets)


def watch(page: Page, address: str, played: Played, view: str = "") -> Heard:
    """Look at its panel, until it stands still."""
    heard = Heard(page)
    page.goto(f"{address}/?run=reverse{view}")
    wait_until_painted(page, plots=3)
    page.get_by_role("button", name="Watch").click()
    headline(page, played.steps)
    page.wait_for_function(SETTLED)
    return heard
