"""What *Five questions* alone keeps in the view."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.view.fields import number_field, text_field


@dataclass(frozen=True)
class QuestionsSettings:
    asked: str = text_field()
    """Which of the five questions of a lecture is answered, "1" to "5"; empty is the first."""
    unrolled: int = number_field(8, 2, 32)
    """Over how many tokens a network is unrolled in time."""
    stacked: int = number_field(2, 1, 6)
    """How many layers it has there."""
    timed: bool = False
    """Time one pass of a recurrent network and of a transformer, here and now."""
    n_queries: int = number_field(3, 1, 12)
    n_keys: int = number_field(5, 1, 12)
    n_values: int = number_field(5, 1, 12)
    d_query: int = number_field(4, 1, 12)
    d_key: int = number_field(4, 1, 12)
    d_value: int = number_field(6, 1, 12)
    d_stream: int = number_field(8, 1, 64)
    """The shapes that attention is tried with: how many queries, keys and values, how wide each is, and the stream."""
    deep: int = number_field(6, 1, 8)
    """Layers of the model that is trained with and without residual connections."""
    deep_rate: str = text_field()
    """The learning rate of both; empty is the larger one."""
    parted: bool = False
    """Train both, here and now."""
