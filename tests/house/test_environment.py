"""What surrounds the lab fails: a full disk, a folder that is only read, folders that vanish."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import socket
import subprocess
import zipfile
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.components.payload import unpack as unpacked
from dashboard.view.pages import PAGES
from tests.kit.pages import ROOT, link, open_page, shown
from tests.kit.runs import digests, names, tiny
from tests.kit.waiting import PATIENCE
from transformer import checkpoints
from transformer.training import recording
from transformer.training.exchange.archive import pack, unpack
from transformer.training.exchange.inspection import faults
from transformer.training.library import LibraryError
from transformer.training.runs import Run, RunError, list_runs

SIZE = 2**21
"""Bytes of the disk that gets full."""
FULL = "no space left on device"
SEALED = "read-only file system"
A_FEW = ("overview", "runs")
"""The pages that are opened by day; the others by night."""


def each_page() -> list[Any]:
    return [page if page in A_FEW else pytest.param(page, marks=pytest.mark.nightly) for page in PAGES]


GOOD = Run(ROOT / "checkpoints" / "reverse-aligned")
"""A shipped run: small, and with everything that a run can have."""


@pytest.fixture(autouse=True)
def _each_click_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.view.clicks.ECHO", 0.0)


def mounting(*arguments: str) -> bool:
    """Is it done? `mount` is for root, which one may be, or may become without a password."""
    become = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if become and shutil.which("sudo") is None:
        return False
    return not subprocess.run([*become, *arguments], capture_output=True, timeout=PATIENCE).returncode


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file system of its own, with room for a few small runs, and a good run and a stopped one on it."""
    place = tmp_path / "disk"
    place.mkdir()
    if os.name == "nt" or not mounting("mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=777", "none", str(place)):
        pytest.skip("no file system can be mounted here")
    try:
        shutil.copytree(GOOD.folder, place / "good")
        stopped(place / "stopped")
        monkeypatch.setattr("dashboard.models.menu.ROOT", place)
        yield place
    finally:
        assert mounting("umount", str(place))


def stopped(folder: Path) -> Run:
    """A run that was stopped before its first step."""
    run = Run.create(folder, tiny())
    checkpoints.save_initial(folder / "snapshots" / "step-000000.safetensors", run.config)
    run.set_state("stopped", 0, "stopped by hand at step 0")
    return run


def fill(place: Path, room: int) -> None:
    """Leave so many bytes."""
    filler = place / "filler"
    filler.unlink(missing_ok=True)
    filler.write_bytes(bytes(max(0, shutil.disk_usage(place).free - room)))


def files(place: Path) -> dict[str, bytes]:
    """Everything that is there, but what was only put there to fill it and what nobody reads."""
    found = (path for path in place.rglob("*") if path.is_file() and path.name not in ("filler", "lock"))
    return {str(path.relative_to(place)): path.read_bytes() for path in found}


def said(app: AppTest) -> list[str]:
    """Each error and warning of a page."""
    assert not app.exception
    return [shown(each.value) for kind in ("error", "warning") for each in app.get(kind)]


def only(sentences: list[str], beginning: str, why: str) -> None:
    """Is exactly one thing said, which begins so and holds that?"""
    (sentence,) = sentences
    assert sentence.startswith(beginning), sentence
    assert why in sentence.lower(), sentence
    assert len(sentence) < 200
    assert "/" not in sentence, "a path"


# --- a full disk


@pytest.mark.nightly
@pytest.mark.parametrize("room", [0, 4096, 20_000, 120_000])
def test_on_a_full_disk_a_training_ends_with_a_sentence_and_every_file_whole(room: int, disk: Path):
    """It ends at its first write, at a snapshot, or at a line of its metrics."""
    run = Run.create(disk / "run", tiny(max_steps=5000, solved_at=2))
    before = digests(Run(disk / "good"))
    fill(disk, room)
    with pytest.raises(OSError, match="No space left"):
        list(recording.record(run))
    state = run.state
    if room != 0:
        assert state.status in ("failed", "lost")
        assert state.reason in (
            f"it could not be written down: {FULL}",
            f"stopped at step {state.step}: the process is gone",  # there was no room for the reason
        )
        assert run.resumable
    assert faults(run) == []
    assert not list(disk.rglob("*.tmp")), "a part of a file"
    assert digests(Run(disk / "good")) == before
    (disk / "filler").unlink()  # there is room again
    steps = recording.record(run)
    assert next(steps).step > max(run.snapshots(), default=0) - 1
    steps.close()
    written = [line["step"] for line in run.metrics()]
    assert written == list(range(1, len(written) + 1))


@pytest.mark.parametrize("room", [0, 4096, 8192, 12_288])
def test_on_a_full_disk_nothing_begins_and_nothing_is_left_of_it(room: int, disk: Path):
    packed = pack(Run(disk / "good"))
    fill(disk, room)
    before = files(disk)
    with pytest.raises(LibraryError, match=f"(?i)the run cannot be stored: {FULL}"):
        unpack(io.BytesIO(packed), disk, "again")
    try:
        Run.create(disk / "new", tiny())
    except (RunError, OSError):
        assert not (disk / "new").exists()
        assert files(disk) == before
    else:
        assert list_runs(disk)[-1].name == "new"


@pytest.mark.nightly
def test_on_a_full_disk_what_is_asked_for_is_refused_in_a_sentence(disk: Path):
    packed = pack(Run(disk / "good"))
    fill(disk, 0)
    before = files(disk)
    for ask, beginning in (
        (train, "Training did not start: "),
        (go_on, "stopped did not go on: "),
        (lambda: upload(packed), "again.zip was not added: "),
        (keep_a_mask, "Masks.json cannot be written: "),
    ):
        only(said(ask()), beginning, FULL)
        assert files(disk) == before
    assert names(disk) == ["good", "stopped"]


# --- a folder that is only read


def seal(disk: Path) -> None:
    assert mounting("mount", "-o", "remount,ro", str(disk))


@pytest.mark.parametrize("page", each_page())
def test_where_nothing_can_be_written_every_page_stands(page: str, disk: Path):
    """On a full disk and in a folder that is only read, by turns."""
    (seal if list(PAGES).index(page) % 2 else lambda disk: fill(disk, 0))(disk)
    before = files(disk)
    assert said(open_page(page, run="good").run()) == []
    assert files(disk) == before


def train() -> AppTest:
    return clicked(open_page(run="good", max_steps="4"), "Train")


def go_on() -> AppTest:
    app = open_page(run="stopped")
    app.session_state["watched"], app.session_state["watched_since"] = "stopped", 0.0
    return clicked(app.run(), "Resume")


def clicked(app: AppTest, label: str) -> AppTest:
    return next(each for each in app.button if each.label == label).click().run()


def renamed() -> AppTest:
    return open_page("runs", run="good").text_input(key="shelf-name-good").set_value("other").run()


def deleted() -> AppTest:
    return open_page("runs", run="good").button(key="delete").click().run()


def upload(packed: bytes) -> AppTest:
    app = open_page("runs", run="good")
    app.session_state["bring-in"] = True
    app.run()
    return app.file_uploader[0].set_value(("again.zip", packed, "application/zip")).run()


def keep_a_mask() -> AppTest:
    app = open_page("masks", run="good", mask="sliding-window:2")
    return app.text_input(key="control-mask-name").set_value("mine").run()


def stop_it(name: str) -> AppTest:
    app = open_page("runs", run="good")
    app.selectbox(key="shelf-run").set_value(name).run()
    return app.button(key="stop-it").click().run()


@pytest.mark.parametrize("all_of_it", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_in_a_folder_that_is_only_read_what_is_asked_for_is_refused_in_a_sentence(all_of_it: bool, disk: Path):
    packed = pack(Run(disk / "good"))
    stopped(disk / "paused").set_state("paused", 0)
    before = files(disk)
    seal(disk)
    asked: list[tuple[Callable[[], AppTest], str]] = [
        (train, "Training did not start: "),
        (renamed, "good was not renamed: "),
        (deleted, "good was not deleted: "),
        (lambda: upload(packed), "again.zip was not added: "),
        (go_on, "stopped did not go on: "),
        (lambda: stop_it("paused"), "paused was not stopped: "),
        (keep_a_mask, "Masks.json cannot be written: "),
    ]
    for ask, beginning in asked if all_of_it else asked[:4]:
        only(said(ask()), beginning, SEALED)
    assert files(disk) == before


# --- folders that vanish


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of two runs that are alike."""
    for name in ("good", "other"):
        shutil.copytree(GOOD.folder, tmp_path / "runs" / name)
    monkeypatch.setattr("dashboard.models.menu.ROOT", tmp_path / "runs")
    return tmp_path / "runs"


@pytest.mark.parametrize("page", each_page())
def test_a_page_falls_back_when_its_run_is_removed_and_when_all_are(page: str, root: Path):
    app = open_page(page, run="good")
    shutil.rmtree(root / "good")
    (notice,) = said(app.run())
    assert "good" in notice
    assert link(app)["run"] != "good"
    shutil.rmtree(root)
    said(app.run())
    assert not root.exists(), "made anew"
    if not PAGES[page].imported:  # its sidebar offers no runs
        assert app.selectbox(key="control-run").value == "compiled"


def test_what_is_asked_of_a_run_that_is_gone_is_refused_in_a_sentence(root: Path):
    for ask, beginning in (
        (lambda app: app.button(key="delete").click().run(), "good was not deleted: there is no run good any more"),
        (lambda app: app.button(key="open").click().run(), ""),
        (lambda app: app.text_input(key="shelf-name-good").set_value("mine").run(), ""),
    ):
        app = open_page("runs", run="good")
        (root / "good").rename(root.parent / "away")
        told = said(ask(app))
        assert any(beginning in each for each in told), told
        assert names(root) == ["other"]
        (root.parent / "away").rename(root / "good")


def test_a_run_that_is_gone_cannot_be_stopped_and_is_not_made_anew(root: Path):
    stopped(root / "paused").set_state("paused", 0)
    app = open_page("runs", run="good")
    app.selectbox(key="shelf-run").set_value("paused").run()
    shutil.rmtree(root / "paused")
    only(said(app.button(key="stop-it").click().run()), "paused was not stopped: ", "no such file")
    assert not (root / "paused").exists()


@pytest.mark.nightly
@pytest.mark.parametrize("steps", [1, 17])
def test_a_training_whose_folder_is_removed_ends_and_makes_nothing_anew(steps: int, tmp_path: Path):
    run = Run.create(tmp_path / "runs" / "run", tiny(max_steps=2000, solved_at=2))
    training = recording.record(run)
    for _ in range(steps):
        next(training)
    while (tmp_path / "runs").exists():  # a thread may be writing into it
        shutil.rmtree(tmp_path / "runs", ignore_errors=True)
    with pytest.raises(OSError, match="No such file"):
        deque(islice(training, 1000), 0)
    assert not (tmp_path / "runs").exists()


@pytest.mark.nightly
def test_a_film_whose_run_is_removed_is_not_made(tmp_path: Path):
    run = Run.create(tmp_path / "runs" / "run", tiny())
    list(recording.record(run))

    def called() -> bool:
        shutil.rmtree(run.folder, ignore_errors=True)
        return False

    with pytest.raises((OSError, ValueError)):
        recording.develop(run, called)
    assert not run.folder.exists()


# --- what leaves the machine

HERE = (socket.gethostname(), str(Path.home()), str(ROOT))
"""Words that are nobody else's business: this machine's name, and where things lie on it."""


def sent(app: AppTest) -> str:
    """Everything that a page sends: texts, figures, and what components are told."""
    parts = []

    def walk(node: Any) -> None:
        for child in getattr(node, "children", {}).values():
            walk(child)
        proto = getattr(node, "proto", None)
        if proto is None:
            return
        parts.append(str(proto))
        if getattr(node, "type", "") == "bidi_component":
            header, body = unpacked(proto.bytes)
            parts.extend((json.dumps(header, ensure_ascii=False), body.decode("latin-1")))

    walk(app._tree)
    return "\n".join(parts)


def named_in(text: str, root: Path) -> list[str]:
    """Which of these words stand in a text; the machine's name as a word of its own."""
    words = [word for word in (*HERE[1:], str(root)) if len(word) > 1 and word in text]
    return words + re.findall(rf"\b{re.escape(HERE[0])}\b", text)


@pytest.mark.parametrize("page", each_page())
def test_no_page_tells_where_things_lie_and_on_which_machine(page: str, root: Path, monkeypatch: pytest.MonkeyPatch):
    """Of a good run, a damaged one, one that has failed or is live, by turns; and of input that cannot be used."""
    host = "a-machine-of-ours"
    monkeypatch.setattr("socket.gethostname", lambda: host)
    monkeypatch.setattr(f"{__name__}.HERE", (host, *HERE[1:]))
    failed = Run(shutil.copytree(root / "good", root / "failed"))
    failed.set_state("failed", 40, "it could not be written down: no space left on device")
    Run(shutil.copytree(root / "good", root / "live")).set_state("running", 40)
    for name in ("film.npz", "example.npz", "evaluation.json", "metrics.jsonl"):
        (root / "other" / name).write_bytes(b"no such thing")
    (root / "unreadable").mkdir()
    (root / "unreadable" / "run.json").write_text("{")
    for query in (
        {"run": ("good", "other", "failed", "live")[list(PAGES).index(page) % 4]},
        {"run": "unreadable", "input": "x y z", "mask": "painted:9", "step": "7", "compare": "nobody", "task": "text"},
    ):
        text = sent(open_page(page, **query))
        assert len(text) > 1000
        assert named_in(text, root) == []


def test_no_export_tells_where_things_lie_and_on_which_machine(root: Path, monkeypatch: pytest.MonkeyPatch):
    host = "a-machine-of-ours"
    monkeypatch.setattr("socket.gethostname", lambda: host)
    monkeypatch.setattr(f"{__name__}.HERE", (host, *HERE[1:]))
    run = Run(root / "good")
    run.set_state("paused", 40)
    with zipfile.ZipFile(io.BytesIO(pack(run))) as packed:
        for name in packed.namelist():
            assert named_in(packed.read(name).decode("latin-1"), root) == [], name
