"""What *Change its attention* alone keeps in the view."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.view.fields import LONG_TEXT, MANY_CELLS, text_field


@dataclass(frozen=True)
class AblationSettings:
    removed: str = text_field(longest=LONG_TEXT, of_model=True)
    """The heads that are removed from the model, as "decoder.0.self_attention.3,…"."""
    seen_mask: str = text_field(longest=MANY_CELLS, of_model=True)
    """The mask that its self-attention is given, as the library writes it; empty is its own."""
