"""What *Positions at work* alone keeps in the view."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.view.fields import text_field


@dataclass(frozen=True)
class OrderSettings:
    order: str = text_field()
    """What a model is told about its positions, as the library writes an edit: "places-shift:3"; empty is the page's
    choice."""
