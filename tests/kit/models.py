"""Small models of every architecture, inputs for them, and the plans of their boxes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.kit import runs
from transformer.analysis.findings import Head
from transformer.analysis.machine.plan import Plan, Size, blocks, plan_block, plan_head, plan_model
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.model import Transformer, build


def untrained(folder: Path, task: TaskConfig, **model: Any) -> None:
    """A run of one snapshot, the weights that training would start from."""
    runs.untrained(folder, RunConfig(task=task, model=ModelConfig(**{"n_heads": 2, "d_model": 16, **model})))


SMALL = {"d_model": 32, "n_heads": 4, "d_ff": 48}
TASK_OF = {"decoder": "reverse", "encoder": "reverse-aligned", "encoder-decoder": "reverse-translate"}
ARCHITECTURES = pytest.mark.parametrize("architecture", TASK_OF)


def small(architecture="decoder", *, length=8, seed=0, **settings) -> Transformer:
    config = RunConfig(
        task=TaskConfig(task=TASK_OF[architecture], length=length),
        model=ModelConfig(architecture=architecture, **{**SMALL, **settings}),
        training=TrainingConfig(seed=seed),
    )
    return build(config).eval()


def tokens_of(batch, length, seed=0):
    return torch.randint(0, 10, (batch, length), generator=torch.Generator().manual_seed(seed))


def inputs(architecture, batch=3, length=6, seed=0):
    """Arguments for a model: tokens, and a source where it reads one."""
    tokens = tokens_of(batch, length, seed)
    return (tokens, tokens_of(batch, length, seed + 1)) if architecture == "encoder-decoder" else (tokens,)


# --- for the machine

QUESTION = np.array([1, 2, 3, 4, 5])


def config_of(architecture: str, **model: Any) -> RunConfig:
    shape = {"n_layers": 2, "n_heads": 2, "d_model": 16, "d_ff": 24, **model}
    task = TaskConfig(task=TASK_OF.get(architecture, "reverse-translate"), length=5)
    return RunConfig(task=task, model=ModelConfig(architecture=architecture, **shape))


def size_of(config: RunConfig) -> Size:
    task = config.build_task()
    tokens = len(task.encode([QUESTION]).tokens[0])
    return Size(tokens, len(QUESTION) if task.has_source else 0, task.d_vocab, task.n_ctx)


def plans(config: RunConfig) -> list[Plan]:
    """The model, each of its blocks, and the last head of each attention."""
    size = size_of(config)
    found = [plan_model(config.model, size)]
    for block in () if config.model.recurrent else blocks(config.model):
        found.append(plan_block(config.model, size, block))
        heads = [box.name for box in found[-1].boxes if box.kind == "head" and box.slot[0] == box.slot[1] - 1]
        found += [plan_head(config.model, size, Head.parse(name)) for name in heads]
    return found
