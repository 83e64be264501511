"""The film of a run: its heads and its accuracy at every kept step, as plain values. No PyTorch: it plays without.

`filming.py` takes it; a run keeps it as `film.npz`.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from transformer.analysis.findings import Head
from transformer.foundation.foreign import read_arrays, words_of

LEVELS = 255
"""A weight p is kept as the nearest of 0/255 … 255/255: at most 1/510, less than 0.002, beside the truth."""
MOST_CELLS = 8_000_000
"""A film keeps at most so many weights (bytes); beyond, only some of its frames keep their patterns."""
RISE = 0.2
"""A head that gains less than this share of its attention, from first frame to last, has not sharpened."""
LEARNED = 0.9
"""A position is learned once it is right so often, and stays so."""


@dataclass(frozen=True, eq=False)
class Reading:
    """All heads of one attention module while they read the example, picture after picture."""

    site: str
    """Path of the module: "decoder.0.self_attention"."""
    levels: UInt8[np.ndarray, "picture head query key"]
    """The patterns, in steps of 1/255 (see LEVELS)."""
    mask: Bool[np.ndarray, "query key"]
    queries: tuple[str, ...]
    keys: tuple[str, ...]

    def pattern(self, picture: int) -> Float[np.ndarray, "head query key"]:
        """Every head's pattern in one picture, within 1/510 of what it was."""
        return (self.levels[picture] / LEVELS).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Film:
    """How a run came to be what it is. A frame is a kept step; a picture is a frame whose patterns are kept."""

    steps: Int[np.ndarray, "frame"]
    """Steps taken, ascending."""
    pictured: Int[np.ndarray, "picture"]
    """The frames whose patterns are kept: all of them, in any film of usual size."""
    question: tuple[str, ...]
    read: tuple[str, ...]
    """The tokens that the predicting stack read: the right ones (teacher forcing), so that frames can be compared."""
    readings: dict[str, Reading]
    correct: Int[np.ndarray, "frame target"]
    """How many of `sequences` fresh sequences were right at each target."""
    sequences: int
    names: tuple[str, ...]
    groups: tuple[str, ...]
    chance: float
    shares: dict[Head, Float[np.ndarray, "frame"]]
    """Mean share of each head's attention on the token to be said, over `surveyed` sequences; see `findings.Survey`."""
    surveyed: int
    snapshot: str
    """Digest of the last frame's weights: whose film this is."""

    @property
    def accuracy(self) -> Float[np.ndarray, "frame target"]:
        return self.correct / self.sequences

    def pack(self) -> bytes:
        """One .npz: the arrays, and everything else as JSON text. No pickle."""
        arrays: dict[str, Any] = {"steps": self.steps, "pictured": self.pictured, "correct": self.correct}
        arrays["shares"] = np.array(list(self.shares.values()), dtype=np.float32).reshape(-1, len(self.steps))
        labels = {}
        for site, reading in self.readings.items():
            labels[site] = {"queries": reading.queries, "keys": reading.keys}
            arrays |= {f"{site}/levels": reading.levels, f"{site}/mask": reading.mask}
        plain = ("question", "read", "sequences", "names", "groups", "chance", "surveyed", "snapshot")
        text = {name: getattr(self, name) for name in plain}
        text |= {"labels": labels, "heads": [str(head) for head in self.shares]}
        file = io.BytesIO()
        np.savez_compressed(file, text=np.array(json.dumps(text)), **arrays)
        return file.getvalue()

    @classmethod
    def load(cls, path: Path) -> Film:
        """Read what `pack` made. Raises one of `foreign.DAMAGED` when it is not that, and OSError."""
        stored = read_arrays(path)
        text = words_of(stored["text"])
        steps, correct, pictured = stored["steps"], stored["correct"], stored["pictured"]
        shares = {Head.parse(name): row for name, row in zip(text["heads"], stored["shares"], strict=True)}
        readings = {
            site: Reading(
                site,
                levels=stored[f"{site}/levels"],
                mask=stored[f"{site}/mask"],
                queries=tuple(labels["queries"]),
                keys=tuple(labels["keys"]),
            )
            for site, labels in text["labels"].items()
        }
        film = cls(
            steps=steps,
            pictured=pictured,
            readings=readings,
            correct=correct,
            shares=shares,
            question=tuple(text["question"]),
            read=tuple(text["read"]),
            names=tuple(text["names"]),
            groups=tuple(text["groups"]),
            sequences=text["sequences"],
            chance=text["chance"],
            surveyed=text["surveyed"],
            snapshot=text["snapshot"],
        )
        film._check()
        return film

    def _check(self) -> None:
        """Do the parts fit each other? What does not would be drawn wrong."""
        frames, targets = len(self.steps), len(self.names)
        fits = (
            frames > 0
            and bool((np.diff(self.steps) > 0).all())
            and self.correct.shape == (frames, targets)
            and len(self.groups) == targets
            and bool(np.isin(self.pictured, np.arange(frames)).all())
            and all(len(share) == frames for share in self.shares.values())
        )
        for reading in self.readings.values():
            places = (len(reading.queries), len(reading.keys))
            fits &= reading.levels.dtype == np.uint8 and reading.levels.ndim == 4
            fits &= reading.mask.shape == places == reading.levels.shape[2:]
            fits &= len(reading.levels) == len(self.pictured)
        if not fits:
            raise ValueError("the sizes of its arrays do not agree")


def joined(before: Film, after: Film) -> Film:
    """One film of two that were taken of the same run, one after the other."""
    readings = {
        site: replace(reading, levels=np.concatenate([before.readings[site].levels, reading.levels]))
        for site, reading in after.readings.items()
    }
    return replace(
        after,
        steps=np.concatenate([before.steps, after.steps]),
        pictured=np.concatenate([before.pictured, after.pictured + len(before.steps)]),
        readings=readings,
        correct=np.concatenate([before.correct, after.correct]),
        shares={head: np.concatenate([before.shares[head], share]) for head, share in after.shares.items()},
    )


def until(film: Film, step: int) -> Film | None:
    """Its frames up to a step; None where there is none."""
    count = int((film.steps <= step).sum())
    if not count:
        return None
    kept = film.pictured < count
    return replace(
        film,
        steps=film.steps[:count],
        pictured=film.pictured[kept],
        readings={site: replace(each, levels=each.levels[kept]) for site, each in film.readings.items()},
        correct=film.correct[:count],
        shares={head: share[:count] for head, share in film.shares.items()},
    )


@dataclass(frozen=True)
class Sharpening:
    """The moment at which a head has found what it is to look at."""

    head: Head
    frame: int
    step: int
    """The first kept step at which half of the rise is behind it, for good."""
    before: float
    """Its share on the expected key in the first frame …"""
    middle: float
    """… in this one …"""
    after: float
    """… and in the last."""
    began: int
    """The last kept step before a tenth of the rise is behind it, for good."""
    ended: int
    """The first kept step at which nine tenths are, for good."""


def sharpening(film: Film) -> Sharpening | None:
    """When the heads sharpen: of those that rise by RISE at least, the one that ends highest.

    Its moment is the first frame from which on its share on the expected key never again falls below the middle
    between its first value and its last: a spike on the way does not count. None when no head rises so much, or where
    the task has no expected key.
    """
    risen = {head: share for head, share in film.shares.items() if share[-1] - share[0] >= RISE}
    if not risen:
        return None
    head = max(risen, key=lambda head: (float(risen[head][-1]), head))
    share = risen[head]
    before, after = float(share[0]), float(share[-1])

    def risen_by(part: float) -> int:
        frame = from_then_on(share >= before + part * (after - before))
        assert frame is not None  # of the last frame it is true
        return frame

    frame, step = risen_by(0.5), [int(step) for step in film.steps]
    return Sharpening(
        head,
        frame,
        step[frame],
        before,
        float(share[frame]),
        after,
        step[max(risen_by(0.1) - 1, 0)],
        step[risen_by(0.9)],
    )


def learned_at(film: Film) -> Float[np.ndarray, "target"]:
    """The first step from which on each position is right at least LEARNED of the time; nan where there is none."""
    found = [from_then_on(position >= LEARNED) for position in film.accuracy.T]
    return np.array([math.nan if frame is None else float(film.steps[frame]) for frame in found])


def from_then_on(holds: Bool[np.ndarray, "frame"]) -> int | None:
    """The first frame from which on something holds to the end; None when it does not hold at the end."""
    failing = np.flatnonzero(~holds)
    first = int(failing[-1]) + 1 if len(failing) else 0
    return first if first < len(holds) else None


def quantise(pattern: Float[np.ndarray, "*cells"]) -> UInt8[np.ndarray, "*cells"]:
    """Weights as steps of 1/255, each at most 1/510 off; what is not a number becomes 0."""
    return np.rint(np.clip(np.nan_to_num(pattern, nan=0.0), 0, 1) * LEVELS).astype(np.uint8)


def thinned(count: int, most: int, keep: Sequence[int] = ()) -> list[int]:
    """At most `most` of `count` frames, evenly spread; the first, the last and those in `keep` are always among them.

    >>> thinned(9, 4), thinned(9, 4, keep=[5]), thinned(3, 4)
    ([0, 3, 5, 8], [0, 4, 5, 8], [0, 1, 2])
    """
    if count <= most:
        return list(range(count))
    chosen = {0, count - 1, *keep}
    gaps = [(left - right, left, right) for left, right in pairwise(sorted(chosen))]
    heapify(gaps)
    while len(chosen) < most:  # into the middle of the widest gap, of several the first
        _, left, right = heappop(gaps)
        middle = (left + right) // 2
        chosen.add(middle)
        heappush(gaps, (left - middle, left, middle))
        heappush(gaps, (middle - right, middle, right))
    return sorted(chosen)
