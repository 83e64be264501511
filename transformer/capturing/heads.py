"""A stand-in until the library's own: the attentions of a decoder's self-attention, numbered in order of the calls."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from transformer.analysis.findings import Attention
from transformer.capturing.record import Captured


def attentions(seen: Captured, queries: Sequence[str], sources: Sequence[str] = ()) -> dict[str, Attention]:
    """The first sequence of the batch, by site."""
    found = {}
    for i, own in enumerate(seen.attentions()):
        site = f"decoder.{i}.self_attention"
        pattern = seen[f"{own}.pattern"][0].numpy()
        mask = seen.sites.get(f"{own}.mask")
        allowed = np.ones(pattern.shape[1:], bool) if mask is None else mask[0].numpy().any(axis=0)
        scores = seen.sites.get(f"{own}.scores")
        values = np.full_like(pattern, np.nan) if scores is None else scores[0].numpy()
        found[site] = Attention(site, values, allowed, pattern, tuple(queries), tuple(queries))
    return found
