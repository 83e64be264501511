"""How the working heads of a population came to be, side by side: plain values for a film of all members at once.

A member's working head is the one that looks most at the token to be said once it is trained. What is seen of it is
taken from the film in the member's folder. A population that is shipped without its members' folders has a file of
these scenes in their place, `scenes.npz`.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from transformer.analysis.film.film import Film, Reading, thinned
from transformer.analysis.findings import Head
from transformer.experiments.populations.plan import Value
from transformer.experiments.populations.table import Population, Row
from transformer.foundation.foreign import DAMAGED, read_arrays, words_of
from transformer.training.runs import Run
from transformer.training.stored.checks import expect

SCENES = "scenes.npz"
COARSE = 17
"""Of 256 levels 16 are shipped."""
PLAIN = ("members", "heads", "queries", "keys", "sequences", "names", "groups", "chance")
"""What of a combination's scenes is no array."""


@dataclass(frozen=True, eq=False)
class Scenes:
    """The members of one combination of settings, at the same steps: one that has ended stays as it was then.

    Those are left out whose working head reads other tokens than the first member's: of an encoder and a decoder each
    may have it elsewhere.
    """

    members: tuple[str, ...]
    heads: tuple[str, ...]
    """Which head of each is its working one: "decoder.0.self_attention.3"."""
    steps: Int[np.ndarray, "frame"]
    levels: UInt8[np.ndarray, "member frame query key"]
    """Its patterns on one question, in steps of 1/255; of a shipped population, of 1/15."""
    mask: Bool[np.ndarray, "query key"]
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    right: Int[np.ndarray, "member frame target"]
    """How many of `sequences` fresh sequences were right at each target."""
    sequences: int
    """Behind each member's count."""
    names: tuple[str, ...]
    groups: tuple[str, ...]
    chance: float
    loss: Float[np.ndarray, "step"]
    """Mean loss of the members' training steps, from step 1, in nats; one that has ended keeps its last."""


def scenes(folder: Path, found: Population, settings: Mapping[str, Value]) -> Scenes | None:
    """What is kept of one combination of settings; None where nothing is, or where it cannot be used."""
    number = found.sweep.settings().index(dict(settings))
    if (folder / SCENES).is_file():
        try:
            return unpacked(folder / SCENES, number)
        except (*DAMAGED, OSError):
            return None
    taken: list[Taken] = []
    for row in found.of(settings):
        run = Run(folder / row.member)
        film, lines = run.film, run.metrics()
        head = None if row.working is None else Head.parse(row.working)
        if film is not None and head is not None and head.site in film.readings and lines:
            taken.append((row, film, np.array([line["loss"] for line in lines])))
    alike = [each for each in taken if _reading(each).keys == _reading(taken[0]).keys]
    alike = [each for each in alike if _reading(each).queries == _reading(taken[0]).queries]
    return _joined(alike) if alike else None


Taken = tuple[Row, Film, np.ndarray]
"""A member's row, its film, and the loss of each of its steps."""


def _reading(each: Taken) -> Reading:
    """What the working head of a member reads."""
    row, film, _ = each
    return film.readings[Head.parse(row.working or "").site]


def _joined(taken: Sequence[Taken]) -> Scenes:
    """All films on one clock: the steps at which any of them has a frame."""
    steps = np.unique(np.concatenate([film.steps for _, film, _ in taken]))
    levels, right, heads = [], [], []
    for row, film, _ in taken:
        head = Head.parse(row.working or "")
        reading = film.readings[head.site]
        at = np.searchsorted(film.steps, steps, side="right") - 1
        pictures = np.searchsorted(film.pictured, at, side="right") - 1
        levels.append(reading.levels[pictures, head.index])
        right.append(film.correct[at])
        heads.append(str(head))
    longest = max(len(losses) for _, _, losses in taken)
    mean = np.mean([np.pad(losses, (0, longest - len(losses)), mode="edge") for _, _, losses in taken], axis=0)
    film, reading = taken[0][1], _reading(taken[0])
    return Scenes(
        members=tuple(row.member for row, _, _ in taken),
        heads=tuple(heads),
        steps=steps,
        levels=np.stack(levels),
        mask=reading.mask,
        queries=reading.queries,
        keys=reading.keys,
        right=np.stack(right),
        sequences=film.sequences,
        names=film.names,
        groups=film.groups,
        chance=film.chance,
        loss=mean,
    )


# --- as a file


def packed(found: Sequence[Scenes], frames: int = 16) -> bytes:
    """The scenes of every combination as one .npz, small enough to be shipped: so many frames of each at the most, and
    patterns in steps of 1/15."""
    arrays: dict[str, Any] = {}
    texts = []
    for number, each in enumerate(found):
        kept = thinned(len(each.steps), frames)
        arrays |= {
            f"{number}/steps": each.steps[kept].astype(np.int32),
            f"{number}/levels": _differences(np.rint(each.levels[:, kept] / COARSE).astype(np.uint8)),
            f"{number}/mask": each.mask,
            f"{number}/right": each.right[:, kept].astype(np.int16),
            f"{number}/loss": each.loss.astype(np.float32),
        }
        texts.append({name: getattr(each, name) for name in PLAIN})
    file = io.BytesIO()
    np.savez_compressed(file, text=np.array(json.dumps({"scenes": texts})), **arrays)
    return file.getvalue()


def unpacked(path: Path, number: int) -> Scenes:
    """One combination's scenes from such a file. Raises one of `foreign.DAMAGED` when it is not that, and OSError."""
    stored = read_arrays(path)
    text = words_of(stored["text"])["scenes"][number]
    plain: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in text.items()}
    made = Scenes(
        **plain,
        steps=stored[f"{number}/steps"],
        levels=COARSE * np.cumsum(stored[f"{number}/levels"], axis=1, dtype=np.uint8),
        mask=stored[f"{number}/mask"],
        right=stored[f"{number}/right"],
        loss=stored[f"{number}/loss"],
    )
    members, frames = len(made.members), len(made.steps)
    cells = (len(made.queries), len(made.keys))
    expect(
        len(made.heads) == members
        and made.levels.shape == (members, frames, *cells)
        and made.mask.shape == cells
        and made.right.shape == (members, frames, len(made.names))
        and len(made.groups) == len(made.names)
        and len(made.loss) > 0,
        "the sizes of its arrays do not agree",
    )
    return made


def _differences(levels: UInt8[np.ndarray, "member frame query key"]) -> UInt8[np.ndarray, "member frame query key"]:
    """Each frame less the one before, modulo 256, from nothing: what hardly changes packs small."""
    before = np.concatenate([np.zeros_like(levels[:, :1]), levels[:, :-1]], axis=1)
    return levels - before
