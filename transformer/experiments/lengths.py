"""Length generalisation, as plain values: trained on short inputs, measured on longer ones. No PyTorch.

`transformer.experiments.lengths_measure` measures it and writes the file; the page draws it without a model. After
"Train Short, Test Long" (Press et al., 2022) and "The Impact of Positional Encoding on Length Generalization"
(Kazemnejad et al., 2023).
"""

from __future__ import annotations

import json
import lzma
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from transformer.config import ConfigError, RunConfig
from transformer.experiments.stored import damaged, read_stored
from transformer.foundation.atomic_files import write_whole
from transformer.foundation.checks import UserError
from transformer.positions import ENCODINGS

FORMAT = "attention-lab lengths/1"
SEEDS = (0, 1, 2)
"""From which each encoding is trained where nobody says otherwise."""
FIRST = ("learned", "sinusoidal", "rotary", "alibi", "none")
"""In this order, before any other encoding that there is."""
TRACE = 0.001
"""Nats by which even the loss of a model that has learned everything may fall."""


class LengthsError(UserError):
    """A file that holds no such measurement; the message is one sentence."""


@dataclass(frozen=True)
class Fall:
    """How much lower the loss is, on average over the last tenth of the steps, than over the tenth before; in nats."""

    nats: float
    half: float
    """Twice the standard error of that difference."""

    @property
    def falling(self) -> bool:
        """Was the loss still falling at the end: by more than the noise of its batches, and by more than a trace?"""
        return self.nats > max(self.half, TRACE)

    @classmethod
    def of(cls, losses: Sequence[float]) -> Fall | None:
        """From the loss of every step; None where a tenth of them is fewer than two."""
        tenth = len(losses) // 10
        if tenth < 2:
            return None
        before, after = np.array(losses[-2 * tenth : -tenth]), np.array(losses[-tenth:])
        variance = (before.var(ddof=1) + after.var(ddof=1)) / tenth
        return cls(float(before.mean() - after.mean()), 2 * math.sqrt(variance))

    @classmethod
    def mean(cls, falls: Sequence[Fall]) -> Fall:
        """Of several trainings, whose noise is independent."""
        halves = math.sqrt(sum(each.half**2 for each in falls))
        return cls(sum(each.nats for each in falls) / len(falls), halves / len(falls))


@dataclass(frozen=True)
class Trial:
    """One training, measured at every length: counts, None where the model has no vector for a position."""

    positions: str
    seed: int
    loss: float
    """Of the last training step, in nats."""
    seconds: float
    """Spent on training."""
    exact: tuple[int | None, ...]
    """[length]: whole answers right."""
    right: tuple[tuple[int, ...] | None, ...]
    """[length][place]: right at each place of the answer."""
    fall: Fall | None = None
    """How its loss fell at the end; None where that was not measured."""


@dataclass(frozen=True)
class Lengths:
    """How every encoding does beyond the length it was trained on, seed by seed."""

    config: RunConfig
    """What all trainings share; positions and seed are each trial's own."""
    encodings: tuple[str, ...]
    seeds: tuple[int, ...]
    longest: int
    """Measured at every length from 1 to this one."""
    sequences: int
    """Fresh sequences behind each measurement."""
    device: str
    versions: dict[str, str]
    trials: tuple[Trial, ...] = ()

    @property
    def trained(self) -> int:
        """The greatest length that was trained on."""
        return self.config.task.length

    @property
    def planned(self) -> int:
        """How many trainings there are to be."""
        return len(self.encodings) * len(self.seeds)

    @property
    def complete(self) -> bool:
        return len(self.trials) == self.planned

    @property
    def measured(self) -> tuple[str, ...]:
        """The encodings that have a trial, in their order."""
        return tuple(name for name in self.encodings if any(trial.positions == name for trial in self.trials))

    def exact(self, positions: str) -> Float[np.ndarray, "seed length"]:
        """Share of whole answers right; nan where the model has no vector for a position."""
        counts = [trial.exact for trial in self.trials if trial.positions == positions]
        return np.array(counts, dtype=np.float64) / self.sequences

    def accuracy(self, positions: str, length: int) -> Float[np.ndarray, "seed place"]:
        """Share right at each place of the answer; nan where the model has no vector for a position."""
        rows = [trial.right[length - 1] for trial in self.trials if trial.positions == positions]
        return (
            np.array([[math.nan] * length if row is None else row for row in rows], dtype=np.float64) / self.sequences
        )

    def fall(self, positions: str) -> Fall | None:
        """How the loss fell at the end, over the seeds; None where one of them does not say."""
        falls = [trial.fall for trial in self.trials if trial.positions == positions]
        known = [each for each in falls if each is not None]
        return Fall.mean(known) if known and len(known) == len(falls) else None

    def with_trial(self, trial: Trial) -> Lengths:
        return replace(self, trials=(*self.trials, trial))

    def save(self, path: Path) -> None:
        """Write it whole, compressed by xz if its name says so. Raises OSError."""
        values = {"format": FORMAT, **asdict(self), "trials": [asdict(trial) for trial in self.trials]}
        values["config"] = self.config.to_dict()
        path.parent.mkdir(parents=True, exist_ok=True)
        content = json.dumps(values, separators=(",", ":")).encode()
        write_whole(path, lzma.compress(content) if path.suffix == ".xz" else content)

    @classmethod
    def load(cls, path: Path) -> Lengths:
        """Read what `save` wrote. Raises LengthsError with one sentence for anything else."""
        values = read_stored(path, FORMAT, "measurement over lengths", LengthsError)
        try:
            return cls._read(values)
        except (KeyError, TypeError, ValueError, ConfigError) as error:
            raise LengthsError(damaged(path, error)) from None

    @classmethod
    def _read(cls, values: dict[str, Any]) -> Lengths:
        """From the file's values, each checked. Raises KeyError, TypeError or ValueError."""
        found = cls(
            config=RunConfig.from_dict(values["config"]),
            encodings=tuple(_known(name) for name in values["encodings"]),
            seeds=tuple(int(seed) for seed in values["seeds"]),
            device=str(values["device"]),
            versions={str(name): str(version) for name, version in values["versions"].items()},
            longest=int(values["longest"]),
            sequences=int(values["sequences"]),
        )
        if not (found.encodings and found.seeds and found.longest >= 1 and found.sequences >= 1):
            raise ValueError("it is empty")
        trials = tuple(found._trial(**trial) for trial in values["trials"])
        pairs = {(trial.positions, trial.seed) for trial in trials}
        if len(pairs) < len(trials) or any(p not in found.encodings or s not in found.seeds for p, s in pairs):
            raise ValueError("its trials do not match its plan")
        return replace(found, trials=trials)

    def _trial(
        self, *, positions: str, seed: int, loss: float, seconds: float, exact: Any, right: Any, fall: Any = None
    ) -> Trial:
        """A trial with as many counts as there are lengths and places, each possible."""
        rows = [exact, *(row for row in right if row is not None)]
        wrong = [n for row in rows for n in row if n is not None and not (type(n) is int and 0 <= n <= self.sequences)]
        shaped = len(exact) == len(right) == self.longest and all(
            (row is None) == (whole is None) and (row is None or len(row) == length)
            for length, (row, whole) in enumerate(zip(right, exact, strict=True), 1)
        )
        if wrong or not shaped:
            raise ValueError(f"the counts of {positions}, seed {seed}, do not fit {self.sequences} sequences")
        right = tuple(None if row is None else tuple(row) for row in right)
        fell = None if fall is None else Fall(float(fall["nats"]), float(fall["half"]))
        return Trial(_known(positions), int(seed), float(loss), float(seconds), tuple(exact), right, fell)


def in_order() -> tuple[str, ...]:
    """All encodings that there are, in the order in which they are measured and drawn."""
    there = ENCODINGS.names()
    return (*(name for name in FIRST if name in there), *(name for name in there if name not in FIRST))


def _known(name: Any) -> str:
    if name not in ENCODINGS:
        raise ValueError(f"there is no encoding {name!r}")
    return str(name)
