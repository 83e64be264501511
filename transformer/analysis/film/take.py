"""Taking the film of a run: what its heads and its answers are at each of its kept steps."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from transformer.analysis.accuracy.by_position import EVALUATION_STREAM, predictions
from transformer.analysis.accuracy.reading import READ
from transformer.analysis.film.film import MOST_CELLS, Film, Reading, joined, quantise, thinned
from transformer.analysis.findings import Attention, Head, Sample
from transformer.analysis.heads.survey import survey
from transformer.analysis.sample import sample
from transformer.network import Network
from transformer.tasks import Question, Task


class Camera:
    """Takes a film frame by frame: `look` at each step, and `film` at any time.

    The numbers are those of `sample`, `accuracy_by_position` and `survey` with the same seed. The right answers are
    read (teacher forcing; only accuracies of a recurrent network are of what it says by itself), and every frame reads
    the same sequences, so that frames can be compared. `begun` is a film of the same run, sequences and seed that is
    gone on with.
    """

    def __init__(
        self,
        task: Task,
        *,
        question: Question | None = None,
        sequences: int = 256,
        seed: int = 0,
        begun: Film | None = None,
    ) -> None:
        self.task, self.sequences, self.seed, self.begun = task, sequences, seed, begun
        self.question = task.example if question is None else question
        few = sequences if task.lawful else max(1, READ // task.n_ctx)
        self.batch = task.fresh(np.random.default_rng([seed, EVALUATION_STREAM]), few, task.length)
        self.steps: list[int] = []
        self.levels: list[dict[str, np.ndarray]] = []
        self.correct: list[np.ndarray] = []
        self.shares: list[dict[Head, float]] = []
        self.looked: Sample | None = None
        self.surveyed = 0

    def look(self, step: int, model: Network) -> None:
        """One more frame, of a later step than all before. The model is left in the mode it was in."""
        training = model.training
        model.eval()
        self.looked = sample(model, self.task, self.question)
        surveyed = survey(model, self.task, sequences=self.sequences, seed=self.seed)
        self.steps.append(step)
        self.levels.append({site: quantise(each.pattern) for site, each in self.looked.attentions.items()})
        self.correct.append((predictions(model, self.batch) == self.batch.targets).sum(axis=0))
        self.shares.append(surveyed.expected_share)
        self.surveyed = surveyed.sequences
        model.train(training)

    def film(self, snapshot: str = "") -> Film:
        """All frames so far. Raises ValueError when there is none."""
        if self.looked is None:
            if self.begun is None:
                raise ValueError("a film needs at least one step whose weights were kept")
            return self.begun
        cells = sum(levels.size for levels in self.levels[0].values())
        pictured = thinned(len(self.steps), max(2, MOST_CELLS // max(1, cells)))
        taken = Film(
            steps=np.array(self.steps),
            pictured=np.array(pictured),
            question=self.looked.question,
            read=self.looked.read,
            readings={
                site: _reading(attention, np.stack([self.levels[frame][site] for frame in pictured]))
                for site, attention in self.looked.attentions.items()
            },
            correct=np.stack(self.correct),
            sequences=len(self.batch.tokens),
            names=self.task.target_names(self.task.length),
            groups=self.task.groups(self.task.length),
            chance=self.task.chance,
            shares={head: np.array([one[head] for one in self.shares], dtype=np.float32) for head in self.shares[0]},
            surveyed=self.surveyed,
            snapshot=snapshot,
        )
        return taken if self.begun is None else joined(self.begun, taken)


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

    What the numbers are says `Camera`. The models are used one after the other, in evaluation mode. Raises ValueError
    when there is no frame.
    """
    camera = Camera(task, question=question, sequences=sequences, seed=seed)
    for step, model in frames:
        model.eval()
        camera.look(step, model)
    return camera.film(snapshot)


def _reading(attention: Attention, levels: np.ndarray) -> Reading:
    return Reading(attention.site, levels, attention.mask, attention.queries, attention.keys)
