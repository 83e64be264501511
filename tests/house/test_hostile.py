"""One bad byte hurts nobody else: damaged runs among good ones, through the pages, the command line and packing."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import re
import shutil
import stat
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from dashboard.app_pages.training.runs.comparison import Course
from dashboard.parts.prose import plain
from dashboard.view.link import FIELDS, from_query
from dashboard.view.pages import PAGES
from tests.kit.checkout import ROOT
from tests.kit.hostile.mutation import HUGE, mistold, mutated
from tests.kit.hostile.telling import HOST, sent, told_of_here
from tests.kit.pages import open_page, shown
from tests.kit.runs import bounded, tiny
from transformer import checkpoints
from transformer.__main__ import main
from transformer.foundation import foreign, versions
from transformer.foundation.checks import UserError, reason
from transformer.foundation.regular_files import open_file
from transformer.text import shelf
from transformer.text.corpus import Excerpt
from transformer.training import library, recording
from transformer.training.exchange.archive import NAMES, pack, unpack
from transformer.training.exchange.inspection import faults
from transformer.training.library import LibraryError
from transformer.training.listing import list_runs, unreadable
from transformer.training.runs import Run, RunError
from transformer.training.stored import arrays, records, weights
from transformer.training.stored.records import line

Damage = Callable[[Path], Any]
LAST = "snapshots/step-000004.safetensors"


def damage(harm: Callable[..., Any]) -> Callable[..., Damage]:
    """Of a function that harms a folder: what is to be harmed is said first, and the folder later."""
    return lambda *what, **values: lambda folder: harm(folder, *what, **values)


@damage
def written(folder: Path, name: str, content: bytes) -> None:
    (folder / name).write_bytes(content)


@damage
def edited(folder: Path, name: str, **values: object) -> None:
    """Other values in a JSON file, or in the first line of one of lines."""
    path = folder / name
    whole = path.read_text() if path.exists() else "{}"
    first, *others = whole.splitlines() if path.suffix == ".jsonl" else [whole]
    path.write_text("".join(f"{line}\n" for line in [json.dumps(json.loads(first) | values), *others]))


@damage
def reconfigured(folder: Path, part: str, **values: object) -> None:
    config = json.loads((folder / "run.json").read_text())["config"]
    edited("run.json", config=config | {part: config[part] | values})(folder)


@damage
def halved(folder: Path, name: str) -> None:
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: len(content) // 2])


@damage
def bomb(folder: Path, name: str) -> None:
    """A file of arrays of 200 kB that would unpack to more than is let in."""
    with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as made, made.open("text.npy", "w") as entry:
        for _ in range(foreign.MOST_NUMBERS // 2**20 + 1):
            entry.write(bytes(2**20))


@damage
def without_end(folder: Path, name: str, numbers: int = 10**15) -> None:
    """An array whose header promises more numbers than are there, by default than any memory holds."""
    head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({numbers},), }}".encode()
    array = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head) + 1) + head + b"\n"
    with zipfile.ZipFile(folder / name, "w") as made:
        made.writestr("text.npy", array)


NO_FILES: dict[str, Callable[[Path], Any]] = {
    "a folder": Path.mkdir,
    "a named pipe": os.mkfifo,
    "a socket": lambda path: os.mknod(path, stat.S_IFSOCK | 0o600),
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a device that is full": lambda path: path.symlink_to("/dev/full"),
}
"""What may stand where a file should be, and how it is made."""


@damage
def other(folder: Path, name: str, kind: str) -> None:
    (folder / name).unlink(missing_ok=True)
    NO_FILES[kind](folder / name)


def of_another(folder: Path) -> None:
    """The last weights are those of another run."""
    config = tiny(seed=7)
    checkpoints.save(folder / LAST, checkpoints.build(config), config)


def stored_anew(path: Path, change: Callable[[torch.Tensor], torch.Tensor], **metadata: str) -> None:
    """A checkpoint with other weights, and with more said of it."""
    with safe_open(path, framework="pt") as file:
        said, weights = file.metadata(), {name: change(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
    save_file(weights, path, said | metadata)


def of_another_kind(folder: Path) -> None:
    """Its weights are stored in 64 bits."""
    stored_anew(folder / LAST, torch.Tensor.double)


def longer(folder: Path) -> None:
    """All that is said of the model says more positions than its weights have."""
    reconfigured("task", length=2000)(folder)
    config = json.dumps(json.loads((folder / "run.json").read_text())["config"])
    for path in (folder / "snapshots").iterdir():
        stored_anew(path, torch.Tensor.clone, config=config)


UNREADABLE: dict[str, tuple[Damage, str]] = {
    "a config of 400 digits": (reconfigured("model", n_layers=HUGE), "it has a number of 401 digits"),
    "a config of infinite width": (written("run.json", b'{"format": 1e400}'), "another version"),
    "a card that is a folder": (other("run.json", "a folder"), "it is a folder, not a file"),
    "a card that is a named pipe": (other("run.json", "a named pipe"), "it is a named pipe, not a file"),
    "a card of no text": (written("run.json", b'\xff{"format"}'), "it is no UTF-8 text"),
    "a nested card": (written("run.json", b"[" * 100_000), "it is nested too deeply"),
    "an endless card": (written("run.json", b" " * (foreign.MOST_WORDS + 1)), "it is larger than 256 kB"),
    "a name as a link": (reconfigured("task", task="[x](http://evil.test)"), "no task named"),
}
"""What keeps a run out of every list: the damage, and what is said of it."""

DAMAGED: dict[str, tuple[Damage, str]] = {
    "a made-up age": (edited("run.json", created="yesterday"), "a detail in its run.json cannot be used"),
    "a heartbeat of 400 digits": (edited("state.json", heartbeat=HUGE), "its state.json cannot be used"),
    "a step that is text": (edited("state.json", step="many"), "its state.json cannot be used"),
    "a state of no text": (written("state.json", b"\xff"), "its state.json cannot be used"),
    "a byte in the metrics": (written("metrics.jsonl", b"\xff\n"), "its metrics.jsonl cannot be used: line 1"),
    "a step of 400 digits": (edited("metrics.jsonl", step=HUGE), "line 1: it has a number of 401 digits"),
    "an empty line": (written("metrics.jsonl", b"{}\n"), "line 1: it has no step"),
    "a step that is null": (edited("metrics.jsonl", step=None), "line 1: None is no count"),
    "a line nested deeply": (written("metrics.jsonl", b"[" * 100_000 + b"\n"), "line 1: it is nested too deeply"),
    "an accuracy of a text": (edited("metrics.jsonl", accuracy="high"), "line 1: it is of another task"),
    "an evaluation of text": (edited("evaluation.json", second_half="high"), "its evaluation.json cannot be used"),
    "an evaluation beyond": (edited("evaluation.json", sequences=HUGE), "its evaluation.json cannot be used"),
    "a perplexity of no text": (edited("evaluation.json", perplexity="low"), "it is of another task"),
    "an evaluation without counts": (edited("evaluation.json", correct=None), "it counts nothing"),
    "an empty example": (written("example.npz", b""), "its example.npz cannot be used"),
    "half an example": (halved("example.npz"), "its example.npz cannot be used"),
    "an example too large": (bomb("example.npz"), "its example.npz cannot be used: it unpacks to too much"),
    "an example without end": (without_end("example.npz"), "its example.npz cannot be used"),
    "a film too large": (bomb("film.npz"), "its film.npz cannot be used: it unpacks to too much"),
    "half a film": (halved("film.npz"), "its film.npz cannot be used"),
    "a snapshot that is a folder": (other(LAST, "a folder"), f"its {LAST} cannot be used: it is a folder, not a file"),
    "metrics that are a named pipe": (other("metrics.jsonl", "a named pipe"), "it is a named pipe, not a file"),
    "another model's snapshot": (of_another, "its weights were trained with other settings"),
    "weights of 64 bits": (of_another_kind, ""),
    "a config longer than its weights": (longer, "it is of another task"),
    "a pace that is text": (edited("control.json", pace="fast"), "its control.json cannot be used"),
    "half a snapshot": (halved(LAST), "cannot be used: it is not a whole safetensors file"),
}
"""What costs a run a part of itself, and is said of it where it is looked at; nothing where its files agree."""
ALL = UNREADABLE | DAMAGED


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A small run that has ended, with everything that a run can have."""
    run = Run.create(tmp_path_factory.mktemp("made") / "good", tiny())
    list(recording.record(run))
    assert recording.develop(run)
    return run


@pytest.fixture
def copy(good: Run, tmp_path: Path) -> Run:
    """A copy of it, in a folder of its own."""
    return Run(Path(shutil.copytree(good.folder, tmp_path / "runs" / "run")))


@pytest.fixture(scope="module")
def root(good: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder with a run for each kind of damage, a good one, and one whose name is no text."""
    root = tmp_path_factory.mktemp("runs")
    for kind, (damage, _) in ALL.items():
        damage(Path(shutil.copytree(good.folder, root / name(kind))))
    shutil.copytree(good.folder, root / "good")
    shutil.copytree(good.folder, os.fsdecode(os.fsencode(root) + b"/bad-\xff"))
    return root


@pytest.fixture(autouse=True)
def _here(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Among these runs, on a machine whose name is known; a reader that waits for ever is interrupted, and fails."""
    monkeypatch.setattr("dashboard.models.menu.ROOT", root)
    monkeypatch.setattr("socket.gethostname", lambda: HOST)
    with bounded():
        yield


def name(kind: str) -> str:
    return f"bad-{list(ALL).index(kind)}"


def said(app: Any) -> str:
    """All warnings, errors and captions of a page, its sentences begun small."""
    found = [shown(each.value) for kind in ("warning", "error", "caption") for each in app.get(kind)]
    return re.sub(r"\b(Its|A detail|It|Line) ", lambda word: word[0].lower(), "\n".join(found))


def test_what_cannot_be_read_is_left_out_with_a_sentence_each_and_the_rest_is_listed(root: Path):
    listed = [run.name for run in list_runs(root)]
    assert sorted(listed) == sorted(["good", *(name(kind) for kind in DAMAGED)])
    sentences = unreadable(root)
    assert len(sentences) == len(UNREADABLE) + 1
    for kind, (_, why) in UNREADABLE.items():
        (sentence,) = (each for each in sentences if f"{name(kind)} " in f"{each} ")
        assert why in sentence
        assert len(sentence) < 250
        assert str(root) not in sentence
    assert "the name of the folder bad-? is no UTF-8 text: rename it" in sentences


@pytest.mark.parametrize("kind", DAMAGED)
def test_each_damage_is_named(kind: str, root: Path):
    found = " ".join(faults(Run(root / name(kind))))
    assert (DAMAGED[kind][1] in found) if DAMAGED[kind][1] else not found
    assert faults(Run(root / "good")) == []


def test_the_page_of_all_runs_stands_and_names_each(root: Path):
    listed = said(open_page("runs", run="good"))
    for kind, (_, why) in ALL.items():
        assert f"{name(kind)}" in listed or not why
        assert why in listed
    assert "[x](http://evil.test)" in listed


@pytest.mark.daily(2)
@pytest.mark.parametrize("kind", ["", *DAMAGED])
def test_the_first_page_of_a_damaged_run_says_so_and_that_of_a_good_one_beside_it_is_not_disturbed(kind: str):
    app = open_page("overview", run=name(kind) if kind else "good")
    assert DAMAGED[kind][1] in said(app) if kind else not (app.error or app.warning)


OTHERS = [page for page in PAGES if page != "overview"]
BY_TURNS = [(kind, page) for i, kind in enumerate(DAMAGED) for j, page in enumerate(OTHERS) if i == j % len(DAMAGED)]
"""Each page meets a kind of damage, and each kind a page."""


@pytest.mark.nightly
@pytest.mark.parametrize(("kind", "page"), BY_TURNS)
def test_every_page_of_a_damaged_run_stands_and_tells_nothing_of_the_machine(kind: str, page: str, root: Path):
    assert told_of_here(sent(open_page(page, run=name(kind))), root) == []


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("another model's snapshot", "its weights were trained with other settings"),
        ("weights of 64 bits", "are of float64 and not of float32 or float16"),
        ("a config longer than its weights", "do not fit the model"),
    ],
)
def test_weights_that_are_not_the_run_s_are_refused_and_not_cast(
    kind: str, why: str, root: Path, capsys: pytest.CaptureFixture
):
    assert main(["evaluate", str(root / name(kind))]) == 2
    out, error = capsys.readouterr()
    assert (out, error.count("\n")) == ("", 1)
    assert why in error


def test_the_command_line_lists_the_others(root: Path, capsys: pytest.CaptureFixture):
    assert main(["list", "--root", str(root)]) == 0
    out, error = capsys.readouterr()
    assert len(out.splitlines()) == len(DAMAGED) + 1
    assert len(error.splitlines()) == len(UNREADABLE) + 1
    assert all(line.startswith("left out: ") for line in error.splitlines())


@pytest.mark.parametrize("kind", ["half an example", "a film too large", "a byte in the metrics", "half a snapshot"])
def test_what_was_packed_damaged_is_refused_elsewhere(kind: str, root: Path, tmp_path: Path):
    with pytest.raises(LibraryError, match=DAMAGED[kind][1]):
        unpack(io.BytesIO(pack(Run(root / name(kind)))), tmp_path, "again")


def refusal(file: bytes, root: Path) -> str:
    """Why a packed run is not let in; empty where it is."""
    try:
        unpack(io.BytesIO(file), root, "again")
    except LibraryError as error:
        return str(error)
    return ""


def test_a_zip_whose_end_is_damaged_is_one_sentence(good: Run, tmp_path: Path):
    """Each byte of the record at its end, changed in one of three ways."""
    whole = pack(good)
    for place in range(1, 23):
        file = bytearray(whole)
        file[-place] ^= (1, 128, 255)[place % 3]
        assert len(refusal(bytes(file), tmp_path)) < 250, place


def test_numbers_in_a_file_are_bounded_where_they_are_read():
    assert foreign.record(f'{{"a": {2**63 - 1}, "b": -{2**63 - 1}}}') == {"a": 2**63 - 1, "b": 1 - 2**63}
    for digits in (str(2**63), str(-(2**63)), "1" + "0" * 5000):
        with pytest.raises(ValueError, match=f"a number of {len(digits.lstrip('-'))} digits"):
            foreign.record(f'{{"a": {digits}}}')


def test_little_of_what_is_foreign_is_repeated():
    assert foreign.shortened("x" * 81) == "x" * 79 + "…"
    assert foreign.shortened("x" * 80) == "x" * 80
    assert foreign.shortened("a\nb\x1b[0m\udcff") == "a?b?[0m?"
    assert foreign.quoted("x" * 1000) == repr("x" * 79 + "…")
    assert foreign.quoted(7) == "7"


def test_of_an_error_that_says_nothing_the_type_is_said():
    for kind in (ValueError, KeyError, OSError, MemoryError, AssertionError):
        for said in ((), ("",), ("\n x" * 1000,)):
            assert 0 < len(reason(kind(*said))) < 150


def test_weights_of_16_bits_are_what_we_store_ourselves(good: Run, tmp_path: Path):
    network = good.network()
    checkpoints.save(tmp_path / "half.safetensors", network, good.config, half=True)
    again, _ = checkpoints.load(tmp_path / "half.safetensors")
    assert all(value.dtype == torch.float32 for value in again.state_dict().values())
    for key, value in network.state_dict().items():
        np.testing.assert_allclose(again.state_dict()[key], value, rtol=1e-3, atol=1e-6)


# --- what is no file

FILES = (*NAMES, "control.json", "lock", LAST)


def everything(run: Run) -> list[str]:
    """Have every reader read a run; what is said of it."""
    root = run.folder.parent
    for each in list_runs(root):
        _ = each.state, each.control, each.evaluation, each.example, each.film, each.resumable, each.waiting
        _ = each.metrics(), each.snapshots(), Course(each).update()
        for read in (lambda: pack(run), lambda: library.rename(run, "run"), each.digest, each.network):
            with contextlib.suppress(UserError):
                read()
    with contextlib.suppress(UserError):
        checkpoints.load(run.folder / LAST)
    return [*unreadable(root), *faults(run)]


@pytest.mark.daily(10)
@pytest.mark.parametrize("kind", NO_FILES)
@pytest.mark.parametrize("file", FILES)
def test_what_is_no_file_is_named_and_nobody_waits_for_it(file: str, kind: str, copy: Run):
    other(file, kind)(copy.folder)
    said = " ".join(everything(copy))
    assert f"{file} " in said
    assert f"it is {kind.removesuffix(' that is full')}, not a file" in said


@pytest.mark.daily(6)
@pytest.mark.parametrize("kind", NO_FILES)
@pytest.mark.parametrize("file", ["metrics.jsonl", "lock", "control.json", "resume.safetensors"])
def test_a_training_waits_for_no_pipe(file: str, kind: str, tmp_path: Path):
    """It ends in a sentence, or takes the place of what is no file."""
    run = Run.create(tmp_path / "run", tiny())
    other(file, kind)(run.folder)
    try:
        list(recording.record(run))
    except (RunError, OSError) as error:
        assert file in str(error) or "folder" in kind  # noqa: PT017
    else:
        assert run.state.status == "finished"


@pytest.mark.parametrize("kind", NO_FILES)
def test_whoever_names_a_file_that_is_none_is_told(kind: str, tmp_path: Path):
    path = tmp_path / "file"
    NO_FILES[kind](path)
    word = kind.removesuffix(" that is full")
    for read in (lambda: unpack(path, tmp_path / "runs"), lambda: shelf.take(path), lambda: checkpoints.load(path)):
        with pytest.raises(UserError, match=f"cannot be read: it is {word}, not a file"):
            read()


def test_a_link_to_a_file_is_followed(good: Run, copy: Run, tmp_path: Path):
    """Large files may lie on another disk."""
    for file in ("metrics.jsonl", LAST):
        (copy.folder / file).rename(tmp_path / Path(file).name)
        (copy.folder / file).symlink_to(tmp_path / Path(file).name)
    assert everything(copy) == []
    assert copy.metrics() == good.metrics()


READS_OWN_FILES = {
    "dashboard": "frame/style app_pages/learn/check/examples",
    "dashboard/components": "registration documents/pages documents/bundle",
    "dashboard/server": "streamlit_private plotly_js roles private_names",
    "transformer": "capturing/folders experiments/populations/cluster text/download",
    "transformer/checking/isolation": "barriers limits warm",
    "transformer/foundation": "atomic_files foreign registry regular_files",
    "transformer/training": "events queue/worker",
}
"""Modules that open what this program has written or shipped itself, or what the system has; and those by which all
others open files."""
OPENING = re.compile(
    r"(?<![\w.])(?<!def )open\(|\.open\(\"[rwab]|os\.open\(|read_text\(|\.read_bytes\(|np\.load\(|safe_open\("
    r"|ZipFile\(stream"
)


def test_stored_files_are_opened_in_one_way_only():
    opens = {
        path.relative_to(ROOT).as_posix()
        for top in ("transformer", "dashboard")
        for path in (ROOT / top).rglob("*.py")
        if OPENING.search(path.read_text("utf-8"))
    }
    own = {f"{folder}/{name}.py" for folder, names in READS_OWN_FILES.items() for name in names.split()}
    assert opens == own


# --- what is read in vain

GARBAGE = {
    "run.json": records.card,
    "evaluation.json": lambda path: records.evaluation(path, tiny().build_task()),
    "example.npz": lambda path: arrays.example(path, tiny()),
    "film.npz": lambda path: arrays.film(path, tiny()),
    "text.npz": Excerpt.load,
    LAST: lambda path: weights.shapes(path, tiny()),
    "resume.safetensors": lambda path: weights.header(path, "attention-lab-training/1"),
}


@pytest.mark.parametrize("file", GARBAGE)
def test_what_cannot_be_used_is_read_once(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """And again when it is another file, to the same words."""
    path, read = tmp_path / Path(file).name, GARBAGE[file]
    opened = []
    monkeypatch.setattr(versions, "SETTLED_AFTER", 0)  # else it is read again as long as its dates may hide a change
    monkeypatch.setattr(foreign, "open_file", lambda *given: opened.append(given) or open_file(*given))

    def refusal(content: bytes) -> str:
        path.write_bytes(content)
        with pytest.raises(UserError) as error:
            read(path)
        return str(error.value)

    first = refusal(b"[" * 1000)
    looked = len(opened)
    assert looked > 0
    with pytest.raises(UserError, match=f"^{re.escape(first)}$"):
        read(path)
    assert len(opened) == looked
    refusal(b"other")
    assert len(opened) > looked


BAD_LINES = {
    "blank": b"\n",
    "empty": b"{}\n",
    "nested": b"[" * 1000 + b"\n",
    "long": b" " * (records.MOST_LINE + 1) + b"\n",
}


@pytest.mark.parametrize("kind", BAD_LINES)
def test_reading_stops_after_a_few_lines_that_cannot_be_used(
    kind: str, good: Run, copy: Run, monkeypatch: pytest.MonkeyPatch
):
    """However many follow; what stands before them is kept."""
    with (copy.folder / "metrics.jsonl").open("ab") as file:
        file.write(3 * records.MOST_FAULTS * BAD_LINES[kind])
        file.write((good.folder / "metrics.jsonl").read_bytes())
    before, read = good.metrics(), []
    monkeypatch.setattr(records, "line", lambda *given: read.append(given) or line(*given))
    assert copy.metrics() == before
    assert len(read) <= len(before) + records.MOST_FAULTS
    (fault,) = faults(copy)
    assert f"its metrics.jsonl cannot be used: line {len(before) + 1}: " in fault
    course = Course(copy)
    assert course.update().steps == course.update().steps == Course(good).update().steps


def test_lines_that_come_one_by_one_are_read_as_those_of_a_whole_file(good: Run, tmp_path: Path):
    written, task = (good.folder / "metrics.jsonl").read_bytes(), good.config.build_task()
    path = tmp_path / "metrics.jsonl"
    ends = [0, *(i + 1 for i, byte in enumerate(written) if byte == ord("\n"))]
    for end in ends:
        for half in (end - 7, end):
            path.write_bytes(written[: max(0, half)])
            found = records.metrics(path, task)
            assert [*found.lines] == good.metrics()[: len(found.lines)]
            assert len(found.lines) == written[: max(0, half)].count(b"\n")
            assert found.faults == ()


# --- memory

READING = """
import sys
from pathlib import Path
from transformer import checkpoints
from transformer.training.exchange.archive import unpack
from transformer.training.exchange.inspection import faults
from transformer.training.library import LibraryError
from transformer.training.listing import list_runs, unreadable
from transformer.training.runs import Run
def peak():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
before = peak()
for folder in sorted(Path(sys.argv[1]).iterdir()):
    list_runs(folder), unreadable(folder)
    for run in list_runs(folder):
        faults(run), run.state, run.control, run.metrics(), run.evaluation, run.example, run.film
        try:
            run.network()
        except (ValueError, checkpoints.CheckpointError):
            pass
    for file in folder.glob("*.zip"):
        try:
            unpack(file, folder / "in", "again")
        except LibraryError:
            pass
    print(folder.name, (peak() - before) // 1024)
"""
MOST_MEMORY = 1024
"""Megabytes beyond what its libraries take. An array file may unpack to 256, is read into as many, and the arrays in it
are checked and turned by copies; a line of metrics may have 4, and is lists of lists in forty times that."""


def almost_too_large(folder: Path) -> None:
    """An array that is let in by its size alone."""
    numbers = np.zeros(foreign.MOST_NUMBERS - 4096, dtype=np.uint8)
    np.savez_compressed(folder / "example.npz", text=numbers)


def of_lists(folder: Path) -> None:
    """Long lines of metrics that hold what takes most memory of each byte, and belongs to no line."""
    filler = ",".join(["[]"] * (foreign.MOST_WORDS // 3 - 100))
    line = '{"step": %d, "loss": 1, "learning_rate": 1, "gradient_norm": 1, "seconds": 1, "x": [%s]}\n'
    with (folder / "metrics.jsonl").open("w") as file:
        for step in range(1, 7):
            file.write(line % (step, filler))


GREEDY: dict[str, Damage] = {
    "bomb of an example": bomb("example.npz"),
    "bomb of a film": bomb("film.npz"),
    "example almost too large": almost_too_large,
    "example without end": without_end("example.npz"),
    "example of 10⁹": without_end("example.npz", 10**9),
    "lists in the card": edited("run.json", x=[[]] * (foreign.MOST_WORDS // 5)),
    "nested state": written("state.json", b"[" * (foreign.MOST_WORDS - 1)),
    "lists in the metrics": of_lists,
    "width": reconfigured("model", d_model=4096, n_layers=48),
}


@pytest.mark.nightly
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")
def test_the_memory_that_reading_takes_is_bounded(good: Run, tmp_path: Path):
    """The greediest files that we know, one after the other, in a process that reads nothing else."""
    for name, damage in GREEDY.items():
        damage(Path(shutil.copytree(good.folder, tmp_path / "runs" / name / "run")))
    with zipfile.ZipFile(tmp_path / "runs" / "bomb of an example" / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as made:
        for each in ("run.json", "state.json", LAST):
            made.write(good.folder / each, each)
        made.writestr("metrics.jsonl", b"0" * (90 * 2**20))
    command = [sys.executable, "-c", READING, str(tmp_path / "runs")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert ended.returncode == 0, ended.stderr
    taken = dict(line.rsplit(" ", 1) for line in ended.stdout.splitlines())
    assert len(taken) == len(GREEDY)
    assert max(map(int, taken.values())) < MOST_MEMORY, taken


# --- fuzzing, with fixed seeds: few by day, many by night


def harmed(good: Run, folder: Path, dice: random.Random) -> Run:
    """A copy of a run with one of its files changed."""
    shutil.copytree(good.folder, folder)
    path = dice.choice(sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size))
    told = path.suffix in (".json", ".jsonl") and dice.random() < 0.5
    path.write_bytes((mistold if told else mutated)(path.read_bytes(), dice))
    return Run(folder)


@pytest.mark.daily(2)
@pytest.mark.parametrize("seed", range(20))
def test_a_mutated_checkpoint_is_loaded_or_refused_in_a_sentence(seed: int, good: Run, tmp_path: Path):
    dice, whole, path = random.Random(seed), good.snapshot().read_bytes(), tmp_path / "mutated.safetensors"
    for _ in range(100):
        path.write_bytes(mutated(whole, dice))
        try:
            checkpoints.load(path)
        except checkpoints.CheckpointError as error:
            assert len(str(error)) < 500  # noqa: PT017
            assert "\n" not in str(error)  # noqa: PT017


@pytest.mark.daily(1)
@pytest.mark.parametrize("seed", range(12))
def test_of_a_mutated_folder_everything_is_read_or_left_out(seed: int, good: Run, tmp_path: Path):
    dice = random.Random(seed)
    for number in range(50):
        run = harmed(good, tmp_path / str(number) / "run", dice)
        runs, left_out, wrong = list_runs(run.folder.parent), unreadable(run.folder.parent), faults(run)
        assert len(runs) + len(left_out) == ((run.folder / "run.json").exists())
        assert all(len(each) < 400 and str(tmp_path) not in each for each in (*left_out, *wrong))
        for each in runs:
            _ = each.state, each.control, each.evaluation, each.example, each.film, each.created, each.resumable
            assert all(line["step"] > 0 for line in each.metrics())
        shutil.rmtree(run.folder.parent)


@pytest.mark.daily(2)
@pytest.mark.parametrize("seed", range(4))
def test_a_mutated_archive_is_let_in_whole_or_refused_and_leaves_nothing(seed: int, good: Run, tmp_path: Path):
    dice, whole = random.Random(seed), pack(good)
    for number in range(100):
        root = tmp_path / str(number)
        reason = refusal(mutated(whole, dice), root)
        found = sorted(path.name for path in root.iterdir() if path.name != ".trash") if root.exists() else []
        assert found == ([] if reason else ["again"])
        assert len(reason) < 400
        assert str(tmp_path) not in reason
        shutil.rmtree(root, ignore_errors=True)


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # a changed weight may be any number, and its products none
def test_a_mutated_folder_through_the_pages(good: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Each on another page; the good one beside it is never left out."""
    dice, root = random.Random(1000), tmp_path / "runs"
    monkeypatch.setattr("dashboard.models.menu.ROOT", root)
    shutil.copytree(good.folder, root / "good")
    for page in PAGES:
        run = harmed(good, root / page, dice)
        open_page(page, run=run.name)
        assert "good" in [each.name for each in list_runs(root)]
        shutil.rmtree(run.folder)


TEXTS = (
    *("[x](http://evil.test)", "<script>", "' OR 1", "\x00", "é" * 50, "9" * 400),
    *("1e400", "-1", "nan", "../..", "%00", ""),
)


@pytest.mark.daily(2)
@pytest.mark.parametrize("seed", range(5))
def test_a_hostile_link_is_read_and_what_cannot_be_used_is_named(seed: int):
    dice = random.Random(seed)
    for _ in range(100):
        names = dice.sample([*FIELDS, "evil", "x" * 100], dice.randint(1, 6))
        view, notices = from_query({name: dice.choice(TEXTS) for name in names})
        assert from_query(view.to_query()) == (view, [])
        assert all(len(each) < 250 for each in notices)
        drawn = [plain(each) for each in notices]
        assert not any("http://" in each or re.search(r"(?<!\\)[<\[]", each) for each in drawn)


USELESS = {"input": "x y z", "mask": "painted:9", "step": "7", "compare": "nobody", "task": "text"}


@pytest.mark.parametrize(
    "page", [each if each == "overview" else pytest.param(each, marks=pytest.mark.nightly) for each in PAGES]
)
def test_a_hostile_link_opens_its_page_which_tells_nothing_of_the_machine(page: str, root: Path):
    dice = random.Random(page)
    names = dice.sample([name for name in FIELDS if name not in ("run", "lecture")], 4)
    drawn = {name: text for name in names if (text := dice.choice(TEXTS))}
    for query in ({"run": "good", **drawn}, {"run": name("a nested card"), **USELESS}):
        text = sent(open_page(page, **query))
        assert len(text) > 1000
        assert told_of_here(text, root) == []
