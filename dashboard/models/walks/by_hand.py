"""The small GRU whose context vector is computed by hand, and how random dot products spread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dashboard.models.cache import cached
from transformer.analysis.dot_products import Growth, growth

if TYPE_CHECKING:
    from transformer.recurrent.corners import Walker
    from transformer.recurrent.look_back import LookBack, Weighing


FIXED = ("uniform", "cosine", "dot", "scaled-dot")
"""Scores that need no weights of their own."""
TRAINED = ("scaled-dot", "dot", "additive", "uniform")
"""What the model can be trained with; the first is the page's own choice."""
START = "4"
"""The page's choice: the score that wins there is positive, so that nobody wonders at a negative winner."""
TURNS = {"clockwise": 1, "anticlockwise": -1}
STEPS, LEARNING_RATE, MOST = 300, 0.03, 6
SEEDS = {"scaled-dot": 8, "dot": 8, "additive": 6, "uniform": 4}
"""Picked: with two numbers of memory few learn it. Scaled dot products do from 2 of the first 16 seeds, 1 and 8."""


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained model."""

    model: Walker
    error: float
    """Root of the mean squared distance between what it says by itself and what is right, on fresh walks."""


def scorings(trained: str) -> tuple[str, ...]:
    """The scores that can be put on the vectors of a model: additive ones only where it has learned them."""
    return (*FIXED, "additive") if trained == "additive" else FIXED


@cached(8, "Training a GRU with two numbers of memory …")
def walker(trained: str) -> Trained:
    """Two numbers wide, so that all its vectors lie in the plane; walks of 2 to MOST given corners, a second or so."""
    from transformer.recurrent.corners import CornerConfig, build_walker, train_corners

    config = CornerConfig(
        d_model=2, attention=trained, most=MOST, seed=SEEDS[trained], steps=STEPS, learning_rate=LEARNING_RATE
    )
    model = build_walker(config)
    *_, last = train_corners(model, every=STEPS)
    assert last.error is not None
    return Trained(model, last.error)


@cached(256)
def looked(trained: str, start: int, turn: int, given: int, target: int) -> LookBack:
    """What the model has before it at a target (from 0) of the walk from a corner (from 0)."""
    from transformer.recurrent.look_back import look_back, one_walk

    return look_back(walker(trained).model, one_walk(start, turn, given), target)


def weighed(look: LookBack, scoring: str, factor: float = 1.0, degrees: float = 0.0) -> Weighing:
    """Its vectors weighed by these scores, the query made longer and turned."""
    from transformer.recurrent.look_back import moved, weigh

    return weigh(look, scoring, moved(look.query, factor, degrees))


@cached(1)
def measured() -> Growth:
    """Random queries and keys, from narrow to wide."""
    return growth()
