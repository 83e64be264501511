"""A model: a run at a step, and what pages ask of it, cached and bounded.

"Model" everywhere means a run and a step of it. PyTorch is imported when a model is first looked into, not before.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from dashboard.components.origin import Maker
from dashboard.models import menu
from dashboard.models.budget import ACCURACY_CELLS, SURVEY_CELLS, affordable
from dashboard.models.cache import cached, keyed_by_repr
from dashboard.models.menu import COMPILED, Choice
from dashboard.models.on_the_spot import hidden, members
from transformer.analysis.accuracy.result import Accuracy
from transformer.analysis.film.film import Film
from transformer.analysis.findings import Example, Sample, Survey
from transformer.compiled import compiled_reverser
from transformer.config import ConfigError, RunConfig
from transformer.foundation.foreign import sha256
from transformer.masks import Mask
from transformer.training.runs import Run

if TYPE_CHECKING:
    from transformer.edits import Edit
    from transformer.model import Transformer
    from transformer.network import Network
    from transformer.tasks import Question, Task

OWN_WORDS = 64
"""Symbols up to which a model is let speak by itself: each token costs a pass over all before it."""


@keyed_by_repr
@dataclass(frozen=True)
class Model:
    """A run at a step: everything a page asks of it, cached."""

    name: str
    step: int
    config: RunConfig
    stamp: float
    """When its weights were written: a file replaced on disk is another model."""

    @classmethod
    def of(cls, choice: Choice, step: int) -> Model:
        stored = menu.is_stored(choice.name)
        stamp = menu.run_called(choice.name).snapshot(step).stat().st_mtime if stored else 0.0
        return cls(choice.name, step, choice.config, stamp)

    @property
    def task(self) -> Task:
        return self.config.build_task()

    @property
    def run(self) -> Run | None:
        return menu.run_called(self.name) if menu.is_stored(self.name) else None

    def maker(self) -> Maker:
        """Whose numbers these are, for whatever is saved of them."""
        return Maker(self.name, self.step, _weights(self))

    def network(self) -> Network:
        """The model itself, in evaluation mode, on the CPU."""
        return _network(self)

    def transformer(self) -> Transformer:
        """The same where only a transformer will do. Raises ConfigError, with a sentence, for a recurrent network."""
        network = self.network()
        if self.config.model.recurrent:
            raise ConfigError(f"{self.name} is a recurrent network, and this opens transformers")
        return cast("Transformer", network)

    def survey(self) -> Survey:
        """Every head, averaged over many sequences."""
        kept = _example(self)
        return _survey(self) if kept is None else kept.survey

    def said(self, question: Question) -> np.ndarray:
        """Its own answer, nobody helping; to a question longer than OWN_WORDS, what it says after the right tokens."""
        kept = _example(self, question)
        return _said(self, question) if kept is None else kept.said

    def sample(
        self, question: Question, *, own_words: bool = True, mask: Mask | None = None, pad: bool = False
    ) -> Sample:
        """One question, reading its own words or the right ones, under its own mask or another."""
        kept = _example(self, question)
        if kept is not None and own_words and mask is None and not pad:
            return kept.sample
        return _sample(self, question, own_words, mask, pad)

    def film(self) -> Film:
        """How its run came to be: the film that the run keeps, or one taken now from its snapshots. Not if compiled."""
        assert self.run is not None
        kept = self.run.folder / "film.npz"
        stamps = {step: path.stat().st_mtime for step, path in self.run.snapshots().items()}
        return _film(self.name, tuple(stamps.items()), kept.stat().st_mtime if kept.is_file() else None)

    def accuracy(self, sequences: int, mask: Mask | None = None, length: int | None = None) -> Accuracy:
        """Accuracy by position on fresh sequences, under its own mask or another; on fewer where they are long."""
        length = length or self.config.task.length
        kept = _evaluation(self)
        if kept is not None and mask is None and (length, sequences) == (self.config.task.length, kept.sequences):
            return kept
        return _accuracy(self, affordable(sequences, self.task, length, ACCURACY_CELLS), mask, length)


def maker_of(run: Run, step: int | None) -> Maker:
    """Whose numbers were measured at a step of a run: of most steps the weights are not kept."""
    path = run.snapshots().get(-1 if step is None else step)
    if step is None or path is None:
        return Maker(run.name, step or 0)
    return Maker(run.name, step, _file_digest(path, path.stat().st_mtime))


# What a run found out about itself when it ended, on the very sequences that would be used here: a cold start waits
# neither for PyTorch nor for the measurement.


def _example(model: Model, question: Question | None = None) -> Example | None:
    """The example kept beside a run's weights, if it is theirs and of this question."""
    kept = None if model.run is None else _kept_example(model)
    return kept if kept is None or question is None or np.array_equal(kept.question, question) else None


@cached(16)
def _kept_example(model: Model) -> Example | None:
    run = menu.run_called(model.name)
    kept = run.example
    return kept if kept is not None and kept.snapshot == run.digest(model.step) else None


def _evaluation(model: Model) -> Accuracy | None:
    """The accuracy that was measured when the run ended, if it is of these weights."""
    return None if model.run is None else _kept_evaluation(model)


@cached(16)
def _kept_evaluation(model: Model) -> Accuracy | None:
    run = menu.run_called(model.name)
    kept = run.evaluation or {}
    return Accuracy.from_evaluation(kept, model.task) if kept.get("snapshot") == run.digest(model.step) else None


@cached(4, "Taking the film …")
def _film(name: str, snapshots: tuple[tuple[int, float], ...], made: float | None) -> Film:
    run = menu.run_called(name)
    kept = run.film
    if kept is not None and kept.snapshot == run.digest():
        return kept
    from transformer.analysis.film.take import film

    frames = ((step, run.network(step)) for step, _ in snapshots)
    task = run.config.build_task()
    sequences = affordable(256, task, task.length, SURVEY_CELLS)
    return film(frames, task, sequences=sequences, snapshot=run.digest())


@cached(64)
def _weights(model: Model) -> str:
    if model.run is not None:
        return model.run.sha256(model.step)
    digest = hashlib.sha256()  # no file: names and numbers, in the state dict's own order
    for name, tensor in model.network().state_dict().items():
        digest.update(name.encode())
        digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()


@cached(64)
def _file_digest(path: Path, stamp: float) -> str:
    return sha256(path)


@cached(16)
def _network(model: Model) -> Network:
    if model.name == COMPILED:
        return compiled_reverser()
    if number := menu.hidden_number(model.name):
        return hidden.network(number)
    if member := menu.bare_member(model.name):
        return members.network(member)
    return menu.run_called(model.name).network(model.step)


@cached(32)
def _survey(model: Model) -> Survey:
    from transformer.analysis.heads.survey import survey

    sequences = affordable(256, model.task, model.task.surveyed, SURVEY_CELLS)
    return survey(model.network(), model.task, sequences=sequences)


@cached(256)
def _said(model: Model, question: Question) -> np.ndarray:
    from transformer.analysis.sample import say

    if len(question) <= OWN_WORDS or not model.task.lawful:
        return say(model.network(), model.task, question)
    helped = np.array(model.sample(question, own_words=False).predicted)
    return np.array([model.task.vocabulary.index(token) for token in helped[model.task.answers(len(question))]])


def words_of(model: Model, question: Question) -> np.ndarray | None:
    """What it reads after the question: its own words; None where that would take too long, and of a text."""
    return model.said(question) if model.task.lawful and len(question) <= OWN_WORDS else None


@cached(16)
def _sample(model: Model, question: Question, own_words: bool, mask: Mask | None, pad: bool) -> Sample:
    from transformer.analysis.sample import sample

    return sample(
        model.network(),
        model.task,
        question,
        said=words_of(model, question) if own_words else None,
        edits=mask_edits(model, mask, len(question), pad),
        pad_to=model.config.task.length if pad else None,
    )


@cached(64, "Measuring on fresh sequences …")
def _accuracy(model: Model, sequences: int, mask: Mask | None, length: int) -> Accuracy:
    from transformer.analysis.accuracy.by_position import accuracy_by_position

    return accuracy_by_position(
        model.network(),
        model.task,
        sequences=sequences,
        length=length,
        seed=model.config.training.seed + 1,
        edits=mask_edits(model, mask, length),
    )


def mask_edits(model: Model, mask: Mask | None, length: int, pad: bool = False) -> tuple[Edit, ...]:
    """The edit that puts a mask on the self-attention of the stack that predicts."""
    if mask is None:
        return ()
    from transformer.edits import OverrideMask

    task = model.task
    width = len(task.target_names(task.length if pad else length))
    padding = np.arange(width) >= len(task.target_names(length))
    stack = "encoder" if model.config.model.architecture == "encoder" else "decoder"
    return (OverrideMask.of(mask.matrix(width, padding=padding), f"{stack}.*.self_attention.mask"),)
