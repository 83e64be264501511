"""What *Attention by hand* alone keeps in the view."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.view.fields import number_field, text_field


@dataclass(frozen=True)
class ContextSettings:
    walk_start: str = text_field()
    """The corner, from "1", at which the walk begins whose context vector is worked out; empty is the page's choice."""
    walk_turn: str = text_field()
    """Which way round it goes; empty is clockwise."""
    walk_given: int = number_field(2, 2, 6)
    """How many of its corners are given."""
    walk_target: str = text_field("1")
    """Which of the corners that are to be said, counted from 1."""
    hand: str = text_field()
    """Which step on the way to the context vector is shown; empty is the first."""
    scores: str = text_field()
    """The scores put on the vectors of the walk; empty are those that the model was trained with."""
    scores_trained: str = text_field()
    """The scores that this model was trained with; empty is the page's choice."""
    stretch: float = number_field(1.0, 0.0, 5.0)
    """By how much its query is made longer."""
    turned: int = number_field(0, -180, 180)
    """By how many degrees its query is turned, anticlockwise."""
