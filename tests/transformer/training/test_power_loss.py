"""Whatever the instant at which the power goes, what was written whole reads as before or as after.

A disk keeps what was synced. Of the rest it may have any part: here all new names with none of the bytes behind them
that were not synced, and none of the new names. Each of the two is written out after every operation, and read.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from tests.kit.runs import tiny
from transformer import checkpoints
from transformer.foundation import atomic_files
from transformer.model import build
from transformer.training.exchange.inspection import faults
from transformer.training.runs import Run

Image = dict[str, bytes]


class Disk:
    """A folder as it would be found after a loss of power, again and again while it is written into."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.contents = {path.stat().st_ino: path.read_bytes() for path in self._files()}
        self.names = {str(path.relative_to(root)): path.stat().st_ino for path in self._files()}
        self.images: list[Image] = []

    def _files(self) -> Iterator[Path]:
        return (path for path in self.root.rglob("*") if path.is_file())

    def synced(self, descriptor: int) -> None:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            (folder,) = (each for each in (self.root, *self.root.rglob("*")) if each.stat().st_ino == found.st_ino)
            place = folder.relative_to(self.root)
            self.names = {name: ino for name, ino in self.names.items() if Path(name).parent != place}
            self.names |= {str(place / path.name): path.stat().st_ino for path in folder.iterdir() if path.is_file()}
        else:
            self.contents[found.st_ino] = Path(f"/proc/self/fd/{descriptor}").read_bytes()

    def lose_power(self) -> None:
        now = {str(path.relative_to(self.root)): path.stat().st_ino for path in self._files()}
        for names in (now, self.names):
            self.images.append({name: self.contents.get(ino, b"") for name, ino in names.items()})


@contextmanager
def watched(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    disk, sync, replace = Disk(root), os.fsync, os.replace

    def synced(descriptor: int) -> None:
        disk.lose_power()
        sync(descriptor)
        disk.synced(descriptor)
        disk.lose_power()

    def replaced(old: Path, new: Path) -> None:
        disk.lose_power()
        replace(old, new)
        disk.lose_power()

    with monkeypatch.context() as patch:
        patch.setattr(atomic_files.os, "fsync", synced)
        patch.setattr(atomic_files.os, "replace", replaced)
        yield disk
        disk.lose_power()


def read_again(images: list[Image], folder: Path) -> Iterator[Path]:
    for number, image in enumerate(images):
        for name, content in image.items():
            path = folder / str(number) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        yield folder / str(number)


def new_state(run: Run) -> None:
    run.set_state("finished", 7, "solved")


def new_card(run: Run) -> None:
    run.add_details(stepping="eager")


def cut(run: Run) -> None:
    run.cut_metrics(1)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="what a descriptor holds is read through /proc")
@pytest.mark.parametrize(
    ("name", "change"), [("state.json", new_state), ("run.json", new_card), ("metrics.jsonl", cut)]
)
def test_a_file_that_is_replaced_is_the_old_one_or_the_new_one(
    name: str, change: Callable[[Run], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    run = Run.create(tmp_path / "runs" / "a", tiny())
    line = {"loss": 1.0, "learning_rate": 0.1, "gradient_norm": 1.0, "seconds": 0.1}
    lines = (json.dumps({"step": step} | line) + "\n" for step in (1, 2))
    (run.folder / "metrics.jsonl").write_text("".join(lines))
    before = (run.folder / name).read_bytes()
    with watched(run.folder, monkeypatch) as disk:
        change(run)
    after = (run.folder / name).read_bytes()
    found = [image.get(name) for image in disk.images]
    assert before != after
    assert set(found) == {before, after}
    assert found[0] == before
    assert found[-1] == found[-2] == after, "when the call has returned, it is on the disk"


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="what a descriptor holds is read through /proc")
def test_a_new_snapshot_is_not_there_or_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    config = tiny()
    run = Run.create(tmp_path / "runs" / "a", config)
    model = build(config)
    path = run.folder / "snapshots" / "step-000003.safetensors"
    with watched(run.folder, monkeypatch) as disk:
        checkpoints.save(path, model, config)
    steps = []
    for folder in read_again(disk.images, tmp_path / "after"):
        again = Run(folder)
        assert faults(again) == []
        steps.append(list(again.snapshots()))
        if steps[-1]:
            stored = again.network(3).state_dict()
            assert all(torch.equal(value, stored[name]) for name, value in model.state_dict().items())
    assert [] in steps
    assert steps[-1] == steps[-2] == [3]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="what a descriptor holds is read through /proc")
def test_a_new_run_is_not_there_or_can_be_trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    root = tmp_path / "runs"
    root.mkdir()
    with watched(root, monkeypatch) as disk:
        Run.create(root / "a", tiny())
    for folder in read_again(disk.images, tmp_path / "after"):
        if (folder / "a" / "run.json").exists():
            assert Run(folder / "a").config == tiny()
            assert Run(folder / "a").state.status == "queued"
            assert faults(Run(folder / "a")) == []
    assert {"a/run.json", "a/state.json"} <= set(disk.images[-1])
