"""The health check “No NaN”."""

from __future__ import annotations

from typing import ClassVar

from transformer.analysis.health.case import Case, Cell, Check, Finding

MOST_NAMED = 8
"""Tensors that are named, at most."""


class Finite(Check):
    """No weight, and nothing computed from them, is NaN or infinite."""

    order: ClassVar[int] = 10
    label: ClassVar[str] = "No NaN"
    law: ClassVar[str] = "Every weight and every number that the model computes is finite."
    formula: ClassVar[str] = r"|w| < \infty"

    def look(self, case: Case) -> Finding:
        found = {f"weight {name}": weight for name, weight in case.model.state_dict().items()}
        found |= {f"inside {name}": value for name, value in case.seen.sites.items() if value.is_floating_point()}
        wrong = {name: int((~value.isfinite()).sum()) for name, value in found.items()}
        bad = {name: count for name, count in wrong.items() if count}
        numbers, tensors = sum(value.numel() for value in found.values()), len(found)
        if not bad:
            largest = sorted(((float(value.abs().max()), name) for name, value in found.items()), reverse=True)[
                :MOST_NAMED
            ]
            table: dict[str, tuple[Cell, ...]] = {
                "largest": tuple(name for _, name in largest),
                "magnitude": tuple(magnitude for magnitude, _ in largest),
            }
            return Finding(True, f"All {numbers:,} numbers in {tensors} tensors are finite.", table=table)
        named = list(bad)[:MOST_NAMED]
        table = {
            "tensor": tuple(named),
            "not finite": tuple(bad[name] for name in named),
            "of": tuple(found[name].numel() for name in named),
        }
        total = sum(bad.values())
        where = f"in {len(bad)} of {tensors} tensors: first {named[0]}."
        said = f"{total:,} of {numbers:,} numbers are NaN or infinite, {where}"
        return Finding(False, said, float(total), 0.0, table)
