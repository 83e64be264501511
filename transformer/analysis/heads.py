"""What heads do, averaged over many sequences: their mean patterns, and which of them does the task's work."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from transformer.model import Transformer
from transformer.observation import observe
from transformer.tasks import Task

SURVEY_STREAM = 2
"""Sequences for surveys come from another stream of the seed than those of training (0) and measuring (1)."""


@dataclass(frozen=True, order=True)
class Head:
    """One head: the path of its attention module, and its number in it. Written "decoder.1.self_attention.3"."""

    site: str
    index: int

    def __str__(self) -> str:
        return f"{self.site}.{self.index}"

    @property
    def short(self) -> str:
        """Layer and head, as the field writes it: "1.3". Both count from 0."""
        return f"{self.site.split('.')[1]}.{self.index}"

    @property
    def kind(self) -> str:
        """ "decoder self-attention", "encoder self-attention" or "cross-attention"."""
        stack, _, attention = self.site.split(".")
        return "cross-attention" if attention == "cross_attention" else f"{stack} self-attention"


@dataclass(frozen=True)
class Survey:
    """Every head over many sequences of one length."""

    sequences: int
    patterns: dict[str, Float[np.ndarray, "head query key"]]
    """Mean pattern of each attention module."""
    expected_share: dict[Head, float]
    """Share of a head's attention that lies on the token to be said, over the queries that may see it."""

    @property
    def worker(self) -> Head:
        """The head that looks at the token to be said more than any other does."""
        return max(self.expected_share, key=lambda head: (self.expected_share[head], head))


def working_attention(task: Task, site: str) -> bool:
    """Is this the kind of attention that can carry the task: to the source where there is one, else to itself?"""
    return site.endswith("cross_attention") if task.has_source else site.endswith("self_attention")


def survey(model: Transformer, task: Task, *, sequences: int = 256, length: int | None = None, seed: int = 0) -> Survey:
    """Observe many fresh sequences and average. The right answers are read (teacher forcing)."""
    rng = np.random.default_rng([seed, SURVEY_STREAM])
    questions = list(rng.integers(0, task.symbols, (sequences, length or task.length)))
    batch = task.encode(questions)
    device = next(model.parameters()).device
    source = None if batch.source is None else torch.from_numpy(batch.source).to(device)
    seen = observe(model, torch.from_numpy(batch.tokens).to(device), source=source)
    expected = torch.from_numpy(np.stack([task.expected_keys(q) for q in questions])).to(device)
    patterns, shares = {}, {}
    for site in seen.attentions():
        pattern = seen[f"{site}.pattern"]
        patterns[site] = pattern.mean(dim=0).cpu().numpy()
        if working_attention(task, site):
            visible = expected & seen[f"{site}.mask"][:, 0]
            asked = visible.any(dim=-1)
            on_expected = (pattern * visible[:, None]).sum(dim=-1)
            for head in range(pattern.shape[1]):
                share = float(on_expected[:, head][asked].mean()) if asked.any() else math.nan
                shares[Head(site, head)] = share
    return Survey(sequences, patterns, shares)
