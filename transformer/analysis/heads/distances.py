"""How far heads look: attention by distance, averaged over many sequences, beside what looking evenly would give."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from transformer.analysis.batches import in_parts
from transformer.analysis.findings import Head
from transformer.analysis.heads.measure import heads_of
from transformer.analysis.heads.metrics import METRICS, Estimate
from transformer.network import Network, of_few_words
from transformer.observation import Observation
from transformer.tasks import Task

LONGEST = 256
"""Symbols of a sequence, at most."""
FEWEST, MANY = 8, 256
TOKENS = 2**12
"""Sequences are so many that about as many tokens are read, within these bounds."""
MOST = 0.9
"""The share of attention within whose distance a head reaches."""
STREAM = 6
"""Sequences come from a stream of the seed that nothing else uses."""


@dataclass(frozen=True)
class Distances:
    """Every self-attention head over many sequences: how its attention falls with the distance |query − key|.

    Asked are the queries of the second half, which have far keys to choose from.
    """

    heads: tuple[Head, ...]
    sequences: int
    tokens: int
    """That each of them has."""
    share: Float[np.ndarray, "head distance"]
    """Mean share of attention at each distance; a row sums to 1."""
    even: Float[np.ndarray, "head distance"]
    """The same of a head in its place that looks evenly at all it may see."""
    mean: Estimate
    """Mean distance."""

    @property
    def even_mean(self) -> Float[np.ndarray, "head"]:
        """The mean distance of an even head."""
        return self.even @ np.arange(self.even.shape[1])

    @property
    def reach(self) -> Int[np.ndarray, "head"]:
        """The distance within which MOST of each head's attention lies; rounding is forgiven."""
        return (self.share.cumsum(axis=1) >= MOST - 1e-6).argmax(axis=1)

    def bins(self) -> list[tuple[int, int]]:
        """Distances taken together, both ends included: 0, 1, 2 to 3, 4 to 7, and so on, each twice as wide."""
        last = self.share.shape[1] - 1
        starts = [0, *(2**i for i in range(last.bit_length()))]
        return [(start, min(max(start, 2 * start - 1), last)) for start in starts]

    def binned(self, values: Float[np.ndarray, "head distance"]) -> Float[np.ndarray, "head bin"]:
        """`share` or `even`, summed over each bin."""
        return np.stack([values[:, low : high + 1].sum(axis=1) for low, high in self.bins()], axis=1)


def measure_distances(model: Network, task: Task, *, length: int | None = None, seed: int = 0) -> Distances:
    """Let a model read fresh or held-out sequences, and see how far its self-attention looks."""
    length = length or min(task.length, LONGEST)
    many = max(FEWEST, min(MANY, TOKENS // length))
    batch = task.encode(task.draw(np.random.default_rng([seed, STREAM]), many, length))
    width = max(batch.tokens.shape[1], 0 if batch.source is None else batch.source.shape[1])

    def look(_: slice, seen: Observation) -> np.ndarray:
        sites = [site for site in seen.attentions() if site.endswith("self_attention")]
        pairs = [_both(seen[f"{site}.pattern"], seen[f"{site}.mask"], width) for site in sites]
        return torch.cat(pairs, dim=2).cpu().double().numpy()

    parts = in_parts(of_few_words(model), batch, look, keep=("*.pattern", "*.mask"))
    own, even = np.concatenate(parts, axis=1)
    return Distances(
        heads=tuple(head for head in heads_of(model) if head.site.endswith("self_attention")),
        sequences=len(batch.tokens),
        tokens=batch.tokens.shape[1],
        share=own.mean(axis=0),
        even=even.mean(axis=0),
        mean=Estimate.of(own @ np.arange(width), METRICS["distance"]),
    )


def _both(
    pattern: Float[Tensor, "batch head query key"], mask: Bool[Tensor, "_batch _one _query key"], width: int
) -> Float[Tensor, "2 batch head distance"]:
    """Attention by distance, and that of an even head in the same place."""
    even = (mask / mask.sum(dim=-1, keepdim=True).clamp(min=1)).expand_as(pattern)
    return torch.stack([by_distance(pattern, width), by_distance(even, width)])


def by_distance(pattern: Float[Tensor, "batch head query key"], width: int) -> Float[Tensor, "batch head distance"]:
    """The share of attention at each distance up to `width`, over the queries of the second half."""
    queries = pattern.shape[-2]
    rows = pattern[:, :, queries // 2 :]
    places = torch.arange(queries, device=pattern.device)
    away = (places[queries // 2 :, None] - places[None, :]).abs()
    shares = pattern.new_zeros(*pattern.shape[:2], width)
    return shares.index_add_(-1, away.flatten(), rows.flatten(2)) / rows.shape[2]
