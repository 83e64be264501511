"""Checkpoints: safetensors with their config inside. Reading one executes nothing, whatever the file is.

The safetensors format is a length, a JSON header and raw numbers (https://github.com/huggingface/safetensors); our
config and a format version stand in the header's metadata. A model's initial weights need no numbers: the seed in its
config draws them anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save as pack

from transformer.config import RunConfig
from transformer.foundation.atomic_files import write_whole
from transformer.foundation.checks import UserError, reason
from transformer.foundation.foreign import open_tensors, quoted, record, shortened
from transformer.foundation.regular_files import open_file
from transformer.model import build
from transformer.network import Network
from transformer.text import shelf

FORMAT = "attention-lab/1"
INITIAL = {"weights": "initial"}
"""The metadata of a file that holds no weights, for they are those that its config's seed draws."""
PRECISIONS = ("float32", "float16")
"""What weights are stored in: as they are trained, or rounded by `save(half=True)`."""
MOST_INITIAL = 2**24
"""Numbers in the largest model that is drawn anew for a file without weights."""
_SIGNATURES = {
    b"\x80": "a pickle, which could run code when opened",
    b"PK\x03\x04": "a zip archive such as torch.save writes, which may hold a pickle that runs code when opened",
    b"\xff\xd8\xff": "a JPEG picture",
    b"\x89PNG": "a PNG picture",
    b"GIF8": "a GIF picture",
    b"%PDF": "a PDF document",
    b"\x1f\x8b": "a gzip archive",
}


class CheckpointError(UserError):
    """A file that is not a usable checkpoint; the message is one sentence."""


class NoNumbers(CheckpointError):
    """Weights that are infinite or not numbers: whole as a file, and of no use as a model."""


def require_numbers(model: Network) -> None:
    """Raises NoNumbers where a weight is infinite or not a number, as a training that diverges leaves them."""
    broken = [name for name, weight in model.named_parameters() if not weight.isfinite().all()]
    if broken:
        raise NoNumbers(
            f"its weights are not all numbers (NaN or infinity in {len(broken)} of {len(list(model.parameters()))} "
            f"tensors, first in {broken[0]}): what it says is no answer"
        )


def save(path: Path | str, model: Network, config: RunConfig, *, half: bool = False) -> None:
    """Write weights and config to one safetensors file, under a temporary name first: it is never half there.

    `half` rounds the weights to 16 bits: half the size, three digits each. Raises OSError where it cannot be written.
    """
    path = Path(path)
    weights = {
        name: (tensor.detach().to(torch.float16) if half else tensor.detach()).contiguous().cpu()
        for name, tensor in model.state_dict().items()
        if name not in _derived(config)
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, packed(weights, _metadata(config)))


class Series:
    """Checkpoints of one model, taken again and again while it learns: what `save` writes, byte for byte.

    Where which weight stands in the file is settled once: to take one is a copy in one operation, on a GPU, too.
    """

    def __init__(self, model: Network, config: RunConfig) -> None:
        weights = {name: each.detach() for name, each in model.state_dict().items() if name not in _derived(config)}
        example = packed(
            {name: torch.zeros(each.shape, dtype=each.dtype) for name, each in weights.items()}, _metadata(config)
        )
        end = 8 + int.from_bytes(example[:8], "little")
        places = {name: each["data_offsets"] for name, each in json.loads(example[8:end]).items() if name in weights}
        self.header = example[:end]
        self.weights = [weights[name].view(-1) for name in sorted(places, key=places.__getitem__)]

    def take(self, path: Path) -> Callable[[], None]:
        """What writes the weights as they are now, whatever becomes of them: for a thread that waits for the disk."""
        flat = torch.cat(self.weights)
        return lambda: write_whole(path, self.header + flat.cpu().numpy().tobytes())


def _metadata(config: RunConfig) -> dict[str, str]:
    return {"format": FORMAT, "config": json.dumps(config.to_dict())}


def save_initial(path: Path | str, config: RunConfig) -> None:
    """Write a model before its first step: its config alone, a kilobyte, from whose seed `load` draws the weights.

    The same PyTorch on the same kind of processor draws the same weights to the bit, another to a rounding.
    """
    write_whole(Path(path), packed({}, _metadata(config) | INITIAL))


def _derived(config: RunConfig) -> tuple[str, ...]:
    """What is not stored, for it is another's."""
    return ("unembedding.weight",) if config.model.tied else ()


def packed(tensors: dict[str, torch.Tensor], metadata: dict[str, str]) -> bytes:
    """A safetensors file in memory: the same contents always give the same bytes.

    The format's own writer leaves the order of the metadata to chance, so the header is written again.
    """
    made = pack(tensors, metadata=metadata)
    length = int.from_bytes(made[:8], "little")
    header = json.loads(made[8 : 8 + length])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + made[8 + length :]


def load(path: Path | str, device: torch.device | str = "cpu") -> tuple[Network, RunConfig]:
    """Read a checkpoint that `save` or a training wrote: the model in evaluation mode, and its config.

    Nothing in a file is executed. Raises CheckpointError where it is not a whole checkpoint.
    """
    path = Path(path)
    try:
        with open_file(path) as file:
            head = file.read(8)
    except FileNotFoundError:
        raise CheckpointError(f"there is no file {path}") from None
    except OSError as error:
        raise CheckpointError(f"{path.name} cannot be read: {reason(error)}") from None
    for signature, kind in _SIGNATURES.items():
        if head.startswith(signature) and not _plausible_header(head, path.stat().st_size):
            raise CheckpointError(f"{path.name} is not a checkpoint but {kind}; nothing in it was executed")
    try:
        with open_tensors(path, "pt") as file:
            metadata = file.metadata() or {}
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, RuntimeError) as error:
        raise CheckpointError(
            f"{path.name} is not a whole safetensors file: it is truncated or something else"
        ) from error
    if metadata.get("format") != FORMAT:
        found = metadata.get("format")
        raise CheckpointError(
            f"{path.name} is of another version ({quoted(found)}); this program reads {FORMAT}"
            if found
            else f"{path.name} is a safetensors file of another program: it has no Attention Lab config inside"
        )
    try:
        stored = record(metadata["config"])
        shelf.bring(path.absolute().parent.parent, stored)
        config = RunConfig.from_dict(stored)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise CheckpointError(f"the config inside {path.name} cannot be used: {shortened(str(error), 300)}") from None
    misfit = CheckpointError(f"the weights in {path.name} do not fit the model that its config describes")
    shape = config.model
    # Before building: a small file's config may describe a model that no memory holds.
    if INITIAL.items() <= metadata.items():
        if weights:
            raise misfit
        if _size(config) > MOST_INITIAL:
            raise CheckpointError(f"{path.name} holds no weights, and its model is too large to be drawn anew")
        return build(config).to(device).eval(), config
    odd = sorted({str(w.dtype).removeprefix("torch.") for w in weights.values()} - set(PRECISIONS))
    if odd:
        raise CheckpointError(
            f"the weights in {path.name} are of {', '.join(odd)} and not of {' or '.join(PRECISIONS)}"
        )
    layer = 12 * shape.d_model if shape.recurrent else 4 * shape.d_model + 2 * shape.d_ff
    task = config.build_task()
    vectors = (
        shape.n_layers * layer
        + task.d_vocab
        + (task.n_ctx if shape.encoding.learned and shape.encoding.told == "vectors" else 0)
    )
    if sum(w.numel() for w in weights.values()) < shape.d_model * vectors:
        raise misfit
    model = build(config)
    expected = {name: tensor.shape for name, tensor in model.state_dict().items() if name not in _derived(config)}
    if expected != {name: tensor.shape for name, tensor in weights.items()}:
        raise misfit
    model.load_state_dict(weights, strict=not _derived(config))
    return model.to(device).eval(), config


def _size(config: RunConfig) -> int:
    """Numbers in a model, or some more: what its weights, its tables and its mask are at most."""
    model, task = config.model, config.build_task()
    block = 8 * model.d_model**2 + 2 * model.d_model * model.d_ff + 20 * model.d_model + model.d_ff  # one looks across
    tables = (2 * (task.d_vocab + task.n_ctx) + 5) * model.d_model + task.d_vocab
    return 2 * model.n_layers * block + tables + (model.n_heads + 1) * task.n_ctx**2


def weights_hash(model: Network) -> str:
    """The first 12 hex digits of the SHA-256 over all weights, in name order: which model made a picture."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:12]


def _plausible_header(head: bytes, size: int) -> bool:
    """Could these eight bytes be a safetensors header length? (A length may start with any byte.)"""
    return len(head) == 8 and int.from_bytes(head, "little") <= size - 8
