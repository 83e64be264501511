"""The bottleneck, as plain values: three models that answer by themselves, counted at every length. No PyTorch.

`transformer.experiments.bottleneck_measure` measures it; the page draws it without a model. The fixed vector is that of
Sutskever et al. (2014) and Cho et al. (2014), the remedy that of Bahdanau et al. (2015), who show this very chart
(figure 2).
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

from transformer.config import ConfigError, RunConfig, TaskConfig
from transformer.experiments.stored import damaged, read_stored
from transformer.foundation.atomic_files import write_whole
from transformer.foundation.checks import UserError

FORMAT = "attention-lab bottleneck/1"
KINDS = ("gru", "gru-attention", "transformer")
"""Who is compared: one vector, attention over all states, and no recurrence at all."""


class BottleneckError(UserError):
    """A file that holds no such measurement; the message is one sentence."""


@dataclass(frozen=True)
class Contestant:
    """One trained model, asked for whole answers at every length, nobody helping: counts."""

    run: str
    """The run's folder name."""
    snapshot: str
    """Digest of the weights that were measured."""
    config: RunConfig
    parameters: int
    seconds: float
    """Spent on training, its measurements included."""
    exact: tuple[int, ...]
    """[length]: whole answers right."""
    right: tuple[tuple[int, ...], ...]
    """[length][place]: right at each place of the answer."""

    @property
    def kind(self) -> str:
        """Which of KINDS it is."""
        return kind_of(self.config)


def kind_of(config: RunConfig) -> str:
    """Which of KINDS a run's model is."""
    if not config.model.recurrent:
        return "transformer"
    return "gru-attention" if config.model.attends else "gru"


@dataclass(frozen=True)
class Bottleneck:
    """Three models of one size, trained alike, and how much each of them says right by itself."""

    contestants: tuple[Contestant, ...]
    """One of each of KINDS, in that order."""
    sequences: int
    """Fresh sequences behind each count."""
    device: str
    versions: dict[str, str]

    @property
    def task(self) -> TaskConfig:
        """What all three were trained on."""
        return self.contestants[0].config.task

    @property
    def lengths(self) -> range:
        """The lengths that were trained on and measured."""
        return self.contestants[0].config.build_task().lengths

    def of(self, kind: str) -> Contestant:
        return self.contestants[KINDS.index(kind)]

    def exact(self, kind: str) -> Int[np.ndarray, "length"]:
        """Whole answers right at each of `lengths`, of `sequences`."""
        return np.array(self.of(kind).exact)

    def right(self, kind: str, length: int) -> Int[np.ndarray, "place"]:
        """Right at each place of the answer to questions of one length, of `sequences`."""
        return np.array(self.of(kind).right[self.lengths.index(length)])

    def save(self, path: Path) -> None:
        """Write it whole. Raises OSError."""
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps({"format": FORMAT, **asdict(self)}, separators=(",", ":")).encode())

    @classmethod
    def load(cls, path: Path) -> Bottleneck:
        """Read what `save` wrote. Raises BottleneckError with one sentence for anything else."""
        values = read_stored(path, FORMAT, "measurement of the bottleneck", BottleneckError)
        try:
            sequences = int(values["sequences"])
            versions = {str(name): str(version) for name, version in values["versions"].items()}
            contestants = tuple(_contestant(sequences, **each) for each in values["contestants"])
            found = cls(contestants, sequences, str(values["device"]), versions)
            if tuple(each.kind for each in contestants) != KINDS or len({each.config.task for each in contestants}) > 1:
                raise ValueError("it does not hold the three models that are compared")
        except (AttributeError, KeyError, TypeError, ValueError, ConfigError) as error:
            raise BottleneckError(damaged(path, error)) from None
        return found


def _contestant(sequences: int, *, config: Any, exact: Any, right: Any, **said: Any) -> Contestant:
    """From a file's values, each checked. Raises TypeError, ValueError or ConfigError."""
    made = RunConfig.from_dict(config)
    lengths = made.build_task().lengths
    shaped = [len(row) for row in right] == list(lengths) and len(exact) == len(lengths)
    counts = [*exact, *(count for row in right for count in row)]
    if not shaped or not all(type(count) is int and 0 <= count <= sequences for count in counts) or sequences < 1:
        raise ValueError(f"the counts of {str(said.get('run'))[:40]} do not fit {sequences} sequences a length")
    return Contestant(
        run=str(said["run"]),
        snapshot=str(said["snapshot"]),
        config=made,
        parameters=int(said["parameters"]),
        seconds=float(said["seconds"]),
        exact=tuple(exact),
        right=tuple(tuple(row) for row in right),
    )
