"""What *Follow the information* alone keeps in the view."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.view.fields import number_field, text_field


@dataclass(frozen=True)
class InformationSettings:
    poked: int | None = number_field(None, of_model=True)
    """The token that is poked, its slot counted from 1, the source's first; empty is the page's choice."""
    replacement: str = text_field(of_model=True)
    """The symbol that is put in its place; empty is every other in turn."""
    beside: str = text_field()
    """Which attention stands beside what moves: the rollout, or the head in focus; empty is the rollout."""
