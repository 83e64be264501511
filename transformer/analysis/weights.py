"""What a model is made of, tensor by tensor: parameters, buffers, and how far training has moved each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer.network import Network

PARAMETER, BUFFER = "parameter", "buffer"


@dataclass(frozen=True)
class Entry:
    """One tensor of a model."""

    name: str
    shape: tuple[int, ...]
    numbers: int
    size: int
    """Bytes in memory."""
    kind: str
    """A parameter, which the optimiser changes, or a buffer, which it does not."""
    stored: bool
    """Is it in the state dict? A buffer that follows from the config is not: it is computed when the model is built."""
    same_as: str = ""
    """The parameter whose numbers these are, where two names share them; they are counted there."""


def inventory(model: Network) -> tuple[Entry, ...]:
    """Every tensor of a model: first what `state_dict` holds, in its order, then the buffers that it leaves out."""
    stored = model.state_dict(keep_vars=True)
    parameters = dict(model.named_parameters(remove_duplicate=False))
    computed = {name: buffer for name, buffer in model.named_buffers() if name not in stored}
    first: dict[int, str] = {}
    found = []
    for name, tensor in {**stored, **computed}.items():
        owner = first.setdefault(id(tensor), name)
        kind = PARAMETER if name in parameters else BUFFER
        same_as = "" if owner == name else owner
        size = tensor.numel() * tensor.element_size()
        found.append(Entry(name, tuple(tensor.shape), tensor.numel(), size, kind, name in stored, same_as))
    return tuple(found)


@dataclass(frozen=True)
class Movement:
    """How far one tensor is from where it began."""

    distance: float
    """‖W - W₀‖, the root of the sum of squares."""
    began: float
    """‖W₀‖."""

    @property
    def relative(self) -> float:
        """‖W - W₀‖ / ‖W₀‖; nan where it began at 0, as every bias does, and 0 where nothing moved."""
        if self.distance == 0:
            return 0.0
        return self.distance / self.began if self.began else float("nan")


@torch.no_grad()
def movements(now: Network, initial: Network) -> dict[str, Movement]:
    """How far each tensor of a model has moved since it was built, by name; buffers as well."""
    before = _tensors(initial)
    return {name: _movement(tensor, before[name]) for name, tensor in _tensors(now).items()}


def _tensors(model: Network) -> dict[str, Tensor]:
    return {**dict(model.named_buffers()), **model.state_dict()}


def _movement(now: Tensor, before: Tensor) -> Movement:
    one, other = now.cpu().double().numpy(), before.cpu().double().numpy()
    return Movement(float(np.linalg.norm(one - other)), float(np.linalg.norm(other)))
