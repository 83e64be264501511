"""Checkpoints: what is saved is what is read, and a file that is anything else is refused with one sentence."""

import json
import os
import pickle
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load as unpack
from safetensors.torch import save as pack

from tests.kit.models import SMALL, TASK_OF, inputs
from transformer import checkpoints
from transformer.checkpoints import CheckpointError, load, save, save_initial, weights_hash
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.model import build
from transformer.positions import ENCODINGS

CONFIG = RunConfig(task=TaskConfig(length=4), model=ModelConfig(n_layers=1, n_heads=2, d_model=8, d_ff=8))


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "model.safetensors"


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> bytes:
    """A good file, to be damaged."""
    path = tmp_path_factory.mktemp("whole") / "model.safetensors"
    save(path, build(CONFIG), CONFIG)
    return path.read_bytes()


def refused(path: Path) -> str:
    with pytest.raises(CheckpointError) as refusal:
        load(path)
    sentence = str(refusal.value)
    assert "\n" not in sentence
    assert path.name in sentence
    return sentence


# --- saving and reading


@pytest.mark.parametrize("positions", ENCODINGS.names())
@pytest.mark.parametrize("architecture", TASK_OF)
def test_what_is_read_is_what_was_saved(architecture, positions, path):
    """Twice into a new folder: the second file takes the first one's place, and nothing else is left beside it."""
    path, before = path.parent / "new" / "folder" / path.name, torch.random.get_rng_state()
    for seed in (5, 6):
        config = RunConfig(
            task=TaskConfig(task=TASK_OF[architecture]),
            model=ModelConfig(architecture=architecture, positions=positions, **SMALL),
            training=TrainingConfig(seed=seed),
        )
        model, arguments = build(config), inputs(architecture)
        with torch.no_grad():
            for weight in model.parameters():
                weight.add_(0.01)  # not what the seed alone would give
        save(path, model, config)
        again, read = load(str(path))
        assert read == config
        assert not again.training
        with torch.no_grad():
            assert torch.equal(again(*arguments), model.eval()(*arguments))
        assert weights_hash(again) == weights_hash(model)
        assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("architecture", [*TASK_OF, "gru"])
def test_initial_weights_are_drawn_anew(architecture, path):
    task = TaskConfig(task=TASK_OF.get(architecture, "reverse-translate"), length=4)
    shape = ModelConfig(architecture=architecture, **SMALL)
    config = RunConfig(task=task, model=shape, training=TrainingConfig(seed=5))
    before = torch.random.get_rng_state()
    save_initial(path, config)
    model, read = load(path)
    assert read == config
    assert weights_hash(model) == weights_hash(build(config))
    assert not model.training
    assert path.stat().st_size < 2_000
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_write_that_fails_leaves_the_old_file(path, monkeypatch):
    save(path, build(CONFIG), CONFIG)
    before = path.read_bytes()

    def no_space(descriptor):
        os.ftruncate(descriptor, os.fstat(descriptor).st_size // 2)
        raise OSError("no space left on device")

    monkeypatch.setattr("transformer.foundation.atomic_files.os.fsync", no_space)
    with pytest.raises(OSError, match="no space left"):
        save(path, build(CONFIG), CONFIG)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_the_hash_tells_models_apart():
    model = build(CONFIG)
    before = weights_hash(model)
    assert len(before) == 12
    assert before == weights_hash(build(CONFIG))
    with torch.no_grad():
        model.unembedding.bias[0] += 1e-6
    assert weights_hash(model) != before


# --- other files


@pytest.mark.parametrize("kept", [0, 1, 7, 8, 9, 40, 0.3, 0.9, -1])
def test_a_truncated_file_is_refused(whole, path, kept):
    length = int(kept * len(whole)) if isinstance(kept, float) else kept
    path.write_bytes(whole[:length])
    assert "is not a whole safetensors file" in refused(path)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01" + bytes(500), "is not a checkpoint but a JPEG picture"),
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(500), "is not a checkpoint but a PNG picture"),
        (b"GIF89a" + bytes(500), "is not a checkpoint but a GIF picture"),
        (b"%PDF-1.7\n" + bytes(500), "is not a checkpoint but a PDF document"),
        (b"\x1f\x8b\x08\x00" + bytes(500), "is not a checkpoint but a gzip archive"),
        *((noise, "") for noise in (b"hello", b"{}", bytes(100), b"\x02" + bytes(7) + b"[]", b"\xff" * 4000)),
        (b"\x08" + bytes(7) + b"a" * 8, ""),
    ],
    ids=lambda value: value[:8] if isinstance(value, bytes) else "",
)
def test_another_kind_of_file_is_called_by_its_name_and_noise_is_refused(path, content, sentence):
    path.write_bytes(content)
    assert sentence in refused(path)


class Payload:
    """A pickle of it writes a file as soon as somebody opens it."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self):
        return Path.touch, (self.target,)


A_PICKLE = "a pickle, which could run code when opened; nothing in it was executed"


@pytest.mark.parametrize(
    ("write", "sentence"),
    [
        (lambda payload, path: path.write_bytes(pickle.dumps(payload, protocol=0)), ""),
        (lambda payload, path: path.write_bytes(pickle.dumps(payload, protocol=2)), A_PICKLE),
        (lambda payload, path: path.write_bytes(pickle.dumps(payload, protocol=5)), A_PICKLE),
        (lambda payload, path: torch.save({"x": payload}, path), "a zip archive such as torch.save writes"),
        (lambda payload, path: torch.save({"x": payload}, path, _use_new_zipfile_serialization=False), "a pickle"),
    ],
    ids=["protocol 0", "protocol 2", "protocol 5", "torch.save", "torch.save as it was"],
)
def test_what_would_run_code_is_refused_and_not_executed(path, tmp_path, write, sentence):
    write(Payload(tmp_path / "executed"), path)
    assert sentence in refused(path)
    assert not (tmp_path / "executed").exists()


def test_the_payload_does_work(tmp_path):
    pickle.loads(pickle.dumps(Payload(tmp_path / "executed")))
    assert (tmp_path / "executed").exists()


def test_a_checkpoint_whose_header_length_looks_like_another_kind_of_file_is_read(whole, path):
    """A header may have any length: 0x1f8b stands at the start of gzip files, and 0x8b1f is 35,615."""
    (size,) = struct.unpack("<Q", whole[:8])
    header = json.loads(whole[8 : 8 + size])
    for length in (0x8B1F, 0x80 + 256 * 40):
        padded = json.dumps(header).encode().ljust(length)
        path.write_bytes(struct.pack("<Q", length) + padded + whole[8 + size :])
        assert load(path)[1] == CONFIG


def test_a_file_that_is_not_there_or_is_a_folder_is_refused(tmp_path):
    assert "there is no file" in refused(tmp_path / "nothing.safetensors")
    (tmp_path / "folder.safetensors").mkdir()
    assert "it is a folder, not a file" in refused(tmp_path / "folder.safetensors")


# --- safetensors files that are not ours, or no longer fit


def rewritten(whole: bytes, path: Path, *, change_weights=lambda weights: weights, **metadata) -> Path:
    """The good file with other metadata (None leaves an entry out) or other weights."""
    ours = {"format": checkpoints.FORMAT, "config": json.dumps(CONFIG.to_dict())} | metadata
    kept = {name: value for name, value in ours.items() if value is not None}
    path.write_bytes(pack(change_weights(unpack(whole)), metadata=kept or None))
    return path


def without(name):
    return lambda weights: {other: weight for other, weight in weights.items() if other != name}


FOREIGN, CONFIG_INSIDE = "a safetensors file of another program", "the config inside"
DO_NOT_FIT = "do not fit the model that its config describes"
REFUSED = {
    "no metadata": ({"format": None, "config": None}, FOREIGN),
    "no format": ({"format": None}, FOREIGN),
    **{f"format {name!r}": ({"format": name}, "is of another version") for name in ("attention-lab/2", "two\nlines")},
    "no config": ({"config": None}, CONFIG_INSIDE),
    **{
        f"config {text[:60]!r}": ({"config": text}, CONFIG_INSIDE)
        for text in (
            *("", "not json", "[]", "3", "null", "{}", "[" * 100_000, '{"task": {}, "model": {}}'),
            '{"task": [], "model": {}, "training": {}}',
            '{"task": {}, "model": {"n_layers": "two"}, "training": {}}',
            '{"task": {}, "model": {"n_layers": 2.5}, "training": {}}',
            '{"task": {}, "model": {"n_layers": -1}, "training": {}}',
            '{"task": {}, "model": {"mask": 3}, "training": {}}',
            '{"task": {}, "model": {"a\\nb": 3}, "training": {}}',
            '{"task": {"length": null}, "model": {}, "training": {}}',
            '{"task": {"task": "__init__"}, "model": {}, "training": {}}',
            '{"task": {"task": "../../etc"}, "model": {}, "training": {}}',
            '{"task": {}, "model": {"dropout": NaN}, "training": {}}',
        )
    },
    "weights, and it says that it has none": ({"weights": "initial"}, DO_NOT_FIT),
    "no weights": ({"change_weights": lambda weights: {}}, DO_NOT_FIT),
    "no embedding": ({"change_weights": without("embedding.weight")}, DO_NOT_FIT),
    "no bias": ({"change_weights": without("decoder.0.self_attention.out.bias")}, DO_NOT_FIT),
    "one weight more": ({"change_weights": lambda weights: weights | {"more": torch.zeros(8)}}, DO_NOT_FIT),
    "a weight of another shape": (
        {"change_weights": lambda weights: weights | {"unembedding.weight": torch.zeros(8, 12)}},
        DO_NOT_FIT,
    ),
    "other names": (
        {"change_weights": lambda weights: {f"model.{name}": each for name, each in weights.items()}},
        DO_NOT_FIT,
    ),
}
"""What is changed in a good file, and what is said of it."""


def test_the_rewritten_file_is_good_when_nothing_is_changed(whole, path):
    assert load(rewritten(whole, path))[1] == CONFIG


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_that_is_not_ours_or_no_longer_fits_is_refused(whole, path, case):
    changes, sentence = REFUSED[case]
    assert sentence in refused(rewritten(whole, path, **changes))


@pytest.mark.nightly
def test_what_is_refused_here_is_refused_where_nobody_checks_types(whole, tmp_path):
    """In a process of its own, without the type checks of these tests, each of those files is a CheckpointError too."""
    paths = [rewritten(whole, tmp_path / f"{place}", **changes) for place, (changes, _) in enumerate(REFUSED.values())]
    script = """
import sys
from transformer.checkpoints import CheckpointError, load
for path in sys.argv[1:]:
    try:
        load(path)
    except CheckpointError as error:
        print(error)
"""
    read = subprocess.run([sys.executable, "-c", script, *map(str, paths)], capture_output=True, text=True)
    assert read.returncode == 0, read.stderr
    assert len(read.stdout.splitlines()) == len(paths)


def test_a_small_file_cannot_ask_for_a_giant_model(whole, path, monkeypatch):
    """38 GB of weights, says a file of 10 kB: refused before anything is built."""
    monkeypatch.setattr(checkpoints, "build", lambda config: pytest.fail("it was built"))
    giant = RunConfig(model=ModelConfig(n_layers=48, d_model=4096, d_ff=16384)).to_dict()
    assert "do not fit the model" in refused(rewritten(whole, path, config=json.dumps(giant)))
    for shape in ({"n_layers": 48, "d_model": 1024}, {"d_ff": 4 * 4096, "d_model": 4096, "n_layers": 1}):
        save_initial(path, RunConfig(model=ModelConfig(**shape)))
        assert "too large to be drawn anew" in refused(path)


@pytest.mark.parametrize("architecture", [*TASK_OF, "gru"])
def test_no_model_has_more_numbers_than_are_reckoned_before_it_is_drawn(architecture):
    task = TaskConfig(task=TASK_OF.get(architecture, "reverse-translate"), length=20)
    for shape in ({"n_layers": 1, "d_model": 8, "d_ff": 0}, {"n_layers": 3, "d_model": 16}):
        for positions in ENCODINGS.names():
            model = ModelConfig(architecture=architecture, positions=positions, n_heads=2, **shape)
            config = RunConfig(task=task, model=model)
            state = [*build(config).parameters(), *build(config).buffers()]
            assert sum(values.numel() for values in state) <= checkpoints._size(config)
