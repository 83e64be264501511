"""What *Gallery of mistakes* alone keeps in the view."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.view.fields import number_field


@dataclass(frozen=True)
class MistakesSettings:
    mistake_seed: int = number_field(0, 0, 2)
    """The seed that both models of a mistake are trained with: 0, 1 or 2."""
