"""The tensors of a model and how far they moved: against its own parameters, buffers and files."""

import numpy as np
import pytest
import torch

from tests.kit.pages import RUNS, network
from tests.kit.runs import tiny
from transformer import checkpoints
from transformer.analysis.weights import BUFFER, PARAMETER, inventory, movements
from transformer.config import ModelConfig, RunConfig, TaskConfig
from transformer.model import build
from transformer.positions import ENCODINGS
from transformer.training.recording import record
from transformer.training.runs import Run


def small(**model) -> RunConfig:
    return RunConfig(
        task=TaskConfig(length=3), model=ModelConfig(**{"n_layers": 1, "n_heads": 2, "d_model": 8, **model})
    )


@pytest.mark.parametrize("run", RUNS)
def test_the_counts_add_up_to_all_parameters(run):
    model, _ = network(run)
    found = inventory(model)
    parameters = [entry for entry in found if entry.kind == PARAMETER]
    assert sum(entry.numbers for entry in parameters) == sum(p.numel() for p in model.parameters())
    assert [entry.name for entry in found if entry.stored] == list(model.state_dict())
    tensors = {**dict(model.named_buffers()), **model.state_dict()}
    assert {entry.name for entry in found} == set(tensors)
    for entry in found:
        assert entry.shape == tuple(tensors[entry.name].shape)
        assert entry.numbers == np.prod(entry.shape)
        assert entry.size == tensors[entry.name].numpy().nbytes


def test_one_matrix_with_two_names_counts_once():
    model = build(small(tied=True))
    found = inventory(model)
    shared = [entry for entry in found if entry.same_as]
    assert [(entry.name, entry.same_as) for entry in shared] == [("unembedding.weight", "embedding.weight")]
    own = sum(entry.numbers for entry in found if entry.kind == PARAMETER and not entry.same_as)
    assert own == sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("positions", ENCODINGS.names())
def test_only_learned_positions_are_a_parameter(positions):
    found = [entry for entry in inventory(build(small(positions=positions))) if entry.name.startswith("positions.")]
    assert {(entry.kind, entry.stored) for entry in found} == {
        "learned": {(PARAMETER, True)},
        "none": set(),
    }.get(positions, {(BUFFER, False)})


@pytest.mark.parametrize("positions", ["learned", "sinusoidal"])
def test_a_training_begins_with_the_weights_that_its_seed_draws_and_moves_parameters_alone(positions, tmp_path):
    """Bit for bit at step 0; later every movement is a norm of differences, worked out here from the files."""
    config = RunConfig(
        task=tiny().task,
        model=ModelConfig(n_layers=1, n_heads=2, d_model=16, positions=positions),
        training=tiny().training,
    )
    run = Run.create(tmp_path / "run", config)
    for _ in record(run):
        pass
    first, last = (checkpoints.load(run.snapshot(step))[0] for step in (0, max(run.snapshots())))
    initial = build(config)
    assert all(torch.equal(tensor, first.state_dict()[name]) for name, tensor in initial.state_dict().items())
    assert not any(each.distance for each in movements(first, initial).values())

    found = movements(last, initial)
    now, before = last.state_dict(), first.state_dict()
    for name in now:
        one, other = now[name].double().flatten(), before[name].double().flatten()
        distance = float(((one - other) ** 2).sum().sqrt())
        assert found[name].distance == pytest.approx(distance)
        if other.any():
            assert found[name].relative == pytest.approx(distance / float((other**2).sum().sqrt()))
        else:
            assert np.isnan(found[name].relative) or distance == 0
    table = found["positions.table"]
    assert (table.relative > 0) == (positions == "learned")
    if positions == "sinusoidal":
        assert table.distance == 0.0
        assert table.relative == 0.0


def test_the_first_weights_of_a_shipped_run_are_those_of_its_seed():
    model, config = network("reverse", 0)
    assert not any(each.distance for each in movements(model, build(config)).values())
