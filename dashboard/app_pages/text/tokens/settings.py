"""What *Tokens and windows* alone keeps in the view."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.view.fields import number_field, text_field


@dataclass(frozen=True)
class TokensSettings:
    cut_text: str = text_field(longest=1000, passage=True)
    """What is cut, its line ends as "↵"; empty is a passage that was held out."""
    cut_by: str = text_field()
    """Into what: "words" or "characters"; empty is what the model reads."""
    cut_window: int = number_field(8, 2, 64)
    """Tokens of a window."""
    cut_at: int = number_field(1, 1, 1000)
    """The window that is looked at, counted from 1."""
