"""One step of training: shares of a batch, and why a step is taken eagerly."""

import numpy as np
import pytest
import torch

from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.model import build
from transformer.training.stepping import Inputs, weighted_loss, why_eager
from transformer.training.team import ALONE, Team

CONFIG = RunConfig(
    task=TaskConfig(length=4), model=ModelConfig(n_layers=1, n_heads=2, d_model=16, d_ff=16), training=TrainingConfig()
)


class Member(Team):
    """One of several processes, without the others."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size


@pytest.mark.parametrize("size", [2, 3, 5])
def test_the_shares_make_up_the_batch_and_their_mean_is_its_loss(size):
    """Sequences of several lengths: the mean of the shares' own means would be another number."""
    task = TaskConfig(length=5, min_length=1)
    config = RunConfig(task=task, model=CONFIG.model)
    batch = config.build_task().batch(np.random.default_rng(0), 11)
    model = build(config)
    whole = Inputs.of(batch, config.training, torch.device("cpu"))
    alone = weighted_loss(model(whole.tokens), whole.targets, whole.weights)
    losses, rows = [], 0
    for rank in range(size):
        part = Inputs.of(batch, config.training, torch.device("cpu"), Member(rank, size))
        losses.append(weighted_loss(model(part.tokens), part.targets, part.weights, part.total).item())
        rows += len(part.tokens)
    assert rows == 11
    assert np.mean(losses) == pytest.approx(alone.item(), rel=1e-5)


@pytest.mark.parametrize(
    ("device", "team", "reason"),
    [
        ("cpu", ALONE, "eager: a CPU has no CUDA graphs"),
        ("mps", ALONE, "eager: a MPS has no CUDA graphs"),
        ("cuda", ALONE, ""),
        ("cuda", Member(0, 2), "eager: several processes share each step"),
    ],
)
def test_where_a_step_cannot_be_captured_it_says_why(device, team, reason):
    assert why_eager(torch.device(device), team) == reason
