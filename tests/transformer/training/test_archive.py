"""Runs packed into one file and unpacked again, and what comes from strangers."""

from __future__ import annotations

import io
import json
import os
import shutil
import stat
import struct
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save

from tests.kit.runs import digests, names, tiny
from transformer import checkpoints
from transformer.training.exchange import archive
from transformer.training.exchange.archive import name_of, pack, unpack
from transformer.training.library import LibraryError
from transformer.training.listing import list_runs
from transformer.training.recording import record
from transformer.training.runs import Run

ROOT = Path(__file__).resolve().parents[3]
CHECKPOINTS = ROOT / "checkpoints"
REVERSERS = ("reverse", "reverse-sinusoidal", "reverse-aligned", "reverse-aligned-causal", "reverse-translate")


@pytest.mark.daily(4)
@pytest.mark.parametrize("name", ["small", *REVERSERS, "shakespeare"])
def test_what_is_packed_is_what_is_unpacked(name: str, trained: Run, tmp_path: Path):
    run = trained if name == "small" else Run(CHECKPOINTS / name)
    again = unpack(io.BytesIO(pack(run)), tmp_path, name)
    assert again.folder == tmp_path / name
    assert digests(again) == digests(run)
    assert set(digests(run)) >= {"run.json", "state.json", "metrics.jsonl", "evaluation.json", "film.npz"}
    assert again.state == run.state
    assert names(tmp_path) == [name]
    assert list((tmp_path / ".trash").iterdir()) == []


def test_the_same_run_makes_the_same_bytes_and_nothing_else_travels(run: Run):
    before = pack(run)
    for name in ("control.json", "lock", "notes.txt", "snapshots/old.pt"):
        (run.folder / name).write_text("{}")
    for path in run.folder.rglob("*"):
        os.utime(path, (0, 0))
    assert pack(run) == before
    with zipfile.ZipFile(io.BytesIO(before)) as file:
        assert file.testzip() is None
        assert sorted(file.namelist()) == sorted(digests(run))


def test_the_name_of_the_machine_does_not_travel(run: Run):
    run.set_state("paused", 3)
    stored = json.loads((run.folder / "state.json").read_text())
    assert stored["host"]
    with zipfile.ZipFile(io.BytesIO(pack(run))) as packed:
        assert json.loads(packed.read("state.json")) == stored | {"host": ""}


def test_a_run_that_was_cut_off_goes_on_elsewhere_to_the_same_numbers(tmp_path: Path):
    whole, cut = (Run.create(tmp_path / name, tiny(max_steps=6)) for name in ("whole", "cut"))
    losses, steps = [step.loss for step in record(whole)], record(cut)
    for _ in range(3):
        next(steps)
    steps.close()
    moved = unpack(io.BytesIO(pack(cut)), tmp_path / "elsewhere", "cut")
    assert moved.resumable
    assert moved.state.status == "stopped"
    assert losses[:3] + [step.loss for step in record(moved)] == losses


def test_what_was_live_when_it_was_packed_has_stopped(run: Run, tmp_path: Path):
    stored = json.loads((run.folder / "state.json").read_text())
    for status in ("queued", "running", "measuring", "paused"):
        (run.folder / "state.json").write_text(json.dumps(stored | {"status": status, "heartbeat": 0.0}))
        state = unpack(io.BytesIO(pack(run)), tmp_path, status).state
        assert (state.status, state.reason, state.step) == ("stopped", f"it was {status} when it was packed", 4)


def test_a_taken_name_gets_a_number_and_no_name_says_what_is_in_it(run: Run, tmp_path: Path):
    file = io.BytesIO(pack(run))
    made = [unpack(file, tmp_path, name).name for name in ("small", "small", None, "../../evil", "a\nb", "compiled")]
    assert made == ["small-2", "small-3", *(f"reverse-3-1x2-learned-{i}" for i in (1, 2, 3, 4))]


def test_a_path_will_do_as_well_and_its_name_is_the_runs(trained: Run, tmp_path: Path):
    path = tmp_path / "there.attention-run.zip"
    path.write_bytes(pack(trained))
    assert unpack(path, tmp_path / "new", name_of(path.name)).name == "there"
    for file in ("there.attention-run.zip", "there.attention-run (3).zip", "there (1).zip", "there.zip"):
        assert name_of(file) == "there", file


def test_the_server_takes_as_much_as_a_packed_run_may_have():
    server = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())["server"]
    assert server["maxUploadSize"] * 2**20 == archive.MOST_BYTES


def test_what_is_too_large_or_cannot_be_read_is_not_packed(trained: Run, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(archive, "MOST_BYTES", 10_000)
        with pytest.raises(LibraryError, match=r"small is too large for one file \(\d+ kB\): copy its folder"):
            pack(trained)
    monkeypatch.setattr(archive, "read_bytes", refuse)
    with pytest.raises(LibraryError, match="small cannot be packed: Input/output error"):
        pack(trained)


def test_what_is_no_run_is_not_packed(run: Run):
    (run.folder / "run.json").write_text("{}")
    with pytest.raises(LibraryError, match="another version"):
        pack(run)
    (run.folder / "run.json").unlink()
    with pytest.raises(LibraryError, match=r"is not a run: it has no run\.json"):
        pack(run)


Files = dict[str, bytes]
Change = Callable[[Files], object]


def zipped(contents: Files, compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as made:
        for name, content in contents.items():
            made.writestr(name, content)
    return file.getvalue()


@pytest.fixture
def files(trained: Run) -> Files:
    """What is in a run, by name."""
    return {name: (trained.folder / name).read_bytes() for name in digests(trained)}


@pytest.fixture
def refused(tmp_path: Path) -> Callable[[bytes, str], None]:
    """A file is refused for a reason, in one sentence without a path of this machine, and leaves nothing."""

    def refused(file: bytes, reason: str) -> None:
        root = tmp_path / "new"
        root.mkdir(exist_ok=True)
        with pytest.raises(LibraryError, match=reason) as caught:
            unpack(io.BytesIO(file), root, "evil")
        sentence = str(caught.value)
        assert "\n" not in sentence
        assert len(sentence) < 250
        assert str(root) not in sentence
        assert [path for path in root.rglob("*") if path.name != ".trash"] == []
        assert list(tmp_path.glob("evil*")) == []

    return refused


def test_an_honest_zip_of_the_folder_is_welcome(files: Files, trained: Run, tmp_path: Path):
    file = zipped({"snapshots/": b"", **files})
    assert digests(unpack(io.BytesIO(file), tmp_path / "new", "honest")) == digests(trained)


@pytest.mark.parametrize("file", [b"", b"x", b"PK\x03\x04", b"not a zip" * 100, b"\x80\x04\x95" + bytes(100)])
def test_what_is_no_zip_is_refused(file: bytes, refused):
    refused(file, "this is not a packed run: it is no zip file")


def test_half_a_file_and_one_with_a_wrong_byte_are_refused(trained: Run, refused):
    whole = pack(trained)
    middle = len(whole) // 2
    refused(whole[:middle], "no zip file, or not a whole one")
    refused(whole[:middle] + whole[-22:], "the file is damaged")
    refused(whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :], "the file is damaged: Bad CRC")


OUTSIDE = ("../evil", "snapshots/../../evil", "/tmp/evil", "..\\evil", "\\evil", "C:\\evil", "C:/evil")
NO_PART = ("evil.py", "lock", "control.json", "small/run.json", "Run.json", "run.json/", "run.json ")
NO_PART += ("snapshots/evil.pt", "snapshots/step-٠٠٠٠٠١.safetensors", "snapshots/step-000001.safetensors.pkl")
NO_PART += ("snapshots/step-000001.safetensors\n", "deep/er/step-000001.safetensors")


@pytest.mark.parametrize("name", [*OUTSIDE, *NO_PART])
def test_files_that_belong_elsewhere_are_refused_by_name(name: str, files: Files, refused):
    why = "which would be written outside the run's folder" if name in OUTSIDE else "which is no part of a run"
    refused(zipped(files | {name: b"evil"}), f"the file holds “[^”]+”, {why}")


def test_a_name_cut_by_a_null_byte_is_refused(files: Files, refused):
    file = zipped(files | {"film.npzXevil": b"x"}).replace(b"film.npzXevil", b"film.npz\x00evil")
    refused(file, "which is no part of a run")


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
def test_links_and_devices_are_refused(kind: int, files: Files, refused):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        for name, content in files.items():
            info = zipfile.ZipInfo(name)
            info.create_system = 3
            info.external_attr = ((kind if name == "film.npz" else stat.S_IFREG) | 0o777) << 16
            made.writestr(info, b"/etc/passwd" if name == "film.npz" else content)
    refused(file.getvalue(), "“film.npz”, which is a link and not a file")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_file_that_is_listed_twice_is_refused(files: Files, refused):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        for name, content in [*files.items(), ("run.json", b"{}")]:
            made.writestr(name, content)
    refused(file.getvalue(), "“run.json” twice")


def test_too_many_files_are_refused(files: Files, refused):
    many = {f"snapshots/step-{i:06d}.safetensors": b"" for i in range(1001)}
    refused(zipped(files | many, zipfile.ZIP_STORED), "too many files: a run has at most 1000")
    end = zipped(files)[-22:]
    refused(bytes(100) + end[:12] + struct.pack("<I", 10**8) + end[16:], "too many files")
    refused(bytes(100) + b"PK\x06\x07" + bytes(16) + end, "too many files")


def test_what_unpacks_to_too_much_is_refused(files: Files, refused, monkeypatch: pytest.MonkeyPatch):
    refused(zipped(files | {"evaluation.json": bytes(5 * 2**20)}), r"“evaluation.json” is too large \(5 MB\)")
    monkeypatch.setattr(archive, "MOST_BYTES", 2**20)
    refused(zipped(files | {"metrics.jsonl": bytes(2**20 + 1)}), "“metrics.jsonl” is too large")
    refused(zipped(files | {"metrics.jsonl": bytes(2**20)}), r"unpacked, the run is too large \(1 MB\)")
    refused(zipped({"metrics.jsonl": os.urandom(2**20)}), r"the file is too large \(1 MB\): a run has at most 1 MB")


@pytest.mark.nightly
def test_a_bomb_that_lies_about_its_size_is_refused(files: Files, refused):
    """The list of contents says ten bytes, and the stream would unpack to 64 MB."""
    file = bytearray(zipped(files | {"metrics.jsonl": bytes(64 * 2**20)}))
    for header, name, offset in ((b"PK\x03\x04", 30, 22), (b"PK\x01\x02", 46, 24)):
        starts = (i for i in range(len(file)) if file[i : i + 4] == header)
        (place,) = (i for i in starts if file[i + name :][:13] == b"metrics.jsonl")
        file[place + offset : place + offset + 4] = struct.pack("<I", 10)
    refused(bytes(file), "the file is damaged: Bad CRC")


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["example.npz", "film.npz"])
def test_an_array_that_unpacks_to_too_much_is_refused(name: str, files: Files, refused):
    bomb = zipped({"text.npy": bytes(257 * 2**20)})
    refused(zipped(files | {name: bomb}), f"its {name} cannot be used: it unpacks to too much")


def test_what_is_encrypted_oddly_compressed_or_of_another_age_is_refused(files: Files, refused):
    refused(zipped(files, zipfile.ZIP_LZMA), "is encrypted, or compressed in an unusual way")
    for offset, value, reason in (
        (8, 1, "is encrypted, or compressed in an unusual way"),
        (6, 99, "the file cannot be read: zip file version 9.9"),  # that is needed to extract it
    ):
        file = bytearray(zipped(files))
        file[file.index(b"PK\x01\x02") + offset] = value
        refused(bytes(file), reason)


def without(*missing: str) -> Change:
    return lambda files: [files.pop(name) for name in list(files) if name.startswith(missing)]


def swapped(name: str, content: bytes) -> Change:
    return lambda files: files.update({name: content})


def edited(name: str, **values: object) -> Change:
    """Other values in a JSON file."""
    return lambda files: files.update({name: json.dumps(json.loads(files[name]) | values).encode()})


def reconfigured(part: str, **values: object) -> Change:
    def change(files: Files) -> None:
        config = json.loads(files["run.json"])["config"]
        edited("run.json", config=config | {part: config[part] | values})(files)

    return change


def line(**values: object) -> Change:
    """Other values in the first line of the metrics."""

    def change(files: Files) -> None:
        first, *rest = files["metrics.jsonl"].decode().split("\n")
        files["metrics.jsonl"] = "\n".join([json.dumps(json.loads(first) | values), *rest]).encode()

    return change


def arrays(name: str, **values: object) -> Change:
    """Other arrays in a .npz file; `text` is merged into the text."""

    def change(files: Files) -> None:
        with np.load(io.BytesIO(files[name])) as stored:
            found = {key: stored[key] for key in stored.files}
        for key, value in values.items():
            if key == "text":
                found[key] = np.array(json.dumps(json.loads(str(found[key])) | value))
            else:
                place = next((k for k in found if k == key or k.endswith(f"/{key}")), key)
                found[place] = np.asarray(value(found[place]) if callable(value) else value)
        file = io.BytesIO()
        np.savez_compressed(file, **found)
        files[name] = file.getvalue()

    return change


def first(values: np.ndarray) -> np.ndarray:
    return values[:1]


def tensors(name: str, shape: tuple[int, ...], **metadata: str) -> Change:
    return swapped(name, save({"weight": torch.zeros(shape)}, metadata))


def initial(name: str, seed: int = 0) -> Change:
    """A snapshot without weights, to be drawn anew."""

    def change(files: Files) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "initial.safetensors"
            checkpoints.save_initial(path, tiny(seed=seed))
            files[name] = path.read_bytes()

    return change


FIRST, LAST = "snapshots/step-000000.safetensors", "snapshots/step-000004.safetensors"
CONFIG = json.dumps(tiny().to_dict())
DEEP = b"[" * 100_000
DIGITS = b'{"step": ' + b"9" * 5000 + b"}"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        *((without(name), f"this is not a packed run: it has no {name}") for name in ("run.json", "state.json")),
        (without("snapshots"), "the run in this file has no weights"),
        *(
            (swapped(name, content), f"its {name} cannot be used")
            for name in ("run.json", "state.json", "metrics.jsonl", "evaluation.json")
            for content in (b"nonsense\n", b"\xff\xfe\n", DEEP + b"\n", DIGITS + b"\n", b"{}\n")
            if (name, content) != ("run.json", b"{}\n")
        ),
        *((swapped(f"{name}.json", b"[]"), "is no record") for name in ("run", "state", "evaluation")),
        # run.json
        (swapped("run.json", b"{}"), "the run is of another version"),
        (edited("run.json", format="attention-lab-run/2"), "the run is of another version .attention-lab-run/2"),
        (edited("run.json", created="yesterday"), "its run.json cannot be used: yesterday is no number"),
        (edited("run.json", created=float("nan")), "its run.json cannot be used: nan is no number"),
        (edited("run.json", config={}), "its run.json cannot be used: the settings are incomplete"),
        *(
            (edited("run.json", **values), "its run.json cannot be used")
            for values in ({"created": 10**400}, {"device": ["cpu"]}, {"config": 7})
        ),
        (reconfigured("task", task="__import__('os')"), "its run.json cannot be used"),
        (reconfigured("task", length=10**400), "its run.json cannot be used"),
        (reconfigured("model", n_heads=3), "its run.json cannot be used: d_model .16. must be divisible"),
        (reconfigured("training", seed=-1), "its run.json cannot be used: seed must be between"),
        # the weights
        (reconfigured("model", d_ff=64), "step-000000.safetensors cannot be used: its weights were trained with other"),
        (reconfigured("model", n_layers=48, d_model=4096), "its weights were trained with other settings"),
        (swapped(LAST, b""), "step-000004.safetensors cannot be used: it is not a whole safetensors file"),
        (swapped(LAST, b"\x80\x04\x95"), "it is not a whole safetensors file"),
        (swapped(LAST, struct.pack("<Q", 2**62) + b"{}"), "it is not a whole safetensors file"),
        (tensors(LAST, (3,)), "its format is None and not attention-lab/1"),
        (tensors(LAST, (3,), format="attention-lab/1", config="{}"), "the settings are incomplete"),
        (tensors(LAST, (3,), format="attention-lab/1", config=CONFIG), "its snapshots are of different models"),
        (initial(LAST), "its snapshots are of different models"),
        (initial(FIRST, seed=1), "its weights were trained with other settings"),
        (
            tensors(FIRST, (3,), format="attention-lab/1", config=CONFIG, weights="initial"),
            "step-000000.safetensors cannot be used: it holds weights, and says that it holds none",
        ),
        (swapped("resume.safetensors", b"x"), "its resume.safetensors cannot be used"),
        (tensors("resume.safetensors", (3,), format="other"), "its format is 'other'"),
        # state.json
        (edited("state.json", status="haunted"), "its state.json cannot be used: nobody knows the status haunted"),
        *(
            (edited("state.json", **{name: value}), "its state.json cannot be used")
            for name, value in (
                *(("status", ["x"]), ("step", "4"), ("step", True), ("reason", None)),
                *(("heartbeat", float("inf")), ("evil", 1)),
            )
        ),
        # metrics.jsonl
        (swapped("metrics.jsonl", b"[]\n"), "is no record"),
        (swapped("metrics.jsonl", b'{"step": 1}\n'), "its metrics.jsonl cannot be used: line 1: it has no loss"),
        (line(step=0), "line 1: it is out of order"),
        (line(step=3), "line 2: it is out of order"),
        (line(step=1.5), "its metrics.jsonl cannot be used"),
        (line(loss="low"), "its metrics.jsonl cannot be used: line 1: low is no number"),
        (line(loss=10**30), "its metrics.jsonl cannot be used"),
        (line(solved="yes"), "line 1: it is neither solved nor not"),
        (line(accuracy=[0.5]), "line 1: it is of another task"),
        (line(accuracy=[2.0] * 6), "2.0 is no number that could stand here"),
        (line(accuracy=[0.5] * 6, probed=0), "line 1: it was measured on nothing"),
        # evaluation.json
        (swapped("evaluation.json", b"{}"), "its evaluation.json cannot be used: it has no sequences"),
        (edited("evaluation.json", correct=[99_999] * 6), "its evaluation.json cannot be used: more is right"),
        *(
            (edited("evaluation.json", **{name: value}), "its evaluation.json cannot be used")
            for name, value in (
                *(("second_half", "high"), ("second_half", float("nan")), ("first_half", 2)),
                *(("sequences", 0), ("correct", [1]), ("verdict", [])),
            )
        ),
        # example.npz
        *(
            (swapped(name, content), f"its {name} cannot be used")
            for name in ("example.npz", "film.npz")
            for content in (b"", b"nonsense", zipped({"text.npy": b"x"}))
        ),
        (
            arrays("example.npz", question=np.zeros(9, int), said=np.zeros(9, int)),
            "its example.npz cannot be used: it is of no length",
        ),
        (arrays("example.npz", said=np.array([99, 0, 0])), "its example.npz cannot be used: it holds other symbols"),
        (arrays("example.npz", pattern=first, scores=first, mean=first), "its heads are of another model"),
        *(
            (arrays("example.npz", **values), "its example.npz cannot be used")
            for values in (
                *({"question": np.array([-1, 0, 0])}, {"said": np.array(["a"] * 3)}, {"said": np.array([[]] * 3)}),
                *({"is_answer": np.array([True])}, {"pattern": lambda p: p.astype("U9")}, {"mask": lambda m: m[:1]}),
                {"scores": lambda s: s.astype(object)},
                *({"text": text} for text in ({"snapshot": 7}, {"shares": {"x": 1}}, {"labels": {}})),
                {"text": {"sequences": "many"}},
            )
        ),
        (arrays("example.npz", text={"shares": {}}), "its example.npz cannot be used: no head was looked at"),
        (arrays("example.npz", text={"shares": {"decoder.7.self_attention.0": 1.0}}), "this model has no head"),
        (arrays("example.npz", text={"shares": {"decoder.0.self_attention.2": 1.0}}), "this model has no head"),
        # film.npz
        (arrays("film.npz", text={"names": ["a"] * 6}), "its film.npz cannot be used: it is of another task"),
        (arrays("film.npz", text={"sequences": 1}), "its film.npz cannot be used: more is right"),
        *(
            (arrays("film.npz", **values), "its film.npz cannot be used")
            for values in (
                *({"text": text} for text in ({"names": ["a"]}, {"sequences": 0}, {"question": [1, 2, 3]})),
                {"text": {"heads": ["decoder.0.self_attention.9"] * 2}},
                *({"levels": lambda v: v[:, :1]}, {"steps": lambda s: s[::-1]}),
            )
        ),
    ],
)
def test_a_run_that_no_page_could_read_is_refused(files: Files, refused, change: Change, reason: str):
    change(files)
    refused(zipped(files, zipfile.ZIP_STORED), reason)


def test_weights_of_another_shape_than_the_settings_say_are_refused(files: Files, refused):
    """All snapshots agree with each other, and with the config in name only."""
    for name in files:
        if name.startswith("snapshots"):
            tensors(name, (3,), format="attention-lab/1", config=CONFIG)(files)
    refused(zipped(files), "the weights in step-000004.safetensors do not fit")


def test_what_may_be_missing_may_be_missing(files: Files, trained: Run, tmp_path: Path):
    for name in ("metrics.jsonl", "evaluation.json", "example.npz", "film.npz"):
        del files[name]
    run = unpack(io.BytesIO(zipped(files)), tmp_path, "bare")
    assert run.digest() == trained.digest()
    assert run.metrics() == []


def test_a_run_that_failed_of_a_loss_that_is_no_number_is_welcome(files: Files, tmp_path: Path):
    line(loss=float("nan"), gradient_norm=float("inf"))(files)
    files["metrics.jsonl"] += b'{"step": 5, "lo'
    assert len(unpack(io.BytesIO(zipped(files)), tmp_path, "nan").metrics()) == 4


def test_a_full_disk_leaves_nothing(trained: Run, refused, monkeypatch: pytest.MonkeyPatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", full)
    refused(pack(trained), "the run cannot be stored: No space left on device")


def test_what_a_killed_process_was_reading_is_swept(trained: Run, tmp_path: Path):
    old, new = tmp_path / ".trash" / "incoming-old", tmp_path / ".trash" / "incoming-new"
    for folder, age in ((old, 90_000), (new, 60)):
        shutil.copytree(trained.folder, folder / "run")
        os.utime(folder, (time.time() - age, time.time() - age))
    assert list_runs(tmp_path) == []
    unpack(io.BytesIO(pack(trained)), tmp_path, "next")
    assert not old.exists()
    assert new.exists()
