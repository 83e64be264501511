"""A GRU that reads the corners of a walk and says the next two, and its training.

The model is the same `EncoderDecoder` as over tokens, with two coordinates in place of their embeddings.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from transformer.corners import AHEAD, CORNERS, FEWEST, FRESH_STREAM, WALK_STREAM, CornerConfig, Walks, error, walks
from transformer.recurrent.sequence import EncoderDecoder, Memory
from transformer.trace import UNTRACED, Recorder, Trace, only

__all__ = [
    "AHEAD",
    "CORNERS",
    "FEWEST",
    "CornerConfig",
    "CornerStep",
    "Walker",
    "Walks",
    "build_walker",
    "error",
    "look_back",
    "say_corners",
    "train_corners",
    "walks",
]


class Walker(nn.Module):
    """Points in, points out: the decoder first reads the last given corner, then what came before."""

    def __init__(self, config: CornerConfig) -> None:
        super().__init__()
        self.config = config
        self.core = EncoderDecoder(2, config.d_model, scoring=config.attention, affine=config.affine)
        self.out = nn.Linear(self.core.d_features, 2)

    def forward(
        self,
        source: Float[Tensor, "batch source 2"],
        real: Bool[Tensor, "batch source"],
        target: Float[Tensor, "batch target 2"] | None = None,
        helped: Bool[Tensor, "batch target"] | None = None,
        trace: Trace = UNTRACED,
    ) -> Float[Tensor, "batch 2 2"]:
        """The next two corners. Where `helped`, the one after is said having read the true corner of `target`."""
        memory: Memory = self.core.encode(source, real, trace)
        last = (real.sum(dim=1) - 1)[:, None, None].expand(-1, 1, 2)
        read, state, said = source.gather(1, last), None, []
        for place in range(AHEAD):
            features, state = self.core.decode(read, memory, state, trace.within(f"target.{place}"))
            read = self.out(features)
            said.append(read)
            if target is not None and helped is not None:
                read = torch.where(helped[:, place, None, None], target[:, place : place + 1], read)
        return torch.cat(said, dim=1)


@dataclass(frozen=True, eq=False)
class CornerStep:
    """One step of training, and what the model says by itself of the walks that are drawn."""

    step: int
    loss: float
    """Mean squared error of a coordinate, as trained."""
    seconds: float
    error: float | None = None
    """Root of the mean squared distance, free-running on fresh walks; on the steps on which it was measured."""
    helped_error: float | None = None
    """The same, the second corner said after the true first."""
    said: Float[np.ndarray, "batch 2 2"] | None = None
    pattern: Float[np.ndarray, "batch 2 source"] | None = None
    """How much each corner that is said looks at each that is given, in the walks that are drawn; with attention."""
    mean_pattern: Float[np.ndarray, "given 2 source"] | None = None
    """The same, the mean over fresh walks of 2, 3, … given corners."""
    weights: dict[str, Tensor] = field(default_factory=dict, repr=False)


def build_walker(config: CornerConfig) -> Walker:
    """The untrained model, its weights drawn with the seed as PyTorch draws them: uniform within ±1/√(inputs).

    From a generator of its own: several are trained at once, in threads, and PyTorch's is common to all of them.
    """
    with torch.device("meta"):
        model = Walker(config)
    model.to_empty(device="cpu")
    generator = torch.Generator().manual_seed(config.seed)
    for module in model.modules():
        inputs = module.hidden_size if isinstance(module, nn.GRU) else getattr(module, "in_features", 0)
        for parameter in module.parameters(recurse=False):
            nn.init.uniform_(parameter, -1 / math.sqrt(inputs), 1 / math.sqrt(inputs), generator=generator)
    return model


def train_corners(model: Walker, every: int = 10, shown: Walks | None = None, fresh: int = 512) -> Iterator[CornerStep]:
    """Train by the mean squared error, measuring every so many steps; `model` is in evaluation mode between steps."""
    config = model.config
    rng = np.random.default_rng([config.seed, WALK_STREAM])
    measured = walks(np.random.default_rng([config.seed, FRESH_STREAM]), fresh, config.most, config.noise)
    optimiser = torch.optim.AdamW(model.parameters(), lr=config.learning_rate, weight_decay=0.0)
    began = time.perf_counter()
    for step in range(config.steps + 1):
        loss = math.nan
        if step:
            batch = walks(rng, config.batch_size, config.most, config.noise)
            target = torch.from_numpy(batch.target).to(model.out.weight.device)
            helped = torch.from_numpy(rng.random((config.batch_size, AHEAD)) < config.teacher_forcing).to(target.device)
            model.train()
            value = (model(*inputs(model, batch), target, helped) - target).square().mean()
            optimiser.zero_grad()
            value.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            loss = value.item()
        model.eval()
        if step % every and step != config.steps:
            yield CornerStep(step, loss, time.perf_counter() - began)
            continue
        yield CornerStep(step, loss, time.perf_counter() - began, **_seen(model, measured, shown))


def _seen(model: Walker, measured: Walks, shown: Walks | None) -> dict[str, Any]:
    """Everything that is measured at a step."""
    found: dict[str, Any] = {
        "error": error(say_corners(model, measured), measured),
        "helped_error": error(say_corners(model, measured, helped=True), measured),
        "weights": {name: value.clone() for name, value in model.state_dict().items()},
    }
    if shown is not None:
        found["said"] = say_corners(model, shown)
        if model.core.attention is not None:
            found["pattern"] = look_back(model, shown)
            everywhere, given = look_back(model, measured), measured.given
            kinds = range(FEWEST, model.config.most + 1)
            found["mean_pattern"] = np.stack([everywhere[given == count].mean(axis=0) for count in kinds])
    return found


@torch.no_grad()
def say_corners(model: Walker, asked: Walks, *, helped: bool = False) -> Float[np.ndarray, "batch 2 2"]:
    """The model's own next corners; `helped`, the second is said after the true first."""
    if not helped:
        return model(*inputs(model, asked)).cpu().numpy()
    source, real = inputs(model, asked)
    target = torch.from_numpy(asked.target).to(source.device)
    return model(source, real, target, torch.ones_like(target[..., 0], dtype=torch.bool)).cpu().numpy()


@torch.no_grad()
def look_back(model: Walker, asked: Walks) -> Float[np.ndarray, "batch 2 source"]:
    """The alignment α, free-running: how much each said corner looks at each given one; 0 on padding.

    Raises ValueError where there is no attention.
    """
    if model.core.attention is None:
        raise ValueError("without attention there is no alignment")
    recorder = Recorder(remember=only("*.pattern"))
    model(*inputs(model, asked), trace=recorder)
    return np.concatenate([pattern[:, 0].cpu().numpy() for pattern in recorder.sites.values()], axis=1)


def inputs(model: Walker, asked: Walks) -> tuple[Float[Tensor, "batch source 2"], Bool[Tensor, "batch source"]]:
    """What is given of some walks, and where it is no padding, on the device that the model is on."""
    device = model.out.weight.device
    return torch.from_numpy(asked.source).to(device), torch.from_numpy(asked.real).to(device)
