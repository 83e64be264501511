"""Scores under which a head looks evenly at chosen keys."""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def forced(
    scores: Float[Tensor, "batch query key"], chosen: Bool[Tensor, "query key"]
) -> Float[Tensor, "batch query key"]:
    """Scores of one head: 0 where `chosen`, −∞ elsewhere. Rows without any chosen key stay as they are."""
    chosen = chosen.to(scores.device)
    even = torch.zeros(chosen.shape).to(scores).masked_fill(~chosen, -math.inf)
    return torch.where(chosen.any(dim=-1, keepdim=True), even, scores)
