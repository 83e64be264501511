"""The health check “One by one = one pass”."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import torch

from transformer.analysis.health.case import Case, Cell, Check, Finding
from transformer.analysis.health.checks._evidence import judge_rounding
from transformer.masks import parse

MOST_STEPS = 8
"""Tokens that are said freely, at most."""


class FreeRunning(Check):
    """What it says token by token is what one pass over all of it says, but for rounding."""

    order: ClassVar[int] = 80
    label: ClassVar[str] = "One by one = one pass"
    law: ClassVar[str] = (
        "Producing tokens one by one gives the same logits as one pass over the same tokens (teacher forcing)."
    )
    formula: ClassVar[str] = r"f(x_{1 \dots t})_t = f(x_{1 \dots n})_t"

    def look(self, case: Case) -> Finding:
        speaks = case.whole.source is not None or not case.whole.is_answer.all() or not case.task.lawful
        if not speaks:
            return Finding(None, "It does not apply: this model says its whole answer at once.")
        prompt = case.length + 1 if case.whole.source is None and case.task.lawful else 1
        steps = min(int(case.whole.is_answer[0].sum()), MOST_STEPS)
        mask = parse(case.model.config.mask)
        if np.triu(mask.matrix(prompt + steps - 1), 1)[:, prompt:].any():
            ahead = "a token sees later ones, which free speech does not have yet."
            return Finding(None, f"It does not apply: under the mask {mask} {ahead}")
        tokens, source = case.tensors(case.whole)
        if source is None:
            said = case.model.continue_greedily(tokens[:, :prompt], steps)
        else:
            said = case.model.greedy(source, case.task.separator, steps)
        read = torch.cat([tokens[:, :prompt], said], dim=1)
        step_by_step = [case.logits(read[:, : prompt + i], source)[:, -1] for i in range(steps)]
        alone, at_once = torch.stack(step_by_step, dim=1), case.logits(read[:, :-1], source)[:, prompt - 1 :]
        apart = (alone - at_once).abs().amax(-1)
        short = at_once.amax(-1) - at_once.gather(-1, said[..., None])[..., 0]
        worse_of = torch.maximum(apart, short).cpu()
        worst = float(worse_of.max())
        sequence = int(worse_of.nan_to_num(nan=math.inf).amax(1).argmax())
        table: dict[str, tuple[Cell, ...]] = {
            "step": tuple(range(1, steps + 1)),
            "said by itself": case.names(said[sequence].cpu().numpy()),
            "likeliest in one pass": case.names(at_once[sequence].argmax(-1).cpu().numpy()),
            "logits differ by": tuple(apart[sequence].tolist()),
            "said below the likeliest by": tuple(short[sequence].tolist()),
        }
        words = f"{steps} tokens said one by one in each of {len(tokens)} sequences, and one pass over them"
        return judge_rounding(case, worst, f"{words} (below, sequence {sequence + 1}): the logits", table)
