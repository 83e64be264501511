"""The health check “Forbidden is 0”."""

from __future__ import annotations

from typing import ClassVar

from transformer.analysis.health.case import Case, Check, Finding, amount
from transformer.analysis.health.checks._evidence import NO_ATTENTION, row_of, worst_of


class Forbidden(Check):
    """pattern[q, k] = 0, to the last bit, wherever the run's own mask or padding hides k from q."""

    order: ClassVar[int] = 40
    label: ClassVar[str] = "Forbidden is 0"
    law: ClassVar[str] = "A hidden key is not read at all: the attention on it is exactly 0."
    formula: ClassVar[str] = r"A_{qk} = 0 \;\text{ where }\; M_{qk} = 0"

    def look(self, case: Case) -> Finding:
        mass = {
            site: pattern.abs().masked_fill(may_see, 0.0).sum(-1).masked_fill(may_see.all(-1), -1.0)
            for site, pattern, may_see in case.patterns()
        }
        cells = sum(int((~may_see).sum()) * pattern.shape[1] for _, pattern, may_see in case.patterns())
        if not case.seen.attentions():
            return Finding(None, NO_ATTENTION)
        if not cells:
            return Finding(None, "It does not apply: nothing is forbidden here, and nothing is padded.")
        site, place, worst = worst_of(mass)
        said, row = row_of(case, site, place)
        if worst == 0:
            return Finding(True, f"All {cells:,} forbidden cells are exactly 0; below, {said}.", 0.0, 0.0, row)
        sentence = f"Of {cells:,} forbidden cells not all are 0. The worst row is {said}: {amount(worst)} is on them."
        return Finding(False, sentence, worst, 0.0, row)
