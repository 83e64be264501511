"""A corpus: a text cut into tokens, most of its works to learn from, the others held out; and an excerpt of it.

The excerpt goes with a run: the vocabulary, the counts, and some of what was held out. With it a model can be looked at
where the text itself is not at hand; to learn, the text is needed.
"""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Int
from numpy.lib.stride_tricks import sliding_window_view

from transformer.foundation.atomic_files import write_whole
from transformer.foundation.checks import UserError, reason
from transformer.foundation.foreign import DAMAGED, read_arrays
from transformer.foundation.versions import Unusable, read_once
from transformer.text.tokens import Vocabulary, split
from transformer.text.works import hold_out, works

EXCERPT = 2**15
"""Tokens of the works that were held out that go with a run."""
MOST_BYTES, MOST_TOKENS = 64 * 2**20, 2**20
"""Of an excerpt, once it is unpacked, and in its vocabulary."""
SKIPPED = 0.2
"""Of each work, the part before the excerpt: the title, and who appears."""
Tokens = Int[np.ndarray, "_token"]
"""Of one work: each has its own length."""


class TextError(UserError):
    """A text that cannot be used; the message is one sentence."""


@dataclass(frozen=True, eq=False)
class Excerpt:
    """What a run knows of its text without having it."""

    vocabulary: Vocabulary
    titles: tuple[str, ...]
    """Of the works in `held_out`."""
    held_out: tuple[Tokens, ...]
    """A stretch from each work that was held out."""
    sizes: tuple[int, int]
    """Tokens to learn from, and tokens held out, in the whole text."""

    @cached_property
    def mark(self) -> str:
        """SHA-256 of all that it holds: two with one mark have the same words, the same tokens, the same counts."""
        vocabulary, lengths = self.vocabulary, [len(part) for part in self.held_out]
        known = (vocabulary.by, vocabulary.tokens, vocabulary.counts, self.titles, self.sizes, lengths)
        digest = hashlib.sha256(repr(known).encode())
        for part in self.held_out:
            digest.update(part.astype("<i8").tobytes())
        return digest.hexdigest()

    def windows(self, length: int) -> Int[np.ndarray, "window length"]:
        """What was held out, cut as `windows` does; neighbours begin at different turns of words and blanks."""
        return windows(self.held_out, length)

    @cached_property
    def probabilities(self) -> np.ndarray:
        """How common each token is, the unknown one last: what a reader knows who has not looked."""
        counts = np.array(self.vocabulary.counts, dtype=np.float64)
        return counts / counts.sum()

    def save(self, path: Path) -> None:
        """Write it to one file, whole or not at all."""
        stream, vocabulary = io.BytesIO(), self.vocabulary
        np.savez_compressed(
            stream,
            by=np.array(vocabulary.by),
            tokens=_packed(vocabulary.tokens),
            counts=np.array(vocabulary.counts, dtype=np.int64),
            titles=_packed(self.titles),
            lengths=np.array([len(part) for part in self.held_out], dtype=np.int64),
            held_out=np.concatenate(self.held_out).astype(np.int32),
            sizes=np.array(self.sizes, dtype=np.int64),
        )
        write_whole(path, stream.getvalue())

    @classmethod
    def load(cls, path: Path) -> Excerpt:
        """Read what `save` wrote. Raises TextError for anything else: files come from anywhere."""
        try:
            return _excerpt(path)
        except Unusable as error:
            raise TextError(str(error)) from None
        except OSError as error:
            raise TextError(f"{path.name} cannot be read: {reason(error)}") from None

    @classmethod
    def _read(cls, path: Path) -> Excerpt:
        try:
            file = read_arrays(path, MOST_BYTES)
            lengths, held_out = file["lengths"], file["held_out"].astype(np.int64)
            if len(lengths) > EXCERPT or len(file["counts"]) > MOST_TOKENS + 1:
                raise ValueError("it is longer than any")
            vocabulary = Vocabulary(_unpacked(file["tokens"]), tuple(map(int, file["counts"])), str(file["by"][()]))
            parts = np.split(held_out, np.cumsum(lengths)[:-1])
            sizes = (int(file["sizes"][0]), int(file["sizes"][1]))
            found = cls(vocabulary, _unpacked(file["titles"]), tuple(parts), sizes)
        except DAMAGED as error:
            raise TextError(f"{path.name} does not hold the vocabulary of a text") from error
        known = len(vocabulary.tokens)
        whole = len(vocabulary.counts) == known + 1 and min(vocabulary.counts) >= 0 < sum(vocabulary.counts)
        cut = len(found.titles) == len(lengths) > 0 and [len(part) for part in parts] == lengths.tolist()
        fits = held_out.size > 0 and held_out.min() >= 0 and held_out.max() <= known
        if not (whole and cut and fits) or vocabulary.by not in ("words", "characters") or min(sizes) < 0:
            raise TextError(f"the vocabulary in {path.name} is damaged")
        return found


@read_once(answers=False)
def _excerpt(path: Path) -> Excerpt:
    return Excerpt._read(path)


@dataclass(frozen=True, eq=False)
class Corpus:
    """A whole text, cut: what is learned from, and what is held out, work by work."""

    vocabulary: Vocabulary
    train: tuple[Tokens, ...]
    held_out: tuple[Tokens, ...]
    titles: tuple[str, ...]
    """Of the works that are held out."""

    @classmethod
    def of(cls, text: str, by: str, min_count: int) -> Corpus:
        """Cut a text. The vocabulary is made from the works that are learned from. Raises TextError for too little."""
        learned, held = hold_out(works(text))
        tokens = [split(work.text, by) for work in learned]
        vocabulary = Vocabulary.of((token for work in tokens for token in work), min_count, by)
        if len(vocabulary.tokens) < 2:
            raise TextError(f"the text has fewer than two {by} that occur {min_count} times: lower the minimum count")
        if len(vocabulary.tokens) > MOST_TOKENS:
            raise TextError(f"the text has more than {MOST_TOKENS:,} different {by}: raise the minimum count")
        return cls(
            vocabulary,
            tuple(vocabulary.encode_tokens(work) for work in tokens),
            tuple(vocabulary.encode(work.text) for work in held),
            tuple(work.title for work in held),
        )

    @cached_property
    def excerpt(self) -> Excerpt:
        """The same stretch of each work that was held out, in every process."""
        share = EXCERPT // len(self.held_out)
        parts = tuple(_stretch(work, share) for work in self.held_out)
        sizes = (sum(map(len, self.train)), sum(map(len, self.held_out)))
        return Excerpt(self.vocabulary, self.titles, parts, sizes)


def windows(works: tuple[Tokens, ...], length: int, *, all_read: bool = False) -> Int[np.ndarray, "window length"]:
    """Pieces of `length` tokens that do not overlap and do not reach from one work into the next; the rest is left.

    Words and what stands between them take turns, so a piece of an even length has one token left out after it: by an
    odd step every other piece begins with a word. With `all_read` nothing is left out between two pieces of a work.
    """
    step = length if all_read else length + 1 - length % 2
    cut = [sliding_window_view(work, length)[::step] for work in works if len(work) >= length]
    return np.concatenate(cut) if cut else np.zeros((0, length), dtype=np.int64)


def _stretch(work: Tokens, most: int) -> Tokens:
    """At most so many tokens of a work, from SKIPPED on; of a short one, its end."""
    start = min(int(len(work) * SKIPPED), max(0, len(work) - most))
    return work[start : start + most]


def _packed(texts: tuple[str, ...]) -> np.ndarray:
    """Texts as bytes: each behind its length, so that any character may be in them."""
    parts = [text.encode() for text in texts]
    head = np.array([len(texts), *map(len, parts)], dtype="<u4").tobytes()
    return np.frombuffer(head + b"".join(parts), dtype=np.uint8)


def _unpacked(packed: np.ndarray) -> tuple[str, ...]:
    content = packed.tobytes()
    many = int(np.frombuffer(content[:4], dtype="<u4")[0])
    if many > MOST_TOKENS:
        raise ValueError(f"{many:,} texts are too many")
    lengths = np.frombuffer(content[4 : 4 + 4 * many], dtype="<u4")
    ends = 4 + 4 * many + np.cumsum(lengths, dtype=np.int64)
    return tuple(content[int(end) - int(size) : int(end)].decode() for end, size in zip(ends, lengths, strict=True))
