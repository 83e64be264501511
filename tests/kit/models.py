"""Small models of every architecture, and inputs for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.kit import runs
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
