"""Taking the film of a run: what its heads and its answers are at each of its kept steps."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from transformer.analysis.accuracy.by_position import EVALUATION_STREAM, predictions
from transformer.analysis.accuracy.reading import READ
from transformer.analysis.film.film import MOST_CELLS, Film, Reading, quantise, thinned
from transformer.analysis.findings import Attention
from transformer.analysis.heads.survey import survey
from transformer.analysis.sample import sample
from transformer.network import Network
from transformer.tasks import Question, Task


def film(
    frames: Iterable[tuple[int, Network]],
    task: Task,
    *,
    question: Question | None = None,
    sequences: int = 256,
    seed: int = 0,
    snapshot: str = "",
) -> Film:
    """Look at each (step, model), steps ascending: the patterns on one question, accuracy and shares on many.

    The numbers are those of `sample`, `accuracy_by_position` and `survey` with the same seed. The right answers are
    read (teacher forcing; only accuracies of a recurrent network are of what it says by itself), and every frame reads
    the same sequences, so that frames can be compared. The models are used one after the other, in evaluation mode.
    Raises ValueError when there is no frame.
    """
    question = task.example if question is None else question
    few = sequences if task.lawful else max(1, READ // task.n_ctx)
    batch = task.fresh(np.random.default_rng([seed, EVALUATION_STREAM]), few, task.length)
    steps, seen, correct, surveys = [], [], [], []
    for step, model in frames:
        model.eval()
        steps.append(step)
        looked = sample(model, task, question)
        seen.append({site: quantise(attention.pattern) for site, attention in looked.attentions.items()})
        correct.append((predictions(model, batch) == batch.targets).sum(axis=0))
        surveyed = survey(model, task, sequences=sequences, seed=seed)
        surveys.append(surveyed.expected_share)
    if not steps:
        raise ValueError("a film needs at least one step whose weights were kept")
    cells = sum(levels.size for levels in seen[0].values())
    pictured = thinned(len(steps), max(2, MOST_CELLS // max(1, cells)))
    return Film(
        steps=np.array(steps),
        pictured=np.array(pictured),
        question=looked.question,
        read=looked.read,
        readings={
            site: _reading(attention, np.stack([seen[frame][site] for frame in pictured]))
            for site, attention in looked.attentions.items()
        },
        correct=np.stack(correct),
        sequences=len(batch.tokens),
        names=task.target_names(task.length),
        groups=task.groups(task.length),
        chance=task.chance,
        shares={head: np.array([one[head] for one in surveys], dtype=np.float32) for head in surveys[0]},
        surveyed=surveyed.sequences,
        snapshot=snapshot,
    )


def _reading(attention: Attention, levels: np.ndarray) -> Reading:
    return Reading(attention.site, levels, attention.mask, attention.queries, attention.keys)
