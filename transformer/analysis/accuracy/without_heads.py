"""Asking fresh sequences: what was said to each, and what is still right without each head in turn."""

from __future__ import annotations

import numpy as np
import torch

from transformer.analysis.accuracy.breakdown import Answers
from transformer.analysis.accuracy.by_position import EVALUATION_STREAM, accuracy_by_position, logits
from transformer.analysis.accuracy.result import Accuracy
from transformer.analysis.findings import Head
from transformer.analysis.heads.measure import heads_of
from transformer.edits.heads.zero import AblateHead
from transformer.network import Network
from transformer.tasks import Task


def ask(model: Network, task: Task, *, sequences: int = 4096, length: int | None = None, seed: int = 0) -> Answers:
    """What is said to the very sequences of `accuracy_by_position`. The model must be in evaluation mode."""
    length = task.length if length is None else length
    batch = task.fresh(np.random.default_rng([seed, EVALUATION_STREAM]), sequences, length)
    predicted, probable, done = [], [], 0
    for said in logits(model, batch):
        targets = torch.from_numpy(batch.targets[done : done + len(said)]).to(said.device)
        done += len(said)
        predicted.append(said.argmax(dim=-1).cpu().numpy())
        probable.append(said.log_softmax(dim=-1).gather(-1, targets[..., None])[..., 0].cpu().numpy())
    questions = batch.tokens[:, :length] if batch.source is None else batch.source
    return Answers(questions, batch.targets, np.concatenate(predicted), np.concatenate(probable))


def without_each_head(
    model: Network, task: Task, *, sequences: int = 1024, length: int | None = None, seed: int = 0
) -> dict[Head, Accuracy]:
    """Accuracy by position with one head silenced, each in turn, its z being zero (Michel et al., 2019, 3.2).

    On the same sequences throughout: those of `accuracy_by_position` with the same seed.
    """
    return {
        head: accuracy_by_position(
            model,
            task,
            sequences=sequences,
            length=length,
            seed=seed,
            edits=[AblateHead(f"{head.site}.z", head.index)],
        )
        for head in heads_of(model)
    }
