"""The shipped measurement of what the division of scores by the root of d_head is for."""

from __future__ import annotations

from dashboard.models.cache import cached
from transformer.experiments.scaling import Scaling
from transformer.training.runs import DEFAULT_ROOT

FILE = DEFAULT_ROOT / "scaling.json"
EARLY = 60
"""The step after which the page and the lecture compare."""


@cached(1)
def scaling() -> Scaling:
    """Read once. Raises ScalingError where the file is not there or damaged."""
    return Scaling.load(FILE)
