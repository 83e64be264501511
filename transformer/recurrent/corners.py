"""Square corners: a walk around a square, of which the first corners are given and the next two are to be said.

The second task of the way from recurrence to attention, and the smallest that a plane can show: points in, points out,
by regression. The model is the same `EncoderDecoder`, with two coordinates in place of token embeddings.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from transformer.config import ATTENTIONS, ConfigError
from transformer.recurrent.sequence import EncoderDecoder, Memory
from transformer.trace import UNTRACED, Trace

CORNERS = np.array([(-1, -1), (-1, 1), (1, 1), (1, -1)], dtype=np.float32)
"""Of the square, clockwise."""
AHEAD = 2
"""Corners that are to be said."""
FEWEST = 2
"""Given corners; from fewer nobody could tell which way round it goes."""
WALK_STREAM, FRESH_STREAM, DRAWING_STREAM = 0, 1, 2


@dataclass(frozen=True, kw_only=True)
class CornerConfig:
    """A training on square corners."""

    d_model: int = 2
    """Width of the hidden states; two can be drawn."""
    attention: str = "none"
    """How the decoder looks back: none, uniform, dot, scaled-dot or additive."""
    affine: bool = True
    """Give attention affine maps of its own."""
    teacher_forcing: float = 0.5
    """Probability with which the decoder reads the true corner while it trains, and not its own."""
    most: int = 2
    """Given corners at most; each walk has from 2 to so many."""
    noise: float = 0.1
    """Standard deviation of each coordinate around its corner."""
    seed: int = 0
    steps: int = 600
    batch_size: int = 32
    learning_rate: float = 0.01

    def __post_init__(self) -> None:
        for good, sentence in (
            (self.attention in ATTENTIONS, f"attention must be one of {', '.join(ATTENTIONS)}"),
            (1 <= self.d_model <= 256, f"d_model must be between 1 and 256, not {self.d_model}"),
            (0 <= self.teacher_forcing <= 1, f"teacher_forcing must be between 0 and 1, not {self.teacher_forcing:g}"),
            (FEWEST <= self.most <= 12, f"most must be between {FEWEST} and 12, not {self.most}"),
            (0 <= self.noise <= 1, f"noise must be between 0 and 1, not {self.noise:g}"),
        ):
            if not good:
                raise ConfigError(sentence)


@dataclass(frozen=True, eq=False)
class Walks:
    """Walks around the square, given and to be said."""

    source: Float[np.ndarray, "batch source 2"]
    """The given corners, with noise; 0 on padding, which stands at the end."""
    real: Bool[np.ndarray, "batch source"]
    target: Float[np.ndarray, "batch target 2"]
    """The next corners, with noise."""
    start: Int[np.ndarray, "batch"]
    """The first corner's place in CORNERS."""
    turn: Int[np.ndarray, "batch"]
    """1 clockwise, -1 anticlockwise."""


def walks(rng: np.random.Generator, size: int, most: int = FEWEST, noise: float = 0.1) -> Walks:
    """Fresh walks: start, way round and number of given corners are uniform, noise is normal and independent."""
    start, turn = rng.integers(0, 4, size), rng.choice([1, -1], size)
    given = rng.integers(FEWEST, most + 1, size)
    places = (start[:, None] + turn[:, None] * np.arange(most + AHEAD)) % 4
    points = CORNERS[places] + noise * rng.standard_normal((size, most + AHEAD, 2)).astype(np.float32)
    real = np.arange(most) < given[:, None]
    ahead = np.take_along_axis(points, (given[:, None] + np.arange(AHEAD))[..., None], axis=1)
    return Walks(np.where(real[..., None], points[:, :most], 0).astype(np.float32), real, ahead, start, turn)


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
    weights: dict[str, Tensor] = field(default_factory=dict, repr=False)


def build_walker(config: CornerConfig) -> Walker:
    """The untrained model, its weights drawn with the seed (the global generator is left as it was)."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        return Walker(config)


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
            target = torch.from_numpy(batch.target)
            helped = torch.from_numpy(rng.random((config.batch_size, AHEAD)) < config.teacher_forcing)
            model.train()
            value = (model(*_read(batch), target, helped) - target).square().mean()
            optimiser.zero_grad()
            value.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            loss = value.item()
        model.eval()
        if step % every and step != config.steps:
            yield CornerStep(step, loss, time.perf_counter() - began)
            continue
        yield CornerStep(
            step,
            loss,
            time.perf_counter() - began,
            error(say_corners(model, measured), measured),
            error(say_corners(model, measured, helped=True), measured),
            None if shown is None else say_corners(model, shown),
            {name: value.clone() for name, value in model.state_dict().items()},
        )


@torch.no_grad()
def say_corners(model: Walker, asked: Walks, *, helped: bool = False) -> Float[np.ndarray, "batch 2 2"]:
    """The model's own next corners; `helped`, the second is said after the true first."""
    if not helped:
        return model(*_read(asked)).numpy()
    target = torch.from_numpy(asked.target)
    return model(*_read(asked), target, torch.ones(target.shape[:2], dtype=torch.bool)).numpy()


def error(said: Float[np.ndarray, "batch 2 2"], asked: Walks) -> float:
    """Root of the mean squared distance to the true corner; noise alone makes noise · √2 of it."""
    return float(np.sqrt(((said - asked.target) ** 2).sum(axis=-1).mean()))


def _read(asked: Walks) -> tuple[Tensor, Tensor]:
    return torch.from_numpy(asked.source), torch.from_numpy(asked.real)
