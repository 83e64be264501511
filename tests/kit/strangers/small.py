"""A health check that nobody ships: every weight is small."""

from typing import ClassVar

from transformer.analysis.health.case import Check, Finding


class Small(Check):
    """No weight exceeds a thousand."""

    order: ClassVar[int] = 35
    label: ClassVar[str] = "Small weights"
    law: ClassVar[str] = "No weight is greater than 1,000."
    formula: ClassVar[str] = r"|w| \le 1000"

    def look(self, case):
        worst = max(float(weight.detach().abs().max()) for weight in case.model.parameters())
        return Finding(worst <= 1000, f"The greatest weight is {worst:.3g}.", worst, 1000)
