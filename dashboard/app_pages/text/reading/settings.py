"""What *It reads* alone keeps in the view."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.view.fields import number_field, text_field


@dataclass(frozen=True)
class ReadingSettings:
    read_what: str = text_field()
    """What is read: "input" for what was typed; empty is a passage that was held out."""
    read_work: str = text_field(of_model=True)
    """From which work, counted from "1"; empty is the first."""
    read_place: int = number_field(1, of_model=True)
    """Where in it the passage stands, counted from 1."""
    read_word: int | None = number_field(None, of_model=True)
    """The token that is looked at, counted from 1; empty is the most surprising."""
    repeated: str = text_field()
    """What is read twice: "passages" for stretches of the text; empty is random tokens."""
