"""How a text goes on: which of the likely tokens may follow, and which numbers are drawn. No PyTorch."""

from __future__ import annotations

from dataclasses import dataclass

from transformer.config import ConfigError


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How the next token is drawn from what a model finds likely. Raises ConfigError for what cannot be."""

    temperature: float = 1.0
    """Divides the logits: below 1 the likely become likelier; 0 always takes the likeliest."""
    top_k: int = 0
    """Draw from so many of the likeliest tokens; 0 from all."""
    top_p: float = 1.0
    """Draw from the fewest of the likeliest tokens that together have this probability; 1 from all."""
    seed: int = 0
    """Decides every draw."""

    def __post_init__(self) -> None:
        for good, sentence in (
            (0 <= self.temperature <= 100, f"temperature must be between 0 and 100, not {self.temperature:g}"),
            (0 <= self.top_k <= 10**6, f"top_k must be between 0 (all) and 1000000, not {self.top_k}"),
            (0 < self.top_p <= 1, f"top_p must be above 0 and at most 1, not {self.top_p:g}"),
            (0 <= self.seed < 2**31, f"seed must be between 0 and {2**31 - 1}, not {self.seed}"),
        ):
            if not good:
                raise ConfigError(sentence)
