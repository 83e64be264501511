"""Small models of every architecture for the machine, and the plans of their boxes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.kit.models import TASK_OF
from transformer.analysis.findings import Head
from transformer.analysis.machine.plan import Plan, Size, blocks, plan_block, plan_head, plan_model
from transformer.config import ModelConfig, RunConfig, TaskConfig

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
