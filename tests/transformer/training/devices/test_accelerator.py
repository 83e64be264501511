"""Trainings on a GPU, on a machine without one: see `tests/kit/standin.py`."""

import dataclasses
import gc

import numpy as np
import pytest
import torch

from tests.kit.standin import StandIn
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.experiments.populations.together import Together
from transformer.model import build
from transformer.training import resume
from transformer.training.loop import LATENCY, Training, train
from transformer.training.recording import develop, record
from transformer.training.runs import Run
from transformer.training.stepping import CAPTURED

pytestmark = pytest.mark.nightly

DROPS = RunConfig(model=ModelConfig(dropout=0.1))
TRANSLATES = RunConfig(task=TaskConfig(task="reverse-translate"))
SHAPES = {
    "reverse": RunConfig(),
    "rotary": RunConfig(model=ModelConfig(positions="rotary")),
    "tied, post-norm": RunConfig(model=ModelConfig(norm="post", tied=True)),
    "warm-up and decay": RunConfig(training=TrainingConfig(warmup_steps=3, decay_after=4)),
    "encoder-decoder": TRANSLATES,
    "dropout": DROPS,
    "lengths that vary": RunConfig(task=TaskConfig(task="reverse-translate", min_length=3)),
    "bfloat16": RunConfig(training=TrainingConfig(precision="bfloat16")),
    "gru": RunConfig(
        task=TRANSLATES.task, model=ModelConfig(architecture="gru"), training=TrainingConfig(teacher_forcing=0.5)
    ),
    "fused": RunConfig(
        task=TaskConfig(length=130), model=ModelConfig(n_layers=1), training=TrainingConfig(batch_size=2)
    ),
}
TOGETHER = 10
"""Steps that are waited for together where nothing is measured between them."""


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
    gc.collect()


def steps(config, device, n=6, most=1, eagerly=False):
    """A training that has taken some steps, at most so many of them for each wait, and their losses and norms."""
    training = Training(build(config).to(device), config)
    if eagerly:
        training.capture.failure = "asked for"
    taken = []
    while len(taken) < n:
        taken += [(step.loss, step.gradient_norm) for step in training.take_steps(min(most, n - len(taken)))]
    return training, taken


@pytest.mark.filterwarnings("ignore:PyTorch was compiled without cuDNN")
@pytest.mark.parametrize("name", SHAPES)
def test_a_captured_step_is_the_step_to_the_bit_however_many_are_waited_for_together(name):
    config = dataclasses.replace(
        SHAPES[name],
        model=dataclasses.replace(SHAPES[name].model, n_layers=1),
        training=dataclasses.replace(SHAPES[name].training, evaluate_every=4, max_steps=50, batch_size=4),
    )
    found = []
    for most, eagerly in ((1, False), (50, False), (50, True)):
        with StandIn().installed() as gpu:
            training, taken = steps(config, "cuda", 9, most, eagerly)
        found.append(taken)
        if not eagerly:
            assert training.stepping == CAPTURED
            assert gpu.calls.index("stream") < gpu.calls.index("graph") < gpu.calls.index("replay")
    assert found[0] == found[1] == found[2]
    if name not in ("dropout", "gru", "bfloat16"):  # whose noise, and whose rounding, are a device's own
        _, alone = steps(config, "cpu", 9)
        assert np.array(found[0]) == pytest.approx(np.array(alone), abs=1e-4)


def test_the_second_gpu_learns():
    _, alone = steps(RunConfig(), "cpu")
    with StandIn(count=2).installed():
        steps(RunConfig(), "cuda:0", 1)  # the spare has warmed up on the first
        _, there = steps(RunConfig(), "cuda:1")
    assert np.array(there) == pytest.approx(np.array(alone), abs=1e-4)


@pytest.mark.parametrize("config", [RunConfig(), DROPS, TRANSLATES], ids=["plain", "dropout", "encoder-decoder"])
def test_several_steps_wait_for_the_gpu_once_and_launch_little(config):
    """Each copies its two tensors, replays, and copies its result; then all results are read together."""
    endless = dataclasses.replace(config.training, evaluate_every=1000, max_steps=1000)
    with StandIn().installed() as gpu:
        training, _ = steps(dataclasses.replace(config, training=endless), "cuda", 3)
        training._pace = LATENCY / TOGETHER  # whatever this machine takes
        gpu.reset_counts()
        taken = list(training.take_steps(50))
    assert len(taken) == TOGETHER
    assert sum(gpu.waits.values()) == 1, gpu.where
    assert gpu.launches <= 5 * TOGETHER, gpu.ops


def test_a_population_is_the_same_as_one_graph_and_keeps_who_has_left_for_a_while():
    """To the bit, however many steps are waited for together; its members end where each does alone."""
    model = ModelConfig(n_layers=1, n_heads=2, d_model=16, d_ff=16)
    settings = TrainingConfig(max_steps=40, learning_rate=0.02)
    task = TaskConfig(length=4, symbols=5)
    configs = [
        RunConfig(task=task, model=model, training=dataclasses.replace(settings, seed=seed)) for seed in range(4)
    ]
    found = []
    for most in (1, 50):
        with StandIn().installed() as gpu:
            trainings = [Training(build(config).to("cuda"), config) for config in configs]
            batch, taken = Together(trainings), {training: [] for training in trainings}
            while batch.members:
                for training, several in batch.take_steps(most).items():
                    taken[training] += [(step.loss, step.gradient_norm) for step in several]
            weights = [torch.cat([weight.flatten().cpu() for weight in each.model.parameters()]) for each in trainings]
        found.append((list(taken.values()), weights))
        assert (
            1 < gpu.calls.count("graph") < len({len(each) for each in found[0][0]}) + 2
        )  # not one for each that leaves
    assert found[0][0] == found[1][0]
    assert all(torch.equal(one, other) for one, other in zip(found[0][1], found[1][1], strict=True))
    for config, mine in zip(configs, found[0][0], strict=True):
        alone = [step.loss for step in train(build(config), config)]
        assert [loss for loss, _ in mine] == pytest.approx(alone, abs=1e-4)


def test_what_cannot_be_captured_says_so_and_goes_on(monkeypatch):
    from transformer.training import stepping

    original = stepping.weighted_loss
    monkeypatch.setattr(stepping, "weighted_loss", lambda *a: original(*a) + 0 * float(original(*a).detach()))  # waits
    _, alone = steps(RunConfig(), "cpu")
    with StandIn().installed():
        training, there = steps(RunConfig(), "cuda")
    assert training.stepping.startswith("eager: the step could not be captured (operation not permitted")
    assert np.array(there) == pytest.approx(np.array(alone), abs=1e-4)


@pytest.mark.parametrize("kind", ["cuda", "mps"])
@pytest.mark.parametrize("config", [RunConfig(), DROPS, TRANSLATES], ids=["plain", "dropout", "encoder-decoder"])
def test_a_whole_run(kind, config, tmp_path):
    config = dataclasses.replace(config, training=TrainingConfig(max_steps=3))
    with StandIn(kind).installed():
        run = Run.create(tmp_path / "run", config)
        for _ in record(run):
            pass
        assert run.state.status == "finished"
        assert run.card["device"].split()[0] in ("Stand-in", "Apple")
        assert develop(run)
    assert (run.folder / "evaluation.json").exists()
    assert (run.folder / "film.npz").exists()


@pytest.mark.parametrize("way", ["cuda cuda", "cpu cuda", "cuda cpu", "mps mps"])
@pytest.mark.parametrize("config", [RunConfig(), DROPS], ids=["plain", "dropout"])
def test_resumed_elsewhere(way, config, tmp_path):
    here, there = way.split()
    with StandIn("mps" if "mps" in way else "cuda").installed():
        one, _ = steps(config, here, 2)
        resume.save(tmp_path / "state", one)
        other = Training(build(config).to(there), config)
        resume.restore(tmp_path / "state", other)
        found, wanted = [other.take_step().loss for _ in range(2)], [one.take_step().loss for _ in range(2)]
        if config is DROPS and here != there:  # two kinds of generator, two noises: it goes on
            assert found == pytest.approx(wanted, abs=0.5)
        else:
            assert found == pytest.approx(wanted, abs=1e-4)


def test_mps_updates_all_weights_at_once():
    with StandIn("mps").installed() as gpu:
        training = Training(build(RunConfig()).to("mps"), RunConfig())
        training.take_step()
        gpu.reset_counts()
        training.take_step()
        assert gpu.launches < 250


def test_a_population_is_one_batch(tmp_path):
    from transformer.experiments.populations.carry_out import in_batches

    with StandIn().installed():
        folders = [tmp_path / str(seed) for seed in range(3)]
        for seed, folder in enumerate(folders):
            Run.create(folder, RunConfig(training=TrainingConfig(seed=seed, max_steps=2)))
        rows = list(in_batches(folders, torch.device("cuda")))
    assert [row.status for row in rows] == ["finished"] * 3


def test_the_process_of_the_pages_leaves_the_gpu_alone(monkeypatch):
    from dashboard.server import background

    monkeypatch.setattr(background, "SETTLE", 0)
    monkeypatch.setattr(background.pool, "start", lambda: None)
    with StandIn().installed() as gpu:
        background._prepare()
        assert "graph" not in gpu.calls
        assert not gpu.launches
