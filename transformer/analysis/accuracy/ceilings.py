"""What a mask lets be known: reachability of the mask graph, and the ceiling of accuracy that follows.

No PyTorch and no model here: a ceiling is computed from the mask and the task alone, and where lengths vary from how
they are drawn (`best_guess`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Float

from transformer.analysis.accuracy.best_guess import BestGuess
from transformer.config import RunConfig
from transformer.masks import Mask, parse
from transformer.tasks import Ceiling, Task

Matrix = Bool[np.ndarray, "_query _key"]
"""Of the longest sequence, or of any that is shorter: such a one has the upper left part."""


def reachable(
    mask: Bool[np.ndarray, "target target"],
    n_layers: int,
    *,
    cross: Bool[np.ndarray, "target source"] | None = None,
    source: Bool[np.ndarray, "source source"] | None = None,
) -> Bool[np.ndarray, "target slot"]:
    """Which slots can influence each target through `n_layers` of attention.

    A layer moves information along its mask, and the residual path keeps what was there: (mask or identity) to the
    power n_layers. (Without residual connections a query's own place still counts, by way of what it asks for.) With
    an encoder, `source` is its mask (it has as many layers) and `cross` what each decoder query sees of it; the slots
    are then the source's, followed by the tokens'.
    """
    step = mask | np.eye(len(mask), dtype=bool)
    tokens = np.eye(len(mask), dtype=bool)
    if cross is None or source is None:
        for _ in range(n_layers):
            tokens = _through(step, tokens)
        return tokens
    encoded = reachable(source, n_layers)
    seen = np.zeros_like(cross)
    for _ in range(n_layers):
        tokens, seen = _through(step, tokens), _through(step, seen) | _through(cross, encoded)
    return np.concatenate([seen, tokens], axis=1)


def _through(first: Bool[np.ndarray, "a b"], second: Bool[np.ndarray, "b c"]) -> Bool[np.ndarray, "a c"]:
    """The Boolean product. In float32, whose product is a hundred times faster and counts exactly up to 2^24."""
    return (first.astype(np.float32) @ second.astype(np.float32)) > 0


def reach(task: Task, mask: Mask | Matrix, n_layers: int, length: int) -> Bool[np.ndarray, "target slot"]:
    """Which slots of a task can influence each target when every layer of the predicting stack has this mask."""
    matrix, cross, source = masks_of(task, mask, length)
    return reachable(matrix, n_layers, cross=cross, source=source)


def masks_of(
    task: Task, mask: Mask | Matrix, length: int
) -> tuple[Matrix, Bool[np.ndarray, "target source"] | None, Bool[np.ndarray, "source source"] | None]:
    """The masks written out: the predicting stack's, and where the task has a source the two that see all of it."""
    targets = len(task.target_names(length))
    matrix = mask.matrix(targets) if isinstance(mask, Mask) else mask[:targets, :targets]
    if not task.has_source:
        return matrix, None, None
    return matrix, np.ones((targets, length), dtype=bool), np.ones((length, length), dtype=bool)


def ceiling_of_mask(task: Task, mask: Mask | Matrix, n_layers: int, length: int | None = None) -> Ceiling:
    """The ceiling for a task at one length when every layer has this mask (self-attention of the predicting stack).

    Where lengths vary, nobody is told how long the sequence is (`best_guess`). A length that is never drawn is taken
    as known: nobody can say what one who never met it would expect.
    """
    length = task.length if length is None else length
    if task.lawful and len(task.lengths) > 1 and length in task.lengths:
        found = _ceilings(best_guess(task, mask, n_layers))
        if length in found:
            return found[length]
    return task.ceiling(reach(task, mask, n_layers, length))


def best_guess(task: Task, mask: Mask | Matrix, n_layers: int) -> BestGuess:
    """Who knows the law, and of each sequence what this mask lets through, and not its length where lengths vary."""
    matrix, _, _ = masks_of(task, mask, task.length)
    return _best_guess(task, np.packbits(matrix).tobytes(), len(matrix), n_layers)


@lru_cache(maxsize=32)
def _best_guess(task: Task, cells: bytes, side: int, n_layers: int) -> BestGuess:
    """By the cells of the mask for the longest sequence: a shorter one has its upper left part."""
    matrix = np.unpackbits(np.frombuffer(cells, dtype=np.uint8), count=side**2).reshape(side, side).astype(bool)
    lengths = [n for n in task.lengths if len(task.target_names(n)) <= side]
    if task.has_source or np.triu(matrix, 1).any():
        return BestGuess(task, {n: reach(task, matrix, n_layers, n) for n in lengths})
    whole = reachable(matrix, n_layers)  # nothing later is seen, so what is there later changes nothing
    return BestGuess(task, {n: whole[:k, :k] for n in lengths for k in [len(task.target_names(n))]})


@lru_cache(maxsize=32)
def _ceilings(best: BestGuess) -> dict[int, Ceiling]:
    return best.ceilings()


def ceiling(config: RunConfig, length: int | None = None, mask: Mask | Matrix | None = None) -> Ceiling:
    """The ceiling for a run: its task, its depth, and its own mask unless another is given."""
    return ceiling_of_mask(
        config.build_task(), parse(config.model.mask) if mask is None else mask, config.model.n_layers, length
    )


def knowable(config: RunConfig, length: int | None = None) -> Bool[np.ndarray, "target"]:
    """Which targets of the answer can be known for certain under the run's mask."""
    task = config.build_task()
    return task.answers(task.length if length is None else length) & (ceiling(config, length).accuracy == 1)


def honest_ceiling(config: RunConfig, length: int | None = None) -> Ceiling:
    """The ceiling of the run's mask when no query is shown its own answer: beyond its `greatest`, something leaks."""
    task = config.build_task()
    return ceiling_of_mask(task, honest_mask(config, task.length), config.model.n_layers, length)


def honest_mask(config: RunConfig, length: int) -> Matrix:
    """The run's mask at one length when no query is shown its own answer."""
    task = config.build_task()
    n = len(task.target_names(length))
    return parse(config.model.mask).matrix(n) & task.limit.matrix(n)


def honest_reach(config: RunConfig, length: int | None = None) -> Bool[np.ndarray, "target slot"]:
    """Which slots can influence each target under the run's mask when no query is shown its own answer."""
    task = config.build_task()
    length = task.length if length is None else length
    return reach(task, honest_mask(config, length), config.model.n_layers, length)


@dataclass(frozen=True)
class Leak:
    """An output that moved though no path leads to it from the slot that was changed; both count from 0."""

    output: int
    slot: int
    value: float


def leaks(moved: Float[np.ndarray, "target slot"], reach: Bool[np.ndarray, "target slot"]) -> list[Leak]:
    """Every cell that moved outside `reach`, the greatest first. There is none where a mask holds."""
    found = [Leak(int(i), int(j), float(moved[i, j])) for i, j in np.argwhere((moved > 0) & ~reach)]
    return sorted(found, key=lambda leak: -leak.value)


def loss_floor(config: RunConfig) -> float:
    """The smallest expected training loss, in nats, under the run's own mask, averaged as the training loss is.

    Targets that belong to the question weigh `prompt_weight`, those of the answer 1; all lengths are as likely. Of a
    text it is nan: nobody knows.
    """
    return _of_training(config, lambda ceiling: ceiling.nats)


@dataclass(frozen=True)
class FloorTerms:
    """A floor that can be written out: some targets cost the logarithm of the symbols, all others nothing."""

    guessed: tuple[int, int]
    """Of the question and of the answer: how many targets nobody can predict."""
    targets: tuple[int, int]
    """Of the question and of the answer: how many there are."""
    weight: float
    """Of a target of the question, in the mean; one of the answer weighs 1."""
    symbols: int

    @property
    def floor(self) -> float:
        """The mean in nats: guessed targets times ln(symbols), by the weights of all."""
        weights = (self.weight, 1.0)
        total = sum(n * w for n, w in zip(self.guessed, weights, strict=True)) * math.log(self.symbols)
        return total / sum(n * w for n, w in zip(self.targets, weights, strict=True))


def floor_terms(config: RunConfig) -> FloorTerms | None:
    """What makes the loss floor; None where some target can be predicted in part, of several lengths, and of a text."""
    task = config.build_task()
    if not task.lawful or len(task.lengths) != 1:
        return None
    (length,) = task.lengths
    nats = ceiling_of_mask(task, parse(config.model.mask), config.model.n_layers, length).nats
    symbols = round(math.exp(task.chance_loss))
    blind, answers = np.isclose(nats, math.log(symbols)), task.answers(length)
    if not (blind | np.isclose(nats, 0.0)).all():
        return None
    return FloorTerms(
        (int((blind & ~answers).sum()), int((blind & answers).sum())),
        (int((~answers).sum()), int(answers.sum())),
        config.training.prompt_weight,
        symbols,
    )


def loss_floor_error(config: RunConfig) -> float:
    """The standard error of the floor, at most: 0 where all ceilings are exact, nan for a text."""
    return _of_training(config, lambda ceiling: ceiling.nats_error)


def _of_training(config: RunConfig, costs: Callable[[Ceiling], Float[np.ndarray, "target"]]) -> float:
    """The mean over all targets of a training, each weighed as its loss is."""
    task, mask = config.build_task(), parse(config.model.mask)
    if not task.lawful:
        return math.nan
    total = weight = 0.0
    for length in task.lengths:
        weights = np.where(task.answers(length), 1.0, config.training.prompt_weight)
        found = ceiling_of_mask(task, mask, config.model.n_layers, length)
        total, weight = total + float(weights @ costs(found)), weight + float(weights.sum())
    return total / weight if weight else 0.0
