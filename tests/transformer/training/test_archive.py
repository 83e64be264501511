"""Runs packed into one file and unpacked again, and what comes from strangers."""

from __future__ import annotations

import io
import json
import os
import shutil
import stat
import struct
import time
import tomllib
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from tests.kit.runs import digests, names, tiny
from transformer import checkpoints
from transformer.training.exchange import archive
from transformer.training.exchange.archive import name_of, pack, unpack
from transformer.training.library import LibraryError
from transformer.training.recording import record
from transformer.training.runs import Run, list_runs

ROOT = Path(__file__).resolve().parents[3]
SHIPPED = (
    "reverse",
    "reverse-sinusoidal",
    "reverse-aligned",
    "reverse-aligned-causal",
    "reverse-translate",
    "shakespeare",
)


@pytest.mark.parametrize("name", [*SHIPPED, "small"])
def test_what_is_packed_is_what_is_unpacked(name: str, trained: Run, tmp_path: Path):
    run = trained if name == "small" else Run(ROOT / "checkpoints" / name)
    again = unpack(io.BytesIO(pack(run)), tmp_path, name)
    assert again.folder == tmp_path / name
    assert digests(again) == digests(run)
    assert set(digests(run)) >= {"run.json", "state.json", "metrics.jsonl", "evaluation.json", "film.npz"}
    assert again.state == run.state
    assert names(tmp_path) == [name]
    assert list((tmp_path / ".trash").iterdir()) == []


def test_the_same_run_makes_the_same_bytes_and_nothing_else_travels(run: Run):
    before = pack(run)
    (run.folder / "control.json").write_text("{}")
    (run.folder / "lock").touch()
    (run.folder / "notes.txt").write_text("mine")
    (run.folder / "snapshots" / "old.pt").write_text("mine")
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


def test_a_run_that_was_cut_off_can_go_on_elsewhere(tmp_path: Path):
    """To the same numbers as if it had never travelled."""
    whole, cut = Run.create(tmp_path / "whole", tiny(max_steps=8)), Run.create(tmp_path / "cut", tiny(max_steps=8))
    losses = [step.loss for step in record(whole)]
    steps = record(cut)
    for _ in range(5):
        next(steps)
    steps.close()
    moved = unpack(io.BytesIO(pack(cut)), tmp_path / "elsewhere", "cut")
    assert moved.resumable
    assert moved.state.status == "stopped"
    assert losses[:5] + [step.loss for step in record(moved)] == losses


@pytest.mark.parametrize("status", ["queued", "running", "measuring", "paused"])
def test_what_was_live_when_it_was_packed_has_stopped(run: Run, tmp_path: Path, status: str):
    state = json.loads((run.folder / "state.json").read_text()) | {"status": status, "heartbeat": 0.0}
    (run.folder / "state.json").write_text(json.dumps(state))
    again = unpack(io.BytesIO(pack(run)), tmp_path, "again")
    assert again.state.status == "stopped"
    assert again.state.reason == f"it was {status} when it was packed"
    assert again.state.step == 4


def test_a_taken_name_gets_a_number_and_no_name_says_what_is_in_it(run: Run, tmp_path: Path):
    file = io.BytesIO(pack(run))
    made = [unpack(file, tmp_path, name).name for name in ("small", "small", None, "../../evil", "a\nb", "compiled")]
    assert made == ["small-2", "small-3", *(f"reverse-3-1x2-learned-{i}" for i in (1, 2, 3, 4))]


def test_a_path_will_do_as_well(run: Run, tmp_path: Path):
    path = tmp_path / "there.attention-run.zip"
    path.write_bytes(pack(run))
    assert unpack(path, tmp_path / "new", name_of(path.name)).name == "there"


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("reverse.attention-run.zip", "reverse"),
        ("reverse.attention-run (3).zip", "reverse"),
        ("reverse (1).zip", "reverse"),
        ("other.zip", "other"),
    ],
)
def test_the_name_comes_from_the_files(file: str, name: str):
    assert name_of(file) == name


def test_the_server_takes_as_much_as_a_packed_run_may_have():
    server = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())["server"]
    assert server["maxUploadSize"] * 2**20 == archive.MOST_BYTES


def test_what_is_too_large_is_not_packed(run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(archive, "MOST_BYTES", 10_000)
    with pytest.raises(LibraryError, match=r"small is too large for one file \(\d+ kB\): copy its folder"):
        pack(run)


def test_what_cannot_be_read_is_not_packed(run: Run, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(archive, "read_bytes", refuse)
    with pytest.raises(LibraryError, match="small cannot be packed: Input/output error"):
        pack(run)


def test_what_is_no_run_is_not_packed(run: Run):
    (run.folder / "run.json").write_text("{}")
    with pytest.raises(LibraryError, match="another version"):
        pack(run)
    (run.folder / "run.json").unlink()
    with pytest.raises(LibraryError, match=r"is not a run: it has no run\.json"):
        pack(run)


Change = Callable[[dict[str, bytes]], object]


def zipped(contents: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as made:
        for name, content in contents.items():
            made.writestr(name, content)
    return file.getvalue()


def contents(run: Run) -> dict[str, bytes]:
    return {name: (run.folder / name).read_bytes() for name in digests(run)}


def refused(file: bytes, root: Path, reason: str) -> None:
    """It is refused for that reason, in one sentence without a path of this machine, and leaves nothing."""
    before = [path for path in sorted(root.rglob("*")) if path.name != ".trash"]
    with pytest.raises(LibraryError, match=reason) as caught:
        unpack(io.BytesIO(file), root, "evil")
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert len(sentence) < 250
    assert str(root) not in sentence
    assert [path for path in sorted(root.rglob("*")) if path.name != ".trash"] == before
    assert sorted(root.parent.glob("evil*")) == []


def test_an_honest_zip_of_the_folder_is_welcome(run: Run, tmp_path: Path):
    file = zipped({"snapshots/": b"", **contents(run)})
    assert digests(unpack(io.BytesIO(file), tmp_path / "new", "evil")) == digests(run)


@pytest.mark.parametrize("file", [b"", b"x", b"PK\x03\x04", b"not a zip" * 100, b"\x80\x04\x95" + bytes(100)])
def test_what_is_no_zip(file: bytes, tmp_path: Path):
    refused(file, tmp_path, "this is not a packed run: it is no zip file")


def test_half_a_file(run: Run, tmp_path: Path):
    whole = pack(run)
    root = tmp_path / "new"
    root.mkdir()
    refused(whole[: len(whole) // 2], root, "no zip file, or not a whole one")
    refused(whole[: len(whole) // 2] + whole[-22:], root, "the file is damaged")
    middle = len(whole) // 2
    refused(whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :], root, "the file is damaged: Bad CRC")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../evil", "“../evil”, which would be written outside"),
        ("snapshots/../../evil", "outside the run's folder"),
        ("/tmp/evil", "outside the run's folder"),
        ("..\\evil", "outside the run's folder"),
        ("\\evil", "outside the run's folder"),
        ("C:\\evil", "outside the run's folder"),
        ("C:/evil", "outside the run's folder"),
        ("evil.py", "“evil.py”, which is no part of a run"),
        ("lock", "no part of a run"),
        ("control.json", "no part of a run"),
        ("small/run.json", "no part of a run"),
        ("Run.json", "no part of a run"),
        ("run.json/", "no part of a run"),
        ("snapshots/evil.pt", "no part of a run"),
        ("snapshots/step-٠٠٠٠٠١.safetensors", "no part of a run"),
        ("snapshots/step-000001.safetensors.pkl", "no part of a run"),
        ("snapshots/step-000001.safetensors\n", "no part of a run"),
        ("deep/er/step-000001.safetensors", "no part of a run"),
        ("run.json ", "no part of a run"),
    ],
)
def test_files_that_belong_elsewhere(run: Run, tmp_path: Path, name: str, reason: str):
    root = tmp_path / "new"
    root.mkdir()
    refused(zipped(contents(run) | {name: b"evil"}), root, reason)


def test_a_name_cut_by_a_null_byte(run: Run, tmp_path: Path):
    root = tmp_path / "new"
    root.mkdir()
    file = zipped(contents(run) | {"film.npzXevil": b"x"}).replace(b"film.npzXevil", b"film.npz\x00evil")
    refused(file, root, r"which is no part of a run")


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
def test_links_and_devices(run: Run, tmp_path: Path, kind: int):
    root, file = tmp_path / "new", io.BytesIO()
    root.mkdir()
    with zipfile.ZipFile(file, "w") as made:
        for name, content in contents(run).items():
            info = zipfile.ZipInfo(name)
            info.create_system = 3
            info.external_attr = ((kind if name == "film.npz" else stat.S_IFREG) | 0o777) << 16
            made.writestr(info, b"/etc/passwd" if name == "film.npz" else content)
    refused(file.getvalue(), root, "“film.npz”, which is a link and not a file")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_duplicates(run: Run, tmp_path: Path):
    root, file = tmp_path / "new", io.BytesIO()
    root.mkdir()
    with zipfile.ZipFile(file, "w") as made:
        for name, content in [*contents(run).items(), ("run.json", b"{}")]:
            made.writestr(name, content)
    refused(file.getvalue(), root, "“run.json” twice")


def test_too_many_files(run: Run, tmp_path: Path):
    root = tmp_path / "new"
    root.mkdir()
    many = {f"snapshots/step-{i:06d}.safetensors": b"" for i in range(1001)}
    refused(zipped(contents(run) | many, zipfile.ZIP_STORED), root, "too many files: a run has at most 1000")
    end = zipped(contents(run))[-22:]
    refused(bytes(100) + end[:12] + struct.pack("<I", 10**8) + end[16:], root, "too many files")
    refused(bytes(100) + b"PK\x06\x07" + bytes(16) + end, root, "too many files")


def test_bombs(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    root, honest = tmp_path / "new", contents(run)
    root.mkdir()
    refused(zipped(honest | {"evaluation.json": bytes(5 * 2**20)}), root, r"“evaluation.json” is too large \(5 MB\)")
    monkeypatch.setattr(archive, "MOST_BYTES", 2**20)
    refused(zipped(honest | {"metrics.jsonl": bytes(2**20 + 1)}), root, "“metrics.jsonl” is too large")
    refused(zipped(honest | {"metrics.jsonl": bytes(2**20)}), root, r"unpacked, the run is too large \(1 MB\)")
    refused(
        zipped({"metrics.jsonl": os.urandom(2**20)}), root, r"the file is too large \(1 MB\): a run has at most 1 MB"
    )


@pytest.mark.nightly
def test_a_bomb_that_lies_about_its_size(run: Run, tmp_path: Path):
    """The list of contents says ten bytes, and the stream would unpack to 64 MB."""
    root = tmp_path / "new"
    root.mkdir()
    file = bytearray(zipped(contents(run) | {"metrics.jsonl": bytes(64 * 2**20)}))
    for header, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        name = 30 if header == b"PK\x03\x04" else 46
        places = [
            i for i in range(len(file)) if file[i : i + 4] == header and file[i + name :][:13] == b"metrics.jsonl"
        ]
        assert len(places) == 1
        file[places[0] + offset : places[0] + offset + 4] = struct.pack("<I", 10)
    refused(bytes(file), root, "the file is damaged: Bad CRC")


@pytest.mark.nightly
def test_an_example_that_unpacks_to_too_much(run: Run, tmp_path: Path):
    root, bomb = tmp_path / "new", io.BytesIO()
    root.mkdir()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as made, made.open("text.npy", "w") as entry:
        for _ in range(257):
            entry.write(bytes(2**20))
    for name in ("example.npz", "film.npz"):
        refused(
            zipped(contents(run) | {name: bomb.getvalue()}), root, f"its {name} cannot be used: it unpacks to too much"
        )


@pytest.mark.parametrize("flag", [1, 0])
def test_encrypted_or_oddly_compressed(run: Run, tmp_path: Path, flag: int):
    root = tmp_path / "new"
    root.mkdir()
    if flag:
        file = bytearray(zipped({"run.json": b"{}"} | contents(run)))
        file[file.index(b"PK\x01\x02") + 8] |= 1
    else:
        file = bytearray(zipped(contents(run), zipfile.ZIP_LZMA))
    refused(bytes(file), root, "is encrypted, or compressed in an unusual way")


def test_a_zip_of_another_age(run: Run, tmp_path: Path):
    root, file = tmp_path / "new", bytearray(zipped(contents(run)))
    root.mkdir()
    file[file.index(b"PK\x01\x02") + 6] = 99  # the version that is needed to extract: 9.9
    refused(bytes(file), root, "the file cannot be read: zip file version 9.9")


def without(*missing: str) -> Change:
    return lambda files: [files.pop(name) for name in list(files) if name.startswith(missing)]


def swapped(name: str, content: bytes) -> Change:
    return lambda files: files.update({name: content})


def edited(name: str, **values: object) -> Change:
    """Other values in a JSON file."""
    return lambda files: files.update({name: json.dumps(json.loads(files[name]) | values).encode()})


def reconfigured(part: str, **values: object) -> Change:
    def change(files: dict[str, bytes]) -> None:
        card = json.loads(files["run.json"])
        card["config"][part] |= values
        files["run.json"] = json.dumps(card).encode()

    return change


def line(**values: object) -> Change:
    """Other values in the first line of the metrics."""

    def change(files: dict[str, bytes]) -> None:
        first, *rest = files["metrics.jsonl"].decode().split("\n")
        files["metrics.jsonl"] = "\n".join([json.dumps(json.loads(first) | values), *rest]).encode()

    return change


def arrays(name: str, **values: object) -> Change:
    """Other arrays in a .npz file; `text` is merged into the text."""

    def change(files: dict[str, bytes]) -> None:
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
    def change(files: dict[str, bytes]) -> None:
        path = Path(f"/tmp/made-{os.getpid()}.safetensors")
        save_file({"weight": torch.zeros(shape)}, path, metadata)
        files[name] = path.read_bytes()
        path.unlink()

    return change


def initial(name: str, seed: int = 0) -> Change:
    """A snapshot without weights, to be drawn anew."""

    def change(files: dict[str, bytes]) -> None:
        path, config = Path(f"/tmp/made-{os.getpid()}.safetensors"), tiny()
        checkpoints.save_initial(path, replace(config, training=replace(config.training, seed=seed)))
        files[name] = path.read_bytes()
        path.unlink()

    return change


FIRST, LAST = "snapshots/step-000000.safetensors", "snapshots/step-000004.safetensors"
CONFIG = json.dumps(tiny().to_dict())
DEEP = b"[" * 100_000
DIGITS = b'{"step": ' + b"9" * 5000 + b"}"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (without("run.json"), "this is not a packed run: it has no run.json"),
        (without("state.json"), "this is not a packed run: it has no state.json"),
        (without("snapshots"), "the run in this file has no weights"),
        # run.json
        (swapped("run.json", b"nonsense"), "its run.json cannot be used"),
        (swapped("run.json", b"\xff\xfe"), "its run.json cannot be used"),
        (swapped("run.json", DEEP), "its run.json cannot be used"),
        (swapped("run.json", DIGITS), "its run.json cannot be used"),
        (swapped("run.json", b"[]"), "is no record"),
        (swapped("run.json", b"{}"), "the run is of another version"),
        (edited("run.json", format="attention-lab-run/2"), "the run is of another version .attention-lab-run/2"),
        (edited("run.json", created=10**400), "its run.json cannot be used"),
        (edited("run.json", created="yesterday"), "its run.json cannot be used: yesterday is no number"),
        (edited("run.json", created=float("nan")), "its run.json cannot be used: nan is no number"),
        (edited("run.json", device=["cpu"]), "its run.json cannot be used"),
        (edited("run.json", config={}), "its run.json cannot be used: the settings are incomplete"),
        (edited("run.json", config=7), "its run.json cannot be used"),
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
        (swapped("state.json", b"null"), "is no record"),
        (edited("state.json", status="haunted"), "its state.json cannot be used: nobody knows the status haunted"),
        (edited("state.json", status=["x"]), "its state.json cannot be used"),
        (edited("state.json", step="4"), "its state.json cannot be used"),
        (edited("state.json", step=True), "its state.json cannot be used"),
        (edited("state.json", reason=None), "its state.json cannot be used"),
        (edited("state.json", heartbeat=float("inf")), "its state.json cannot be used"),
        (edited("state.json", evil=1), "its state.json cannot be used"),
        # metrics.jsonl
        (swapped("metrics.jsonl", b"nonsense\n"), "its metrics.jsonl cannot be used"),
        (swapped("metrics.jsonl", b"[]\n"), "is no record"),
        (swapped("metrics.jsonl", DEEP + b"\n"), "its metrics.jsonl cannot be used"),
        (swapped("metrics.jsonl", DIGITS + b"\n"), "its metrics.jsonl cannot be used"),
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
        (edited("evaluation.json", second_half="high"), "its evaluation.json cannot be used"),
        (edited("evaluation.json", second_half=float("nan")), "its evaluation.json cannot be used"),
        (edited("evaluation.json", first_half=2), "its evaluation.json cannot be used"),
        (edited("evaluation.json", sequences=0), "its evaluation.json cannot be used"),
        (edited("evaluation.json", correct=[1]), "its evaluation.json cannot be used"),
        (edited("evaluation.json", correct=[99_999] * 6), "its evaluation.json cannot be used: more is right"),
        (edited("evaluation.json", verdict=[]), "its evaluation.json cannot be used"),
        # example.npz
        (swapped("example.npz", b"nonsense"), "its example.npz cannot be used"),
        (swapped("example.npz", zipped({"text.npy": b"x"})), "its example.npz cannot be used"),
        (arrays("example.npz", text={"snapshot": 7}), "its example.npz cannot be used"),
        (
            arrays("example.npz", question=np.zeros(9, int), said=np.zeros(9, int)),
            "its example.npz cannot be used: it is of no length",
        ),
        (arrays("example.npz", question=np.array([-1, 0, 0])), "its example.npz cannot be used"),
        (arrays("example.npz", said=np.array([99, 0, 0])), "its example.npz cannot be used: it holds other symbols"),
        (arrays("example.npz", said=np.array(["a"] * 3)), "its example.npz cannot be used"),
        (arrays("example.npz", said=np.array([[]] * 3)), "its example.npz cannot be used"),
        (arrays("example.npz", is_answer=np.array([True])), "its example.npz cannot be used"),
        (arrays("example.npz", pattern=first, scores=first, mean=first), "its heads are of another model"),
        (arrays("example.npz", pattern=lambda p: p.astype("U9")), "its example.npz cannot be used"),
        (arrays("example.npz", mask=lambda m: m[:1]), "its example.npz cannot be used"),
        (arrays("example.npz", scores=lambda s: s.astype(object)), "its example.npz cannot be used"),
        (arrays("example.npz", text={"shares": {}}), "its example.npz cannot be used: no head was looked at"),
        (arrays("example.npz", text={"shares": {"x": 1}}), "its example.npz cannot be used"),
        (arrays("example.npz", text={"shares": {"decoder.7.self_attention.0": 1.0}}), "this model has no head"),
        (arrays("example.npz", text={"shares": {"decoder.0.self_attention.2": 1.0}}), "this model has no head"),
        (arrays("example.npz", text={"labels": {}}), "its example.npz cannot be used"),
        (arrays("example.npz", text={"sequences": "many"}), "its example.npz cannot be used"),
        # film.npz
        (swapped("film.npz", b""), "its film.npz cannot be used"),
        (arrays("film.npz", text={"names": ["a"]}), "its film.npz cannot be used"),
        (arrays("film.npz", text={"groups": ["a"] * 6}), "its film.npz cannot be used: it is of another task"),
        (arrays("film.npz", text={"sequences": 0}), "its film.npz cannot be used"),
        (arrays("film.npz", text={"sequences": 1}), "its film.npz cannot be used: more is right"),
        (arrays("film.npz", text={"question": [1, 2, 3]}), "its film.npz cannot be used"),
        (arrays("film.npz", levels=lambda v: v[:, :1]), "its film.npz cannot be used"),
        (arrays("film.npz", text={"heads": ["decoder.0.self_attention.9"] * 2}), "its film.npz cannot be used"),
        (arrays("film.npz", steps=lambda s: s[::-1]), "its film.npz cannot be used"),
    ],
)
def test_a_run_that_no_page_could_read(trained: Run, tmp_path: Path, change: Change, reason: str):
    files = contents(trained)
    change(files)
    refused(zipped(files, zipfile.ZIP_STORED), tmp_path, reason)


def test_weights_of_another_shape_than_the_settings_say(trained: Run, tmp_path: Path):
    """All snapshots agree with each other, and with the config in name only."""
    files = contents(trained)
    for name in files:
        if name.startswith("snapshots"):
            tensors(name, (3,), format="attention-lab/1", config=CONFIG)(files)
    refused(zipped(files), tmp_path, "the weights in step-000004.safetensors do not fit")


def test_what_may_be_missing_may_be_missing(trained: Run, tmp_path: Path):
    files = contents(trained)
    for name in ("metrics.jsonl", "evaluation.json", "example.npz", "film.npz"):
        del files[name]
    run = unpack(io.BytesIO(zipped(files)), tmp_path, "bare")
    assert run.digest() == trained.digest()
    assert run.metrics() == []


def test_a_run_that_failed_of_a_loss_that_is_no_number_is_welcome(trained: Run, tmp_path: Path):
    files = contents(trained)
    line(loss=float("nan"), gradient_norm=float("inf"))(files)
    files["metrics.jsonl"] += b'{"step": 5, "lo'
    assert len(unpack(io.BytesIO(zipped(files)), tmp_path, "nan").metrics()) == 4


def test_a_full_disk_leaves_nothing(trained: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", full)
    refused(pack(trained), tmp_path, "the run cannot be stored: No space left on device")


def test_what_a_killed_process_was_reading_is_swept(trained: Run, tmp_path: Path):
    old, new = tmp_path / ".trash" / "incoming-old", tmp_path / ".trash" / "incoming-new"
    for folder, age in ((old, 90_000), (new, 60)):
        shutil.copytree(trained.folder, folder / "run")
        os.utime(folder, (time.time() - age, time.time() - age))
    assert list_runs(tmp_path) == []
    unpack(io.BytesIO(pack(trained)), tmp_path, "next")
    assert not old.exists()
    assert new.exists()
