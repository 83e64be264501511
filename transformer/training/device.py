"""Where to train: the devices that are there, each tried out before it is trusted, and the one that a name means."""

from __future__ import annotations

import os
import platform
import warnings
from dataclasses import dataclass
from pathlib import Path

import torch

from transformer.config import ConfigError, RunConfig
from transformer.foundation.checks import reason
from transformer.foundation.foreign import quoted, read_bytes, shortened
from transformer.training.devices import step_times
from transformer.training.devices.found import Device, Devices

NONE_THERE = ("Found no NVIDIA driver", "No CUDA GPUs", "No HIP GPUs")
"""What PyTorch says where there is no GPU, and nothing is wrong."""
_given_up: dict[str, str] = {}
"""GPUs that failed at their first steps in this process, and how."""


@dataclass(frozen=True)
class Choice:
    """Where a training is carried out, and why there; "" where nothing else was asked for or to be had."""

    device: torch.device
    why: str = ""
    fell_back: bool = False
    """Is it the CPU because a GPU is there, or may be, and cannot be used?"""


def resolve_device(name: str = "auto", config: RunConfig | None = None) -> torch.device:
    """The device that a name means: `choose_device`, without the reason."""
    return choose_device(name, config).device


def choose_device(name: str = "auto", config: RunConfig | None = None) -> Choice:
    """The device that a name means, for the run of this config.

    auto is the first GPU that can be used, or the CPU; `Devices.auto` has the rule. Raises ConfigError when a named
    device is not there or cannot be used.
    """
    if name == "cpu":
        return Choice(torch.device("cpu"))
    if name == "auto":
        devices = look()
        found, why = devices.auto(config)
        return Choice(_device(found), why, fell_back=bool(why) and devices.gpu is None)
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"device must be auto, cpu, cuda, cuda:N or mps, not {quoted(name)}") from None
    if device.type == "cpu":
        return Choice(device)
    there = {"cuda": (device.index or 0) < gpu_count(), "mps": torch.backends.mps.is_available()}
    if not there.get(device.type, False):
        devices = look()
        instead = f"auto would use {describe_device(_device(devices.auto()[0]))}"
        missing = f": {devices.missing}" if devices.missing and device.type == "cuda" else ""
        raise ConfigError(f"there is no {name} here{missing}: {instead}")
    if fault := fault_of(device):
        raise ConfigError(f"{name} cannot be used: {_title(device)}: {fault}")
    return Choice(device)


def look() -> Devices:
    """Everything there is to train on. GPUs are tried out one after the other, until one can be used."""
    cpu, usable = torch.device("cpu"), False
    found = [Device("cpu", describe_device(cpu))]
    gpus = [torch.device("cuda", index) for index in range(gpu_count())]
    gpus += [torch.device("mps")] if torch.backends.mps.is_available() else []
    for device in gpus:
        fault = "" if usable else fault_of(device)
        found.append(Device(_name(device), _title(device), fault, tried=not usable))
        usable = usable or not fault
    devices = Devices(tuple(found), missing="" if gpus else _missing())
    return step_times.recall_times(devices, driver()) if usable else devices


def without_gpus(why: str) -> Devices:
    """The CPU alone, and why there is nothing else."""
    return Devices((Device("cpu", describe_device(torch.device("cpu"))),), missing=why)


def fault_of(device: torch.device) -> str:
    """Why nothing can be computed on a device, in a few words; empty where something was."""
    if given_up := _given_up.get(_name(device)):
        return given_up
    try:
        ones = torch.ones(2, 2, device=device)
        right = float((ones @ ones).sum()) == 8
    except Exception as error:  # each driver has its own
        return short_reason(error)
    return "" if right else "it multiplies wrongly"


def give_up(device: Device, why: str) -> None:
    """Take no run to a device any more in this process, and say this of it."""
    _given_up[device.name] = why


def gpu_count() -> int:
    """How many GPUs PyTorch sees, of NVIDIA or AMD."""
    with warnings.catch_warnings():  # of a driver that is too old, which is said in our own words
        warnings.simplefilter("ignore")
        return torch.cuda.device_count() if torch.cuda.is_available() else 0


def short_reason(error: Exception) -> str:
    """A library's error in its first sentence, without the advice that follows."""
    return reason(error).split(". ")[0].rstrip(".")


def driver() -> str:
    """The version of the GPU's driver; empty where it is not known."""
    try:
        return shortened(read_bytes(Path("/proc/driver/nvidia/version"), 2**12).decode().splitlines()[0])
    except (OSError, ValueError, IndexError):
        return platform.mac_ver()[0]


def _missing() -> str:
    """Why PyTorch sees no GPU though it was made for them; empty where there is none."""
    if not (torch.version.cuda or torch.version.hip):
        return ""
    try:
        torch.cuda.init()
    except Exception as error:  # each driver has its own
        why = short_reason(error)
        return "" if why.startswith(NONE_THERE) else why
    return ""


def _device(found: Device) -> torch.device:
    """What PyTorch calls a device; the first GPU is the one that it takes by itself."""
    return torch.device("cuda" if found.name == "cuda:0" else found.name)


def _name(device: torch.device) -> str:
    """What a config calls a device, always with its number."""
    return "cuda:0" if str(device) == "cuda" else str(device)


def _title(device: torch.device) -> str:
    """The device in words, also where it cannot be asked."""
    try:
        return describe_device(device)
    except Exception:  # each driver has its own
        return "the GPU"


def describe_device(device: torch.device) -> str:
    """The device in words: the GPU's own name, or the CPU with its cores."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    if device.type == "mps":
        return f"Apple GPU ({platform.machine()})"
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return f"CPU, {cores} core{'s' if cores != 1 else ''}"


def memory(device: torch.device | None) -> int:
    """Most bytes this process has held so far: on the GPU if that is the device, else of main memory; 0 if unknown."""
    if device is not None and device.type == "cuda":
        return torch.cuda.max_memory_reserved(device)
    try:
        import resource
    except ImportError:  # Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if platform.system() == "Darwin" else 1024 * peak
