"""The health check “Rows sum to 1”."""

from __future__ import annotations

from typing import ClassVar

from transformer.analysis.health.case import Case, Check, Finding
from transformer.analysis.health.checks._evidence import NO_ATTENTION, row_of, worst_of

ROW_SUM = 1e-5
"""A sum of float32 shares may miss 1 by so much: at most 32 of them here, each rounded to 6e-8."""


class Rows(Check):
    """Σₖ pattern[q, k] = 1, or 0 where the query may see nothing, within ROW_SUM."""

    order: ClassVar[int] = 30
    label: ClassVar[str] = "Rows sum to 1"
    law: ClassVar[str] = (
        "A query's attention is a share of 1: every row of every pattern sums to 1, or to 0 where it may see nothing."
    )
    formula: ClassVar[str] = r"\sum_k A_{qk} = 1"

    def look(self, case: Case) -> Finding:
        if not case.seen.attentions():
            return Finding(None, NO_ATTENTION)
        off = {
            site: (pattern.sum(-1) - may_see.any(-1).to(pattern)).abs() for site, pattern, may_see in case.patterns()
        }
        site, place, worst = worst_of(off)
        said, row = row_of(case, site, place)
        total = float(case.seen[f"{site}.pattern"][place].cpu().double().sum())
        count = sum(values.numel() for values in off.values())
        sentence = f"Of {count:,} rows the worst is {said}: its weights sum to {total:.7f}."
        return Finding(worst <= ROW_SUM, sentence, worst, ROW_SUM, row)
