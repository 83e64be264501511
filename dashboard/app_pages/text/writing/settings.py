"""What *It writes* alone keeps in the view."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.view.fields import MOST_SEED, number_field, text_field


@dataclass(frozen=True)
class WritingSettings:
    prompt: str = text_field(longest=2000, passage=True)
    """What it goes on with, its line ends as "↵"; empty is the page's suggestion."""
    temperature: float = number_field(0.8, 0.0, 2.0)
    top_k: int = number_field(0, 0, 1000)
    """From so many of the likeliest tokens it draws; 0 is all."""
    top_p: float = number_field(1.0, 0.01, 1.0)
    """From the fewest of the likeliest tokens that together have this probability."""
    writing_seed: int = number_field(0, 0, MOST_SEED)
    written: int = number_field(120, 1, 512)
    """How many tokens it writes."""
    word: int | None = number_field(None, of_model=True)
    """The token whose alternatives are shown, its position counted from 1; empty is the last word written."""
