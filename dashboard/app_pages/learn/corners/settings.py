"""What *Square corners* alone keeps in the view."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dashboard.view.fields import MOST_SEED, number_field, text_field

if TYPE_CHECKING:
    from transformer.corners import CornerConfig


@dataclass(frozen=True)
class CornersSettings:
    corner_attention: str = text_field()
    """How the GRU looks back at the corners given; empty is the page's choice."""
    corner_affine: bool = True
    """Give that attention affine maps."""
    corner_width: int = number_field(4, 1, 32)
    """Of its hidden states."""
    corner_most: int = number_field(2, 2, 6)
    """Corners given at most; from 2 on."""
    corner_noise: float = number_field(0.1, 0.0, 0.5)
    """Standard deviation of each coordinate."""
    corner_forcing: float = number_field(0.5, 0.0, 1.0)
    """Probability of reading the true corner while it trains."""
    corner_seed: int = number_field(0, 0, MOST_SEED)
    corner_step: int | None = number_field(None, 0, 100_000)
    """The step of its training; empty is the last."""
    corner_walk: str = text_field()
    """The walk that is looked at, "lower left clockwise"; empty is the page's choice."""
    corner_given: int | None = number_field(None)
    """How many of its corners are given; empty is as many as there are at most."""
    corner_part: str = text_field()
    """What is shown of them: "walks", or "forcing" for what teacher forcing feeds; empty is the page's choice."""
    corner_case: str = text_field()
    """Which measurement of teacher forcing is shown; empty is the page's choice."""
    corner_roll: str = text_field()
    """Which step of the walk is shown gate by gate, "e1" or "d2"; empty is the encoder's first."""

    def corner_config(self) -> CornerConfig:
        """The training on square corners that these describe. Raises ConfigError with a sentence when there is none."""
        from dashboard.models.walks.corners import ATTENTION
        from transformer.corners import CornerConfig

        return CornerConfig(
            d_model=self.corner_width,
            attention=self.corner_attention or ATTENTION,
            affine=self.corner_affine,
            teacher_forcing=self.corner_forcing,
            most=self.corner_most,
            noise=self.corner_noise,
            seed=self.corner_seed,
        )
