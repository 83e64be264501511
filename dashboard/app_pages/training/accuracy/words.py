"""What is said about accuracy taken apart: the one true sentence of each picture, and what was counted for it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dashboard.app_pages.training.accuracy import counts as accuracy_counts
from dashboard.models.model import Model
from dashboard.parts.claims import FELT, reads_answers
from dashboard.parts.text import windows
from transformer.analysis.accuracy import breakdown, ceilings
from transformer.analysis.accuracy.result import Accuracy
from transformer.analysis.intervals import rivals, wilson
from transformer.foundation.claims import claim
from transformer.foundation.words import listed
from transformer.tasks import Task


@claim
def chance_sentence(task: Task, length: int) -> str:
    """What guessing is worth; where some symbols are commoner than others, also what always saying these is worth."""
    even = f"A random guess is right once in {task.symbols}: chance is {task.chance:.2f}."
    blind = float(task.blind(length)[task.answers(length)].mean())
    if f"{blind:.2f}" == f"{task.chance:.2f}":
        return even
    about = "" if task.rearranges else "about "
    return (
        f"{even} Saying the commonest symbol of each place, without reading, is right {about}{blind:.2f} of the time."
    )


def asked(model: Model, sequences: int, length: int) -> str:
    """What was measured on, in a sentence."""
    if not model.task.lawful:
        return f"{windows(sequences, length)}."
    return f"{sequences:,} fresh sequences of length {length}{forced(model)}."


def forced(model: Model) -> str:
    """Of a model that reads what it has said itself: whether it did, or read the right tokens instead."""
    if model.config.model.recurrent:
        return ", where the model reads its own words"
    return ", where the model reads the right tokens (teacher forcing)" if reads_answers(model) else ""


def which(model: Model, length: int) -> str:
    """What is counted, in words."""
    known, answer = accuracy_counts.known(model, length), model.task.answers(length)
    if known.sum() < answer.sum():
        return f"the {known.sum()} of {answer.sum()} tokens of the answer that can be known under the mask"
    guessed = ceilings.ceiling(model.config, length).accuracy[known].max() < 1
    return "the answer’s tokens" + (", none of which can be known under the mask" if guessed else "")


def what(model: Model, length: int) -> str:
    """What of the answers the sentences speak of: "the answer", or "what can be known of the answer"."""
    known = accuracy_counts.known(model, length)
    return "the answer" if (known == model.task.answers(length)).all() else "what can be known of the answer"


@claim
def head_sentence(whole: Accuracy, without: list[Accuracy], labels: list[str], known: np.ndarray, of: str) -> str:
    """Which removal costs most, and where; `of` is what the `known` targets are (`what`).

    Removals whose intervals overlap are said to cost about as much. What is right of one sequence hangs together, so an
    interval counts sequences, and not targets.
    """
    before, left = float(whole.mean[known].mean()), np.array([float(each.mean[known].mean()) for each in without])
    worst = int(left.argmin())
    if before - left[worst] < FELT:
        return f"No head is needed by itself for {of}: removing any one costs less than {FELT:g} of the accuracy."
    low, high = wilson(left * whole.sequences, whole.sequences)
    as_much = [labels[each] for each in rivals(1 - left, 1 - high, 1 - low)]
    if len(as_much) > 1:
        return (
            f"Removing head {listed(as_much, 'or')} costs about as much: accuracy on {of} falls from {before:.2f} to "
            f"{left[worst]:.2f} without head {labels[worst]}."
        )
    targets = np.flatnonzero(known)
    place = int(targets[(whole.mean - without[worst].mean)[targets].argmax()])
    return (
        f"Removing head {labels[worst]} costs most: accuracy on {of} falls from {before:.2f} to "
        f"{left[worst]:.2f}. It falls most at {whole.names[place]}, to {without[worst].mean[place]:.2f}."
    )


@claim
def symbol_sentence(correct: np.ndarray, seen: np.ndarray, tokens: tuple[str, ...], of: str) -> str:
    """Which symbol is right least often, and which most: int [token] counts; `of` is what was counted (`what`)."""
    if correct.sum() == seen.sum():
        return f"Every symbol of {of} is right every time: {correct.sum():,} of {seen.sum():,}."
    share = np.where(seen > 0, correct / np.maximum(seen, 1), np.nan)
    low, high = (np.flatnonzero(share == extreme(share)) for extreme in (np.nanmin, np.nanmax))
    if share[low[0]] == share[high[0]]:
        return f"Every symbol of {of} is right equally often: {share[low[0]]:.3f} of the time."

    def counts(places: np.ndarray) -> str:
        if len(places) > 1:
            return f"{share[places[0]]:.3f} of the time each"
        return f"{correct[places[0]]:,} of {seen[places[0]]:,} ({share[places[0]]:.3f})"

    least, most = (listed([f"'{tokens[place]}'" for place in places]) for places in (low, high))
    return (
        f"Of {of} {least} {'are' if len(low) > 1 else 'is'} right least often: {counts(low)}; {most} most often: "
        f"{counts(high)}."
    )


@claim
def length_sentence(exact: np.ndarray, lengths: list[int], trained: list[bool]) -> str:
    """At which lengths whole answers are right most and least often: float [length]."""
    if exact.min() == exact.max():
        return f"The share of whole answers that are right is the same at every length: {exact[0]:.3f}."

    def at(share: float) -> str:
        each = [
            f"{length}{'' if known else ' (not trained on)'}"
            for length, known, value in zip(lengths, trained, exact, strict=True)
            if value == share
        ]
        return f"length{'s' * (len(each) > 1)} {listed(each)}: {share:.3f}"

    return f"Whole answers are right most often at {at(exact.max())}. They are right least often at {at(exact.min())}."


@claim
def confusion_sentence(counts: np.ndarray, tokens: tuple[str, ...], of: str) -> str:
    """The most frequent confusion, or that there is none: int [true, said]; `of` is what was counted."""
    right, total = int(np.trace(counts)), int(counts.sum())
    worst = breakdown.worst_confusion(counts)
    if worst is None:
        return f"No symbol of {of} is said wrongly: {right:,} of {total:,} are right."
    true, said = worst
    times, asked = int(counts[worst]), int(counts[true].sum())
    return (
        f"Its most frequent confusion in {of}: it says '{tokens[said]}' where '{tokens[true]}' is right, {times:,} of "
        f"{asked:,} times ({times / asked:.2%}). {right:,} of {total:,} symbols are right."
    )


@claim
def hardest_sentence(frame: pd.DataFrame, whole: int, sequences: int, of: str) -> str:
    """How many sequences are wrong, and which is hardest; `of` is what was counted (`what`)."""
    first, wrong = frame.iloc[0], sequences - whole
    part = "" if of == "the answer" else f" in {of}"
    if not wrong:
        return (
            f"None of {sequences:,} answers is wrong{part}. The model is least sure of {first['input']}: it gives the "
            f"right tokens probability {first['p']:.2g}."
        )
    tokens = "1 token" if first["wrong"] == 1 else f"{first['wrong']} tokens"
    if wrong == 1:
        return f"1 of {sequences:,} answers is wrong{part}: that to {first['input']}, in {tokens}."
    return f"{wrong:,} of {sequences:,} answers are wrong{part}. The hardest input is {first['input']}: {tokens} wrong."
