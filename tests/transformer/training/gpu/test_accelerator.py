"""Trainings on a GPU, on a machine without one: see `tests/kit/gpu/standin.py`."""

import dataclasses
import gc

import pytest
import torch

if torch.cuda.is_available():
    pytest.skip("a real GPU is here, and no stand-in beside it", allow_module_level=True)

from tests.kit.gpu.standin import StandIn
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.model import build
from transformer.training import resume
from transformer.training.loop import LATENCY, Training
from transformer.training.recording import develop, record
from transformer.training.runs import Run

pytestmark = pytest.mark.nightly

DROPS = RunConfig(model=ModelConfig(dropout=0.1))
TRANSLATES = RunConfig(task=TaskConfig(task="reverse-translate"))
TOGETHER = 10
"""Steps that are waited for together where nothing is measured between them."""


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
    gc.collect()


def steps(config, device, n=6):
    training = Training(build(config).to(device), config)
    return training, [training.take_step().loss for _ in range(n)]


def test_the_second_gpu_learns():
    _, alone = steps(RunConfig(), "cpu")
    with StandIn(count=2).installed():
        steps(RunConfig(), "cuda:0", 1)  # the spare has warmed up on the first
        _, there = steps(RunConfig(), "cuda:1")
    assert there == pytest.approx(alone, abs=1e-4)


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


def test_what_cannot_be_captured_says_so_and_goes_on(monkeypatch):
    from transformer.training import stepping

    original = stepping.weighted_loss
    monkeypatch.setattr(stepping, "weighted_loss", lambda *a: original(*a) + 0 * float(original(*a).detach()))  # waits
    _, alone = steps(RunConfig(), "cpu")
    with StandIn().installed():
        training, there = steps(RunConfig(), "cuda")
    assert training.stepping.startswith("eager: the step could not be captured (operation not permitted")
    assert there == pytest.approx(alone, abs=1e-4)


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
