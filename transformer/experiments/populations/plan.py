"""What is trained in a population: every combination of the settings that vary, from every seed. No PyTorch."""

from __future__ import annotations

import difflib
import itertools
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.experiments.stored import damaged, read_stored
from transformer.foundation.atomic_files import write_whole
from transformer.foundation.checks import ConfigError, UserError, require
from transformer.foundation.foreign import quoted

FORMAT = "attention-lab sweep/1"
FILE = "sweep.json"
MOST_MEMBERS = 10_000
RECORDS = (TaskConfig, ModelConfig, TrainingConfig)
FIELDS = {entry.name: (record, entry) for record in RECORDS for entry in fields(record) if entry.name != "seed"}
"""Every setting but the seed, by its name, and the record that it belongs to."""
Value = str | int | float | bool | None
_SPAN = re.compile(r"(\d{1,10})(?:-(\d{1,10}))?", re.ASCII)
_UNSAFE = re.compile(r"[^A-Za-z0-9.]+", re.ASCII)


class SweepError(UserError):
    """A folder or a file that is no sweep, or is another one; the message is one sentence."""


@dataclass(frozen=True)
class Member:
    """One training of a population."""

    name: str
    """Its folder's name: the values of what varies, and the seed."""
    settings: Mapping[str, Value]
    """Of what varies, its own values."""
    seed: int
    config: RunConfig | None
    problem: str = ""
    """Why there can be no such model, in a sentence; there is no config then."""


@dataclass(frozen=True)
class Sweep:
    """Settings, some of which vary, and the seeds from which every combination is trained.

    Raises ConfigError where a setting does not exist, or where there would be nothing to train, or too much.
    """

    varied: Mapping[str, tuple[Value, ...]]
    """By the setting's name, two values or more, in the order in which they are shown."""
    seeds: tuple[int, ...]
    fixed: Mapping[str, Value]
    """The settings that are not the defaults, and do not vary."""

    def __post_init__(self) -> None:
        for name in (*self.varied, *self.fixed):
            _known(name)
        require(len(self.seeds) > 0, "a sweep needs a seed")
        for name, values in (*self.varied.items(), ("seeds", self.seeds)):
            twice = [value for value, count in Counter(values).items() if count > 1]
            require(not twice, f"{name} has {twice[0] if twice else ''} twice")
        count = self.combinations * len(self.seeds)
        require(count <= MOST_MEMBERS, f"that is {count:,} trainings, and a sweep has {MOST_MEMBERS:,} at most")

    @property
    def combinations(self) -> int:
        """How many different settings there are."""
        count = 1
        for values in self.varied.values():
            count *= len(values)
        return count

    def settings(self) -> list[dict[str, Value]]:
        """Every combination of what varies; the last setting changes quickest."""
        return [dict(zip(self.varied, values, strict=True)) for values in itertools.product(*self.varied.values())]

    def problems(self) -> list[str]:
        """Why combinations of settings cannot be built, each reason once.

        The least and the greatest seed stand for all: a seed is only ever too small or too large.
        """
        found = set()
        for settings, seed in itertools.product(self.settings(), {min(self.seeds), max(self.seeds)}):
            try:
                configured({**self.fixed, **settings, "seed": seed})
            except ConfigError as error:
                found.add(str(error))
        return sorted(found)

    def members(self) -> tuple[Member, ...]:
        """Every training, combination by combination, seed by seed."""
        return self._members

    @cached_property
    def _members(self) -> tuple[Member, ...]:
        made, digits = [], len(str(max(self.seeds)))
        for settings in self.settings():
            stem = "-".join(_UNSAFE.sub("-", str(value)).strip("-")[:24] or "none" for value in settings.values())
            for seed in self.seeds:
                config, problem = None, ""
                try:
                    config = configured({**self.fixed, **settings, "seed": seed})
                except ConfigError as error:
                    problem = str(error)
                name = f"{stem}-seed-{seed:0{digits}}".removeprefix("-")
                made.append(Member(name, settings, seed, config, problem))
        names = Counter(each.name for each in made)
        if max(names.values()) == 1:
            return tuple(made)
        return tuple(  # values that differ in signs only, such as painted masks
            Member(f"{number:05d}-{each.name}", each.settings, each.seed, each.config, each.problem)
            for number, each in enumerate(made)
        )

    def save(self, folder: Path) -> None:
        """Write it into a folder. Raises OSError."""
        values = {"format": FORMAT, "seeds": self.seeds, "varied": self.varied, "fixed": self.fixed}
        write_whole(folder / FILE, json.dumps(values, indent=1).encode())

    @classmethod
    def load(cls, folder: Path) -> Sweep:
        """Read what `save` wrote. Raises SweepError with one sentence for anything else."""
        path = folder / FILE
        values = read_stored(path, FORMAT, "sweep", SweepError)
        try:
            if any(type(seed) is not int for seed in values["seeds"]):
                raise ValueError("a seed is no whole number")
            varied = {str(name): tuple(each) for name, each in values["varied"].items()}
            found = cls(varied, tuple(values["seeds"]), dict(values["fixed"]))
            found.members()
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise SweepError(damaged(path, error)) from None
        return found


def configured(settings: Mapping[str, Value]) -> RunConfig:
    """A run's config from settings by their names, whichever of its three records they are of. Raises ConfigError."""
    parts: dict[type, dict[str, Any]] = {record: {} for record in RECORDS}
    for name, value in settings.items():
        parts[TrainingConfig if name == "seed" else _known(name)[0]][name] = value
    return RunConfig(
        task=TaskConfig(**parts[TaskConfig]),
        model=ModelConfig(**parts[ModelConfig]),
        training=TrainingConfig(**parts[TrainingConfig]),
    )


def planned(seeds: str, settings: Mapping[str, str]) -> Sweep:
    """A sweep as it is typed: seeds "0-63" or "0,3,5-7", and settings whose values are separated by commas.

    Raises ConfigError.
    """
    varied: dict[str, tuple[Value, ...]] = {}
    fixed: dict[str, Value] = {}
    for typed, words in settings.items():
        name = typed.replace("-", "_")
        values = tuple(_value(name, word.strip()) for word in words.split(","))
        if len(values) > 1:
            varied[name] = values
        else:
            fixed[name] = values[0]
    return Sweep(varied, seeds_of(seeds), fixed)


def seeds_of(words: str) -> tuple[int, ...]:
    """Seeds as they are typed: "0-63", "0,3,5-7". Raises ConfigError.

    >>> seeds_of("0,3,5-7")
    (0, 3, 5, 6, 7)
    """
    found: list[int] = []
    for part in words.split(","):
        span = _SPAN.fullmatch(part.strip())
        if span is None:
            raise ConfigError(f"seeds are numbers and spans such as 0-63 or 0,3,5-7, not {quoted(words)}")
        first, last = int(span[1]), int(span[2] or span[1])
        require(first <= last, f"the seeds {first}-{last} run backwards")
        require(last - first < MOST_MEMBERS, f"the seeds {first}-{last} are more than {MOST_MEMBERS:,}")
        found += range(first, last + 1)
    require(len({*found}) == len(found), f"the seeds {quoted(words)} name one twice")
    return tuple(found)


def _known(name: str) -> tuple[type, Any]:
    """The record and the field of a setting. Raises ConfigError when there is none of that name."""
    if name not in FIELDS:
        close = difflib.get_close_matches(name, FIELDS, 1)
        hint = f": did you mean {close[0].replace('_', '-')}?" if close else ""
        raise ConfigError(f"there is no setting {quoted(name.replace('_', '-'))}{hint}")
    return FIELDS[name]


def _value(name: str, word: str) -> Value:
    """One value as it is typed. Raises ConfigError."""
    kind = str(_known(name)[1].type)
    require(bool(word), f"{name.replace('_', '-')} must not be empty")
    try:
        if kind == "bool":
            return {"true": True, "false": False}[word.lower()]
        if kind == "int" or (kind == "int | None" and word != "none"):
            return int(word)
        if kind == "float":
            return float(word)
    except (KeyError, ValueError):
        wanted = {"bool": "true or false", "float": "a number"}.get(kind, "a whole number")
        raise ConfigError(f"{name.replace('_', '-')} must be {wanted}, not {quoted(word)}") from None
    return None if kind == "int | None" else word


def default_of(name: str) -> Value:
    """What a setting is where nobody says otherwise."""
    entry = _known(name)[1]
    value: Value = entry.default if entry.default is not MISSING else None
    return value


def shown(value: Value) -> str:
    """A value as it is typed."""
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
