"""What edits do to a model: outputs, accuracy and removals under edits; cached."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dashboard.models.background import MEASUREMENTS
from dashboard.models.budget import FINEST, passes
from dashboard.models.cache import cached
from dashboard.models.model import Model
from transformer.analysis.accuracy.result import Accuracy
from transformer.analysis.heads.metrics import Estimate

if TYPE_CHECKING:
    from torch import Tensor

    from transformer.analysis.accuracy.reading import Reading
    from transformer.analysis.interventions.effects import Said
    from transformer.analysis.interventions.patching import Patching
    from transformer.edits import Edit, Occasion
    from transformer.network import Network
    from transformer.tasks import Batch, Question


SEQUENCES = 1024
"""Fresh sequences behind an accuracy that answers a click."""
FEW_CELLS = 2**20
"""Cells of one head's patterns that may be computed meanwhile: long sequences are fewer."""
TOLD = 8
"""Passes after which a click may be answered before the rest is known."""
MOST_HEADS = 32
"""More heads are not removed by twos while somebody waits."""
LONGER = 3
"""So many times as much may be done behind a page's back as while somebody waits."""
TOKENS, FEW_TOKENS = 2**11, 2**10
"""Tokens of a text that are read to answer a click; and for each of many passes."""


@cached(256)
def said(model: Model, question: Question, edits: tuple[Edit, ...]) -> Said:
    """What is said to a question, the right answer being read. Raises EditError."""
    from transformer.analysis.interventions.effects import said_under
    from transformer.edits import resolve

    made = resolve(edits, _occasion(model, len(question), question))
    return said_under(model.network(), model.task, question, made, beside=_beside(model, question))


def _beside(model: Model, question: Question) -> int:
    """How many other questions share its batch."""
    beside = max(1, min(63, FEW_CELLS // len(model.task.target_names(len(question))) ** 2))
    return beside if model.task.lawful else max(1, min(beside, FEW_TOKENS // len(question)))


@cached(64)
def pattern_moved(model: Model, question: Question, edits: tuple[Edit, ...]) -> float:
    """The largest change of a weight of any head's pattern by the edits. Raises EditError."""
    from transformer.analysis.interventions import effects
    from transformer.edits import resolve

    made = resolve(edits, _occasion(model, len(question), question))
    return effects.pattern_moved(model.network(), model.task, question, made, beside=_beside(model, question))


@cached(128, "Measuring on fresh sequences …")
def accuracy(model: Model, edits: tuple[Edit, ...], length: int) -> Accuracy:
    """Accuracy by position under edits; without any, on the same sequences. Raises EditError."""
    from transformer.analysis.accuracy.by_position import accuracy_by_position
    from transformer.edits import resolve

    width = len(model.task.target_names(length))
    return accuracy_by_position(
        model.network(),
        model.task,
        sequences=max(8, min(SEQUENCES, FEW_CELLS // width**2)),
        length=length,
        seed=model.config.training.seed + 1,
        edits=resolve(edits, _occasion(model, length)),
    )


@cached(64, "Reading …")
def reading(model: Model, edits: tuple[Edit, ...], length: int, tokens: int = TOKENS) -> Reading:
    """What it costs to read windows of a text that were held out, under edits; always the same. Raises EditError."""
    from transformer.analysis.accuracy.reading import reading
    from transformer.edits import resolve

    return reading(model.network(), _windows(model, length, tokens), resolve(edits, _occasion(model, length)))


@cached(32)
def costs(model: Model, edits: tuple[Edit, ...], length: int) -> Future[np.ndarray]:
    """What silencing each head adds to the loss of a text, under the edits; measured behind the page's back."""
    from transformer.analysis.accuracy.reading import cost_of_each_head
    from transformer.edits import resolve

    def measured() -> np.ndarray:
        batch, made = _windows(model, length, FEW_TOKENS), resolve(edits, _occasion(model, length))
        return cost_of_each_head(model.network(), batch, made)

    return MEASUREMENTS.submit(measured)


def _windows(model: Model, length: int, tokens: int) -> Batch:
    """Windows of a text that were held out, so many tokens in all or one window."""
    from transformer.analysis.accuracy.by_position import EVALUATION_STREAM

    rng = np.random.default_rng([model.config.training.seed + 1, EVALUATION_STREAM])
    return model.task.fresh(rng, max(1, tokens // length), length)


@cached(32, "Removing each head in turn …")
def removal(model: Model, edits: tuple[Edit, ...]) -> Estimate:
    """What removing each head costs, under the edits. Raises EditError."""
    from transformer.analysis.heads.measure import measure_removal
    from transformer.edits import resolve

    return measure_removal(model.network(), model.task, resolve(edits, _occasion(model, model.task.length)))


def redundancy(model: Model, edits: tuple[Edit, ...], told: Callable[[float], object]) -> tuple[np.ndarray, np.ndarray]:
    """What removing two heads costs beyond what each costs, under the edits, and its standard error. Raises EditError.

    `told` hears, every few passes, what share of them is done, and may give up: each pass is kept for the next time.
    """
    from transformer.analysis.heads.measure import heads_of
    from transformer.analysis.interventions.effects import beyond_each, right_without
    from transformer.edits import resolve

    known, n = _passes(model, edits), len(heads_of(model.network()))
    made = resolve(edits, _occasion(model, model.task.length))

    def right(*removed: int) -> np.ndarray:
        if removed not in known:
            if len(known) % TOLD == 0:
                told(min(1.0, len(known) / (1 + n * (n + 1) / 2)))
            known[removed] = right_without(model.network(), model.task, made, removed)
        return known[removed]

    return beyond_each(n, right)


@cached(32)
def _passes(model: Model, edits: tuple[Edit, ...]) -> dict[tuple[int, ...], np.ndarray]:
    """What was right of each sequence when which heads were removed, as far as it is known."""
    return {}


@cached(32, "Patching site by site …")
def patching(model: Model, question: Question, other: Question, edits: tuple[Edit, ...]) -> Patching:
    """Where the difference between two inputs lies, under the edits. Raises EditError."""
    return _patch(model, question, other, edits)


@cached(64, "Looking for a second input …")
def one_token_changed(model: Model, question: Question) -> Question:
    """The same input but for one token."""
    from transformer.analysis.interventions.effects import one_token_changed

    return one_token_changed(model.network(), model.task, question)


@cached(32)
def patched(model: Model, question: Question, other: Question, edits: tuple[Edit, ...]) -> Future[Patching]:
    """The same behind the page's back: a text's words are many, and each pass weighs them all."""
    return MEASUREMENTS.submit(_patch, model, question, other, edits)


def affordable(model: Model) -> bool:
    """Can heads be removed by twos, and inputs be patched place by place, while somebody waits?"""
    from transformer.analysis.heads.measure import heads_of, removal_takes_long

    network = model.network()
    return len(heads_of(network)) <= MOST_HEADS and not removal_takes_long(network, model.task)


def _patch(model: Model, question: Question, other: Question, edits: tuple[Edit, ...]) -> Patching:
    from transformer.analysis.interventions.patching import patching
    from transformer.edits import resolve

    length = len(question)
    tokens = len(model.task.target_names(length)) + (length if model.task.has_source else 0)
    runs = passes(model.config.model, model.task.symbols, tokens) * (1 if model.task.lawful else LONGER)
    made = resolve(edits, _occasion(model, length))
    return patching(model.network(), model.task, question, other, made, runs=runs, columns=FINEST)


def _occasion(model: Model, length: int, question: Question | None = None) -> Occasion:
    """What wishes are resolved for: other inputs are read by this model, other steps are those of its run."""
    from transformer.analysis.sample import observe_batch
    from transformer.edits import EditError, Occasion
    from transformer.trace import only

    def look(asked: Question, site: str) -> Tensor:
        sites = observe_batch(model.network(), model.task.encode([asked]), remember=only(site)).sites
        if site not in sites:
            raise EditError(f"this model has nothing at {site}")
        return sites[site]

    def at_step(step: int) -> Network:
        if step == model.step:
            raise EditError(f"this is the model of step {step} already: choose another step")
        kept = {} if model.run is None else model.run.snapshots()
        if step not in kept:
            raise EditError(f"no weights of step {step} were kept")
        return replace(model, step=step, stamp=kept[step].stat().st_mtime).network()

    return Occasion(model.task, length, question, look, at_step)
