"""A training written down between two steps, and taken up again to the bit.

One safetensors file: the weights, AdamW's moments, and in its metadata the step, the clock and the state of every
generator. Reading one executes nothing.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from transformer.checkpoints import packed
from transformer.files import write_whole
from transformer.training.loop import Training

FORMAT = "attention-lab-training/1"
PROGRESS = ("step", "seconds", "in_a_row", "last_norm")


class ResumeError(ValueError):
    """A file from which a training cannot be taken up; the message is one sentence."""


def save(path: Path, training: Training) -> None:
    """Write down everything that the next step depends on. Raises OSError."""
    tensors = {f"weights/{name}": value for name, value in training.model.state_dict().items()}
    for weight, moments in training.optimiser.state_dict()["state"].items():
        tensors |= {f"optimiser/{weight}/{name}": value for name, value in moments.items()}
    tensors["noise"] = training.noise
    progress = {name: getattr(training, name) for name in PROGRESS}
    progress |= {"rng": training.rng.bit_generator.state, "probe_rng": training.probe_rng.bit_generator.state}
    whole = {name: value.detach().contiguous().cpu() for name, value in tensors.items()}
    write_whole(path, packed(whole, {"format": FORMAT, "progress": json.dumps(progress)}))


def restore(path: Path, training: Training) -> None:
    """Bring a new training to where the file's was. Raises ResumeError when it does not fit."""
    try:
        with safe_open(str(path), framework="pt", device="cpu") as file:
            metadata = file.metadata() or {}
            tensors: dict[str, Tensor] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if metadata.get("format") != FORMAT:
            raise ValueError(f"its format is {metadata.get('format')}")
        progress = json.loads(metadata["progress"])
        optimiser = training.optimiser.state_dict()
        optimiser["state"] = {}
        for name, value in tensors.items():
            kind, _, rest = name.partition("/")
            if kind == "optimiser":
                weight, moment = rest.split("/")
                optimiser["state"].setdefault(int(weight), {})[moment] = value
        weights = {name.removeprefix("weights/"): v for name, v in tensors.items() if name.startswith("weights/")}
        with torch.no_grad():
            training.model.load_state_dict(weights)
        training.optimiser.load_state_dict(optimiser)
        training.noise = tensors["noise"]
        training.rng.bit_generator.state = progress["rng"]
        training.probe_rng.bit_generator.state = progress["probe_rng"]
        for name in PROGRESS:
            setattr(training, name, progress[name])
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        text = " ".join(str(error).split())[:120]
        raise ResumeError(f"the training cannot be taken up from {path.name}: {text}") from error
