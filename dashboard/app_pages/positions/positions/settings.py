"""What *Positional encoding* alone keeps in the view."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.view.fields import number_field, text_field

MOST_WIDE, MOST_LONG = 512, 200
"""Dimensions and positions of an encoding that are drawn: a matrix of them is 0.8 MB for the browser."""


@dataclass(frozen=True)
class PositionsSettings:
    encoding: str = text_field(of_model=True)
    """The positional encoding that is drawn; empty is the model's own."""
    dimensions: str = text_field(of_model=True)
    """The dimensions drawn as waves, "0,1,8"; empty is the page's choice."""
    pe_width: int | None = number_field(None, 2, MOST_WIDE, of_model=True)
    """The width of an encoding that follows from a formula; empty is the model's own."""
    pe_length: int | None = number_field(None, 1, MOST_LONG, of_model=True)
    """How many positions are drawn; empty is as many as the model reads."""
    pe_heads: int | None = number_field(None, 1, 64, of_model=True)
    """How many heads share ALiBi's slopes; empty is as many as the model has."""
    slope: int = number_field(0, 0, 63, of_model=True)
    """Which of these heads is looked at."""
    base: int = number_field(10_000, 10, 1_000_000)
    """The base of the wavelengths."""
    cursor: int | None = number_field(None, 1, MOST_LONG, of_model=True)
    """The position that is looked at, from 1; empty is the middle."""
    sum_column: int | None = number_field(None, 0, 65_536, of_model=True)
    """The dimension in which token and position are added up in numbers; empty is 0."""
    shift: int = number_field(1, 1, MOST_LONG - 1, of_model=True)
    """The step whose rotation is shown, in positions."""
    scaled: int | None = number_field(None, 0, 1, of_model=True)
    """Token embeddings times sqrt(d_model), 1, or as they are stored, 0; empty is what the model does."""
    answer: bool = False
    """Train a small model the way the page suggests, on the spot."""
