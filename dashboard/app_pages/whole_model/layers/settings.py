"""What *Through the layers* alone keeps in the view."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LayersSettings:
    likeliest: bool = False
    """Colour the stages by the likeliest token's probability instead of the right one's."""
