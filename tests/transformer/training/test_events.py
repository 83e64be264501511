"""TensorBoard events: the metrics again, for those who have TensorBoard; nothing for those who do not."""

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tests.kit.runs import tiny
from transformer.training import events
from transformer.training.recording import record
from transformer.training.runs import Run


@pytest.fixture
def run(tmp_path) -> Run:
    return Run.create(tmp_path / "run", tiny(max_steps=6))


def test_events_say_what_the_metrics_say_and_each_step_once_though_the_training_was_cut_off(run):
    steps = record(run)
    for _ in range(4):
        next(steps)
    steps.close()
    list(record(run))
    found, metrics = EventAccumulator(str(run.folder / "tensorboard")), run.metrics()
    found.Reload()
    for name in ("loss", "learning_rate", "gradient_norm"):
        told = [(event.step, event.value) for event in found.Scalars(name)]
        assert [step for step, _ in told] == [1, 2, 3, 4, 5, 6]
        assert [value for _, value in told] == pytest.approx([line[name] for line in metrics], rel=1e-6)
    halves = [line["accuracy"] for line in metrics if "accuracy" in line]
    told = [event.value for event in found.Scalars("accuracy/second half")]
    assert told == pytest.approx([sum(half[3:]) / 3 for half in halves], abs=1e-5)


def test_events_that_cannot_be_written_stop_no_training(run):
    (run.folder / "tensorboard").touch()  # a file, where their folder should be
    list(record(run))
    assert run.state.status == "finished"


def test_without_tensorboard_there_are_none(run, monkeypatch):
    monkeypatch.setattr(events, "find_spec", lambda name: None)
    list(record(run))
    assert not (run.folder / "tensorboard").exists()
    assert run.state.status == "finished"
