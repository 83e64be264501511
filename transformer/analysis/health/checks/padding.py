"""The health check “Padding ignored”."""

from __future__ import annotations

from typing import ClassVar

import torch
from jaxtyping import Int
from torch import Tensor

from transformer.analysis.health.case import Case, Cell, Check, Finding
from transformer.analysis.health.checks._evidence import judge_rounding


class Padding(Check):
    """A sequence says the same whether or not padding follows it, but for rounding."""

    order: ClassVar[int] = 60
    label: ClassVar[str] = "Padding ignored"
    law: ClassVar[str] = (
        "The output does not depend on how much padding follows, so sequences of any length may share a batch."
    )
    formula: ClassVar[str] = r"f([x, \mathrm{PAD}, \dots])_{1 \dots n} = f(x)"

    def look(self, case: Case) -> Finding:
        tokens, source = case.tensors(case.whole)
        width = tokens.shape[1] if source is None else source.shape[1]
        if width < 2:
            return Finding(None, "It does not apply: in a context of one token there is no room for padding.")
        kept = (width + 1) // 2
        tokens, source = tokens[:, :kept], None if source is None else source[:, :kept]
        pad = case.task.padding
        padded = case.logits(_padded(tokens, width, pad), None if source is None else _padded(source, width, pad))
        apart = (case.logits(tokens, source) - padded[:, :kept]).abs().amax(-1).cpu()
        worst = float(apart.max())
        place = torch.arange(kept).tolist()
        added = width - kept
        said = f"{len(tokens)} sequences of {kept} tokens, with and without {added} of padding behind: their logits"
        table: dict[str, tuple[Cell, ...]] = {
            "output": tuple(i + 1 for i in place),
            "logits differ by": tuple(apart.amax(0).tolist()),
        }
        return judge_rounding(case, worst, said, table)


def _padded(tokens: Int[Tensor, "batch _kept"], width: int, token: int) -> Int[Tensor, "batch width"]:
    return torch.nn.functional.pad(tokens, (0, width - tokens.shape[1]), value=token)
