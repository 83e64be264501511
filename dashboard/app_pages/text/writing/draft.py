"""A text that a model writes, token by token, behind the page; whoever looks sees how far it is.

PyTorch is imported when the first of it is asked for.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dashboard.app_pages.text.writing.settings import WritingSettings
from dashboard.models.background import WATCHED
from dashboard.models.cache import cached
from dashboard.models.model import Model
from transformer.sampling import Sampling
from transformer.text.task import Text
from transformer.text.tokens import Vocabulary

if TYPE_CHECKING:
    from transformer.analysis.heads.one_token import Glance
    from transformer.generation import Said
    from transformer.tasks import Question


SPEAKER = re.compile(r"(?m)^[A-Z]{2}[A-Z ]*[.:]?(?:  +|\t)(?=\S)")
"""A name in capitals where a line begins, as plays have it before a speech."""
SPEECH = re.compile(SPEAKER.pattern + r"\w[^\s⟨⟩]*(?: [^\s⟨⟩]+){2}")
"""A speaker's name and the first three words of the speech, all of them known: a model goes on with them at once."""
HEADINGS = ("ACT ", "SCENE ")
"""What stands in capitals where a line begins and is no speaker."""
FEW = 8
"""Tokens of a prompt that is drawn, at most."""
AT_ONCE = 0.15
"""Seconds for which a page waits for a text: what is known is there at once, the rest is seen while it comes."""
FARTHEST = 100_000
"""Tokens after which a text ends in any case."""


def sampling_of(mine: WritingSettings) -> Sampling:
    """How the page lets the tokens be drawn."""
    return Sampling(temperature=mine.temperature, top_k=mine.top_k, top_p=mine.top_p, seed=mine.writing_seed)


# --- prompts


def openings(task: Text) -> list[str]:
    """The prompts that a page offers: the beginning of one speech from each work that was held out.

    Where no work has a speech, the first words of what was held out.
    """
    found = [_speech(task.typed(stretch)) for stretch in task.known.held_out]
    return list(dict.fromkeys(each for each in found if each)) or [task.typed(task.example[:FEW])]


def _speech(text: str) -> str:
    """The beginning of a work's first speech; of a work without any, its first speaker, or nothing."""
    speeches = (found[0] for found in SPEECH.finditer(text) if not found[0].startswith(HEADINGS))
    speaker = SPEAKER.search(text)
    return next(speeches, speaker[0] if speaker else "")


def opening(task: Text) -> str:
    """The prompt of a reader who has typed none."""
    return openings(task)[0]


def drawn(task: Text, rng: np.random.Generator) -> str:
    """The beginning of a line of what was held out; no token of it is unknown."""
    vocabulary = task.known.vocabulary
    starts = [
        (stretch, at + 1)
        for stretch in task.known.held_out
        for at in np.flatnonzero(np.isin(stretch[: -FEW - 1], _line_ends(vocabulary)))
        if not (stretch[at + 1 : at + 1 + FEW] == vocabulary.unknown).any()
    ]
    if not starts:
        return opening(task)
    stretch, at = starts[rng.integers(len(starts))]
    line = stretch[at : at + FEW]
    ends = np.flatnonzero(np.isin(line, _line_ends(vocabulary)))
    return task.typed(line[: ends[0] + 1] if len(ends) and ends[0] else line)


def _line_ends(vocabulary: Vocabulary) -> np.ndarray:
    return np.array([index for index, token in enumerate(vocabulary.tokens) if "\n" in token], dtype=np.int64)


# --- texts under way


class Writing:
    """One text that grows, as far as anybody wants it. Whatever is drawn, it is the same text for the same link."""

    def __init__(self, going: Iterator[Said]) -> None:
        self.said: list[Said] = []
        self.seconds = 0.0
        """Spent on them so far."""
        self.failure = ""
        self._going = going
        self._most = 0
        self._lock = threading.Lock()
        self._future: Future[None] | None = None

    def want(self, most: int, patience: float = 0.0) -> None:
        """Let it grow to so many tokens, if it has fewer, and wait for them no longer than that many seconds."""
        with self._lock:
            self._most = max(self._most, most)
            if self._future is None and not self.failure and len(self.said) < self._most:
                self._future = WATCHED.submit(self._run)
            future = self._future
        if future is not None and len(self.said) < most:
            wait([future], patience)

    def enough(self) -> None:
        """Nobody here wants more; whoever else does says so again."""
        with self._lock:
            self._most = 0

    def _run(self) -> None:
        try:
            while self._wanted():
                began = time.monotonic()
                said = next(self._going)
                self.seconds += time.monotonic() - began
                self.said.append(said)
        except Exception as error:  # told to whoever looks
            self.failure = str(error) or type(error).__name__
            self._future = None

    def _wanted(self) -> bool:
        with self._lock:
            wanted = len(self.said) < self._most
            if not wanted:
                self._future = None
            return wanted


def begun(model: Model, prompt: str, sampling: Sampling) -> Writing:
    """The text that a model writes after a prompt; one that is known already is there at once."""
    asked = (model, prompt, sampling.temperature, sampling.top_k, sampling.top_p, sampling.seed)
    if (found := _begun(*asked)).failure:
        _begun.clear(*asked)  # type: ignore[attr-defined]  # what broke off is begun anew at the next look
    return found


@cached(16)
def _begun(model: Model, prompt: str, temperature: float, top_k: int, top_p: float, seed: int) -> Writing:
    import torch

    from transformer.generation import generate

    sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
    task = model.task
    assert isinstance(task, Text)
    return Writing(
        generate(model.network(), torch.tensor(task.begun(prompt)), FARTHEST, sampling, never=task.unsayable)
    )


def glance(model: Model, text: tuple[int, ...], place: int) -> Glance:
    """What every head looked at when the token at `place` was said, and how likely each was."""
    return _glance(model, np.array(text[:place], dtype=np.int64))


@cached(128)
def _glance(model: Model, before: Question) -> Glance:
    from transformer.analysis.heads.one_token import glance as look

    return look(model.transformer(), before.tolist(), len(before))


# --- what is in view


@dataclass(frozen=True, eq=False)
class Draft:
    """A prompt and what was written after it. A place counts from 0, the separator's; on the screen it is one more."""

    task: Text
    prompt: str
    said: tuple[Said, ...]

    @cached_property
    def tokens(self) -> tuple[int, ...]:
        return (*self.task.begun(self.prompt), *(each.token for each in self.said))

    @property
    def given(self) -> int:
        """The separator, and the tokens of the prompt."""
        return len(self.tokens) - len(self.said)

    @cached_property
    def pieces(self) -> tuple[str, ...]:
        """Each token as it stands in the text."""
        return tuple(self.task.piece(token) or "SEP " for token in self.tokens)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Each token where people read: blanks and line ends are signs."""
        return tuple(self.task.vocabulary[token] for token in self.tokens)

    def said_at(self, place: int) -> Said | None:
        """What was drawn at a place; None where it was given."""
        return self.said[place - self.given] if place >= self.given else None

    @property
    def last_word(self) -> int:
        """The place of the last token written that has letters; of the last token where none has."""
        lettered = (i for i in range(len(self.tokens) - 1, self.given - 1, -1) if re.search(r"\w", self.pieces[i]))
        return next(lettered, len(self.tokens) - 1)

    @property
    def nats(self) -> float:
        """The mean surprise of what was written; nan before there is any."""
        return float(np.mean([each.nats for each in self.said])) if self.said else float("nan")


@dataclass(frozen=True, eq=False)
class Ranking:
    """The likeliest tokens at a place, the likeliest first, and the one that came, wherever it ranks."""

    tokens: tuple[int, ...]
    probabilities: np.ndarray
    drawn_with: np.ndarray | None
    """None where nothing was drawn."""
    came: int
    """The index of the one that came."""


def ranking(model: Model, draft: Draft, place: int) -> Ranking:
    """What might have come at a place."""
    said, token = draft.said_at(place), draft.tokens[place]
    if said is None:
        return _of_prompt(glance(model, draft.tokens, place).probabilities, token)
    top = said.alternatives
    tokens, probabilities, shares = top.tokens.tolist(), list(top.probabilities), list(top.drawn_with)
    if token not in tokens:
        tokens, probabilities, shares = [*tokens, token], [*probabilities, said.probability], [*shares, said.drawn_with]
    return Ranking(tuple(tokens), np.array(probabilities), np.array(shares), tokens.index(token))


def _of_prompt(probabilities: np.ndarray, token: int) -> Ranking:
    from transformer.generation import TOP

    order = np.argsort(-probabilities[:-1], kind="stable")[:TOP].tolist()
    tokens = tuple(order) if token in order else (*order, token)
    return Ranking(tokens, probabilities[list(tokens)], None, tokens.index(token))
