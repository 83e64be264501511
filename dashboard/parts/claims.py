"""Words about heads, each no stronger than what was measured: where a head looks, and what removing it costs.

Attention says where a head looks, and never that anything comes of it: "does the work" is said of removal alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from transformer.analysis.heads.metrics import Estimate

MOSTLY = 0.5
"""The share of its attention from which on a head is said to look at one thing."""
NEEDED = 0.5
"""Accuracy that is lost without a head, with its whole interval, before it is said to do the work."""
FELT = 0.005
"""Accuracy below which a loss is not told from none: it would be written as 0.00."""


def looks(head: str, share: float, at: str) -> str:
    """Where the head looks that looks there most, when its attention was measured."""
    if share >= MOSTLY:
        return f"Head {head} looks most at {at}: {share:.2f} of its attention is there."
    return f"No head looks mostly at {at}: nearest, head {head} has {share:.2f} of its attention there."


def works(labels: Sequence[str], drop: Estimate) -> str:
    """What the heads are worth, when each was removed in turn: `drop` is the accuracy on the answer that was lost."""
    most = int(np.nanargmax(drop.mean))
    cost = f"{drop.mean[most]:.{2 if drop.mean[most] >= 0.1 else 3}f} of the accuracy"
    needed = [label for label, low in zip(labels, drop.low, strict=True) if low >= NEEDED]
    if len(needed) == 1:
        return f"Head {needed[0]} does the work: removing it costs {cost}."
    if needed:
        return f"Several heads are needed: removing any of {', '.join(needed)} costs at least a half of the accuracy."
    if drop.mean[most] < FELT:
        return f"No head is needed by itself: removing any one costs less than {FELT:g} of the accuracy."
    return f"No head does the work alone: removing head {labels[most]} costs most, {cost}."
