"""Perplexity: of how many tokens, equally likely, one would be as unsure."""

from __future__ import annotations

import math

COUNTING = {"unigram": 1, "trigram": 3} | {f"{order}-gram": order for order in range(4, 11)}
"""What a reader is compared with: models that count runs of so many tokens (benchmarks/language.py)."""
MOST = 700.0
"""Nats beyond which an exponential is no number any more; only a training that has gone astray gets there."""


def perplexity(nats: float) -> float:
    """exp(nats), of the mean cross-entropy of a token."""
    return math.exp(min(nats, MOST))


def said(value: float) -> str:
    """A perplexity where people read: 31.6, 1,204, or "beyond a million"; "unknown" where it is no number."""
    if math.isnan(value):
        return "unknown"
    if value > 1e6:
        return "beyond a million"
    return f"{value:.1f}" if value < 1000 else f"{value:,.0f}"
