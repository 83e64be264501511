"""The health check “No hidden influence”."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import torch

from transformer.analysis.accuracy.ceilings import reach
from transformer.analysis.health.case import Case, Cell, Check, Finding, amount
from transformer.masks import parse

MOST_PROBES = 32
"""Tokens that are changed, at most."""


class Probe(Check):
    """Change one token at a time: no logit may change, not by a bit, that its mask keeps the token from reaching."""

    order: ClassVar[int] = 50
    label: ClassVar[str] = "No hidden influence"
    law: ClassVar[str] = (
        "A token that the mask hides from an output cannot influence it: changing the token leaves the output’s logits "
        "the same, bit for bit."
    )
    formula: ClassVar[str] = r"f(x')_q = f(x)_q \;\text{ where }\; x' = x \text{ at all that reaches } q"

    def look(self, case: Case) -> Finding:
        config = case.model.config
        reached = reach(case.task, parse(config.mask), config.n_layers, case.length)
        hidden = np.flatnonzero(~reached.all(axis=0))
        if not len(hidden):
            return Finding(None, "It does not apply: in this model every token may reach every output.")
        slots = hidden[np.unique(np.linspace(0, len(hidden) - 1, MOST_PROBES).round().astype(int))]
        out_of_reach = torch.from_numpy(~reached[:, slots].T)

        tokens, source = case.tensors(case.whole)
        width = 0 if source is None else source.shape[1]
        read = tokens if source is None else torch.cat([source, tokens], dim=1)
        row = torch.arange(len(slots), device=read.device)
        read = read[row % len(read)]  # a sequence for each token that is changed, the sequences in turn
        changed = read.clone()
        changed[row, slots] = (changed[row, slots] + 1) % case.task.symbols
        moved = (case.of_slots(read, width) - case.of_slots(changed, width)).abs().amax(-1).cpu()
        moved = moved.masked_fill(~out_of_reach, 0.0)

        names = [f"source token {slot + 1}" if slot < width else f"token {slot - width + 1}" for slot in slots]
        worst, count = float(moved.max()), int(out_of_reach.sum())
        table: dict[str, tuple[Cell, ...]] = {
            "changed": tuple(names),
            "from": case.names(read[row, slots].cpu().numpy()),
            "to": case.names(changed[row, slots].cpu().numpy()),
            "outputs out of reach": tuple(out_of_reach.sum(1).tolist()),
            "their logits moved by": tuple(moved.amax(1).tolist()),
        }
        tried = f"{len(slots)} tokens were changed, one at a time"
        if worst == 0:
            return Finding(True, f"{tried}: {count} outputs out of reach stayed the same, bit for bit.", table=table)
        first, output = divmod(int(moved.nan_to_num(nan=math.inf).argmax()), moved.shape[1])
        said = f"changing {names[first]} moved the logits of output {output + 1}, out of its reach, by {amount(worst)}"
        return Finding(False, f"{tried}: {said}.", worst, 0.0, table)
