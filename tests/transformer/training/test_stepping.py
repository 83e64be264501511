"""One step of training: shares of a batch, the state that a capture puts back, and why a step is taken eagerly."""

import numpy as np
import pytest
import torch

from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.model import build
from transformer.training.loop import Training
from transformer.training.stepping import EagerStep, Inputs, _State, weighted_loss, why_eager
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


def test_what_a_capture_tries_out_is_put_back_in_place():
    training = Training(build(CONFIG), CONFIG)
    step = EagerStep(training.model, training.optimiser, CONFIG.training)
    inputs = Inputs.of(training.task.batch(training.rng, 8), CONFIG.training, torch.device("cpu"))

    def all_of_it() -> dict[str, torch.Tensor]:
        found = {name: weight.detach().clone() for name, weight in training.model.named_parameters()}
        for number, state in training.optimiser.state_dict()["state"].items():
            found |= {f"{number}/{name}": value.clone() for name, value in state.items()}
        return found

    places = [weight.data_ptr() for weight in training.model.parameters()]
    fresh, before = _State(step), all_of_it()
    step(inputs)
    fresh.put_back()
    after = all_of_it()
    assert all(torch.equal(after[name], value) for name, value in before.items())
    assert all(not value.any() for name, value in after.items() if name not in before)  # moments as at the start

    step(inputs)
    later, before = _State(step), all_of_it()
    step(inputs)
    assert not torch.equal(all_of_it()["embedding.weight"], before["embedding.weight"])
    later.put_back()
    after = all_of_it()
    assert after.keys() == before.keys()
    assert all(torch.equal(after[name], value) for name, value in before.items())
    assert [weight.data_ptr() for weight in training.model.parameters()] == places  # a graph keeps their addresses


@pytest.mark.parametrize(
    ("config", "device", "team", "reason"),
    [
        (CONFIG, "cpu", ALONE, "eager: a CPU has no CUDA graphs"),
        (CONFIG, "cuda", ALONE, ""),
        (RunConfig(task=TaskConfig(min_length=8)), "cuda", ALONE, ""),
        (RunConfig(task=TaskConfig(min_length=3)), "cuda", ALONE, "eager: a CUDA graph needs batches of one shape"),
        (RunConfig(model=ModelConfig(dropout=0.1)), "cuda", ALONE, "eager: dropout draws anew at each step"),
        (CONFIG, "cuda", Member(0, 2), "eager: several processes share each step"),
    ],
)
def test_where_a_step_cannot_be_captured_it_says_why(config, device, team, reason):
    said = why_eager(config, torch.device(device), team)
    assert said.startswith(reason)
    assert bool(said) == bool(reason)
