"""Presets that are solved, and small models that are trained within a click."""

from dataclasses import replace
from itertools import count

import numpy as np
import pytest
import torch

from transformer.analysis.accuracy.ceilings import ceiling
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.model import build
from transformer.presets import ONE_LAYER, PRESETS
from transformer.training.loop import train
from transformer.training.quick import answer, small

LONG = ("reverse, length 16", "reverse, length 32", "GRU with attention")
UNSOLVED = ("GRU, one vector",)
"""What it shows is how far it comes without attention."""


@pytest.mark.nightly  # by day the default run is solved, in test_loop.py
@pytest.mark.parametrize("preset", [p for p in PRESETS if p.name not in (*LONG, *UNSOLVED)], ids=lambda p: p.name)
def test_a_preset_is_solved(preset):
    config = replace(preset.config, training=replace(preset.config.training, seed=7, device="cpu"))
    *_, last = train(build(config), config)
    assert last.solved
    assert last.step < 300


def test_a_preset_is_known_again_on_any_seed_and_device_and_not_with_another_setting():
    for preset in PRESETS:
        training = replace(preset.config.training, seed=99, device="cpu", max_steps=7)
        assert [other.name for other in PRESETS if other.matches(replace(preset.config, training=training))] == [
            preset.name
        ]
    assert not any(preset.matches(RunConfig(training=TrainingConfig(learning_rate=1e-4))) for preset in PRESETS)


def test_the_small_version_keeps_what_the_question_is_about():
    config = RunConfig(task=TaskConfig(task="reverse-aligned", length=5), model=ModelConfig(positions="sinusoidal"))
    found = small(config, mask="causal")
    assert found.task == config.task
    assert (found.model.architecture, found.model.positions, found.model.mask) == ("encoder", "sinusoidal", "causal")
    assert (found.model.n_layers, found.model.n_heads, found.model.d_ff) == (1, 1, 0)


@pytest.mark.parametrize("mask", ["full", "causal", "sliding-window:2"])
def test_an_answer_meets_its_ceiling(mask):
    """Aligned reversal under three masks: what can be known is known, and nothing else."""
    config = RunConfig(task=TaskConfig(task="reverse-aligned"), model=replace(ONE_LAYER, mask=mask))
    found = answer(small(config))
    assert found.solved
    assert not found.model.training
    measured, most = found.steps[-1].accuracy, ceiling(found.config).accuracy
    assert (np.abs(measured - most) < 0.08).all()


def few_steps(config: RunConfig, many: int) -> RunConfig:
    return replace(config, training=replace(config.training, max_steps=many))


def test_an_answer_ends_after_its_steps_and_is_measured_even_when_it_is_not_solved():
    found = answer(few_steps(small(RunConfig(model=ModelConfig(positions="none"))), 7))
    assert not found.solved
    assert len(found.steps) == 7
    assert found.steps[-1].accuracy is not None
    assert found.steps[-1].probed in (128, 512)


def test_an_answer_is_the_training_itself_however_long_the_clock_says_that_a_step_takes(monkeypatch):
    config = few_steps(small(RunConfig(task=TaskConfig(task="reverse-aligned"), model=ModelConfig(mask="causal"))), 25)
    model = build(config)
    alone = [step.loss for step in train(model, config)]
    ticks = count()
    monkeypatch.setattr("transformer.training.loop.time.perf_counter", lambda: 1000.0 * next(ticks))
    found = answer(config)
    assert [step.loss for step in found.steps] == alone
    for name, weights in model.state_dict().items():
        assert torch.equal(found.model.state_dict()[name], weights)


def test_an_answer_can_be_broken_off():
    seen = []
    answer(small(RunConfig()), lambda step: bool(seen.append(step.step)) or step.step < 3)
    assert seen == [1, 2, 3]
