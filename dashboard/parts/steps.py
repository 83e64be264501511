"""The steps of a computation: what the pages that go through one step by step share."""

from __future__ import annotations

import numpy as np


def shades(values: np.ndarray) -> np.ndarray:
    """Values from -1 to 1: shares of the one that is farthest from 0."""
    limit = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    return values.astype(np.float64) / limit
