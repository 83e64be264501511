"""A training written down between two steps, and taken up again to the bit.

One safetensors file: the weights, AdamW's moments, and in its metadata the step, the clock and the state of every
generator. Reading one executes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from torch import Tensor

from transformer.checkpoints import packed
from transformer.foundation.atomic_files import write_whole
from transformer.foundation.checks import UserError, reason
from transformer.foundation.foreign import open_tensors, quoted
from transformer.training.loop import Training, fresh_noise

FORMAT = "attention-lab-training/1"
PROGRESS = ("step", "seconds", "in_a_row", "last_norm")


class ResumeError(UserError):
    """A file from which a training cannot be taken up; the message is one sentence."""


def save(path: Path, training: Training) -> None:
    """Write down everything that the next step depends on. Raises OSError."""
    prepare_save(path, training)()


def prepare_save(path: Path, training: Training) -> Callable[[], None]:
    """What writes it down as it is now, whatever becomes of the training: for a thread that waits for the disk."""
    weights = list(training.model.parameters())
    tensors = {"weights": _flat(weights), "noise": training.noise}
    if training.step:  # one long vector each: a file of hundreds of small tensors takes several times as long
        tensors |= {name: _flat(kept) for name, kept in training.optimiser.moments.items()}
    progress = {name: getattr(training, name) for name in PROGRESS}
    progress |= {"rng": training.rng.bit_generator.state, "probe_rng": training.probe_rng.bit_generator.state}
    metadata = {"format": FORMAT, "progress": json.dumps(progress)}

    def write() -> None:
        write_whole(path, packed({name: tensor.cpu() for name, tensor in tensors.items()}, metadata))

    return write


def restore(path: Path, training: Training) -> str:
    """Bring a new training to where the file's was; in words what of it could not be, empty where all was.

    Raises ResumeError when it does not fit.
    """
    try:
        with open_tensors(path, "pt") as file:
            metadata = file.metadata() or {}
            tensors: dict[str, Tensor] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if metadata.get("format") != FORMAT:
            raise ValueError(f"its format is {quoted(metadata.get('format'))}")
        progress = json.loads(metadata["progress"])  # whose generators' states are whole numbers of 128 bits
        weights = list(training.model.parameters())
        with torch.no_grad():
            for weight, value in zip(weights, _parts(tensors["weights"], weights), strict=True):
                weight.copy_(value)
        if progress["step"]:
            kept_moments = training.optimiser.moments
            found = {name: _parts(tensors[name], kept_moments[name]) for name in kept_moments}
            for name, places in kept_moments.items():
                for place, value in zip(places, found[name], strict=True):
                    place.copy_(value)
        kept = tensors["noise"] if training.team.leads else None  # which is the leading process's own
        fresh = (training.config.training.seed, progress["step"], training.team.rank)
        training.noise = noise_for(training.device, kept, fresh)
        training.rng.bit_generator.state = progress["rng"]
        training.probe_rng.bit_generator.state = progress["probe_rng"]
        for name in PROGRESS:
            setattr(training, name, progress[name])
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise ResumeError(f"the training cannot be taken up from {path.name}: {reason(error)}") from error
    return _noise_anew(training, tensors["noise"])


def noise_for(device: torch.device, state: Tensor | None, seed: Sequence[int]) -> Tensor:
    """The state of a device's generator to go on from: the one that is given, or one of `seed` where it does not fit.

    Generators of two kinds of device have states of other sizes, and draw other numbers.
    """
    fresh = fresh_noise(device, int(np.random.SeedSequence(seed).generate_state(1)[0]))
    return fresh if state is None or (state.shape, state.dtype) != (fresh.shape, fresh.dtype) else state


def _noise_anew(training: Training, state: Tensor) -> str:
    """Why a training that draws noise does not draw what it would have drawn without a break; empty where it does."""
    config = training.config
    if training.step == 0 or (config.model.dropout == 0 and config.training.teacher_forcing == 1):
        return ""
    what = "dropout" if config.model.dropout else "teacher forcing"
    if state.shape != training.noise.shape:
        return f"{what} draws anew since step {training.step}: the training goes on on another kind of device"
    if training.team.size > 1:
        return f"{what} draws anew since step {training.step} in all processes but the leading one"
    return ""


def _flat(tensors: Sequence[Tensor]) -> Tensor:
    with torch.no_grad():
        return torch.cat([tensor.reshape(-1) for tensor in tensors])


def _parts(flat: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    """The pieces that `_flat` joined. Raises ValueError when they are not of these shapes."""
    if flat.shape != (sum(tensor.numel() for tensor in like),):
        raise ValueError("it is of another model")
    return [part.view_as(tensor) for part, tensor in zip(flat.split([t.numel() for t in like]), like, strict=True)]
