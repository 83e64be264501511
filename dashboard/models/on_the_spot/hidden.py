"""A hidden mistake as a model: a number stands for a mistake of the gallery, and for a model trained with it here.

Its name in links is the number's, so that every page can be asked about it before it is named.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from dashboard.models.on_the_spot import quick_training

if TYPE_CHECKING:
    from transformer.config import RunConfig
    from transformer.mistakes import Mistake
    from transformer.network import Network

SEEDS, MOST = (0, 1, 2), 2**31 - 1
"""The seeds of the gallery's trainings, and the greatest number that stands for a hidden mistake."""
_NAME = re.compile(r"hidden-([1-9][0-9]{0,9})", re.ASCII)


def called(number: int) -> str:
    """The model's name."""
    return f"hidden-{number}"


def number_of(name: str) -> int | None:
    """The number in a model's name; None where it is no hidden one."""
    found = _NAME.fullmatch(name)
    return int(found[1]) if found and int(found[1]) <= MOST else None


def pool() -> list[type[Mistake]]:
    """The mistakes that may be drawn: those that leave a trace in what their model does."""
    from transformer.mistakes import MISTAKES

    every = (MISTAKES[name] for name in MISTAKES.names())
    return [each for each in every if each.trains and not each.silent]


def drawn(number: int) -> tuple[type[Mistake], int]:
    """The mistake and the seed that a number stands for."""
    rng, every = np.random.default_rng(number), pool()
    return every[int(rng.integers(len(every)))], SEEDS[int(rng.integers(len(SEEDS)))]


def config(number: int) -> RunConfig:
    """What is trained: it does not say with which mistake."""
    mistake, seed = drawn(number)
    return mistake.config(seed)


def may_be_seen(number: int, may_train: bool) -> bool:
    """May it be looked at by somebody who may begin a training, or only look at what others have begun?"""
    mistake, seed = drawn(number)
    return may_train or quick_training.is_kept(mistake.config(seed), mistake.name)


def network(number: int) -> Network:
    """The model, once it is trained."""
    mistake, seed = drawn(number)
    return quick_training.trained(mistake.config(seed), mistake.name).model
