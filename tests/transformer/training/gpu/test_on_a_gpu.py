"""What holds of a training on a GPU: on a stand-in by night, and by `make gpu` on the GPU of this machine."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.kit.gpu.devices import ON_A_GPU, present
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.experiments.populations.together import Together
from transformer.model import build
from transformer.training import resume
from transformer.training.device import Choice
from transformer.training.loop import Step, Training, train
from transformer.training.recording import develop, record
from transformer.training.runs import Run
from transformer.training.stepping import CAPTURED

STEPS, APART = 30, 2e-3
"""So many steps later a loss in float32 is so near the CPU's: each step rounds in another order, and steps add up."""
ENDLESS = {"solved_at": 2.0, "max_steps": 1000, "evaluate_every": 1000}
SHAPES = {
    "reverse": RunConfig(training=TrainingConfig(**ENDLESS)),
    "rotary": RunConfig(model=ModelConfig(positions="rotary"), training=TrainingConfig(**ENDLESS)),
    "alibi": RunConfig(model=ModelConfig(positions="alibi"), training=TrainingConfig(**ENDLESS)),
    "sinusoidal": RunConfig(model=ModelConfig(positions="sinusoidal"), training=TrainingConfig(**ENDLESS)),
    "tied, post-norm": RunConfig(model=ModelConfig(norm="post", tied=True), training=TrainingConfig(**ENDLESS)),
    "warm-up and decay": RunConfig(training=TrainingConfig(warmup_steps=3, decay_after=4, **ENDLESS)),
    "encoder-decoder": RunConfig(task=TaskConfig(task="reverse-translate"), training=TrainingConfig(**ENDLESS)),
    "bfloat16": RunConfig(training=TrainingConfig(precision="bfloat16", **ENDLESS)),
    "dropout": RunConfig(model=ModelConfig(dropout=0.1), training=TrainingConfig(**ENDLESS)),
    "lengths that vary": RunConfig(
        task=TaskConfig(task="reverse-translate", min_length=3), training=TrainingConfig(**ENDLESS)
    ),
    "gru": RunConfig(
        task=TaskConfig(task="reverse-translate"),
        model=ModelConfig(architecture="gru"),
        training=TrainingConfig(teacher_forcing=0.5, **ENDLESS),
    ),
    "long": RunConfig(
        task=TaskConfig(length=130),
        model=ModelConfig(n_layers=1, n_heads=1, d_model=16, d_ff=16),
        training=TrainingConfig(batch_size=2, **ENDLESS),
    ),
}
ALL = pytest.mark.parametrize("name", SHAPES)
NO_CUDNN = pytest.mark.filterwarnings("ignore:PyTorch was compiled without cuDNN")
OF_ONE_NOISE = pytest.mark.parametrize("name", [name for name in SHAPES if name not in ("bfloat16", "dropout", "gru")])


def begun(config: RunConfig, device: torch.device | str, *, eager: bool = False) -> Training:
    training = Training(build(config).to(device), config)
    if eager and training.capture is not None:
        training.capture.failure = "it was asked for"
    return training


def losses(training: Training, steps: int, most: int = 1) -> list[float]:
    """Those of the next steps, at most so many of which are waited for together."""
    found: list[float] = []
    while len(found) < steps:
        found += [step.loss for step in training.take_steps(min(most, steps - len(found)))]
    return found


@NO_CUDNN
@ALL
@ON_A_GPU
def test_a_captured_step_is_the_eager_one_to_the_bit_however_many_are_waited_for_together(
    name: str, where: str
) -> None:
    measured = replace(SHAPES[name].training, evaluate_every=4)
    config = replace(SHAPES[name], training=measured)
    with present(where) as device:
        each, several, eager = (begun(config, device, eager=eager) for eager in (False, False, True))
        assert losses(each, 10) == losses(several, 10, most=50) == losses(eager, 10, most=50)
        for one, two, other in zip(
            each.model.parameters(), several.model.parameters(), eager.model.parameters(), strict=False
        ):
            assert torch.equal(one, two)
            assert torch.equal(one, other)
        assert each.stepping == several.stepping == CAPTURED


@ON_A_GPU
def test_a_population_is_the_same_as_one_graph_and_keeps_who_has_left_for_a_while(where: str) -> None:
    """To the bit, however many steps are waited for together; its members end where each does alone."""
    model = ModelConfig(n_layers=1, n_heads=2, d_model=16, d_ff=16)
    settings = TrainingConfig(max_steps=40, learning_rate=0.02)
    task = TaskConfig(length=4, symbols=5)
    configs = [RunConfig(task=task, model=model, training=replace(settings, seed=seed)) for seed in range(4)]
    found, weights, heights = [], [], []
    with present(where) as device:
        for most in (1, 50):
            batch = Together([begun(config, device) for config in configs])
            members, taken = batch.members, {member: [] for member in batch.members}
            while batch.members:
                heights.append(len(next(iter(batch.weights.values()))) - len(batch.members))
                for member, several in batch.take_steps(most).items():
                    taken[member] += [step.loss for step in several if isinstance(step, Step)]
            assert batch.capture is None or not batch.capture.failure
            found.append([*taken.values()])
            weights.append([torch.cat([each.flatten().cpu() for each in one.model.parameters()]) for one in members])
    assert found[0] == found[1]
    assert all(torch.equal(one, other) for one, other in zip(*weights, strict=True))
    assert any(heights)
    for config, mine in zip(configs, found[0], strict=True):
        alone = [step.loss for step in train(build(config), config)]
        assert mine == pytest.approx(alone, abs=APART)


@NO_CUDNN
@ALL
@ON_A_GPU
def test_a_training_taken_up_again_goes_on_as_if_undisturbed(name: str, where: str, tmp_path: Path) -> None:
    """A pause, and a process that was killed, leave the same: what `resume.save` wrote between two steps."""
    with present(where) as device:
        whole = losses(begun(SHAPES[name], device), 12)
        first = begun(SHAPES[name], device)
        before = losses(first, 5)
        resume.save(tmp_path / "state", first)
        after_a_pause = losses(first, 7)
        other = begun(SHAPES[name], device)
        resume.restore(tmp_path / "state", other)
        after_a_kill = losses(other, 7)
    assert before + after_a_pause == whole
    assert before + after_a_kill == whole


@OF_ONE_NOISE
@ON_A_GPU
def test_in_float32_it_learns_what_the_cpu_learns(name: str, where: str) -> None:
    expected = losses(begun(SHAPES[name], "cpu"), STEPS)
    with present(where) as device:
        found = losses(begun(SHAPES[name], device), STEPS)
    assert all(map(math.isfinite, found))
    assert found == pytest.approx(expected, abs=APART, rel=0)


@ON_A_GPU
def test_what_a_run_on_a_gpu_leaves_behind_is_opened_on_a_cpu(where: str, tmp_path: Path) -> None:
    """A page loads checkpoints onto the CPU: it needs no GPU for a run that had one."""
    config = RunConfig(training=TrainingConfig(max_steps=3))
    run = Run.create(tmp_path / "run", config)
    with present(where) as device:
        for _ in record(run, choice=Choice(device)):
            pass
        there = run.network(device=device)
    for step in (*run.snapshots(), None):
        network = run.network(step)
        assert {each.device.type for each in network.state_dict(keep_vars=True).values()} == {"cpu"}
        assert {each.device.type for each in network.buffers()} == {"cpu"}
    for one, other in zip(there.parameters(), run.network().parameters(), strict=True):
        assert torch.equal(one.detach().cpu(), other)
    assert develop(run)


@ON_A_GPU
def test_what_dropout_draws_goes_on_from_replay_to_replay(where: str) -> None:
    """A graph draws from the device's own generator: three replays are three draws, those of three plain calls."""
    with present(where) as device:
        ones, stream = torch.ones(1000, device=device), torch.cuda.Stream(device)
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            torch.nn.functional.dropout(ones, 0.5)
        torch.cuda.current_stream(device).wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            dropped = torch.nn.functional.dropout(ones, 0.5)
        torch.manual_seed(3)
        plain = [torch.nn.functional.dropout(ones, 0.5).cpu() for _ in range(3)]
        torch.manual_seed(3)
        replayed = []
        for _ in range(3):
            graph.replay()
            replayed.append(dropped.cpu().clone())
    assert not torch.equal(plain[0], plain[1])
    for one, other in zip(plain, replayed, strict=True):
        assert torch.equal(one, other)


@ON_A_GPU
def test_a_copy_of_pinned_memory_arrives_with_its_event(where: str) -> None:
    with present(where) as device:
        there = torch.arange(1000.0).pin_memory().to(device, non_blocking=True) + 1
        down = torch.empty(1000, pin_memory=True)
        down.copy_(there, non_blocking=True)
        event = torch.cuda.Event()
        event.record()
        event.synchronize()
        assert torch.equal(down, torch.arange(1000.0) + 1)
