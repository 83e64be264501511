"""What *The bottleneck* alone keeps in the view."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.view.fields import number_field, text_field


@dataclass(frozen=True)
class BottleneckSettings:
    trio: str = text_field()
    """Whose three models of the bottleneck are shown: "shipped" or "own"; empty are the shipped ones."""
    spoken: int | None = number_field(None, 1, 64)
    """The length at which the three are looked at place by place; empty is the longest."""
