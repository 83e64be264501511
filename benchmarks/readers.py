"""What bytes from a stranger cost: `python benchmarks/readers.py [--quick] [--save]`.

Each file that this program reads without having written it is made to cost as much as it can: blank lines, deep
nesting, long numbers, many keys, many empty arrays, zeros that pack a thousandfold, long lists of contents, settings of
large models. A process of its own reads it twice. The table says how many bytes were received, what processor time they
took, what memory at the most, and what the second reading took. --save writes READERS.md.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import shutil
import struct
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import torch
from kit.pages import give_up, load, machine, options, page, table

from dashboard.app_pages.attention.masks import kept_masks
from dashboard.app_pages.training.runs.comparison import Course
from dashboard.lectures import lecture
from transformer import checkpoints
from transformer.capturing import folders
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.experiments.populations.plan import Sweep
from transformer.experiments.populations.table import read_table
from transformer.foundation.foreign import DAMAGED, MOST_ARRAYS, MOST_WORDS
from transformer.masks.painted import LARGEST, Painted
from transformer.text import shelf
from transformer.text.corpus import Corpus, Excerpt
from transformer.training.exchange.archive import pack, unpack
from transformer.training.exchange.inspection import faults
from transformer.training.listing import list_runs, unreadable
from transformer.training.recording import record
from transformer.training.runs import Run
from transformer.training.stored import records

PAGE = "READERS.md"
SIZE, QUICK = 4 * 2**20, 2**14
"""Bytes of an input that may have any size."""
CONFIG = RunConfig(
    task=TaskConfig(length=3),
    model=ModelConfig(n_layers=1, n_heads=2, d_model=16, d_ff=0),
    training=TrainingConfig(max_steps=2, device="cpu"),
)
LINE = '{"step":%d,"loss":1,"learning_rate":1,"gradient_norm":1,"seconds":1%s}\n'
GPT2 = {"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": 8, "n_head": 1, "n_positions": 8}


@dataclass(frozen=True)
class Case:
    """One input of one reader."""

    reader: str
    name: str
    make: Callable[[Path, int], None]
    """Puts the files into a folder, which is a run's that has ended, of about so many bytes."""
    read: Callable[[Path], Any]


@dataclass(frozen=True)
class Cost:
    seconds: float
    """Of the processor, at the first reading …"""
    again: float
    """… and at the second."""
    memory: int
    """Bytes at the most beyond those before."""


# --- inputs


def file(name: str, content: Callable[[int], bytes]) -> Callable[[Path, int], None]:
    return lambda folder, size: (folder / name).write_bytes(content(size)) and None


def repeated(unit: bytes, before: bytes = b"", after: bytes = b"") -> Callable[[int], bytes]:
    return lambda size: before + unit * max(1, (size - len(before) - len(after)) // len(unit)) + after


def numbered(unit: str) -> Callable[[int], bytes]:
    """The unit with 1, 2, 3 … in it."""
    return lambda size: "".join(unit % number for number in range(1, size // len(unit % 10**5) + 1)).encode()


def keys(size: int) -> bytes:
    return json.dumps({f"{number:x}": 0 for number in range(size // 12)}).encode()


def lists(size: int) -> bytes:
    return b'{"x":[' + b"[]," * ((size - 16) // 3) + b"[]]}"


OBJECTS: dict[str, Callable[[int], bytes]] = {
    "blank lines": repeated(b"\n"),
    "nesting": repeated(b"["),
    "empty lists": lists,
    "keys": keys,
    "a long number": repeated(b"7", b'{"step":', b"}"),
    "long numbers": repeated(b"9" * 18 + b",", b'{"x":[', b"1]}"),
}
LINES: dict[str, Callable[[int], bytes]] = {
    "blank lines": repeated(b"\n"),
    "empty records": repeated(b"{}\n"),
    "lines of the least": numbered(LINE.replace("%s", "")),
    "lines of empty lists": lambda size: b"".join(
        (LINE % (step, ',"x":[' + "[]," * 80_000 + "[]]")).encode() for step in range(1, max(1, size // 240_000) + 1)
    ),
    "nested lines": repeated(b"[" * 200_000 + b"\n"),
    "one line": repeated(b" "),
}


def packed(made: Callable[[zipfile.ZipFile, int], None]) -> Callable[[int], bytes]:
    def content(size: int) -> bytes:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as packed:
            made(packed, size)
        return stream.getvalue()

    return content


def zeros(name: str) -> Callable[[int], bytes]:
    """An array of zeros, as many as the size lets unpack."""

    def made(packed: zipfile.ZipFile, size: int) -> None:
        with packed.open(f"{name}.npy", "w", force_zip64=True) as entry:
            np.lib.format.write_array_header_1_0(entry, {"descr": "|u1", "fortran_order": False, "shape": (40 * size,)})
            for _ in range(40 * size // QUICK):
                entry.write(bytes(QUICK))

    return packed(made)


def arrays(packed: zipfile.ZipFile, size: int) -> None:
    """As many empty arrays as are let in, or a few more."""
    one = io.BytesIO()
    np.save(one, np.zeros(0))
    for number in range(min(MOST_ARRAYS, size // 250)):
        packed.writestr(f"{number}.npy", one.getvalue())


def words(packed: zipfile.ZipFile, size: int) -> None:
    one = io.BytesIO()
    np.save(one, np.array(lists(min(size, MOST_WORDS)).decode()))
    packed.writestr("text.npy", one.getvalue())


def entries(packed: zipfile.ZipFile, size: int) -> None:
    for number in range(size // 110):
        packed.writestr(f"{number}", b"")


NUMBERS: dict[str, Callable[[int], bytes]] = {
    "zeros": zeros("text"),
    "empty arrays": packed(arrays),
    "words of empty lists": packed(words),
    "files": packed(entries),
}


def tokens(size: int) -> bytes:
    """A vocabulary of empty words."""
    stream = io.BytesIO()
    number = min(size, 2**20)
    many = np.array([number - 1] + [0] * (number - 1), dtype="<u4").view(np.uint8)
    counts = np.ones(number, dtype=np.int64)
    np.savez_compressed(
        stream, by=np.array("words"), tokens=many, counts=counts, titles=many, lengths=[1], held_out=[1]
    )
    return stream.getvalue()


def header(size: int, metadata: dict[str, str] | None = None) -> bytes:
    """Weights of as many tensors of nothing as their header may have."""
    told: dict[str, Any] = {"__metadata__": metadata or {"format": "attention-lab/1"}}
    told |= {f"{number:x}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for number in range(size // 62)}
    text = json.dumps(told, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text)) + text


def large_model(folder: Path, size: int) -> None:
    """The weights of a small model under the settings of the largest."""
    path = folder / "snapshots" / "step-000002.safetensors"
    weights, config = checkpoints.load(path)
    settings = config.to_dict()
    settings["model"] |= {"n_layers": 48, "d_model": 4096, "d_ff": 16384}
    metadata = {"format": checkpoints.FORMAT, "config": json.dumps(settings)}
    path.write_bytes(checkpoints.packed(dict(weights.state_dict()), metadata))


def foreign(**config: object) -> Callable[[Path, int], None]:
    """A model of Hugging Face, of two layers, under other settings."""

    def make(folder: Path, size: int) -> None:
        import transformers

        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=2, vocab_size=8, **GPT2))
        model.save_pretrained(folder)
        (folder / "config.json").write_text(json.dumps(GPT2 | {"n_layer": 2, "vocab_size": 8} | config))

    return make


def of_nothing(folder: Path, size: int) -> None:
    foreign()(folder, size)
    (folder / "model.safetensors").write_bytes(header(size))


def archive(**files: Callable[[int], bytes]) -> Callable[[Path, int], None]:
    """A packed run with other files in it."""

    def make(folder: Path, size: int) -> None:
        with zipfile.ZipFile(io.BytesIO(pack(Run(folder)))) as whole:
            inside = {name: whole.read(name) for name in whole.namelist()}
        inside |= {name.replace("_", "."): content(10 * size) for name, content in files.items()}
        with zipfile.ZipFile(folder / "run.zip", "w", zipfile.ZIP_DEFLATED) as made:
            for name, content in inside.items():
                made.writestr(name, content)
        for path in folder.rglob("*"):
            if path.is_file() and path.name != "run.zip":
                path.unlink()

    return make


def sweep(size: int) -> bytes:
    seeds = list(range(min(10_000, size // 5)))
    return json.dumps({"format": "attention-lab sweep/1", "seeds": seeds, "varied": {}, "fixed": {}}).encode()


def rows(size: int) -> bytes:
    head = "member,status,solved,step,seconds,loss,sequences,exact,correct,kinds,shares,reason\n"
    return head.encode() + numbered("%d,failed,no,0,0,,0,0,,,,\n")(size)


def expressions(size: int) -> bytes:
    head = b"---\ntitle: x\n---\n## Step\nview: heads?run=reverse\n\n"
    return head + repeated(b"{{1}} ")(min(size, 190_000))


def book(size: int) -> bytes:
    painted = str(Painted.of(np.ones((LARGEST, LARGEST), dtype=bool)))
    many = max(1, min(kept_masks.MOST, size // len(painted)))
    return json.dumps({"masks": {str(number): painted for number in range(many)}}).encode()


# --- readers


def look_at_runs(folder: Path) -> None:
    """What every page does, and then what the page of a run does."""
    list_runs(folder.parent), unreadable(folder.parent)
    for run in list_runs(folder.parent):
        _ = run.state, run.control, run.evaluation, run.example, run.film, run.metrics()
        faults(run)
        Course(run).update()


def cases() -> Iterator[Case]:
    for name, content in OBJECTS.items():
        for each, most in (("run.json", records.MOST_CARD), ("state.json", 2**16), ("evaluation.json", 2**20)):
            made = file(each, lambda size, content=content, most=most: content(min(size, most)))
            yield Case(each, name, made, look_at_runs)
    for name, content in LINES.items():
        yield Case("metrics.jsonl", name, file("metrics.jsonl", content), look_at_runs)
    for name, content in NUMBERS.items():
        for each in ("example.npz", "film.npz"):
            yield Case(each, name, file(each, content), look_at_runs)
        yield Case("text.npz", name, file("text.npz", content), lambda folder: Excerpt.load(folder / "text.npz"))
    yield Case("text.npz", "empty words", file("text.npz", tokens), lambda folder: Excerpt.load(folder / "text.npz"))
    yield Case("a text", "blanks", file("text", repeated(b"a \n")), lambda folder: cut(folder / "text"))
    yield Case("a text", "words", file("text", numbered("w%d ")), lambda folder: cut(folder / "text"))
    last = "snapshots/step-000002.safetensors"
    yield Case("weights", "tensors of nothing", file(last, header), look_at_runs)
    yield Case("weights", "a large model", large_model, lambda folder: checkpoints.load(folder / last))
    yield Case("a packed run", "blank lines", archive(metrics_jsonl=LINES["blank lines"]), unpacked)
    yield Case("a packed run", "lines of the least", archive(metrics_jsonl=LINES["lines of the least"]), unpacked)
    yield Case("a packed run", "zeros", archive(film_npz=lambda size: bytes(size)), unpacked)
    yield Case("a packed run", "files", file("run.zip", packed(entries)), unpacked)
    if folders.available():
        huge = {"layers": {"n_layer": 999}, "words": {"vocab_size": 10**7}, "places": {"n_positions": 10**7}}
        for name, config in {**huge, "heads": {"n_head": 10**6}}.items():
            yield Case("a folder of Hugging Face", name, foreign(**config), opened)
        yield Case("a folder of Hugging Face", "tensors of nothing", of_nothing, opened)
    yield Case("sweep.json", "seeds", file("sweep.json", sweep), Sweep.load)
    yield Case("results.csv", "rows", file("results.csv", rows), lambda folder: read_table(folder / "results.csv"))
    yield Case("a lecture", "expressions", file("a.md", expressions), lambda folder: lecture.load(folder / "a.md"))
    yield Case("masks.json", "painted masks", file("masks.json", book), kept_masks.kept)


def opened(folder: Path) -> None:
    folders.load(folders.look(folder))


def cut(path: Path) -> None:
    Corpus.of(shelf.decoded(path.read_bytes(), "text"), "words", 1)


def unpacked(folder: Path) -> None:
    """An upload, and the page that then lists it."""
    with contextlib.suppress(ValueError):
        look_at_runs(unpack(folder / "run.zip", folder / "runs").folder)


# --- measuring


def measure(case: Case, folder: Path, back: Connection) -> None:
    """In a process of its own."""
    gc.collect()
    gc.freeze()  # what was there before is not looked through again for what the reading leaves
    Path("/proc/self/clear_refs").write_text("5")
    before, seconds = _memory("VmRSS"), []
    for _ in range(2):
        began = time.process_time()
        with contextlib.suppress(OSError, *DAMAGED):
            case.read(folder)
        seconds.append(time.process_time() - began)
    back.send(Cost(seconds[0], seconds[1], max(0, _memory("VmHWM") - before)))


def _memory(what: str) -> int:
    return 1024 * int(Path("/proc/self/status").read_text().split(f"{what}:")[1].split()[0])


def cost(case: Case, good: Run, place: Path, size: int) -> tuple[int, Cost]:
    """Bytes received, and what they cost."""
    folder = Path(shutil.copytree(good.folder, place / "runs" / "run"))
    before = contents(folder)
    case.make(folder, size)
    received = sum(len(content) for name, content in contents(folder).items() if before.get(name) != content)
    here, there = get_context("fork").Pipe(duplex=False)
    process = get_context("fork").Process(target=measure, args=(case, folder, there))
    process.start()
    there.close()
    found = here.recv()
    process.join()
    shutil.rmtree(place / "runs")
    return received, found


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def main() -> None:
    arguments = options(__doc__, PAGE).parse_args()
    if not Path("/proc/self/clear_refs").exists():
        give_up("the most memory that a process had is read from /proc, which this system does not have")
    torch.set_num_threads(1)
    busy, size = load(), QUICK if arguments.quick else SIZE
    with tempfile.TemporaryDirectory() as place, page(PAGE, "What bytes from a stranger cost", save=arguments.save):
        good = Run.create(Path(place) / "good" / "run", CONFIG)
        for _ in record(good):
            pass
        print(f"{machine(torch.device('cpu'), busy)}; one thread.")
        table("file", "of", "bytes received", "ms", "µs a byte", "again, ms", "MB", "bytes of memory a byte")
        for case in cases():
            bytes_, found = cost(case, good, Path(place), size)
            ms, again = 1000 * found.seconds, 1000 * found.again
            each = (
                f"{1000 * ms / bytes_:.3f} | {again:,.0f} | {found.memory / 2**20:,.0f} | {found.memory / bytes_:,.1f}"
            )
            print(f"| {case.reader} | {case.name} | {bytes_:,} | {ms:,.0f} | {each} |", flush=True)


if __name__ == "__main__":
    main()
