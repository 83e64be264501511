"""What each head is like, as plain values: eight metrics with their intervals, a name where one is earned, and which
heads are alike. No PyTorch here; `measuring.py` finds these things out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from transformer.analysis.findings import Head
from transformer.analysis.intervals import Z95


@dataclass(frozen=True)
class Metric:
    """One number about a head, and between which bounds it lies."""

    title: str
    unit: str
    meaning: str
    least: float = 0.0
    most: float = 1.0


METRICS: Mapping[str, Metric] = {
    "expected": Metric(
        "expected key",
        "share",
        "Share of its attention on the keys that hold the token to be said, where the query may see one",
    ),
    "previous": Metric("previous", "share", "Share of its attention on the token just before the query"),
    "self": Metric("self", "share", "Share of its attention on the query's own position"),
    "first": Metric(
        "first", "share", "Share of its attention on the first key, where that is neither the query nor its neighbour"
    ),
    "uniform": Metric(
        "uniform",
        "share",
        "How evenly it looks at all it may see: 1 minus the total variation distance from doing just that",
    ),
    "entropy": Metric(
        "entropy", "bits", "How spread its attention is: 1 bit is an even choice between two keys", most=math.inf
    ),
    "distance": Metric("distance", "tokens", "How far away it looks on average, forwards or backwards", most=math.inf),
    "drop": Metric(
        "drop when removed",
        "accuracy",
        "Accuracy on the answer's tokens that is lost when this head alone is silenced",
        least=-1.0,
    ),
}
"""All metrics, in the order of the table. The mean runs over the queries that have a choice (two keys or more to
look at) and may see what is asked for, then over sequences."""

NAMES: Mapping[str, float] = {"expected": 0.5, "previous": 0.5, "self": 0.5, "first": 0.5, "uniform": 0.9}
"""What a head may be called, and where the lower end of its interval must reach for that."""
MARGIN = 0.2
"""The lower end must also lie this far above the upper end of each other name's share, and above an even head's."""
LEAST_ASKED = 2
"""A name, and a rival, needs so many queries a sequence: what a single query does may be several things at once."""
MIXED = "mixed"


@dataclass(frozen=True)
class Estimate:
    """The mean of a metric over sequences, for each head, with its 95 % interval; nan where it means nothing."""

    mean: Float[np.ndarray, "head"]
    low: Float[np.ndarray, "head"]
    high: Float[np.ndarray, "head"]
    sequences: int

    @property
    def half(self) -> Float[np.ndarray, "head"]:
        """Half the width of the interval, on the side that no bound cuts."""
        return np.maximum(self.high - self.mean, self.mean - self.low)

    @classmethod
    def of(cls, values: Float[np.ndarray, "sequence head"], metric: Metric) -> Estimate:
        """Mean ± 1.96 standard errors over independent sequences (normal approximation), cut at the bounds.

        Sequences without a value (nan) are left out; fewer than two have no interval. Where all sequences agree to
        the last digit the interval is a point.
        """
        known = ~np.isnan(values)
        n = known.sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.clip(np.where(known, values, 0.0).sum(axis=0) / n, metric.least, metric.most)
            variance = np.where(known, (values - mean) ** 2, 0.0).sum(axis=0) / np.where(n > 1, n - 1, math.nan)
            half = Z95 * np.sqrt(variance / n)
        return cls(mean, np.maximum(mean - half, metric.least), np.minimum(mean + half, metric.most), len(values))


@dataclass(frozen=True)
class HeadMetrics:
    """Every head over many sequences of one length."""

    heads: tuple[Head, ...]
    sequences: int
    estimates: Mapping[str, Estimate]
    """By the metric's name; "drop" only if the heads were removed."""
    even: Mapping[str, Float[np.ndarray, "head"]]
    """What a head in this place would get that looks evenly at all it may see."""
    asked: Mapping[str, Float[np.ndarray, "head"]]
    """How many queries of a sequence have a say in a metric, on average."""
    alike: Float[np.ndarray, "head other"]
    """Cosine of the heads' rows, averaged over queries and sequences: 1 the same, 0 never a key in common. nan between
    attentions of different kinds, whose rows speak of different tokens. (Clark et al., 2019, section 6, compare heads
    by the Jensen-Shannon divergence of their rows; the cosine needs one matrix product and no logarithm.)"""

    def with_drop(self, drop: Estimate) -> HeadMetrics:
        """The same, with what removing each head costs."""
        return replace(self, estimates={**self.estimates, "drop": drop})

    def without(self, name: str) -> HeadMetrics:
        """The same without one metric, where it can mean nothing. No head is called by it."""
        estimates = {each: estimate for each, estimate in self.estimates.items() if each != name}
        return replace(self, estimates=estimates, asked={**self.asked, name: np.zeros(len(self.heads))})

    def name(self, head: Head) -> str:
        """What this head does, where one thing stands out by `MARGIN` over many sequences; otherwise "mixed".

        A share counts for a name only if it clears `NAMES`, every rival, and what looking evenly would give. Where
        two things coincide, as on very short inputs, they are rivals that tie: no name is given by coincidence.
        """
        i = self.heads.index(head)
        nameable = [name for name in NAMES if self.asked[name][i] >= LEAST_ASKED]
        for name in nameable:
            rivals = [self.estimates[other].high[i] for other in nameable if other != name]
            if name != "uniform":
                rivals.append(self.even[name][i])
            low = self.estimates[name].low[i]
            if low >= NAMES[name] and all(low >= rival + MARGIN for rival in rivals):
                return name
        return MIXED

    def likenesses(self) -> dict[tuple[Head, Head], float]:
        """How alike the two heads of each pair are, of those that can be compared."""
        pairs = zip(*np.triu_indices(len(self.heads), 1), strict=True)
        return {
            (self.heads[one], self.heads[other]): float(self.alike[one, other])
            for one, other in pairs
            if not math.isnan(self.alike[one, other])
        }
