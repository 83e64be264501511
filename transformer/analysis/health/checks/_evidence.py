"""What several checks bring as evidence: the worst row of a pattern, and logits that only rounding may tell apart."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from jaxtyping import Float
from torch import Tensor

from transformer.analysis.findings import Head
from transformer.analysis.health.case import Case, Cell, Finding, amount
from transformer.analysis.sample import labels

NO_ATTENTION = "It does not apply: there is no attention in this model."


def worst_of(values: Mapping[str, Float[Tensor, "batch head query"]]) -> tuple[str, tuple[int, int, int], float]:
    """Where a deviation is greatest, and how great; NaN is greater than any number."""
    ranks = {site: each.nan_to_num(nan=math.inf) for site, each in values.items()}
    site = max(ranks, key=lambda name: float(ranks[name].max()))
    index = int(ranks[site].argmax())
    sequence, head, query = (int(i) for i in np.unravel_index(index, tuple(ranks[site].shape)))
    return site, (sequence, head, query), float(values[site].flatten()[index])


def row_of(case: Case, site: str, place: tuple[int, int, int]) -> tuple[str, dict[str, tuple[Cell, ...]]]:
    """One row of a pattern: whose it is, in words, and what it puts on each key."""
    sequence, head, query = place
    read = case.names(case.mixed.tokens[sequence])
    source = () if case.mixed.source is None else case.names(case.mixed.source[sequence])
    queries, keys = labels(site, read, source)
    may_see = next(seen for name, _, seen in case.patterns() if name == site)[sequence, 0, query]
    whose = Head(site, head)
    kind = "" if case.mixed.source is None else f" ({whose.kind})"
    said = f"head {whose.short}{kind}, sequence {sequence + 1}, query “{queries[query]}” at {query + 1}"
    return said, {
        "key": tuple(f"“{key}” at {i}" for i, key in enumerate(keys, start=1)),
        "may see": tuple("yes" if seen else "no" for seen in may_see.tolist()),
        "weight": tuple(case.seen[f"{site}.pattern"][place].tolist()),
    }


def judge_rounding(case: Case, worst: float, said: str, table: dict[str, tuple[Cell, ...]]) -> Finding:
    """A finding about logits that only rounding may tell apart."""
    holds = worst <= case.rounding
    verdict = (
        "not at all" if worst == 0 else f"by {amount(worst)}, which is rounding" if holds else f"by {amount(worst)}"
    )
    return Finding(holds, f"{said} differ {verdict}.", worst, case.rounding, table)
