"""How attention over a source lies: on the key that is expected, or beside it. Plain values, no PyTorch."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float


def shares_beside(pattern: Float[np.ndarray, "query key"], expected: Bool[np.ndarray, "query key"]) -> dict[int, float]:
    """The share of all attention that lies so many keys after the expected one (before it: a negative number).

    Over the queries that have an expected key; those whose key beside it is not there count as 0. At 0 stands the
    share on the expected key itself. Together they are at most 1, with one expected key a query.
    """
    queries, keys = np.nonzero(expected)
    asked, length = max(1, len(np.unique(queries))), pattern.shape[1]
    shares = {}
    for later in range(1 - length, length):
        there = (keys + later >= 0) & (keys + later < length)
        shares[later] = float(pattern[queries[there], keys[there] + later].sum() / asked)
    return shares
