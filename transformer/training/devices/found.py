"""What there is to train on, as a process that may use it has found it, and what of it `auto` takes. No PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from transformer.config import RunConfig
from transformer.foundation.checks import reason
from transformer.training.stored.checks import expect, number, text

MUCH = 8
"""A training whose step is so many times as much work as the default one's is always given to the GPU."""
MOST = 64
"""Devices of one machine."""


@dataclass(frozen=True)
class Device:
    """One device, by the name that a config gives it."""

    name: str
    """cpu, cuda:0, mps …"""
    title: str
    """The GPU's own name, or the CPU with its cores."""
    fault: str = ""
    """Why it cannot be used; empty where it can, or where nobody has tried."""
    tried: bool = True
    """Has it computed something?"""
    milliseconds: float = 0.0
    """What a step of the default run takes there; 0 where it was not measured."""

    def __post_init__(self) -> None:
        """Raises ValueError: a file may hold anything."""
        for each in (self.name, self.title, self.fault):
            text(each)
        expect(isinstance(self.tried, bool), "a device is tried or not")
        number(self.milliseconds, 0, 1e9)

    @property
    def usable(self) -> bool:
        return self.tried and not self.fault

    @property
    def on_it(self) -> str:
        """The device in words, to end a clause: "the CPU, 2 cores", "NVIDIA H100"."""
        return f"the {self.title}" if self.name == "cpu" else self.title


@dataclass(frozen=True)
class Devices:
    """All devices of a machine; the first is the CPU."""

    all: tuple[Device, ...]
    missing: str = ""
    """Why a GPU that the machine may have is not among them: its driver is too old; empty where nothing is known."""

    def __post_init__(self) -> None:
        """Raises ValueError: a file may hold anything."""
        expect(0 < len(self.all) <= MOST and self.all[0].name == "cpu", "the first device is the CPU")
        text(self.missing)

    @classmethod
    def read(cls, found: Mapping[str, Any]) -> Devices:
        """What `asdict` made of one. Raises ValueError where it is none."""
        try:
            return cls(tuple(Device(**each) for each in found["all"]), found["missing"])
        except (KeyError, TypeError) as error:
            raise ValueError(f"these are no devices: {reason(error)}") from None

    def record(self) -> dict[str, Any]:
        return asdict(self)

    def called(self, name: str) -> Device | None:
        """The device of a name; "cuda" is the first GPU."""
        name = "cuda:0" if name == "cuda" else name
        return next((each for each in self.all if each.name == name), None)

    def with_values(self, device: Device, **values: Any) -> Devices:
        """The same, where this is known of a device as well."""
        return replace(self, all=tuple(replace(each, **values) if each == device else each for each in self.all))

    @property
    def gpu(self) -> Device | None:
        """The first GPU that can be used."""
        return next((each for each in self.all[1:] if each.usable), None)

    def auto(self, config: RunConfig | None = None) -> tuple[Device, str]:
        """The device that `auto` takes, and why; "" where nothing else was to be had.

        The first GPU that can be used; but the CPU where a step of the default run was measured to be quicker there,
        unless a step of `config` is much more work.
        """
        cpu, gpu = self.all[0], self.gpu
        if gpu is None:
            faulty = next((each for each in self.all[1:] if each.fault), None)
            return cpu, self.missing if faulty is None else f"{faulty.title} cannot be used ({faulty.fault})"
        if not (cpu.milliseconds and gpu.milliseconds):
            return gpu, ""
        slower, quicker = (cpu, gpu) if gpu.milliseconds <= cpu.milliseconds else (gpu, cpu)
        measured = (
            f"a step of the default model takes {quicker.milliseconds:.1f} ms there, and "
            f"{slower.milliseconds:.1f} ms on {slower.on_it}"
        )
        if quicker is gpu:
            return gpu, measured
        if config is not None and work(config) > MUCH * work(RunConfig()):
            return gpu, f"a step of this model is more than {MUCH} times the work of the default one’s"
        return cpu, measured


def work(config: RunConfig) -> int:
    """Products of weights and tokens in one step, without what attention itself multiplies."""
    model, task = config.model, config.build_task()
    layer = 4 * model.d_model**2 + 2 * model.d_model * model.d_ff
    stacks = 2 if model.architecture in ("encoder-decoder", "gru") else 1
    weights = stacks * model.n_layers * layer + task.d_vocab * model.d_model
    return weights * config.training.batch_size * task.n_ctx
