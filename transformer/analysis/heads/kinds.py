"""On which kinds of token heads look where a text is read: words, line starts, the same token earlier, and so on.

No PyTorch here; `measure.py` finds these things out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from transformer.analysis.findings import Head
from transformer.analysis.heads.metrics import MARGIN, Estimate, Metric

KINDS: Mapping[str, str] = {
    "previous": "the token before",
    "self": "itself",
    "first": "the first token",
    "word": "the word before",
    "same": "the same token earlier",
    "line": "line starts",
    "words": "words",
}
"""What each is called. A word has a letter or a digit and is not the separator. A line starts after a line end or,
behind a speaker's name, after several blanks."""
BREAKS = ("↵", "␣␣")
"""What a token holds before the start of a line."""
SHARE = Metric("share", "share", "Share of attention on one kind of token")


@dataclass(frozen=True)
class Kinds:
    """Every self-attention head over many passages: its share of attention on each kind of token.

    A query counts that is a word, sees two keys or more and one of the kind. Blanks do not count: each of them stands
    beside a word, so where they look says little. Of a text of single characters every query counts.
    """

    heads: tuple[Head, ...]
    sequences: int
    share: Mapping[str, Estimate]
    even: Mapping[str, Float[np.ndarray, "head"]]
    """What a head would have that looks evenly at all it may see."""

    def beyond(self, kind: str) -> Float[np.ndarray, "head"]:
        """How far the whole interval of each head's share lies beyond that of a head that looks evenly."""
        return np.asarray(self.share[kind].low - self.even[kind])

    def leaning(self, head: Head) -> str | None:
        """The kind on which the head has most beyond its even share, if that is `MARGIN` with the whole interval.

        None also for a head that was not measured.
        """
        if head not in self.heads:
            return None
        i = self.heads.index(head)
        beyond = {name: float(self.beyond(name)[i]) for name in self.share}
        name = max(beyond, key=lambda each: np.nan_to_num(beyond[each], nan=-1.0))
        return name if beyond[name] >= MARGIN else None


def cells_of(
    tokens: Int[np.ndarray, "batch position"], vocabulary: tuple[str, ...], separator: int
) -> dict[str, Bool[np.ndarray, "batch position position"]]:
    """Which key is of which kind to which query, [query, key]; all but "self" stand before the query.

    Only words are queries here. "first" leaves out those to which the first key is the token before. A text of single
    characters has no words: each of its tokens is a query.
    """
    count = tokens.shape[1]
    place = np.arange(count)
    back = place[:, None] - place[None, :]
    before = np.broadcast_to(back > 0, (len(tokens), count, count))
    words = np.array([any(letter.isalnum() for letter in token) for token in vocabulary])[tokens] & (
        tokens != separator
    )
    lines = np.array([any(sign in token for sign in BREAKS) for token in vocabulary])[tokens]
    last = np.maximum.accumulate(np.where(words, place, -1), axis=1)  # the last word so far
    last = np.concatenate([np.full((len(tokens), 1), -1), last[:, :-1]], axis=1)
    cells = {
        "previous": before & (back == 1),
        "self": np.broadcast_to(back == 0, before.shape),
        "first": before & (back > 1) & (place == 0),
        "word": place == last[:, :, None],
        "same": before & (tokens[:, :, None] == tokens[:, None, :]),
        "line": before & lines[:, None, :],
        "words": before & words[:, None, :],
    }
    if max(map(len, vocabulary)) == 1:
        return {name: each for name, each in cells.items() if name not in ("word", "words")}
    return {name: each & words[:, :, None] for name, each in cells.items()}


def shares(
    pattern: Float[np.ndarray, "batch head query key"],
    cells: Bool[np.ndarray, "batch query key"],
    mask: Bool[np.ndarray, "batch query key"],
) -> Float[np.ndarray, "batch head"]:
    """The mean share on the cells, of the queries that have a choice and see one of them; nan where there is none."""
    seen = cells & mask
    asked = seen.any(axis=-1) & (mask.sum(axis=-1) > 1)
    rows = np.einsum("bhqk,bqk,bq->bh", pattern, seen.astype(np.float64), asked.astype(np.float64))
    with np.errstate(invalid="ignore"):
        return rows / asked.sum(axis=-1)[:, None]
