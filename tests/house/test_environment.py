"""What surrounds the lab fails: a full disk, a folder that is only read, folders that vanish."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import zipfile
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.view.pages import PAGES
from tests.kit.checkout import ROOT, contents
from tests.kit.hostile.telling import HOST, sent, told_of_here
from tests.kit.pages import link, open_page, press, shown
from tests.kit.runs import digests, names, tiny
from tests.kit.waiting import PATIENCE
from transformer import checkpoints
from transformer.training import recording
from transformer.training.exchange.archive import pack, unpack
from transformer.training.exchange.inspection import faults
from transformer.training.library import LibraryError
from transformer.training.listing import list_runs
from transformer.training.runs import Run, RunError

SIZE = 2**21
"""Bytes of the disk that gets full."""
FULL, SEALED = "no space left on device", "read-only file system"
EACH_PAGE = [
    pytest.param(number, page, id=page, marks=() if page in ("overview", "runs") else pytest.mark.nightly)
    for number, page in enumerate(PAGES)
]
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
    """A file system of its own, with room for a few small runs; a good run, a stopped and a paused one are on it."""
    place = tmp_path / "disk"
    place.mkdir()
    if os.name == "nt" or not mounting("mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=777", "none", str(place)):
        pytest.skip("no file system can be mounted here")
    try:
        shutil.copytree(GOOD.folder, place / "good")
        for status in ("stopped", "paused"):
            unbegun(place / status, status)
        monkeypatch.setattr("dashboard.models.menu.ROOT", place)
        yield place
    finally:
        assert mounting("umount", str(place))


def unbegun(folder: Path, status: str) -> None:
    """A run that was stopped or paused before its first step."""
    run = Run.create(folder, tiny())
    checkpoints.save_initial(folder / "snapshots" / "step-000000.safetensors", run.config)
    run.set_state(status, 0, f"{status} by hand at step 0")


def fill(place: Path, room: int = 0) -> None:
    """Leave so many bytes."""
    filler = place / "filler"
    filler.unlink(missing_ok=True)
    filler.write_bytes(bytes(max(0, shutil.disk_usage(place).free - room)))


def seal(place: Path) -> None:
    """Let nobody write any more."""
    assert mounting("mount", "-o", "remount,ro", str(place))


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


# --- a disk that is full, or only read


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
    before = contents(disk, "filler")
    with pytest.raises(LibraryError, match=f"(?i)the run cannot be stored: {FULL}"):
        unpack(io.BytesIO(packed), disk, "again")
    try:
        Run.create(disk / "new", tiny())
    except (RunError, OSError):
        assert not (disk / "new").exists()
        assert contents(disk, "filler") == before
    else:
        assert list_runs(disk)[-1].name == "new"


def shelf(run: str = "good") -> AppTest:
    return open_page("runs", run="good").selectbox(key="shelf-run").set_value(run).run()


def go_on() -> AppTest:
    app = open_page(run="stopped")
    app.session_state["watched"], app.session_state["watched_since"] = "stopped", 0.0
    return press(app.run(), "Resume")


def upload() -> AppTest:
    app = open_page("runs", {"bring-in": True}, run="good")
    return app.file_uploader[0].set_value(("again.zip", pack(GOOD), "application/zip")).run()


def keep_a_mask() -> AppTest:
    app = open_page("masks", run="good", mask="sliding-window:2")
    return app.text_input(key="control-mask-name").set_value("mine").run()


WRITES: dict[str, tuple[Callable[[], AppTest], str]] = {
    "train": (lambda: press(open_page(run="good", max_steps="4"), "Train"), "Training did not start: "),
    "keep a mask": (keep_a_mask, "Masks.json cannot be written: "),
    "upload": (upload, "again.zip was not added: "),
    "go on": (go_on, "stopped did not go on: "),
}
REMOVES: dict[str, tuple[Callable[[], AppTest], str]] = {
    "rename": (lambda: shelf().text_input(key="shelf-name-good").set_value("other").run(), "good was not renamed: "),
    "delete": (lambda: shelf().button(key="delete").click().run(), "good was not deleted: "),
    "stop": (lambda: shelf("paused").button(key="stop-it").click().run(), "paused was not stopped: "),
}
REFUSED = [(seal, what) for what in WRITES | REMOVES] + [(fill, what) for what in reversed(WRITES)]


@pytest.mark.daily(5)
@pytest.mark.parametrize(("end", "what"), REFUSED)
def test_where_nothing_can_be_written_what_is_asked_for_is_refused_in_a_sentence(
    end: Callable[[Path], None], what: str, disk: Path
) -> None:
    end(disk)
    before, (ask, beginning) = contents(disk, "filler"), (WRITES | REMOVES)[what]
    only(said(ask()), beginning, SEALED if end is seal else FULL)
    assert contents(disk, "filler") == before


@pytest.mark.parametrize(("number", "page"), EACH_PAGE)
def test_where_nothing_can_be_written_every_page_stands(number: int, page: str, disk: Path) -> None:
    """On a full disk and in a folder that is only read, by turns."""
    (seal if number % 2 else fill)(disk)
    before = contents(disk, "filler")
    assert said(open_page(page, run="good").run()) == []
    assert contents(disk, "filler") == before


# --- folders that vanish, and what leaves the machine


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of two runs that are alike, one that has failed, one that is live, and one that cannot be read."""
    root = tmp_path / "runs"
    for name in ("good", "other", "failed", "live"):
        shutil.copytree(GOOD.folder, root / name)
    monkeypatch.setattr("socket.gethostname", lambda: HOST)
    Run(root / "failed").set_state("failed", 40, f"it could not be written down: {FULL}")
    Run(root / "live").set_state("running", 40)
    (root / "unreadable").mkdir()
    (root / "unreadable" / "run.json").write_text("{")
    monkeypatch.setattr("dashboard.models.menu.ROOT", root)
    return root


@pytest.mark.parametrize(("number", "page"), EACH_PAGE)
def test_a_page_tells_nothing_of_the_machine_and_falls_back_when_its_run_is_removed(
    number: int, page: str, root: Path
) -> None:
    """Of a good run, one that has failed and one that is live, by turns; and then all are removed."""
    run = ("good", "failed", "live")[number % 3]
    app = open_page(page, run=run)
    assert told_of_here(sent(app), root) == []
    shutil.rmtree(root / run)
    assert len([each for each in said(app.run()) if run in each]) == 1
    assert link(app)["run"] != run
    shutil.rmtree(root)
    said(app.run())
    assert not root.exists(), "made anew"
    if PAGES[page].follows and not PAGES[page].imported:  # its sidebar offers the runs
        assert app.selectbox(key="control-run").value == "compiled"


def test_no_export_tells_where_things_lie_and_on_which_machine(root: Path) -> None:
    run = Run(root / "live")
    run.set_state("paused", 40)
    with zipfile.ZipFile(io.BytesIO(pack(run))) as packed:
        for name in packed.namelist():
            assert told_of_here(packed.read(name).decode("latin-1"), root) == [], name


def test_what_is_asked_of_a_run_that_is_gone_is_refused_in_a_sentence_and_it_is_not_made_anew(root: Path) -> None:
    unbegun(root / "paused", "paused")
    for run, ask, sentence in (
        ("good", lambda app: app.button(key="delete").click(), "good was not deleted: there is no run good any more"),
        ("good", lambda app: app.button(key="open").click(), ""),
        ("good", lambda app: app.text_input(key="shelf-name-good").set_value("mine"), ""),
        ("paused", lambda app: app.button(key="stop-it").click(), "paused was not stopped: no such file"),
    ):
        app = shelf(run)
        (root / run).rename(root.parent / run)
        told = said(ask(app).run())
        assert any(each.lower().startswith(sentence) for each in told), told
        assert names(root) == sorted({"good", "other", "failed", "live", "paused"} - {run})
        (root.parent / run).rename(root / run)


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
