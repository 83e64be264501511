"""Where to train: the device that is there, by its name."""

from __future__ import annotations

import os
import platform

import torch

from transformer.config import ConfigError
from transformer.foundation.foreign import quoted


def resolve_device(name: str = "auto") -> torch.device:
    """auto is CUDA, then MPS, then the CPU. Raises ConfigError when a named device is not there."""
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"device must be auto, cpu, cuda, cuda:N or mps, not {quoted(name)}") from None
    there = {
        "cpu": True,
        "cuda": (device.index or 0) < torch.cuda.device_count(),
        "mps": torch.backends.mps.is_available(),
    }
    if not there.get(device.type, False):
        raise ConfigError(f"there is no {name} here: auto would use {describe_device(resolve_device())}")
    return device


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
