"""What teacher forcing does to the errors on square corners, as plain values. No PyTorch.

`transformer.experiments.teacher_forcing_measure` measures it and writes the file; the page draws it without a model.
After "Scheduled Sampling for Sequence Prediction with Recurrent Neural Networks" (Bengio et al., 2015).
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from transformer.config import ConfigError
from transformer.corners import CornerConfig
from transformer.experiments.stored import damaged, read_stored
from transformer.foundation.atomic_files import write_whole
from transformer.foundation.checks import UserError

FORMAT = "attention-lab forcing/1"


class ForcingError(UserError):
    """A file that holds no such measurement; the message is one sentence."""


@dataclass(frozen=True)
class Trial:
    """One training and its errors on fresh walks: roots of the mean squared distance."""

    chance: float
    """Of the true corner being read while it trains."""
    seed: int
    error: float
    """Free-running."""
    helped_error: float
    """The second corner said after the true first."""
    seconds: float
    """Spent on training."""


@dataclass(frozen=True)
class Forcing:
    """Errors after training with several probabilities of teacher forcing, seed by seed."""

    config: CornerConfig
    """What all trainings share; probability and seed are each trial's own."""
    chances: tuple[float, ...]
    seeds: tuple[int, ...]
    sequences: int
    """Fresh walks behind each error."""
    versions: dict[str, str]
    trials: tuple[Trial, ...] = ()

    @property
    def planned(self) -> int:
        """How many trainings there are to be."""
        return len(self.chances) * len(self.seeds)

    @property
    def complete(self) -> bool:
        return len(self.trials) == self.planned

    def errors(self, *, helped: bool = False) -> Float[np.ndarray, "chance seed"]:
        """Free-running, or `helped`; nan where there is none yet."""
        table = np.full((len(self.chances), len(self.seeds)), math.nan)
        for trial in self.trials:
            place = self.chances.index(trial.chance), self.seeds.index(trial.seed)
            table[place] = trial.helped_error if helped else trial.error
        return table

    def with_trial(self, trial: Trial) -> Forcing:
        return replace(self, trials=(*self.trials, trial))

    def save(self, path: Path) -> None:
        """Write it whole. Raises OSError."""
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps({"format": FORMAT, **asdict(self)}, separators=(",", ":")).encode())

    @classmethod
    def load(cls, path: Path) -> Forcing:
        """Read what `save` wrote. Raises ForcingError with one sentence for anything else."""
        values = read_stored(path, FORMAT, "measurement of teacher forcing", ForcingError)
        try:
            return cls._read(values)
        except (KeyError, TypeError, ValueError, ConfigError) as error:
            raise ForcingError(damaged(path, error)) from None

    @classmethod
    def _read(cls, values: dict[str, Any]) -> Forcing:
        """From the file's values, each checked. Raises KeyError, TypeError or ValueError."""
        found = cls(
            config=CornerConfig(**values["config"]),
            chances=tuple(float(chance) for chance in values["chances"]),
            seeds=tuple(int(seed) for seed in values["seeds"]),
            sequences=int(values["sequences"]),
            versions={str(name): str(version) for name, version in values["versions"].items()},
            trials=tuple(_trial(**trial) for trial in values["trials"]),
        )
        if not (found.chances and found.seeds and found.sequences >= 1):
            raise ValueError("it is empty")
        pairs = {(trial.chance, trial.seed) for trial in found.trials}
        if len(pairs) < len(found.trials) or any(p not in found.chances or s not in found.seeds for p, s in pairs):
            raise ValueError("its trials do not match its plan")
        return found


def _trial(*, chance: float, seed: int, error: float, helped_error: float, seconds: float) -> Trial:
    """A trial whose numbers are some. Raises ValueError or TypeError."""
    numbers = [float(value) for value in (chance, error, helped_error, seconds)]
    if not all(math.isfinite(value) and value >= 0 for value in numbers) or numbers[0] > 1:
        raise ValueError(f"the errors of seed {seed} are not valid numbers")
    return Trial(numbers[0], int(seed), *numbers[1:])


def shared(config: CornerConfig) -> CornerConfig:
    """The settings without the probability and the seed: what names a measurement."""
    return replace(config, teacher_forcing=CornerConfig().teacher_forcing, seed=CornerConfig().seed)


def file_name(config: CornerConfig) -> str:
    """Under which name a measurement of these settings is kept, and looked for."""
    return f"corners-{hashlib.sha256(repr(shared(config)).encode()).hexdigest()[:12]}.json"
