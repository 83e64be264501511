"""What is found out when somebody looks closer at a model, each once: heads taken apart, measured, seen by the lens.

PyTorch is imported when the first of it is asked for.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from dashboard.keeping import kept
from dashboard.models import Model, words_of
from transformer.analysis.findings import Detail, Head
from transformer.analysis.metrics import Estimate, HeadMetrics
from transformer.analysis.rollout import evenly, rollout

if TYPE_CHECKING:
    from transformer.analysis.checkup import Checkup
    from transformer.analysis.circuits import Circuits
    from transformer.analysis.influence import Pokes
    from transformer.analysis.inside import Inside
    from transformer.analysis.lens import Lens
    from transformer.analysis.terms import Shares, Split
    from transformer.tasks import Batch, Question

T = TypeVar("T")
AT_ONCE = 0.4
"""Seconds for which a page waits for a measurement; what takes longer is shown when it is there, and clicks go on."""
_behind = ThreadPoolExecutor(max_workers=1, thread_name_prefix="measuring")

LARGE = 2**17
"""Layers times squared width from which a model is checked once: half a second, where the shipped ones take 0.05."""
IN_A_LAYER = 12
"""About so many times its squared width are a layer's weights: a vocabulary of thousands counts as several layers."""


def detail(model: Model, question: Question, site: str) -> Detail:
    """One attention module on one question, cell by cell, reading its own words."""
    return _detail(model, question.tobytes(), site)


def states(model: Model, question: Question) -> np.ndarray:
    """A recurrent encoder's states, of its uppermost layer, after each token of a question: float [source, d_model]."""
    return _states(model, question.tobytes())


def lens(model: Model, question: Question) -> Lens:
    """One question through the logit lens, reading its own words."""
    return _lens(model, question.tobytes())


def alternatives(model: Model, question: Question) -> tuple[np.ndarray, np.ndarray]:
    """The likeliest tokens at each position and their probabilities: int and float [position, listed]."""
    return _alternatives(model, question.tobytes())


def writes(model: Model, question: Question) -> dict[str, np.ndarray]:
    """What each part of it adds to the right token's logit, above the mean token's: float [position] a part."""
    return _writes(model, question.tobytes())


def rolled(model: Model, question: Question, through: int) -> tuple[np.ndarray, np.ndarray]:
    """Attention rolled out through a layer, and the same if every head looked evenly: float [query, slot]."""
    return _rolled(model, question.tobytes(), through)


def inside(model: Model, question: Question, head: Head, query: int) -> Inside:
    """Every number of one query of one head, while it reads its own words; the query's place counted from 0."""
    return _inside(model, question.tobytes(), head, query)


def checkup(model: Model, question: Question) -> Checkup:
    """Whether it keeps the laws of health, on a few sequences of its task and, unless it is large, this question."""
    return _checkup(model, b"" if is_large(model) else question.tobytes())


def is_large(model: Model) -> bool:
    """Does a check take so long that it is made once, and not again for each question?"""
    shape = model.config.model
    words = shape.d_model * model.task.d_vocab / IN_A_LAYER
    return shape.n_layers * shape.d_model**2 + words > LARGE


@kept(64)
def circuits(model: Model, head: Head, tokens: tuple[int, ...]) -> Circuits:
    """What a head does to the embeddings of these tokens and to positions, whatever is read."""
    from transformer.analysis.circuits import circuits

    return circuits(model.transformer(), head, tokens)


def split(model: Model, question: Question, site: str) -> Split:
    """The scores of one attention, term by term, reading its own words."""
    return _split(model, question.tobytes(), site)


@kept(32)
def _split(model: Model, question: bytes, site: str) -> Split:
    from transformer.analysis.terms import split_question

    symbols = np.frombuffer(question, dtype=np.int64)
    return split_question(model.transformer(), model.task, symbols, site, said=words_of(model, symbols))


@kept(32, "Taking scores apart …")
def shares(model: Model) -> Shares:
    """What tells keys apart in every head whose scores can be split, over many sequences."""
    from transformer.analysis.terms import measure_shares

    return measure_shares(model.transformer(), model.task)


@kept(16)
def head_metrics(model: Model) -> Future[HeadMetrics]:
    """What every head is like over many sequences, without removing any; measured behind the page's back."""
    from transformer.analysis.measuring import measure_heads

    return _behind.submit(measure_heads, model.network(), model.task)


@kept(16)
def removal(model: Model) -> Future[Estimate]:
    """What removing each head costs; measured behind the page's back."""
    from transformer.analysis.measuring import measure_removal

    return _behind.submit(measure_removal, model.network(), model.task)


def at_hand(future: Future[T]) -> T | None:
    """What was measured, if it is there or comes within AT_ONCE."""
    wait([future], AT_ONCE)
    return future.result() if future.done() else None


def removal_takes_long(model: Model) -> bool:
    from transformer.analysis.measuring import removal_takes_long

    return removal_takes_long(model.network(), model.task)


@kept(4, "Looking closer …")
def _detail(model: Model, question: bytes, site: str) -> Detail:
    from transformer.analysis.detail import detail

    symbols = np.frombuffer(question, dtype=np.int64)
    return detail(model.network(), model.task, symbols, site, said=words_of(model, symbols))


@kept(32)
def _states(model: Model, question: bytes) -> np.ndarray:
    from transformer.analysis.sample import lay_out, observe_batch
    from transformer.trace import only

    batch = lay_out(model.task, np.frombuffer(question, dtype=np.int64))
    seen = observe_batch(model.network(), batch, remember=only("encoder.states"))
    found: np.ndarray = seen["encoder.states"][0].numpy()
    return found


@kept(64)
def _inside(model: Model, question: bytes, head: Head, query: int) -> Inside:
    from transformer.analysis.inside import look_inside

    symbols = np.frombuffer(question, dtype=np.int64)
    return look_inside(model.transformer(), model.task, symbols, head, query, said=words_of(model, symbols))


@kept(64, "Looking into the model …")
def _lens(model: Model, question: bytes) -> Lens:
    from transformer.analysis.lens import lens

    symbols = np.frombuffer(question, dtype=np.int64)
    return lens(model.transformer(), model.task, symbols, said=words_of(model, symbols))


@kept(64)
def _alternatives(model: Model, question: bytes) -> tuple[np.ndarray, np.ndarray]:
    from transformer.analysis.lens import alternatives

    return alternatives(model.network(), model.task, np.frombuffer(question, dtype=np.int64))


@kept(64)
def _writes(model: Model, question: bytes) -> dict[str, np.ndarray]:
    from transformer.analysis.attribution import writes

    symbols = np.frombuffer(question, dtype=np.int64)
    return writes(model.transformer(), model.task, symbols, said=words_of(model, symbols))


@kept(32)
def _rolled(model: Model, question: bytes, through: int) -> tuple[np.ndarray, np.ndarray]:
    model.config.model.require_residual("rollout counts half of each stream as what was there, and here nothing stays")
    attentions = model.sample(np.frombuffer(question, dtype=np.int64)).attentions
    return rollout(attentions, through), rollout(evenly(attentions), through)


def pokes(model: Model, question: Question, candidates: tuple[int, ...], slots: tuple[int, ...] | None = None) -> Pokes:
    """Each token, or those at some slots, replaced in turn by each candidate, the others as they are when it reads its
    own words."""
    return _pokes(model, question.tobytes(), candidates, slots)


def gradients(model: Model, question: Question, outputs: tuple[int, ...] | None = None) -> np.ndarray:
    """How steeply the logit of each output, or of some, leans on each token, reading its own words: [output, slot]."""
    return _gradients(model, question.tobytes(), outputs)


@kept(64, "Poking token after token …")
def _pokes(model: Model, question: bytes, candidates: tuple[int, ...], slots: tuple[int, ...] | None) -> Pokes:
    from transformer.analysis.influence import poke

    return poke(model.network(), _read(model, question), candidates, slots=slots)


@kept(32, "Taking gradients …")
def _gradients(model: Model, question: bytes, outputs: tuple[int, ...] | None) -> np.ndarray:
    from transformer.analysis.influence import gradients

    return gradients(model.network(), _read(model, question), outputs=outputs)


def _read(model: Model, question: bytes) -> Batch:
    """What a model reads when it reads its own words."""
    from transformer.analysis.sample import lay_out

    symbols = np.frombuffer(question, dtype=np.int64)
    return lay_out(model.task, symbols, said=words_of(model, symbols))


@kept(256)
def _checkup(model: Model, question: bytes) -> Checkup:
    from transformer.analysis.health import examine

    symbols = np.frombuffer(question, dtype=np.int64)
    return examine(model.network(), model.task, symbols, model.config.training.seed)
