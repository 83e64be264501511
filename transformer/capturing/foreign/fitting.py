"""Whether what was seen of attention is over the input's own positions: what is not is said."""

from __future__ import annotations

from transformer.capturing.foreign.reading import Given
from transformer.capturing.record import Captured, some_of
from transformer.foundation.foreign import shortened
from transformer.foundation.words import counted


def remarks(seen: Captured, given: Given) -> tuple[str, ...]:
    """A sentence for each number of positions other than the input's that is attended among, and what they are called.

    Cross-attention may have any.
    """
    found: dict[int, list[str]] = {}
    for name in seen.attentions():
        queries = seen[f"{name}.pattern"].shape[2]
        if name not in seen.crossing and queries not in (len(given.names), len(given.sources)):
            found.setdefault(queries, []).append(shortened(name))
    return tuple(f"{some_of(names)}: {_positions(many, len(given.names))}." for many, names in found.items())


def _positions(queries: int, names: int) -> str:
    of_input = f"attention among {counted(queries, 'position')}, where the input has {names}"
    if queries > names:
        return f"{of_input}; {queries - names} are taken to stand in front, and called +1, +2 …"
    return f"{of_input}; its positions are numbered, and bear no names of the input"
