"""Accuracy with and without the division of scores by the root of d_head, width by width, as plain values. No PyTorch.

`transformer.experiments.scaling_measure` measures it and writes the file; the gallery of mistakes draws it.
After "Attention Is All You Need" (Vaswani et al., 2017), section 3.2.1 and its footnote 4.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from transformer.experiments.stored import damaged, read_stored
from transformer.foundation.atomic_files import write_whole
from transformer.foundation.checks import UserError

FORMAT = "attention-lab scaling/1"


class ScalingError(UserError):
    """A file that holds no such measurement; the message is one sentence."""


@dataclass(frozen=True)
class Trial:
    """One model, before its training and after some of its steps."""

    width: int
    """d_model."""
    scaled: bool
    """Are its scores divided?"""
    rate: float
    """AdamW's learning rate."""
    seed: int
    gradient: float
    """Before the first step: the mean over heads and queries of (1 - Σ p²) / (1 - 1/n), p a query's n shares.

    1 - Σ p² is the trace of the softmax's Jacobian: 1 is an even look, 0 all attention on one key, where no gradient
    reaches the scores.
    """
    accuracy: tuple[float, ...]
    """Of the answer, on fresh sequences, after each of the measurement's steps."""


@dataclass(frozen=True)
class Scaling:
    """Trainings of several widths with the division and without it, seed by seed."""

    widths: tuple[int, ...]
    """d_model, ascending."""
    heads: int
    layers: int
    rates: tuple[float, ...]
    seeds: tuple[int, ...]
    steps: tuple[int, ...]
    """After which it was measured, ascending."""
    length: int
    """Symbols of the sequence that is reversed."""
    batch: int
    sequences: int
    """Fresh sequences behind each accuracy."""
    versions: dict[str, str]
    trials: tuple[Trial, ...] = ()

    @property
    def planned(self) -> int:
        """How many trainings there are to be."""
        return 2 * len(self.widths) * len(self.rates) * len(self.seeds)

    @property
    def complete(self) -> bool:
        return len(self.trials) == self.planned

    def accuracies(self, rate: float, step: int, *, scaled: bool) -> Float[np.ndarray, "width seed"]:
        """The share of the answer that is right after a step; nan where there is none yet."""
        place = self.steps.index(step)
        return self._table(rate, scaled, lambda trial: trial.accuracy[place])

    def gradients(self, *, scaled: bool) -> Float[np.ndarray, "width seed"]:
        """What softmax lets through before the first step, which no rate changes; nan where there is none yet."""
        return self._table(self.rates[0], scaled, lambda trial: trial.gradient)

    def _table(self, rate: float, scaled: bool, number: Any) -> np.ndarray:
        table = np.full((len(self.widths), len(self.seeds)), math.nan)
        for trial in self.trials:
            if (trial.rate, trial.scaled) == (rate, scaled):
                table[self.widths.index(trial.width), self.seeds.index(trial.seed)] = number(trial)
        return table

    def with_trial(self, trial: Trial) -> Scaling:
        return replace(self, trials=(*self.trials, trial))

    def save(self, path: Path) -> None:
        """Write it whole. Raises OSError."""
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps({"format": FORMAT, **asdict(self)}, separators=(",", ":")).encode())

    @classmethod
    def load(cls, path: Path) -> Scaling:
        """Read what `save` wrote. Raises ScalingError with one sentence for anything else."""
        values = read_stored(path, FORMAT, "measurement of the scale", ScalingError)
        try:
            return cls._read(values)
        except (KeyError, TypeError, ValueError) as error:
            raise ScalingError(damaged(path, error)) from None

    @classmethod
    def _read(cls, values: dict[str, Any]) -> Scaling:
        """From the file's values, each checked. Raises KeyError, TypeError or ValueError."""
        found = cls(
            widths=tuple(int(width) for width in values["widths"]),
            heads=int(values["heads"]),
            layers=int(values["layers"]),
            rates=tuple(float(rate) for rate in values["rates"]),
            seeds=tuple(int(seed) for seed in values["seeds"]),
            steps=tuple(int(step) for step in values["steps"]),
            length=int(values["length"]),
            batch=int(values["batch"]),
            sequences=int(values["sequences"]),
            versions={str(name): str(version) for name, version in values["versions"].items()},
            trials=tuple(_trial(**trial) for trial in values["trials"]),
        )
        if not (found.widths and found.rates and found.seeds and found.steps and found.sequences >= 1):
            raise ValueError("it is empty")
        plan = {(w, s, r, n) for w in found.widths for s in (False, True) for r in found.rates for n in found.seeds}
        kinds = [(trial.width, trial.scaled, trial.rate, trial.seed) for trial in found.trials]
        if len(set(kinds)) < len(kinds) or not plan >= set(kinds):
            raise ValueError("its trials do not match its plan")
        if any(len(trial.accuracy) != len(found.steps) for trial in found.trials):
            raise ValueError("its trials do not match its steps")
        return found


def _trial(*, width: int, scaled: bool, rate: float, seed: int, gradient: float, accuracy: list[float]) -> Trial:
    """A trial whose numbers are some. Raises ValueError or TypeError."""
    shares = [float(value) for value in (gradient, *accuracy)]
    if not all(0 <= value <= 1 for value in shares):
        raise ValueError(f"the numbers of width {width} and seed {seed} are no shares")
    return Trial(int(width), bool(scaled), float(rate), int(seed), shares[0], tuple(shares[1:]))
