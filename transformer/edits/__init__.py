"""Edits: how one forward pass may be changed.

Frozen dataclasses: hashable, so they are cache keys; printable, so they are labels. They enter through
`observe(model, tokens, edits)` and nowhere else, never work in place, and an edit that touches nothing is an error.

Each kind is one file, by what it changes: `heads/` what a head hands on, `patterns/` where it looks, `places/` what the
model is told about the order of its tokens. Dropped in there it is in the menu of the dashboard, in links and in the
contract tests. The private files hold what has no text: masks, patches of tensors.
"""

from __future__ import annotations

from pathlib import Path

from transformer.edits._base import Edit, EditError, HeadEdit, PlacesEdit, number, tame
from transformer.edits._masks import OverrideMask
from transformer.edits._patches import Patch, PatchHead
from transformer.edits._wishes import Occasion, Wish, resolve
from transformer.foundation.registry import Registry

__all__ = [
    "EDITS",
    "Edit",
    "EditError",
    "HeadEdit",
    "Occasion",
    "OverrideMask",
    "Patch",
    "PatchHead",
    "PlacesEdit",
    "Wish",
    "kinds",
    "number",
    "parse_edit",
    "resolve",
    "tame",
]

EDITS: Registry[Edit] = Registry(
    Edit,
    __name__,
    str(Path(__file__).parent),
)


def kinds() -> tuple[str, ...]:
    """The kinds of edit in the order of a menu."""
    return tuple(sorted(EDITS.names(), key=lambda kind: (EDITS[kind].order, kind)))


def parse_edit(text: str) -> Edit:
    """Read what an edit's `write` wrote. Raises EditError, a ValueError, with a sentence for anything else."""
    kind, _, rest = text.partition(":")
    if kind not in EDITS.names():
        *others, last = kinds()
        raise EditError(f"there is no edit “{tame(kind)}”: choose {', '.join(others)} or {last}")
    return EDITS[kind].read(rest)
