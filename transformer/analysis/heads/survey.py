"""What heads do, averaged over many sequences: their mean patterns, and which of them does the task's work."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from transformer.analysis.batches import in_parts, questions, working_attention
from transformer.analysis.findings import Head, Survey
from transformer.network import Network, of_few_words
from transformer.observation import Observation
from transformer.tasks import Task


def survey(model: Network, task: Task, *, sequences: int = 256, length: int | None = None, seed: int = 0) -> Survey:
    """Observe many fresh sequences and average. The right answers are read (teacher forcing)."""
    batch, expected_keys = questions(task, sequences, length or task.surveyed, seed)
    sums: dict[str, Tensor] = {}
    shares: dict[str, list[Tensor]] = {}

    def look(part: slice, seen: Observation) -> None:
        expected = torch.from_numpy(expected_keys[part]).to(seen.logits.device)
        for site in seen.attentions():
            pattern = seen[f"{site}.pattern"]
            total = pattern.sum(dim=0)
            sums[site] = sums[site] + total if site in sums else total
            if working_attention(task, site):
                visible = expected & seen[f"{site}.mask"][:, 0]
                on_expected = (pattern * visible[:, None]).sum(dim=-1).transpose(0, 1)
                shares.setdefault(site, []).append(on_expected[:, visible.any(dim=-1)])

    in_parts(of_few_words(model), batch, look, keep=("*.pattern", "*.mask"))
    patterns = {site: (total / len(batch.tokens)).cpu().numpy() for site, total in sums.items()}
    means = {}
    for site, parts in shares.items():
        for head, asked in enumerate(torch.cat(parts, dim=1)):
            means[Head(site, head)] = float(asked.mean()) if len(asked) else math.nan
    return Survey(len(batch.tokens), patterns, means)
