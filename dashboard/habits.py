"""What a head looks at by habit, told from its mean pattern: the token before, itself, the first one.

For texts: where no token is the one to look at, this is what sets heads apart.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from transformer.analysis.findings import Head, Survey

PLACES = {"previous": "the token before", "self": "itself", "first": "the first token"}
CLEAR = 0.5
"""The share from which on a head is said to do one thing."""


def habits(mean: np.ndarray) -> dict[str, float]:
    """How much of a mean pattern, float [query, key], lies on each of PLACES; the queries that have no choice left out.

    As the metrics of heads count (transformer.analysis.measuring): "first" where that is neither the query nor its
    neighbour; nan where no query is asked.
    """
    n = len(mean)

    def share(cells: np.ndarray) -> float:
        return float(cells.mean()) if len(cells) else float("nan")

    return {
        "previous": share(np.diagonal(mean, -1)),
        "self": share(np.diagonal(mean)[1:]),
        "first": share(mean[2:, 0] if n > 2 else np.zeros(0)),
    }


def habit_sentence(head: Head, survey: Survey) -> str:
    """What one head does, from the numbers."""
    found = habits(survey.patterns[head.site][head.index])
    name = max(found, key=lambda each: np.nan_to_num(found[each]))
    if found[name] >= CLEAR:
        return f"Head {head.short} looks at {PLACES[name]}: {found[name]:.2f} of its attention is there."
    return f"Head {head.short} has no one place to look: {_listed(found)}."


def headline(heads: Sequence[Head], survey: Survey) -> str:
    """Which head looks at the token before, and how much; or that none does."""
    best, others = survey.worker, len(heads) - 1
    share = habits(survey.patterns[best.site][best.index])["previous"]
    many = f"of all {others + 1} heads" if others else "the one head"
    if share >= CLEAR:
        return f"Head {best.short} looks at the token before: {share:.2f} of its attention, the most {many}."
    return f"No head looks at the token before alone: nearest, head {best.short} puts {share:.2f} there."


def _listed(found: dict[str, float]) -> str:
    parts = [f"{share:.2f} on {PLACES[name]}" for name, share in found.items() if not np.isnan(share)]
    return ", ".join(parts) or "it has no choice"
