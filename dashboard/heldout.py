"""How well what was held out of a text is read, and how much of it: each perplexity is of some windows, or of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from transformer.text.perplexity import perplexity, said


def windows(many: int, length: int) -> str:
    """ "16 windows of 512 held-out tokens": what was read."""
    return f"{many:,} window{'s' * (many != 1)} of {length:,} held-out tokens"


def whole(evaluation: Mapping[str, Any]) -> str:
    """ "perplexity 21.1 over 161,792 held-out tokens, in windows of 512": what was measured when a run had ended."""
    over = f"{evaluation['read']:,} held-out tokens, in windows of {len(evaluation['positions']):,}"
    return f"perplexity {said(evaluation['perplexity'])} over {over}"


def course(metrics: Sequence[Mapping[str, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """The steps at which it was read, int [measurement], and what a token cost, nats, float [measurement]."""
    found = [(line["step"], line["held_out_loss"]) for line in metrics if "held_out_loss" in line]
    steps, nats = zip(*found, strict=True) if found else ((), ())
    return np.array(steps, dtype=np.int64), np.array(nats, dtype=np.float64)


def over(metrics: Sequence[Mapping[str, Any]]) -> str:
    """What was read at each of these steps; empty before the first, and where a run does not say it."""
    lines = (line for line in metrics if "held_out_loss" in line and "probed" in line)
    line = next(lines, None)
    return "" if line is None else windows(line["probed"], len(line["accuracy"]))


def newest(metrics: Sequence[Mapping[str, Any]]) -> str:
    """ "perplexity 48.1 on 16 windows of 512 held-out tokens", as it was measured last; empty before."""
    _, nats = course(metrics)
    if not len(nats):
        return ""
    return f"perplexity {said(perplexity(nats[-1]))} on {over(metrics) or 'what was held out'}"
