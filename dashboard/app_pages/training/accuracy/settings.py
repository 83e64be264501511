"""What *Accuracy by position* alone keeps in the view."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.view.fields import number_field, text_field


@dataclass(frozen=True)
class AccuracySettings:
    depth: str = text_field()
    """By what the accuracy is taken apart: "training", "head", "symbol" …; empty is the page's choice."""
    confused: int = number_field(0, 0, 65_536)
    """The target whose confusions are counted, its position counted from 1; 0 is the whole answer."""
