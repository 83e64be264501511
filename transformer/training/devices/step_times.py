"""How long a step of the default run takes on the CPU and on a GPU of this machine: measured once, and remembered."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import torch

from transformer.config import RunConfig, TrainingConfig
from transformer.foundation import machine
from transformer.foundation.foreign import DAMAGED
from transformer.training.stored.checks import number

if TYPE_CHECKING:
    from transformer.training.devices.found import Devices

FILE = "step-times.json"
MOST = 32
"""Pairs of devices, drivers and versions that are remembered."""
FIRST, BLOCKS, STEPS = 8, 3, 10
"""Steps that are not timed, for the first ones are slow; how often is timed, and how many steps each time."""


def measure(device: str) -> float:
    """Milliseconds that a step of the default run takes on a device, its measurements left out: of the best block."""
    from transformer.model import build
    from transformer.training.loop import Training

    most = FIRST + BLOCKS * STEPS
    config = RunConfig(training=TrainingConfig(max_steps=most + 1, evaluate_every=most + 1))
    training = Training(build(config).to(device), config)
    for _ in range(FIRST):
        training.take_step()
    times = []
    for _ in range(BLOCKS):
        began = time.perf_counter()
        for _ in range(STEPS):
            training.take_step()
        times.append(1000 * (time.perf_counter() - began) / STEPS)
    return min(times)


def remember(devices: Devices, driver: str) -> None:
    """Write down what the CPU and the GPU that can be used take, for this driver and this PyTorch."""
    if (gpu := devices.gpu) is not None:
        known = machine.recall(FILE)
        known.pop(_key(devices, driver), None)
        both = [devices.all[0].milliseconds, gpu.milliseconds]
        machine.remember(FILE, dict([*known.items(), (_key(devices, driver), both)][-MOST:]))


def recall_times(devices: Devices, driver: str) -> Devices:
    """The devices with their times, where they are remembered."""
    if (gpu := devices.gpu) is None:
        return devices
    try:
        cpu, there = machine.recall(FILE)[_key(devices, driver)]
        for each in (cpu, there):
            number(each, 0, 1e9)
        return devices.with_values(devices.all[0], milliseconds=cpu).with_values(gpu, milliseconds=there)
    except DAMAGED:
        return devices


def _key(devices: Devices, driver: str) -> str:
    """What the times hold for."""
    assert devices.gpu is not None
    return " | ".join((devices.gpu.title, driver, torch.__version__, devices.all[0].title))
