"""Whole runs: renamed, deleted and brought back, and what changed from one to another."""

from __future__ import annotations

import json
import shutil
import socket
import time
from pathlib import Path

import pytest

from tests.kit.runs import digests, names
from tests.kit.waiting import PATIENCE
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.training import library, lock
from transformer.training.exchange.archive import pack
from transformer.training.library import LibraryError, changes, delete, empty_trash, rename, restore, trash
from transformer.training.listing import list_runs
from transformer.training.runs import Run

# --- names


def test_a_run_is_renamed_with_all_it_has(run: Run, tmp_path: Path):
    before = digests(run)
    renamed = rename(run, "Größer ② [a](b) $x$")
    assert renamed.folder == tmp_path / "Größer ② [a](b) $x$"
    assert digests(renamed) == before
    assert names(tmp_path) == [renamed.name]
    assert not (tmp_path / "small").exists()


NO_NAMES = {
    "a name has at least one letter or digit": ("", "   "),
    "a name cannot hold “/”": ("a/b", "../up", "/etc"),
    r"a name cannot hold “\\”": ("a\\b",),
    "a name cannot hold “:”": ("c:d",),
    "a name cannot hold “,”": ("a,b",),
    'a name cannot hold “"”': ('say "x"',),
    "a name cannot hold “<”": ("<b>",),
    r"a name cannot hold “\?”": ("what?",),
    "neither begins nor ends with a dot": (".", "..", ".hidden", "end."),
    "neither begins nor ends with a space": (" a", "a "),
    "no line breaks and no invisible characters": ("a\nb", "a\x00b", "a\u202eb", "\ud800"),
    r"the name \S+ is reserved": ("compiled", "Compiled", "CON", "nul.txt", "lpt1"),
    "at most 80 letters, and this one has 81": ("a" * 81,),
    "at most 200 bytes on the disk, and this one takes 204": ("😀" * 51,),
    "the name other is taken": ("other",),
}


@pytest.mark.parametrize("reason", NO_NAMES)
def test_what_is_no_name_is_refused_in_a_sentence(run: Run, tmp_path: Path, reason: str):
    (tmp_path / "other").mkdir()
    for name in NO_NAMES[reason]:
        with pytest.raises(LibraryError, match=reason) as caught:
            rename(run, name)
        assert "\n" not in str(caught.value)
    assert names(tmp_path) == ["small"]
    assert (tmp_path / "other").is_dir()


@pytest.mark.parametrize("name", ["a" * 80, "small"])
def test_the_longest_name_and_its_own_will_do(run: Run, name: str):
    assert rename(run, name).folder.is_dir()


def test_a_failed_rename_leaves_the_others_lock_alone(run: Run, tmp_path: Path):
    other = Path(shutil.copytree(run.folder, tmp_path / "other"))
    (other / "lock").touch()
    (run.folder / "lock").unlink(missing_ok=True)
    with pytest.raises(LibraryError, match="taken"):
        rename(run, "other")
    assert (other / "lock").exists()
    assert not (run.folder / "lock").exists()


def test_what_is_gone_cannot_be_renamed_or_deleted(run: Run):
    shutil.rmtree(run.folder)
    for action in (lambda: rename(run, "new"), lambda: delete(run)):
        with pytest.raises(LibraryError, match="there is no run small any more"):
            action()


@pytest.mark.parametrize("status", ["queued", "running", "paused", "measuring"])
def test_a_live_run_stays_where_it_is(run: Run, tmp_path: Path, status: str):
    run.set_state(status, 2)
    with lock.hold(run.folder):
        for action in (lambda: rename(run, "new"), lambda: delete(run)):
            with pytest.raises(LibraryError, match=f"small is {status}: stop it first"):
                action()
        if status != "paused":  # what is paused has written everything down
            with pytest.raises(LibraryError, match=f"small is {status}: stop it first"):
                pack(run)
    assert names(tmp_path) == ["small"]
    assert trash(tmp_path) == []


def test_a_run_whose_film_is_being_made_stays_where_it_is(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lock, "PATIENCE", 0.05)
    with lock.hold(run.folder), pytest.raises(LibraryError, match="a process is still at work on small"):
        delete(run)
    assert names(tmp_path) == ["small"]


@pytest.mark.parametrize("status", ["paused", "running"])
def test_what_nobody_works_on_any_more_can_be_moved(run: Run, status: str):
    """Paused on disk, or lost: its process is gone."""
    run.set_state(status, 2)
    assert rename(run, "new").name == "new"


def test_no_rename_ever_covers_another_run(run: Run, tmp_path: Path):
    """Somebody makes a run of that name between the look and the rename."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "run.json").write_text("{}")
    with pytest.raises(FileExistsError):
        library._claim(run.folder, tmp_path / "other")
    assert (tmp_path / "other" / "run.json").read_text() == "{}"
    assert names(tmp_path) == ["small"]


def test_a_disk_that_refuses_is_a_sentence(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(library, "_claim", refuse)
        with pytest.raises(LibraryError, match="small cannot be moved: No space left on device"):
            rename(run, "new")
    assert names(tmp_path) == ["small"]
    trashed = delete(run)
    monkeypatch.setattr(library, "_claim", refuse)
    with pytest.raises(LibraryError, match="small cannot be brought back: No space left on device"):
        restore(trashed)
    assert trash(tmp_path) == [trashed]


# --- the trash


def test_deleting_and_restoring_changes_nothing(run: Run, tmp_path: Path):
    def contents() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in run.folder.rglob("*") if path.is_file()}

    (run.folder / "lock").unlink(missing_ok=True)
    before, trashed = contents(), delete(run)
    assert (trashed.name, trashed.root) == ("small", tmp_path)
    assert abs(trashed.deleted - time.time()) < PATIENCE
    assert list_runs(tmp_path) == []
    assert trash(tmp_path) == [trashed]
    assert restore(trashed) == run
    assert contents() == before
    assert trash(tmp_path) == []
    assert list((tmp_path / ".trash").iterdir()) == []


def test_a_name_that_was_taken_meanwhile_gets_a_number(run: Run, trained: Run, tmp_path: Path):
    for _ in range(2):
        delete(run)
        shutil.copytree(trained.folder, run.folder)
    assert [restore(trashed).name for trashed in trash(tmp_path)] == ["small-2", "small-3"]
    assert names(tmp_path) == ["small", "small-2", "small-3"]


def test_what_is_gone_for_good_cannot_be_restored(run: Run):
    trashed = delete(run)
    shutil.rmtree(trashed.folder)
    with pytest.raises(LibraryError, match="small is gone for good"):
        restore(trashed)


def test_the_trash_keeps_the_newest_for_a_week(run: Run, tmp_path: Path):
    now = time.time_ns()
    for days in (0.1, 1, 6.9, 7.1, 30):
        folder = tmp_path / ".trash" / str(now - int(days * 86_400e9)) / f"days-{days}"
        shutil.copytree(run.folder, folder)
    (tmp_path / ".trash" / "something-else").mkdir()
    empty_trash(tmp_path)
    assert [trashed.name for trashed in trash(tmp_path)] == ["days-0.1", "days-1", "days-6.9"]
    empty_trash(tmp_path, keep=2)
    assert [trashed.name for trashed in trash(tmp_path)] == ["days-0.1", "days-1"]
    delete(run)
    assert [trashed.name for trashed in trash(tmp_path)] == ["small", "days-0.1", "days-1"]
    assert (tmp_path / ".trash" / "something-else").is_dir()


# --- what changed


@pytest.mark.parametrize(
    ("part", "values", "said"),
    [
        ("model", {"n_heads": 1}, ["heads 4 → 1"]),
        ("model", {"positions": "none"}, ["positions learned → none"]),
        ("model", {"positions": "sinusoidal"}, ["positions learned → sinusoidal"]),
        ("model", {"d_model": 32, "d_ff": 128}, ["d_model 64 → 32"]),
        ("model", {"d_ff": 0}, ["d_ff 256 → 0"]),
        ("model", {"mask": "sliding-window:3", "scale_embeddings": False},
         ["mask causal → sliding-window:3", "scale embeddings yes → no"]),
        ("training", {"seed": 1}, ["seed 0 → 1"]),
        ("training", {"learning_rate": 1e-3, "batch_size": 64}, ["batch 32 → 64", "learning rate 0.005 → 0.001"]),
        ("training", {"decay_after": 10}, ["decay after 0 → 10"]),
        ("task", {"length": 12, "min_length": 3}, ["length 8 → 12", "shortest length none → 3"]),
        ("task", {"task": "reverse-aligned"},
         ["task reverse → reverse-aligned", "architecture decoder → encoder", "mask causal → full"]),
    ],
)  # fmt: skip
def test_what_a_run_changed_is_said_in_words(part: str, values: dict[str, object], said: list[str]):
    kinds = {"task": TaskConfig, "model": ModelConfig, "training": TrainingConfig}
    before, fresh = RunConfig(), RunConfig(**{part: kinds[part](**values)})
    assert changes(fresh, before) == said
    assert len(changes(before, fresh)) == len(said)
    assert changes(fresh, fresh) == []


def test_a_run_elsewhere_is_not_moved_from_here(run: Run):
    state = {"status": "running", "step": 2, "heartbeat": time.time(), "host": f"not-{socket.gethostname()}"}
    (run.folder / "state.json").write_text(json.dumps(state))
    with pytest.raises(LibraryError, match="small is running: stop it first"):
        delete(run)
