"""What *Check mine* alone keeps in the view."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.view.fields import text_field


@dataclass(frozen=True)
class CheckSettings:
    check_example: str = text_field()
    """The example that stands in its field, as "softmax-over-heads"; empty is the reader's own code."""
    check_kind: str = text_field()
    """What the code is said to be, as "attention"; empty lets the check guess."""
