"""What edits do: which removals are made up for by other heads, and where in the model the difference lies."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from transformer.analysis.accuracy import predictions
from transformer.analysis.heads import questions
from transformer.analysis.influence import together
from transformer.analysis.measuring import heads_of, right_answers
from transformer.analysis.sample import lay_out, observe_batch
from transformer.edits import AblateHead, Edit, EditError, Patch
from transformer.network import Network
from transformer.observation import Observation
from transformer.tasks import Batch, Question, Task

REDUNDANCY_SEQUENCES = 64
KINDS = ("resid_mid", "resid_cross", "resid_post", "z")
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
    others, _ = questions(task, beside, len(question), seed)
    batch = _together(task.encode([question]), others)
    seen = observe_batch(model, batch, edits, lambda *_: None)
    probabilities = seen.logits[0].softmax(dim=-1).cpu().numpy()
    return Said(
        tokens=tuple(task.vocabulary[token] for token in probabilities.argmax(axis=-1)),
        targets=tuple(task.vocabulary[token] for token in batch.targets[0]),
        is_answer=batch.is_answer[0],
        confidence=probabilities.max(axis=-1),
        truth=probabilities[np.arange(len(probabilities)), batch.targets[0]],
    )


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

    def right(*removed: int) -> float:
        return right_without(model, task, edits, removed, sequences=sequences, seed=seed)

    return beyond_each(len(heads_of(model)), right)


def right_without(
    model: Network,
    task: Task,
    edits: Sequence[Edit],
    removed: Sequence[int],
    *,
    sequences: int = REDUNDANCY_SEQUENCES,
    seed: int = 0,
) -> float:
    """The share of the answers' tokens said rightly under edits and without some heads, numbered as in `heads_of`."""
    batch, _ = questions(task, sequences, task.length, seed)
    gone = [heads_of(model)[i] for i in removed]
    every = (*edits, *(AblateHead(f"{head.site}.z", head.index) for head in gone))
    return float(right_answers(model, batch, every).mean())


def beyond_each(n: int, right: Callable[..., float]) -> Float[np.ndarray, "head other"]:
    """The map of `redundancy` for n heads, from what is `right` without none, without one, and without two of them."""
    before = right()
    alone = np.array([before - right(i) for i in range(n)])
    found = np.diag(alone)
    for i in range(n):
        for j in range(i):
            found[i, j] = found[j, i] = before - right(i, j) - alone[i] - alone[j]
    return found


# --- where the difference between two inputs lies


@dataclass(frozen=True)
class Patching:
    """Activation patching between two inputs, site by site and place by place."""

    sites: tuple[str, ...]
    """In the order of the data's way."""
    recovered: Float[np.ndarray, "site column"]
    """Share of the logit difference that is restored: 0 nothing, 1 all; below 0 and above 1 are possible."""
    clean: float
    """Mean logit of the clean input's right tokens less that of the other's, in the clean run."""
    corrupted: float
    """The same in the corrupted run."""
    compared: int
    """Targets at which the two inputs' right answers differ."""
    first: int = 0
    """The place at which the first column begins: what is before it is the same in both runs."""
    factor: int = 1
    """How many neighbouring places a column hands on at once; the last may have fewer."""


@torch.no_grad()
def patching(
    model: Network,
    task: Task,
    clean: Question,
    corrupted: Question,
    edits: Sequence[Edit] = (),
    *,
    runs: float = math.inf,
    columns: float = math.inf,
) -> Patching:
    """Run on `corrupted`, each time with what the clean run had at one site and one place, and see what comes back.

    Wang et al. (2022), section 3.1; Meng et al. (2022), section 2.1. The measure is the mean over the targets whose
    right token differs of logit(right for clean) − logit(right for corrupted). Each run reads its own right answer.
    Of a text nobody knows what is right: there it is what the model itself finds likeliest, after the one and after
    the other. A place at which both runs have the same brings back exactly 0, and is not run. Where all places would
    need more `runs` or `columns`, those before the first difference are left out, and neighbours are patched together.
    Raises EditError when the two say the same, or differ in length.
    """
    if len(clean) != len(corrupted):
        raise EditError(f"both inputs must have the same length, not {len(clean)} and {len(corrupted)} symbols")
    one, other = lay_out(task, clean), lay_out(task, corrupted)
    whole, bare = observe_batch(model, one, edits), observe_batch(model, other, edits)
    said = [seen.logits[0].argmax(dim=-1).cpu().numpy() for seen in (whole, bare)]
    wanted, unwanted = (one.targets[0], other.targets[0]) if task.lawful else said
    compared = np.flatnonzero((wanted != unwanted) & one.is_answer[0])
    if not len(compared):
        same = "have the same answer" if task.lawful else "make it say the same"
        raise EditError(f"both inputs {same}, so there is nothing to bring back")
    wanted, unwanted = wanted[compared], unwanted[compared]

    def difference(seen: Observation) -> Float[np.ndarray, "batch"]:
        logits = seen.logits[:, compared].double().cpu().numpy()
        rows = np.arange(len(compared))
        return (logits[:, rows, wanted] - logits[:, rows, unwanted]).mean(axis=1)

    high, low = (float(difference(seen)[0]) for seen in (whole, bare))
    if high == low:
        raise EditError("this model says the same to both inputs, so there is nothing to bring back")
    sites = patched_sites(whole)
    differs = [_differing(whole[site], bare[site]) for site in sites]
    places = max(map(len, differs))
    first, most = 0, max(1, int(min(places, columns, runs / len(sites))))
    if places > most:
        first = min(int(np.flatnonzero(each)[0]) for each in differs if each.any())
    factor = -(-(places - first) // most)
    found = np.full((len(sites), -(-(places - first) // factor)), np.nan)
    for row, (site, differing) in enumerate(zip(sites, differs, strict=True)):
        parts = [slice(start, start + factor) for start in range(first, len(differing), factor)]
        found[row, : len(parts)] = 0.0
        run = [column for column, part in enumerate(parts) if differing[part].any()]
        size = together(model, one.tokens.shape[1])
        for some in (run[start : start + size] for start in range(0, len(run), size)):
            held = Patch.of(site, whole[site])
            patch = _PatchEach(site, held.shape, held.packed, parts=tuple(parts[column] for column in some))
            patched = observe_batch(model, _repeated(other, len(some)), (*edits, patch), lambda *_: None)
            found[row, some] = (difference(patched) - low) / (high - low)
    return Patching(sites, found, high, low, len(compared), first, factor)


def _differing(one: Tensor, other: Tensor) -> Bool[np.ndarray, "position"]:
    """At which places two runs do not have the same: of [1, …, position, width]."""
    apart: np.ndarray = (one != other).any(dim=-1).flatten(0, -2).any(dim=0).cpu().numpy()
    return apart


@dataclass(frozen=True)
class _PatchEach(Patch):
    """The same sequence many times over, each patched at places of its own: sequence i at those of part i."""

    parts: tuple[slice, ...] = ()

    def apply(self, value: Tensor) -> Tensor:
        whole, patched = super().apply(value), value.clone()
        for sequence, part in enumerate(self.parts):
            patched[sequence, ..., part, :] = whole[sequence, ..., part, :]
        return patched


def _repeated(batch: Batch, n: int) -> Batch:
    """Its sequences, each `n` times."""
    fields = {name: value for name, value in vars(batch).items() if value is not None}
    return Batch(**{name: value.repeat(n, axis=0) for name, value in fields.items()})


def patched_sites(seen: Observation) -> tuple[str, ...]:
    """The residual stream where it has changed, and what all heads of an attention found, in the data's way."""
    found = []
    for site in seen.sites:
        block, _, kind = site.rpartition(".")
        first = kind == "resid_pre" and block.endswith(".0")
        idle = kind == "resid_post" and f"{block}.feed_forward.out" not in seen.sites
        if first or (kind in KINDS and not idle):
            found.append(site)
    return tuple(found)


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
