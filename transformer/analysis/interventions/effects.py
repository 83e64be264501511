"""What edits do: what is said under them, which removals other heads make up for, and a second input to patch from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from jaxtyping import Bool, Float
from torch import Tensor

from transformer.analysis.accuracy.by_position import predictions
from transformer.analysis.batches import questions
from transformer.analysis.heads.measure import heads_of, right_answers
from transformer.analysis.sample import observe_batch
from transformer.edits import Edit
from transformer.edits.heads.zero import AblateHead
from transformer.network import Network
from transformer.tasks import Batch, Question, Task

REDUNDANCY_SEQUENCES = 64
NEIGHBOURS, CHANGES = 8, 24
"""Words, next in frequency, that are tried in a word's place; and changes among which the most telling is sought."""


@dataclass(frozen=True)
class Said:
    """What a model says to one question, the right answer being read (teacher forcing)."""

    tokens: tuple[str, ...]
    targets: tuple[str, ...]
    is_answer: Bool[np.ndarray, "position"]
    confidence: Float[np.ndarray, "position"]
    truth: Float[np.ndarray, "position"]
    """Probability of what is right."""

    @property
    def nats(self) -> Float[np.ndarray, "position"]:
        """What each right token costs: minus the logarithm of its probability."""
        return -np.log(np.maximum(self.truth, np.finfo(np.float32).tiny))

    @property
    def right(self) -> Bool[np.ndarray, "position"]:
        return np.array(self.tokens) == np.array(self.targets)


def said_under(
    model: Network, task: Task, question: Question, edits: Sequence[Edit] = (), *, beside: int = 63, seed: int = 0
) -> Said:
    """What is said to a question in a batch with `beside` others of its length, drawn with a seed.

    The others are what a mean is taken over and what is shuffled in; they do not matter to any other edit.
    """
    batch = _with_others(task, question, beside, seed)
    seen = observe_batch(model, batch, edits, lambda *_: None)
    probabilities = seen.logits[0].softmax(dim=-1).cpu().numpy()
    return Said(
        tokens=tuple(task.vocabulary[token] for token in probabilities.argmax(axis=-1)),
        targets=tuple(task.vocabulary[token] for token in batch.targets[0]),
        is_answer=batch.is_answer[0],
        confidence=probabilities.max(axis=-1),
        truth=probabilities[np.arange(len(probabilities)), batch.targets[0]],
    )


def pattern_moved(
    model: Network, task: Task, question: Question, edits: Sequence[Edit], *, beside: int = 63, seed: int = 0
) -> float:
    """The largest change of a weight of any head's pattern by the edits, 0 to 1.

    On one question, the right answer being read, in a batch with `beside` others as in `said_under`.
    """
    batch = _with_others(task, question, beside, seed)

    def first(site: str, value: Tensor) -> Tensor | None:
        return value[0] if site.endswith(".pattern") else None

    def patterns(made: Sequence[Edit]) -> Mapping[str, Tensor]:
        return observe_batch(model, batch, made, first).sites

    before, after = patterns(()), patterns(edits)
    return max(float((after[site] - before[site]).abs().max()) for site in before)


def _with_others(task: Task, question: Question, beside: int, seed: int) -> Batch:
    others, _ = questions(task, beside, len(question), seed)
    return _together(task.encode([question]), others)


def _together(first: Batch, rest: Batch) -> Batch:
    """The sequences of two batches in one."""
    source = None
    if first.source is not None and rest.source is not None:
        source = np.concatenate([first.source, rest.source])
    return Batch(
        np.concatenate([first.tokens, rest.tokens]),
        np.concatenate([first.targets, rest.targets]),
        np.concatenate([first.is_answer, rest.is_answer]),
        np.concatenate([first.is_target, rest.is_target]),
        source,
    )


# --- what removing two costs beyond what each costs


def redundancy(
    model: Network,
    task: Task,
    edits: Sequence[Edit] = (),
    *,
    sequences: int = REDUNDANCY_SEQUENCES,
    seed: int = 0,
) -> Float[np.ndarray, "head other"]:
    """Drop of accuracy when two heads are removed, less the drops of removing each: float [head, head].

    Above 0 one makes up for the other while it is alone (backup heads, Wang et al., 2022, section 3.4; McGrath et al.,
    2023); below 0 both are links of one chain, which breaks once. On the diagonal stands the drop of each head alone.
    All drops are under `edits`.
    """

    def right(*removed: int) -> Float[np.ndarray, "sequence"]:
        return right_without(model, task, edits, removed, sequences=sequences, seed=seed)

    return beyond_each(len(heads_of(model)), right)[0]


def right_without(
    model: Network,
    task: Task,
    edits: Sequence[Edit],
    removed: Sequence[int],
    *,
    sequences: int = REDUNDANCY_SEQUENCES,
    seed: int = 0,
) -> Float[np.ndarray, "sequence"]:
    """The share of each answer's tokens said rightly under edits and without some heads, numbered as in `heads_of`."""
    batch, _ = questions(task, sequences, task.length, seed)
    gone = [heads_of(model)[i] for i in removed]
    every = (*edits, *(AblateHead(f"{head.site}.z", head.index) for head in gone))
    return right_answers(model, batch, every)


def beyond_each(
    n: int, right: Callable[..., Float[np.ndarray, "sequence"]]
) -> tuple[Float[np.ndarray, "head other"], Float[np.ndarray, "head other"]]:
    """The map of `redundancy` for n heads and its standard errors, from what is `right` of each sequence without none,
    without one, and without two of them: each sequence is its own control."""
    before = right()
    alone = [before - right(i) for i in range(n)]
    found = np.diag([float(drop.mean()) for drop in alone])
    errors = np.diag([_error(drop) for drop in alone])
    for i in range(n):
        for j in range(i):
            beyond = before - right(i, j) - alone[i] - alone[j]
            found[i, j] = found[j, i] = float(beyond.mean())
            errors[i, j] = errors[j, i] = _error(beyond)
    return found, errors


def _error(values: Float[np.ndarray, "sequence"]) -> float:
    return float(values.std(ddof=1)) / len(values) ** 0.5 if len(values) > 1 else 0.0


# --- two inputs


def one_token_changed(model: Network, task: Task, question: Question) -> Question:
    """The question with its first symbol replaced by the next one of the alphabet: the default second input.

    Of a text, the change of one word, of the first CHANGES that can be made, by which the model says most else.
    """
    if task.lawful:
        changed = question.copy()
        changed[0] = (changed[0] + 1) % task.symbols
        return changed
    found = list(islice(_changes(task, question), CHANGES))
    if not found:
        return question
    said = predictions(model, task.encode([question, *found]))
    return found[int((said[1:] != said[0]).sum(axis=1).argmax())]


def _changes(task: Task, question: Question) -> Iterator[Question]:
    """A text with another word at one place, each in turn, where both are cut alike: a word for a word."""
    for place in range(len(question)):
        for step in range(1, NEIGHBOURS + 1):
            changed = question.copy()
            changed[place] = (changed[place] + step) % (task.symbols - 1)  # the last of them is the unknown token
            if task.vocabulary[changed[place]].isalpha() and _cut_alike(task, changed):
                yield changed
                break


def _cut_alike(task: Task, question: Question) -> bool:
    """Is a passage, typed, read as these very tokens?"""
    try:
        return np.array_equal(task.parse(task.typed(question)), question)
    except ValueError:
        return False
