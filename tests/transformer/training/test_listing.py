"""The runs of a folder: seen as they are at every look, and read once for each version of their files."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kit.runs import bounded, tiny, untrained
from tests.kit.waiting import Clock
from transformer.foundation import versions
from transformer.training import library, listing, runs
from transformer.training.exchange.inspection import faults
from transformer.training.runs import Run, State

LINE = {"step": 1, "loss": 2.0, "seconds": 0.5, "learning_rate": 0.1, "gradient_norm": 1.0}
MEASURED = {"sequences": 10, "correct": [1] * 6, "exact_match": 0.1, "second_half": 0.125, "first_half": 0.1}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder of three runs, the first of which was measured, and of what is no run."""
    root = tmp_path / "runs"
    for name in ("one", "two", "three"):
        run = untrained(root / name, tiny())
        (run.folder / "metrics.jsonl").write_text(json.dumps(LINE) + "\n")
        run.set_evaluation(MEASURED)
    (root / "file").write_text("no run")
    (root / "empty").mkdir()
    return root


def said(root: Path) -> list[dict[str, object]]:
    """What a listing says of each run."""
    fields = [each.name for each in dataclasses.fields(listing.Entry) if each.name != "run"]
    entries = listing.listing(root).entries
    return [
        {name: getattr(each, name) for name in fields} | {"metrics": each.run.metrics(), "name": each.name}
        for each in entries
    ]


def rewritten(path: Path, old: bytes, new: bytes) -> None:
    """Put other bytes into the same file, of the same size and date."""
    there = path.stat()
    content = path.read_bytes().replace(old, new)
    with path.open("r+b") as file:
        file.write(content)
    os.utime(path, ns=(there.st_atime_ns, there.st_mtime_ns))
    assert path.stat().st_size == there.st_size
    assert old not in content


def rewritten_whole(path: Path, lines: int) -> None:
    """So many steps, written into the same file."""
    path.write_text("".join(json.dumps(LINE | {"step": step}) + "\n" for step in range(1, lines + 1)))


CHANGES: dict[str, Callable[[Path], object]] = {
    "a run appears": lambda root: shutil.copytree(root / "one", root / "four"),
    "a run goes": lambda root: shutil.rmtree(root / "one"),
    "a run is renamed": lambda root: (root / "one").rename(root / "another"),
    "a run is deleted here": lambda root: library.delete(Run(root / "one")),
    "its card goes": lambda root: (root / "one" / "run.json").unlink(),
    "its state is another": lambda root: Run(root / "one").set_state("failed", 7, "why"),
    "its state is rewritten": lambda root: rewritten(root / "one" / "state.json", b"finished", b"stopped "),
    "its card is rewritten": lambda root: rewritten(root / "one" / "run.json", b'"seed": 0', b'"seed": 7'),
    "its card is damaged": lambda root: rewritten(root / "one" / "run.json", b'"format"', b'"fomrat"'),
    "its evaluation is rewritten": lambda root: rewritten(root / "one" / "evaluation.json", b"0.125", b"0.875"),
    "its evaluation goes": lambda root: (root / "one" / "evaluation.json").unlink(),
    "it has more weights": lambda root: shutil.copy(
        root / "one/snapshots/step-000000.safetensors", root / "one/snapshots/step-000004.safetensors"
    ),
    "its weights go": lambda root: shutil.rmtree(root / "one" / "snapshots"),
    "its metrics grow": lambda root: rewritten_whole(root / "one" / "metrics.jsonl", 2),
    "its metrics are rewritten": lambda root: rewritten(root / "one" / "metrics.jsonl", b"2.0", b"3.0"),
    "its metrics are cut": lambda root: Run(root / "one").cut_metrics(0),
    "a pipe takes its place": lambda root: [(root / "one/state.json").unlink(), os.mkfifo(root / "one/state.json")],
}  # fmt: skip


@pytest.mark.parametrize("kind", CHANGES)
def test_the_next_look_sees_what_one_sees_that_knows_nothing(kind: str, root: Path, tmp_path: Path):
    """A copy of the folder, of which nothing can be remembered, says the same, before the change and after it."""
    before = said(root)
    assert said(root) == before
    CHANGES[kind](root)
    after = said(root)
    assert after != before
    with bounded():
        copy = tmp_path / "copy"
        shutil.copytree(
            root, copy, copy_function=lambda *given: None if Path(given[0]).is_fifo() else shutil.copy2(*given)
        )
        if "pipe" in kind:
            os.mkfifo(copy / "one/state.json")
        assert after == said(copy) == said(root)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """What is opened from now on; dates tell all changes, as they do of what has not been written just now."""
    monkeypatch.setattr(versions, "SETTLED_AFTER", 0)
    found, real = [], os.open

    def noted(path, *given, **named):
        found.append(Path(path))
        return real(path, *given, **named)

    monkeypatch.setattr(os, "open", noted)
    return found


def look(root: Path) -> None:
    """Ask for all that lists, pages and commands ask for."""
    listing.list_runs(root), listing.unreadable(root)
    for entry in listing.listing(root).entries:
        run = entry.run
        _ = run.state, run.control, run.evaluation, run.metrics(), run.last(), faults(run)


def test_no_file_is_opened_twice_that_has_not_changed(root: Path, opened: list[Path]):
    """Nor one that cannot be used; and a changed one once."""
    (root / "two" / "run.json").write_text("{")
    (root / "three" / "evaluation.json").unlink()
    os.mkfifo(root / "three" / "evaluation.json")
    small = {"run.json", "state.json", "metrics.jsonl", "evaluation.json"}
    look(root)
    first = [path for path in opened if path.name in small]
    assert len(first) == len(set(first)) >= 7
    opened.clear()
    for _ in range(5):
        look(root)
    assert [path for path in opened if path.name in small] == []
    Run(root / "one").set_state("stopped", 1)
    opened.clear()
    look(root), look(root)
    assert [path for path in opened if path.name in small] == [root / "one" / "state.json"]


def test_what_the_system_refuses_is_asked_for_once_and_what_may_pass_again(
    root: Path, opened: list[Path], monkeypatch: pytest.MonkeyPatch
):
    tried, real = [], os.open
    for error, times in ((PermissionError(13, "Permission denied"), 1), (OSError(5, "Input/output error"), 3)):

        def refuse(path, *given, error=error, **named):
            if Path(path).name == "evaluation.json":
                tried.append(path)
                raise error
            return real(path, *given, **named)

        monkeypatch.setattr(os, "open", refuse)
        shutil.copytree(root / "one", root / f"of-{error.errno}")
        tried.clear()
        for _ in range(3):
            assert Run(root / f"of-{error.errno}").evaluation is None
        assert len(tried) == times


def test_what_is_written_on_is_read_on(root: Path, opened: list[Path], monkeypatch: pytest.MonkeyPatch):
    """And a file that was made anew is read anew, though it may be longer."""
    run, lines = Run(root / "one"), []
    read = runs.records.line
    monkeypatch.setattr(runs.records, "line", lambda *given: lines.append(given) or read(*given))
    path = run.folder / "metrics.jsonl"
    with path.open("a") as file:
        for step in range(2, 20):
            file.write(json.dumps(LINE | {"step": step}) + "\n")
            file.flush()
            assert [line["step"] for line in run.metrics()] == [*range(1, step + 1)]
    assert len(lines) == 19
    path.write_text("".join(json.dumps(LINE | {"step": step, "loss": 1.5}) + "\n" for step in range(1, 30)))
    assert [line["loss"] for line in run.metrics()] == [1.5] * 29


def test_nobody_changes_what_others_read(root: Path):
    def spoilt(value: object) -> None:
        for each in list(value.values() if isinstance(value, dict) else value if isinstance(value, list) else []):
            spoilt(each)
        if isinstance(value, (dict, list)):
            value.clear()

    run = Run(root / "one")
    for ask in (lambda: run.card, lambda: run.evaluation, run.metrics, run.last, lambda: listing.list_runs(root)):
        before = json.dumps(ask(), default=str)
        spoilt(ask())
        assert json.dumps(ask(), default=str) == before
    with pytest.raises(dataclasses.FrozenInstanceError):
        listing.listing(root).entries[0].created = 1.0  # type: ignore[misc]


def test_a_look_is_shared_until_this_process_changes_something_or_a_moment_has_passed(
    root: Path, monkeypatch: pytest.MonkeyPatch
):
    clock = Clock()
    clock.time_ns = lambda: 0  # type: ignore[attr-defined]
    monkeypatch.setattr(listing, "time", clock)
    monkeypatch.setattr(listing, "SHARED_FOR", 0.25)
    first = listing.listing(root)
    shutil.copytree(root / "one", root / "four")  # by another process, as it were
    assert listing.listing(root) is first
    clock.now = 1.0  # a second later at the latest
    second = listing.listing(root)
    assert [entry.name for entry in second.entries] == ["four", "one", "three", "two"]
    clock.now = 2.0
    assert listing.listing(root) is second  # looked at anew, and nothing had changed
    library.delete(Run(root / "one"))
    assert [entry.name for entry in listing.listing(root).entries] == ["four", "three", "two"]


def test_a_training_whose_process_ends_without_a_word_is_seen_to_be_lost(root: Path, monkeypatch: pytest.MonkeyPatch):
    Run(root / "one").set_state("running", 3)
    held = iter([True, False, False, False])
    monkeypatch.setattr("transformer.training.lock.held", lambda folder: next(held))
    states = [listing.listing(root).entries[0].state.status for _ in range(2)]
    assert states == ["running", "lost"]


def test_many_look_at_once_while_a_run_comes_and_goes(root: Path):
    wrong: list[object] = []
    over = threading.Event()

    def looks() -> None:
        try:
            while not over.is_set():
                found = {entry.name: entry.state for entry in listing.listing(root).readable}
                assert {"two", "three"} <= found.keys() <= {"one", "two", "three"}
                assert all(isinstance(state, State) for state in found.values())
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=looks) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(30):
        (root / "one").rename(root.parent / "away")
        (root.parent / "away").rename(root / "one")
    over.set()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_what_is_kept_is_bounded():
    kept: versions.Memory[int, int] = versions.Memory(100)
    for number in range(1000):
        kept.put(number, number, number % 50)
        assert kept.weight <= 100
        assert kept.get(number) == number
    assert kept.get(0) is None
    kept.put(7, 7, 101)
    assert kept.get(7) is None
