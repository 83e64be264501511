"""What *Populations* alone keeps in the view."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.view.fields import text_field


@dataclass(frozen=True)
class PopulationsSettings:
    phase_across: str = text_field()
    """The setting that is drawn from left to right against another; empty is the page's choice."""
    phase_up: str = text_field()
    """The other one, drawn downwards."""
    phase_colour: str = text_field()
    """What the colour says there: "share" solved, or "steps" in the median; empty is the share."""
