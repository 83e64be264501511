"""A walk said by a GRU, opened up: every state of encoder and decoder, and the gates that made it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer.corners import AHEAD, Walks
from transformer.recurrent.corners import Walker, inputs
from transformer.trace import Recorder


@dataclass(frozen=True, eq=False)
class Cell:
    """One step of a GRU: what it reads, its gates, and the state it leaves."""

    read: Float[np.ndarray, "2"]
    before: Float[np.ndarray, "d_model"]
    """The state before it, h."""
    reset: Float[np.ndarray, "d_model"]
    update: Float[np.ndarray, "d_model"]
    new: Float[np.ndarray, "d_model"]
    """The candidate, n."""
    state: Float[np.ndarray, "d_model"]
    """The state after it, as the run recorded it."""
    context: Float[np.ndarray, "d_model"] | None = None
    """Of a decoder with attention."""
    said: Float[np.ndarray, "2"] | None = None
    """Of a decoder: the corner that it says."""


@dataclass(frozen=True, eq=False)
class RollOut:
    """A walk, step by step: the given corners are read, the last state is handed over, the next two are said."""

    encoder: tuple[Cell, ...]
    decoder: tuple[Cell, ...]
    true: Float[np.ndarray, "2 2"]

    @property
    def handed_over(self) -> Float[np.ndarray, "d_model"]:
        """The encoder's last state: with it the decoder begins."""
        return self.encoder[-1].state

    @property
    def missed(self) -> Float[np.ndarray, "2"]:
        """How far each said corner is from the true one."""
        said = np.array([cell.said for cell in self.decoder])
        found: np.ndarray = np.linalg.norm(said - self.true, axis=1)
        return found


def gates(
    layer: nn.GRU, x: Float[Tensor, "d_in"], h: Float[Tensor, "d_model"]
) -> tuple[Float[Tensor, "d_model"], Float[Tensor, "d_model"], Float[Tensor, "d_model"], Float[Tensor, "d_model"]]:
    """Reset gate, update gate, candidate and next state of one GRU step, as `nn.GRU` computes them.

    After Cho et al. (2014), equations 5 to 8; the reset gate acts on the product with h and its bias, as in PyTorch.
    """
    W_x, b_x, W_h, b_h = (getattr(layer, f"{name}_l0") for name in ("weight_ih", "bias_ih", "weight_hh", "bias_hh"))
    x_r, x_z, x_n = (W_x @ x + b_x).chunk(3)
    h_r, h_z, h_n = (W_h @ h + b_h).chunk(3)
    r = torch.sigmoid(x_r + h_r)
    z = torch.sigmoid(x_z + h_z)
    n = torch.tanh(x_n + r * h_n)
    return r, z, n, (1 - z) * n + z * h


@torch.no_grad()
def roll_out(model: Walker, asked: Walks, walk: int) -> RollOut:
    """Let the model say one of the walks by itself, and open every step of it."""
    given = int(asked.given[walk])
    source = inputs(model, asked)[0][walk : walk + 1, :given]
    recorder = Recorder()
    said = model(source, torch.ones_like(source[..., 0], dtype=torch.bool), trace=recorder)[0]
    sites = recorder.sites
    states = sites["encoder.states"][0]
    zero = torch.zeros_like(states[0])
    encoder = tuple(
        _cell(model.core.encoder.layers[0], source[0, i], states[i - 1] if i else zero, states[i]) for i in range(given)
    )
    decoder, before, read = [], sites["encoder.last"][0, 0], source[0, -1]
    for target in range(AHEAD):
        site = f"target.{target}.decoder.0"
        state = sites[f"{site}.states"][0, 0]
        context = sites.get(f"{site}.cross_attention.z")
        seen = None if context is None else context[0, 0, 0]
        decoder.append(_cell(model.core.decoder.layers[0], read, before, state, seen, said[target]))
        before, read = state, said[target]
    return RollOut(encoder, tuple(decoder), asked.target[walk])


def _cell(
    layer: nn.Module, x: Tensor, h: Tensor, state: Tensor, context: Tensor | None = None, said: Tensor | None = None
) -> Cell:
    assert isinstance(layer, nn.GRU)
    r, z, n, _ = gates(layer, x, h)
    values = (x, h, r, z, n, state, context, said)
    arrays = [None if each is None else each.detach().cpu().numpy().copy() for each in values]
    return Cell(*arrays)  # type: ignore[arg-type]
