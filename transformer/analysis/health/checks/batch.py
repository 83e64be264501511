"""The health check “Sequences independent”."""

from __future__ import annotations

from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from transformer.analysis.health.case import Case, Cell, Check, Finding
from transformer.analysis.health.checks._evidence import judge_rounding


class Independence(Check):
    """Sequences of a batch do not meet: each says the same in any order, and in less company, but for rounding."""

    order: ClassVar[int] = 70
    label: ClassVar[str] = "Sequences independent"
    law: ClassVar[str] = (
        "The sequences of a batch do not influence each other: reordering the batch only reorders the "
        "output, and leaving some out changes nothing for the others."
    )
    formula: ClassVar[str] = r"f(X_{\pi}) = f(X)_{\pi}"

    def look(self, case: Case) -> Finding:
        tokens, source = case.tensors(case.mixed)
        whole, count = case.seen.logits, len(tokens)

        def of(order: Int[Tensor, "some"]) -> Float[Tensor, "some position d_vocab"]:
            return case.logits(tokens[order], None if source is None else source[order])

        everyone = torch.arange(count, device=tokens.device)
        reordered = (of(everyone.flip(0)).flip(0) - whole).abs().amax((1, 2))
        halves = torch.cat([of(half) for half in everyone.split((count + 1) // 2)])
        parted = (halves - whole).abs().amax((1, 2))
        worst = float(torch.stack([reordered, parted]).max())
        table: dict[str, tuple[Cell, ...]] = {
            "sequence": tuple(range(1, count + 1)),
            "in reverse order, differs by": tuple(reordered.tolist()),
            "in half the batch, differs by": tuple(parted.tolist()),
        }
        said = f"{count} sequences, in reverse order and in half the batch: their logits"
        return judge_rounding(case, worst, said, table)
