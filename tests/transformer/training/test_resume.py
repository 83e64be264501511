"""Pausing, slowing, stepping, resuming: what is asked of a training between its steps changes none of its numbers."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from tests.kit.runs import tiny
from tests.kit.waiting import Clock
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.model import build
from transformer.training import resume
from transformer.training.loop import Training, train
from transformer.training.recording import record, snapshot_steps
from transformer.training.requests import TICK, Wishes
from transformer.training.runs import Run, RunError
from transformer.training.team import ALONE, Team

CONFIG = RunConfig(
    task=TaskConfig(length=3, min_length=2),
    model=ModelConfig(n_layers=1, n_heads=2, d_model=16, d_ff=16, dropout=0.2),
    training=TrainingConfig(max_steps=16, warmup_steps=5, decay_after=10, weight_decay=0.1, solved_at=2, device="cpu"),
)
"""Everything that has a state of its own: dropout, moments, a rate that moves, sequences of several lengths."""
RECURRENT = RunConfig(
    task=TaskConfig(task="reverse-translate", length=3),
    model=ModelConfig(architecture="gru", d_model=16),
    training=CONFIG.training,
)
HELPED = replace(RECURRENT, training=replace(CONFIG.training, teacher_forcing=0.5))


class Member(Team):
    """One of several processes, without the others."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size


def numbers(step) -> tuple:
    accuracy = None if step.accuracy is None else step.accuracy.tolist()
    return step.step, step.loss, step.learning_rate, step.gradient_norm, accuracy, step.probed


@pytest.fixture(scope="module")
def unbroken() -> list[tuple]:
    return [numbers(step) for step in train(build(CONFIG), CONFIG)]


@pytest.fixture
def run(tmp_path) -> Run:
    return Run.create(tmp_path / "run", CONFIG)


@pytest.mark.daily(3)
@pytest.mark.parametrize("at", [1, 4, 5, 11, 15])
def test_what_was_written_down_goes_on_as_if_nothing_had_been(unbroken, tmp_path, at):
    first = Training(build(CONFIG), CONFIG)
    taken = [numbers(first.take_step()) for _ in range(at)]
    resume.save(tmp_path / "resume.safetensors", first)
    torch.manual_seed(at)  # another process's generator stands elsewhere
    second = Training(build(CONFIG), CONFIG)
    resume.restore(tmp_path / "resume.safetensors", second)
    assert second.seconds == first.seconds
    while not second.done:
        taken.append(numbers(second.take_step()))
    assert taken == unbroken


@pytest.mark.parametrize(
    ("config", "bytes_", "rank", "size", "told"),
    [
        (CONFIG, 5056, 0, 1, ""),
        (CONFIG, 5056, 0, 2, "dropout draws anew since step 2 in all processes but the leading one"),
        (CONFIG, 5056, 1, 2, "dropout draws anew since step 2 in all processes but the leading one"),
        (CONFIG, 16, 0, 1, "dropout draws anew since step 2: the training goes on on another kind of device"),
        (RECURRENT, 16, 0, 1, ""),
        (HELPED, 16, 0, 1, "teacher forcing draws anew since step 2: the training goes on on another kind of device"),
    ],
)
def test_noise_goes_on_on_its_own_kind_of_device_and_of_each_process_its_own(
    config: RunConfig, bytes_: int, rank: int, size: int, told: str, tmp_path
):
    """A GPU's generator has a state of 16 bytes, a processor's one of 5,056."""
    first = Training(build(config), config)
    for _ in range(2):
        first.take_step()
    left, first.noise = first.noise, first.noise if bytes_ == 5056 else torch.arange(bytes_, dtype=torch.uint8)
    resume.save(tmp_path / "left", first)
    begun = [Training(build(config), config, Member(rank, size)) for _ in range(2)]
    assert [resume.restore(tmp_path / "left", each) for each in begun] == [told, told]
    kept = rank == 0 and bytes_ == 5056
    assert all(torch.equal(each.noise, left) == kept for each in begun)
    assert torch.equal(begun[0].noise, begun[1].noise), "the same file twice"
    other = Training(build(config), config, Member(rank + 1, size + 2))
    assert not torch.equal(other.noise, begun[0].noise)


def test_others_who_draw_between_two_steps_change_nothing(unbroken):
    taken = []
    for step in train(build(CONFIG), CONFIG):
        torch.rand(step.step)
        taken.append(numbers(step))
    assert taken == unbroken


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:-8]),
        lambda path: path.write_bytes(b"\x80\x04."),
        lambda path: resume.save(path, Training(build(OTHER), OTHER)),
    ],
    ids=["empty", "cut", "a pickle", "of another model"],
)
def test_a_file_that_does_not_fit_is_refused_with_a_sentence(tmp_path, spoil):
    path = tmp_path / "resume.safetensors"
    resume.save(path, Training(build(CONFIG), CONFIG))
    spoil(path)
    with pytest.raises(resume.ResumeError, match=r"^the training cannot be taken up from resume.safetensors: ") as end:
        resume.restore(path, Training(build(CONFIG), CONFIG))
    assert "\n" not in str(end.value)


OTHER = RunConfig(model=ModelConfig(n_layers=2, n_heads=2, d_model=16))


@pytest.fixture
def clock(monkeypatch) -> Clock:
    """The time of whatever waits between two steps."""
    clock = Clock()
    monkeypatch.setattr("transformer.training.requests.time", clock)
    return clock


def test_a_paused_training_waits_and_goes_on_to_the_same_numbers(run, unbroken, clock):
    run.ask(pause_at=7)
    states = []

    def lecture():
        """What is asked for, a look a tick of each pause."""
        for pause_at in (7, 7, 8, 8, None):
            states.append((run.state.status, run.state.step))
            run.ask(pause_at=pause_at)
            yield

    clock.script = lecture()
    assert [numbers(step) for step in record(run)] == unbroken
    assert states == [("paused", 7)] * 3 + [("paused", 8)] * 2
    assert run.state.status == "finished"
    assert [line["loss"] for line in run.metrics()] == [loss for _, loss, *_ in unbroken]


def test_the_clock_of_a_paused_training_stands_still(run, clock, monkeypatch):
    def perf_counter() -> float:
        clock.now += 1.0  # whoever reads it takes a second
        return clock.now

    monkeypatch.setattr("transformer.training.loop.time", SimpleNamespace(perf_counter=perf_counter))
    run.ask(pause_at=3)
    clock.script = (run.ask(pause_at=None if tick == 9 else 3) for tick in range(10))
    steps = list(record(run))
    timed = len(steps) + sum(step.accuracy is not None for step in steps)  # the steps, and their measurements
    assert steps[-1].seconds == pytest.approx(timed)
    assert clock.now == pytest.approx(2 * timed + 10 * TICK)


def test_a_stopped_training_can_be_resumed_and_ends_as_if_it_had_not_been_stopped(run, unbroken):
    taken = []
    for step in record(run):
        taken.append(numbers(step))
        if step.step == 11:
            run.request_stop()
    assert (run.state.status, run.state.reason) == ("stopped", "stopped by hand at step 11")
    assert run.resumable
    run.ask(stop=False)
    taken += [numbers(step) for step in record(run)]
    assert taken == unbroken
    assert run.state.status == "finished"
    assert not run.resumable
    assert list(run.snapshots()) == snapshot_steps(16)


def test_what_has_ended_and_left_nothing_to_go_on_from_stays_as_it_ended(tmp_path):
    run = Run.create(tmp_path / "run", tiny(max_steps=1))
    list(record(run))
    ended = run.state
    with pytest.raises(RunError, match="the run run has been trained, and nothing is left to go on from"):
        next(record(run))
    assert run.state == ended


def test_a_pace_is_kept_and_a_wish_is_heard_while_it_waits(run, clock):
    wishes = Wishes(run, ALONE)
    run.ask(pace=5.0)
    for step in range(3):
        assert wishes.heed(step, lambda: None, lambda: None)
        assert clock.now == pytest.approx(step / 5)
    run.ask(pace=0.01)
    wishes.heed(3, lambda: None, lambda: None)
    began, clock.script = clock.now, (run.request_stop() for _ in range(1))
    assert not wishes.heed(4, lambda: None, lambda: None)
    assert clock.now == began + TICK


def test_nobody_waits_for_ever(run, clock):
    wishes = Wishes(run, ALONE, patience=600.0)
    run.ask(pause_at=0)
    assert not wishes.heed(4, lambda: None, lambda: None)
    assert wishes.tired
    assert clock.now == pytest.approx(600.0, abs=2 * TICK)


@pytest.mark.parametrize("most", [1, 2, 23, 24, 25, 40, 41, 100, 2000, 100_000, 10_000_000])
def test_snapshots_are_about_forty_from_the_first_step_to_the_last(most):
    steps = snapshot_steps(most)
    assert steps[0] == 0
    assert steps[-1] == most
    assert steps == sorted(set(steps))
    assert min(most + 1, 30) <= len(steps) <= 40
    ratios = [later / earlier for earlier, later in itertools.pairwise(steps) if earlier >= 16]
    assert max(ratios, default=1) / min(ratios, default=1) < 1.25  # as far apart everywhere, on the scale of logarithms
