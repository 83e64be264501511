"""Accuracy taken apart: by symbol, by which symbol is taken for which, by sequence. No PyTorch: counts over arrays.

`asking.py` asks the sequences; everything here is counted from what was said to them, and nothing is estimated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int


@dataclass(frozen=True, eq=False)
class Answers:
    """What a model said to fresh sequences of one length, each target after the right ones (teacher forcing)."""

    questions: Int[np.ndarray, "sequence length"]
    targets: Int[np.ndarray, "sequence target"]
    predicted: Int[np.ndarray, "sequence target"]
    log_probability: Float[np.ndarray, "sequence target"]
    """Of the right token, in nats: 0 where it was sure of it, ln(1/n) for an even guess among n."""

    @property
    def right(self) -> Bool[np.ndarray, "sequence target"]:
        return self.predicted == self.targets

    def __len__(self) -> int:
        return len(self.targets)


def by_symbol(answers: Answers, tokens: int) -> tuple[Int[np.ndarray, "token target"], Int[np.ndarray, "token target"]]:
    """How often each token was right where it was to be said, and how often it was to be said there.

    Summed over tokens these are the counts by position: every target is one token.
    """
    right = answers.right
    asked = [answers.targets == token for token in range(tokens)]
    correct = np.stack([(right & here).sum(axis=0) for here in asked])
    return correct, np.stack([here.sum(axis=0) for here in asked])


def confusion(answers: Answers, counted: Bool[np.ndarray, "target"], tokens: int) -> Int[np.ndarray, "true said"]:
    """How often each token was said where each was right, over the targets that are `counted`."""
    true, said = answers.targets[:, counted].ravel(), answers.predicted[:, counted].ravel()
    return np.bincount(true * tokens + said, minlength=tokens**2).reshape(tokens, tokens)


def commonest(answers: Answers, most: int) -> Int[np.ndarray, "row"]:
    """The tokens that were to be said most often, at most so many, the most frequent first."""
    found, times = np.unique(answers.targets, return_counts=True)
    return found[np.argsort(-times, kind="stable")[:most]]


def confusion_among(answers: Answers, tokens: Int[np.ndarray, "row"]) -> Int[np.ndarray, "row said"]:
    """How often each of some tokens was said where each of them was right; the last column is all others together."""
    n, every = len(tokens), 1 + max(int(answers.targets.max()), int(answers.predicted.max()))
    column = np.full(every, n)
    column[tokens] = np.arange(n)
    true, said = column[answers.targets].ravel(), column[answers.predicted].ravel()
    return np.bincount((true * (n + 1) + said)[true < n], minlength=n * (n + 1)).reshape(n, n + 1)


@dataclass(frozen=True)
class ByToken:
    """One token where it was to be said: how often it was, and what was said in its place."""

    token: int
    times: int
    right: int
    nats: float
    """What it cost, on average."""
    instead: int | None
    """What was said most often in its place, if anything was; and how often."""
    often: int


def by_token(answers: Answers, tokens: Int[np.ndarray, "row"]) -> list[ByToken]:
    """Each of some tokens by itself."""
    rows = []
    for token in tokens.tolist():
        here = answers.targets == token
        said = answers.predicted[here]
        others, often = np.unique(said[said != token], return_counts=True)
        instead = int(others[often.argmax()]) if len(others) else None
        nats = float(-answers.log_probability[here].mean())
        right = int((said == token).sum())
        rows.append(ByToken(token, int(here.sum()), right, nats, instead, int(often.max(initial=0))))
    return rows


def worst_confusion(counts: Int[np.ndarray, "true said"]) -> tuple[int, int] | None:
    """The true token and the other one that was most often said in its place; None where nothing is confused."""
    others = np.where(np.eye(len(counts), dtype=bool), 0, counts)
    true, said = divmod(int(others.argmax()), len(counts))
    return (true, said) if others[true, said] else None


def hardest(answers: Answers, counted: Bool[np.ndarray, "target"], most: int) -> Int[np.ndarray, "row"]:
    """Which sequences are hardest, at most so many: first those with most wrong tokens among the `counted`, and among
    equals those whose right answer had the smallest probability, the product of its tokens'. Each question once.
    """
    wrong = (~answers.right & counted).sum(axis=1)
    order = np.lexsort((answers.log_probability[:, counted].sum(axis=1), -wrong))
    _, first = np.unique(answers.questions[order], axis=0, return_index=True)
    return order[np.sort(first)[:most]]
