"""What *The machine* alone keeps in the view."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.view.fields import text_field


@dataclass(frozen=True)
class MachineSettings:
    zoom: str = text_field()
    """How near the machine is looked at: "block" or "head"; empty is the whole."""
    box: str = text_field(of_model=True)
    """Which box of the machine is spoken of, as "decoder.0.feed_forward"; empty is the first."""
    tinted: bool = False
    """Tint the boxes of the machine by how far training moved them."""
