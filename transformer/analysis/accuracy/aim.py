"""When a task is solved: all that can be known of its answers is said."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from transformer.analysis.accuracy.best_guess import TIE
from transformer.analysis.accuracy.by_position import predictions
from transformer.analysis.accuracy.ceilings import best_guess, ceiling
from transformer.analysis.intervals import CAUTION
from transformer.config import PROBE_SEQUENCES, RunConfig
from transformer.masks import parse
from transformer.network import Network

FIRST_LOOK = 128
"""Fresh sequences that are looked at first; the others only when these say that it may be solved."""
CLOSE = 0.005
"""How far the first look may fall short of `solved_at` for the others to be looked at."""


class Aim:
    """What the answers y1..yn can be right at most, and whether a model is. SEP and the question do not count.

    Where each answer can be known or be guessed only, it is solved once the known ones are right in `solved_at` of
    fresh sequences of the greatest length. Where lengths vary, or an answer can be known in part, what a model says is
    compared with the best guess (`BestGuess.share`), on sequences as they are drawn for training.
    """

    def __init__(self, config: RunConfig) -> None:
        self.task, self.enough = config.build_task(), config.training.solved_at
        self.ceiling, answers = ceiling(config), self.task.answers(self.task.length)
        most = self.ceiling.accuracy
        self.counted = answers & (most == 1)
        partly = (most > self.task.chance * (1 + TIE)) & (most < 1)
        self.best = None
        if self.task.lawful and (len(self.task.lengths) > 1 or (answers & partly).any()):
            self.counted = answers
            self.best = best_guess(self.task, parse(config.model.mask), config.model.n_layers)

    def near(self, accuracy: Float[np.ndarray, "target"], sequences: int, slack: float = 0.0) -> bool:
        """Is accuracy by position such that it may be solved, up to `slack`? Where `best` is None: it is.

        Where nobody can be right always, not even the best guess is measured as right as it is.
        """
        if not self.counted.any():
            return False
        share, most = float(accuracy[self.counted].mean()), self.ceiling.least[self.counted]
        if self.best is None:
            return share >= self.enough - slack
        noise = math.sqrt(float((most * (1 - most)).mean()) / sequences) + float(self.ceiling.error.mean())
        return share >= self.enough * float(most.mean()) - slack - CAUTION * noise

    def reached(self, model: Network, rng: np.random.Generator) -> bool:
        """Is it solved, where it is near? The model must be in evaluation mode."""
        if self.best is None:
            return True
        batch = self.task.batch(rng, PROBE_SEQUENCES)
        first = batch.part(slice(FIRST_LOOK))
        if self.best.share(first, predictions(model, first)) < self.enough - CLOSE:
            return False
        return self.best.share(batch, predictions(model, batch)) >= self.enough
