"""Whether what was seen of attention are matrices of the input's positions: what is not is said."""

from __future__ import annotations

from collections.abc import Collection

from transformer.capturing.foreign.reading import Given
from transformer.capturing.record import Captured
from transformer.foundation.foreign import shortened
from transformer.foundation.words import counted

NAMED = 3
"""Modules that a sentence names, at most."""


def unlike(seen: Captured, heads: Collection[int]) -> str:
    """The attention whose second axis is not its heads: a sliding window over [position, head, offset]; else nothing.

    `heads` are the numbers of heads that the model says it has.
    """
    for name in seen.attentions():
        shape = seen[f"{name}.pattern"].shape
        if shape[1] not in heads and shape[2] in heads:
            return name
    return ""


def remarks(seen: Captured, given: Given, heads: Collection[int]) -> tuple[str, ...]:
    """A sentence for each way in which attention is not over the input's own positions, and what is shown then."""
    found: dict[str, list[str]] = {}
    known = {len(given.names), len(given.sources)}
    for name in seen.attentions():
        sequences, own, queries, _ = seen[f"{name}.pattern"].shape
        said = []
        if sequences > 1:
            what = f"its {sequences} heads are" if own == 1 and sequences in heads else "its attention is"
            said.append(f"{what} computed as {sequences} sequences, and the first is shown")
        if name not in seen.crossing and queries not in known:
            said.append(_positions(queries, len(given.names)))
        if said:
            found.setdefault("; ".join(said), []).append(name)
    return tuple(f"{_listed(names)}: {said}." for said, names in found.items())


def _positions(queries: int, names: int) -> str:
    of_input = f"it attends among {counted(queries, 'position')}, and the input has {names}"
    if queries > names:
        return f"{of_input}; {queries - names} are taken to stand in front, and called +1, +2 …"
    return f"{of_input}; its positions are numbered, and bear no names of the input"


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(shortened(name) for name in names[:NAMED]) + more
