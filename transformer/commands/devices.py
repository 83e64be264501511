"""The device that a command is carried out on, for the commands that do not say where they train."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def named_device(name: str) -> torch.device:
    """The device of a name; a line on stderr where auto takes the CPU because a GPU is there and cannot be used.

    Raises ConfigError.
    """
    from transformer.training.device import choose_device

    choice = choose_device(name)
    if choice.fell_back:
        print(f"device auto: {choice.why}", file=sys.stderr)
    return choice.device
