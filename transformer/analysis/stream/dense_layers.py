"""The dense layers of different blocks: what they share (a shape), what they do not (weights), and across positions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from transformer.analysis.sample import lay_out, observe_batch
from transformer.blocks import Block
from transformer.config import ConfigError
from transformer.model import Transformer
from transformer.tasks import Question, Task

NONE = "this model has no feed-forward layers"


@dataclass(frozen=True)
class Feeds:
    """The feed-forward layers of a model, beside each other."""

    names: tuple[str, ...]
    """The blocks, in the order of the data's way: "decoder.0" …"""
    up: tuple[Float[np.ndarray, "d_ff d_model"], ...]
    """W₁ of each."""
    cosine: Float[np.ndarray, "block block"]
    """Of all weights of two layers, W₁ and W₂ written one after the other."""
    said: Float[np.ndarray, "block block"]
    """Mean cosine of what two of them say of the same streams. No order of the hidden units matters to it."""
    weights: int
    """How many numbers each cosine is over."""


@torch.no_grad()
def compare_feeds(model: Transformer, task: Task, question: Question) -> Feeds:
    """All of them, on the streams that the first reads. Raises ConfigError where there are none."""
    blocks = _blocks(model)
    feeds = [block.feed_forward for block in blocks.values()]
    read = _reads(model, task, question)[next(iter(blocks))]
    said = torch.stack([functional.normalize(feed(read)[0], dim=-1) for feed in feeds])
    flat = torch.stack([torch.cat([feed.up.weight.ravel(), feed.down.weight.ravel()]) for feed in feeds])
    units = functional.normalize(flat, dim=-1)
    return Feeds(
        tuple(blocks),
        tuple(feed.up.weight.cpu().numpy().copy() for feed in feeds),
        (units @ units.T).cpu().numpy(),
        torch.einsum("apd,bpd->ab", said, said).div(read.shape[1]).cpu().numpy(),
        flat.shape[1],
    )


@torch.no_grad()
def permuted(model: Transformer, task: Task, question: Question, seed: int = 0) -> float:
    """How far feeding permuted positions is from permuting what was fed: the largest |f(x)∘π − f(x∘π)| of all layers.

    0 up to rounding, for a feed-forward layer sees one position at a time. Raises ConfigError where there is none.
    """
    furthest, generator = 0.0, torch.Generator().manual_seed(seed)
    reads = _reads(model, task, question)
    for name, block in _blocks(model).items():
        read = reads[name]
        order = torch.randperm(read.shape[1], generator=generator).to(read.device)
        moved = block.feed_forward(read)[:, order] - block.feed_forward(read[:, order])
        furthest = max(furthest, float(moved.abs().max()))
    return furthest


def _blocks(model: Transformer) -> dict[str, Block]:
    stacks = {name: getattr(model, name, nn.ModuleList()) for name in ("encoder", "decoder")}
    found = {f"{name}.{i}": block for name, stack in stacks.items() for i, block in enumerate(stack) if block.feeds}
    if not found:
        raise ConfigError(NONE)
    return found


def _reads(model: Transformer, task: Task, question: Question) -> dict[str, Float[Tensor, "1 position d_model"]]:
    """What each feed-forward layer reads of a question and its right answer."""
    seen = observe_batch(model, lay_out(task, question))
    found = {}
    for name, block in _blocks(model).items():
        crossed = f"{name}.resid_cross"
        resid = seen[crossed if crossed in seen.sites else f"{name}.resid_mid"]
        found[name] = block.around_feed_forward.before(resid)
    return found
