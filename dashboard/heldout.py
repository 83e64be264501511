"""How well what was held out of a text is read, as a run's metrics say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from transformer.text.perplexity import perplexity, said


def course(metrics: Sequence[Mapping[str, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """The steps at which it was read, int [measurement], and what a token cost, nats, float [measurement]."""
    found = [(line["step"], line["held_out_loss"]) for line in metrics if "held_out_loss" in line]
    steps, nats = zip(*found, strict=True) if found else ((), ())
    return np.array(steps, dtype=np.int64), np.array(nats, dtype=np.float64)


def newest(metrics: Sequence[Mapping[str, Any]]) -> str:
    """ "held-out perplexity 48.1", as it was measured last; empty before."""
    _, nats = course(metrics)
    return f"held-out perplexity {said(perplexity(nats[-1]))}" if len(nats) else ""
