"""What heads do, averaged over many sequences: their mean patterns, and which of them does the task's work."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Bool

from transformer.analysis.findings import Head, Survey
from transformer.model import Transformer
from transformer.observation import observe
from transformer.tasks import Batch, Task

SURVEY_STREAM = 2
"""Sequences for surveys come from another stream of the seed than those of training (0) and measuring (1)."""


def working_attention(task: Task, site: str) -> bool:
    """Is this the kind of attention that can carry the task: to the source where there is one, else to itself?"""
    return site.endswith("cross_attention") if task.has_source else site.endswith("self_attention")


def survey(model: Transformer, task: Task, *, sequences: int = 256, length: int | None = None, seed: int = 0) -> Survey:
    """Observe many fresh sequences and average. The right answers are read (teacher forcing)."""
    batch, expected_keys = _questions(task, sequences, length or task.length, seed)
    device = next(model.parameters()).device
    source = None if batch.source is None else torch.from_numpy(batch.source).to(device)
    seen = observe(model, torch.from_numpy(batch.tokens).to(device), source=source)
    expected = torch.from_numpy(expected_keys).to(device)
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


@lru_cache(maxsize=2)
def _questions(task: Task, sequences: int, length: int, seed: int) -> tuple[Batch, Bool[np.ndarray, "batch query key"]]:
    """What a survey asks, and where each answer stands; kept, for a film asks the same at every step."""
    rng = np.random.default_rng([seed, SURVEY_STREAM])
    questions = list(rng.integers(0, task.symbols, (sequences, length)))
    return task.encode(questions), np.stack([task.expected_keys(question) for question in questions])
