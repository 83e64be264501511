"""What *Inside a block* alone keeps in the view."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.view.fields import MOST_SEED, number_field


@dataclass(frozen=True)
class BlockSettings:
    wide: bool = False
    """Split 512 numbers into 8 heads of 64, untrained, in place of the chosen model's."""
    wide_query: int = number_field(60, 1, 60)
    """The token that is looked at there, its position counted from 1."""
    norm_layers: int = number_field(12, 2, 12)
    """Layers of the untrained models whose gradients are compared by where their norm stands."""
    dropped: float | None = number_field(None, 0.0, 0.9, of_model=True)
    """The dropout rate of the passes in training mode; empty is the model's own, or the page's where it has none."""
    dropout_seed: int = number_field(0, 0, MOST_SEED)
    """What decides which numbers are dropped."""
    softened: float = number_field(1.0, 0.1, 5.0)
    """The temperature of the softmax from logits to words."""
