"""Rows of settings that cover all pairs: what meets in no row is met by no test."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from typing import Any


def pairs(row: dict[str, Any]) -> set[tuple[tuple[str, Any], ...]]:
    return set(itertools.combinations(sorted(row.items()), 2))


def covering(settings: dict[str, tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    """Rows in which every two values of different settings meet: of thirty drawn, the one that brings most pairs."""
    draw = random.Random(0)
    missing = set().union(
        *(
            {tuple(sorted(((one, a), (other, b)))) for a in settings[one] for b in settings[other]}
            for one, other in itertools.combinations(settings, 2)
        )
    )
    while missing:
        wanted = dict(min(missing, key=repr))
        drawn = [{name: draw.choice(values) for name, values in settings.items()} | wanted for _ in range(30)]
        row = max(drawn, key=lambda each: len(pairs(each) & missing))
        missing -= pairs(row)
        yield row


def at_random(settings: dict[str, tuple[Any, ...]], count: int) -> Iterator[dict[str, Any]]:
    draw = random.Random(1)
    for _ in range(count):
        yield {name: draw.choice(values) for name, values in settings.items()}


def ids(row: dict[str, Any]) -> str:
    return ", ".join("/".join(value) if isinstance(value, tuple) else f"{value}" for value in row.values())
