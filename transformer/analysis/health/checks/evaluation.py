"""The health check “Evaluation mode”."""

from __future__ import annotations

from typing import ClassVar

import torch

from transformer.analysis.health.case import Case, Cell, Check, Finding, amount


class Evaluation(Check):
    """No module is in training mode, and two plain calls on one input agree to the last bit."""

    order: ClassVar[int] = 20
    label: ClassVar[str] = "Evaluation mode"
    law: ClassVar[str] = "Dropout is off, and the same input always gives the same output, bit for bit."
    formula: ClassVar[str] = r"f(x) = f(x)"

    @torch.no_grad()
    def look(self, case: Case) -> Finding:
        modules = dict(case.model.named_modules())
        training = [name or "the model" for name, module in modules.items() if module.training]
        tokens, source = case.tensors(case.whole)
        apart = float((case.model(tokens, source) - case.model(tokens, source)).abs().max())
        said = (
            f"{len(training)} of {len(modules)} modules are in training mode, and two calls differ by {amount(apart)}"
        )
        table: dict[str, tuple[Cell, ...]] = {
            "what": ("modules in training mode", "dropout, were it on", "two calls differ by"),
            "value": (len(training), case.model.config.dropout, apart),
        }
        first = f"; the first is {training[0]}" if training else ""
        return Finding(not training and apart == 0, f"{said}{first}.", apart, 0.0, table)
