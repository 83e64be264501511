"""One training on several processes: each computes its share of every batch, and all take the same step.

Data parallel, with PyTorch's own engine: `torch.nn.parallel.DistributedDataParallel` over NCCL on GPUs, over Gloo on
CPUs. Started by torchrun, which says in the environment who is who.
"""

from __future__ import annotations

import os
import sys

import torch
from torch import Tensor, nn

from transformer.config import ConfigError, RunConfig
from transformer.foundation.words import counted
from transformer.training.device import Choice, choose_device, gpu_count


class Team:
    """The processes of a training; this one stands for a training in a single process."""

    rank = 0
    size = 1

    @property
    def leads(self) -> bool:
        """Does this process measure, decide and write the run folder?"""
        return self.rank == 0

    def share(self, n: int) -> slice:
        """Which of the `n` sequences of a batch are this process's."""
        return slice(self.rank * n // self.size, (self.rank + 1) * n // self.size)

    def wrap(self, model: nn.Module, device: torch.device) -> nn.Module:
        """The model whose gradients are everybody's mean."""
        return model

    def mean(self, value: Tensor) -> Tensor:
        """The mean of a value over all processes."""
        return value

    def agree(self, word: int) -> int:
        """What the leading process says, heard by all."""
        return word

    def tell(self, text: str) -> str:
        """The same, of a text."""
        return text

    def part(self, code: int) -> None:
        """Leave the team, whose processes end together, with this exit code; one that is alone goes on."""


ALONE = Team()


class Torchrun(Team):
    """The processes that torchrun started, on this machine and others."""

    def __init__(self, device: torch.device) -> None:
        torch.distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
        self.rank, self.size = torch.distributed.get_rank(), torch.distributed.get_world_size()
        self.device = device

    def wrap(self, model: nn.Module, device: torch.device) -> nn.Module:
        return nn.parallel.DistributedDataParallel(model, device_ids=[device] if device.type == "cuda" else None)

    def mean(self, value: Tensor) -> Tensor:
        total = value.detach().clone()
        torch.distributed.all_reduce(total)
        return total / self.size

    def agree(self, word: int) -> int:
        said = torch.tensor([word], device=self.device)
        torch.distributed.broadcast(said, src=0)
        return int(said.item())

    def tell(self, text: str) -> str:
        said = [text]
        torch.distributed.broadcast_object_list(said, src=0)
        return said[0]

    def part(self, code: int) -> None:
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()
        sys.stdout.flush()
        sys.stderr.flush()
        # Not by way of Python's own end: once in some hundred trainings a process was aborted there, its work done.
        os._exit(code)


def join(name: str, config: RunConfig) -> tuple[Team, Choice]:
    """The team that this process belongs to, and its own device: each process of a machine takes a GPU of its own.

    Raises ConfigError where the device that is named, or a process's own GPU, cannot be used.
    """
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        return ALONE, choose_device(name, config)
    gpus = gpu_count()
    if not name.startswith("cuda") and not (name == "auto" and gpus):
        choice = choose_device(name, config)
        return Torchrun(choice.device), choice
    own, together = (int(os.environ.get(each, ours)) for each, ours in (("LOCAL_RANK", 0), ("LOCAL_WORLD_SIZE", 1)))
    if 0 < gpus < max(together, own + 1):
        raise ConfigError(
            f"each process needs a GPU of its own, and {max(together, own + 1)} processes share "
            f"{counted(gpus, 'GPU')} here: start fewer, or train on the CPU (--device cpu)"
        )
    choice = choose_device(f"cuda:{own}")
    torch.cuda.set_device(choice.device)
    return Torchrun(choice.device), choice
