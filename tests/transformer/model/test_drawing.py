"""Trainings in two threads: each gives the numbers that it gives alone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from transformer import checkpoints
from transformer.analysis.encodings import table_of
from transformer.compiled import compiled_reverser
from transformer.config import ModelConfig, RunConfig, TrainingConfig
from transformer.model import Transformer, build
from transformer.training.loop import Training, train
from transformer.training.runs import DEFAULT_ROOT, Run

CONFIG = RunConfig(
    model=ModelConfig(n_layers=1, n_heads=2, d_model=16, d_ff=16), training=TrainingConfig(seed=1, max_steps=20)
)
NOISY = replace(CONFIG, model=replace(CONFIG.model, dropout=0.2))


def _weights() -> list[float]:
    return [float(each.detach().double().sum()) for each in build(CONFIG).parameters()]


def _losses(config: RunConfig) -> list[float]:
    return [step.loss for step in train(build(config), config)]


def _loaded() -> None:
    checkpoints.load(Run(DEFAULT_ROOT / "reverse").snapshot())


def _noise() -> None:
    Training(build(NOISY), NOISY)


def _another_encoding() -> None:
    model = build(CONFIG)
    assert isinstance(model, Transformer)
    table_of(model, "sinusoidal")


def _noisy_steps() -> None:
    _losses(NOISY)


@pytest.mark.daily(1)
@pytest.mark.parametrize("meanwhile", [_loaded, _noise, _another_encoding, compiled_reverser, _noisy_steps])
def test_a_seed_gives_the_same_weights_and_steps_whatever_another_thread_does(meanwhile: Callable[[], object]) -> None:
    alone, noisy = _weights(), _losses(NOISY)
    over = threading.Event()

    def go_on() -> None:
        while not over.is_set():
            meanwhile()

    other = threading.Thread(target=go_on)
    other.start()
    try:
        assert all(_weights() == alone for _ in range(8))
        assert all(_losses(NOISY) == pytest.approx(noisy, rel=1e-5) for _ in range(2))
    finally:
        over.set()
        other.join()
    assert torch.is_grad_enabled()
