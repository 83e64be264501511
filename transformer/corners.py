"""Square corners: a walk around a square, of which the first corners are given and the next two are to be said.

The second task of the way from recurrence to attention, and the smallest that a plane can show: points in, points out,
by regression. No PyTorch; the model and its training are in `transformer.recurrent.corners`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from transformer.config import ATTENTIONS, ConfigError

CORNERS = np.array([(-1, -1), (-1, 1), (1, 1), (1, -1)], dtype=np.float32)
"""Of the square, clockwise."""
AHEAD = 2
"""Corners that are to be said."""
FEWEST, MOST = 2, 12
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
    """Decides the initial weights and every walk."""
    steps: int = 400
    """Steps of training."""
    batch_size: int = 32
    """Walks in a step."""
    learning_rate: float = 0.02
    """AdamW's rate."""

    def __post_init__(self) -> None:
        for good, sentence in (
            (self.attention in ATTENTIONS, f"attention must be one of {', '.join(ATTENTIONS)}"),
            (1 <= self.d_model <= 256, f"d_model must be between 1 and 256, not {self.d_model}"),
            (0 <= self.teacher_forcing <= 1, f"teacher_forcing must be between 0 and 1, not {self.teacher_forcing:g}"),
            (FEWEST <= self.most <= MOST, f"most must be between {FEWEST} and {MOST}, not {self.most}"),
            (0 <= self.noise <= 1, f"noise must be between 0 and 1, not {self.noise:g}"),
            (0 <= self.seed < 2**31, f"seed must be between 0 and {2**31 - 1}, not {self.seed}"),
            (1 <= self.steps <= 100_000, f"steps must be between 1 and 100000, not {self.steps}"),
            (1 <= self.batch_size <= 65_536, f"batch_size must be between 1 and 65536, not {self.batch_size}"),
            (0 < self.learning_rate <= 10, f"learning_rate must be above 0 and at most 10, not {self.learning_rate:g}"),
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

    @property
    def given(self) -> Int[np.ndarray, "batch"]:
        """How many corners are given."""
        return self.real.sum(axis=1)

    def which(self, start: int, turn: int, given: int) -> int:
        """The first walk of this kind. Raises IndexError when there is none."""
        return int(np.flatnonzero((self.start == start) & (self.turn == turn) & (self.given == given))[0])

    def visited(self, walk: int) -> Float[np.ndarray, "corner 2"]:
        """The corners of one walk without their noise, the given ones and the next."""
        one = slice(walk, walk + 1)
        return CORNERS[_places(self.start[one], self.turn[one], int(self.given[walk]) + AHEAD)[0]]


def walks(rng: np.random.Generator, size: int, most: int = FEWEST, noise: float = 0.1) -> Walks:
    """Fresh walks: start, way round and number of given corners are uniform, noise is normal and independent."""
    start, turn = rng.integers(0, 4, size), rng.choice([1, -1], size)
    given = rng.integers(FEWEST, most + 1, size)
    return _walked(start, turn, given, noise * rng.standard_normal((size, most + AHEAD, 2)))


def every_walk(most: int = FEWEST, noise: float = 0.1) -> Walks:
    """Each start, way round and number of given corners once, for a picture: always the same noise, made so large.

    Walks that differ in how many corners are given go the same way.
    """
    counts = np.arange(FEWEST, most + 1)
    given, turn, start = (axis.ravel() for axis in np.meshgrid(counts, [1, -1], np.arange(4), indexing="ij"))
    wobble = np.random.default_rng([0, DRAWING_STREAM]).standard_normal((2, 4, MOST + AHEAD, 2))
    return _walked(start, turn, given, noise * wobble[(1 - turn) // 2, start, : most + AHEAD])


def floor(noise: float) -> float:
    """The error that noise alone leaves to a perfect rule: √(σ² + σ²), for either coordinate of a target has its own.

    Nothing that was given tells anything about it.
    """
    return noise * math.sqrt(2)


def error(said: Float[np.ndarray, "batch 2 2"], asked: Walks) -> float:
    """Root of the mean squared distance to the true corner; see `floor`."""
    return float(np.sqrt(((said - asked.target) ** 2).sum(axis=-1).mean()))


def _walked(
    start: Int[np.ndarray, "batch"],
    turn: Int[np.ndarray, "batch"],
    given: Int[np.ndarray, "batch"],
    wobble: Float[np.ndarray, "batch corner 2"],
) -> Walks:
    """Walks with this noise, cut into what is given and what comes next."""
    most = wobble.shape[1] - AHEAD
    points = (CORNERS[_places(start, turn, most + AHEAD)] + wobble).astype(np.float32)
    real = np.arange(most) < given[:, None]
    ahead = np.take_along_axis(points, (given[:, None] + np.arange(AHEAD))[..., None], axis=1)
    return Walks(np.where(real[..., None], points[:, :most], np.float32(0)), real, ahead, start, turn)


def _places(
    start: Int[np.ndarray, "batch"], turn: Int[np.ndarray, "batch"], count: int
) -> Int[np.ndarray, "batch {count}"]:
    """Which corners of CORNERS a walk visits, one after the other."""
    return (start[:, None] + turn[:, None] * np.arange(count)) % 4
