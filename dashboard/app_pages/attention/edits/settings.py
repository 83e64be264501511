"""What *Edits* alone keeps in the view."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.view.fields import LONG_TEXT, text_field


@dataclass(frozen=True)
class EditsSettings:
    paired: bool = False
    """Remove the heads two at a time, and show which belong together."""
    other: str = text_field(longest=LONG_TEXT, passage=True, of_model=True)
    """The second input of activation patching, as typed; empty is the input with its first symbol changed."""
