"""The counts behind every breakdown of accuracy: fresh sequences answered once; without each head; by length.

PyTorch is imported when the first of it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dashboard.models.budget import ACCURACY_CELLS, affordable
from dashboard.models.cache import cached
from dashboard.models.model import Model
from transformer.analysis.accuracy import ceilings
from transformer.analysis.accuracy.breakdown import Answers
from transformer.analysis.accuracy.result import Accuracy
from transformer.analysis.film.film import thinned
from transformer.analysis.findings import Head

if TYPE_CHECKING:
    from jaxtyping import Int


SEQUENCES = 1024
"""Fresh sequences at each length and without each head, at most: these take many passes."""
PASSES = 8192
"""How many sequences all removed heads share."""
MOST_LENGTHS = 16
"""More lengths are not measured while somebody waits."""


def asked(model: Model, sequences: int, length: int) -> int:
    """On how many sequences the bars are measured: as many as are wanted, and fewer where they are long."""
    return affordable(sequences, model.task, length, ACCURACY_CELLS)


@cached(64)
def known(model: Model, length: int) -> np.ndarray:
    """The answer's targets that can be known under the mask, bool [target]; where none can, all of them."""
    found = ceilings.knowable(model.config, length)
    return found if found.any() else model.task.answers(length)


def answers(model: Model, sequences: int, length: int) -> Answers:
    """What is said to each of the sequences behind the bars."""
    return _answers(model, asked(model, sequences, length), length)


@cached(4, "Measuring on fresh sequences …")
def _answers(model: Model, sequences: int, length: int) -> Answers:
    from transformer.analysis.accuracy.without_heads import ask

    return ask(model.network(), model.task, sequences=sequences, length=length, seed=_seed(model))


@cached(16, "Removing each head in turn …")
def without_each_head(model: Model, sequences: int, length: int) -> tuple[Accuracy, dict[Head, Accuracy]]:
    """Accuracy by position of the whole model, and without each head, on the same sequences."""
    from transformer.analysis.accuracy.by_position import accuracy_by_position
    from transformer.analysis.accuracy.without_heads import without_each_head

    network, task, seed = model.network(), model.task, _seed(model)
    whole = accuracy_by_position(network, task, sequences=sequences, length=length, seed=seed)
    return whole, without_each_head(network, task, sequences=sequences, length=length, seed=seed)


def removal_sequences(model: Model, sequences: int, length: int) -> int:
    """On how many sequences heads are removed: the more heads, and the larger they are, the fewer."""
    from transformer.analysis.heads.measure import FEWEST_SEQUENCES, WORK, heads_of, removal_work

    network, tokens = model.network(), len(model.task.target_names(length))
    most = min(PASSES // len(heads_of(network)), int(WORK / removal_work(network, tokens)))
    return asked(model, min(sequences, SEQUENCES, max(FEWEST_SEQUENCES, most)), length)


@cached(16, "Measuring each length …")
def by_length(model: Model, sequences: int) -> dict[int, Accuracy]:
    """Accuracy by position at the lengths that it can be asked: all from 1, or MOST_LENGTHS of them."""
    from transformer.analysis.accuracy.by_position import accuracy_by_position

    lengths = [i + 1 for i in thinned(model.task.length, MOST_LENGTHS, keep=[model.task.lengths.start - 1])]
    return {
        length: accuracy_by_position(
            model.network(),
            model.task,
            sequences=asked(model, min(sequences, SEQUENCES), length),
            length=length,
            seed=_seed(model),
        )
        for length in lengths
    }


@cached(64)
def by_itself(model: Model, questions: Int[np.ndarray, "question length"]) -> Int[np.ndarray, "question length"]:
    """Its own answers to some questions, nobody helping."""
    from transformer.analysis.sample import say_each

    return say_each(model.network(), model.task, questions.astype(np.int64))


def _seed(model: Model) -> int:
    return model.config.training.seed + 1
