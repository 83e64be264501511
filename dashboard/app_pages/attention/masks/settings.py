"""What *Mask effects* alone keeps in the view."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.view.fields import MANY_CELLS, number_field, text_field


@dataclass(frozen=True)
class MasksSettings:
    target: int | None = number_field(None, of_model=True)
    """The output whose ways are shown, its position counted from 1; empty is the first of the answer."""
    live: bool = True
    """Train a small model anew whenever the mask changes."""
    retrain: str = text_field(longest=MANY_CELLS, of_model=True)
    """The mask under which a small model was asked for by hand."""
