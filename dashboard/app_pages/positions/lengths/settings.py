"""What *What positions buy* alone keeps in the view."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.view.fields import number_field, text_field


@dataclass(frozen=True)
class LengthsSettings:
    measurement: str = text_field()
    """Whose measurement over lengths is shown: "shipped" or "own"; empty is the shipped one."""
    longer: int | None = number_field(None, 1, 192)
    """The length whose places are shown one by one; empty is the page's choice."""
    raced: bool = False
    """Race the positional encodings against each other, here and now."""
