"""GPUs hidden from a process that has to leave them alone, and shown to those that it starts to train.

A process that so much as asks PyTorch whether there is a GPU talks to its driver: it holds memory there, and its forked
children cannot run backward any more. NVIDIA's driver and AMD's read the variable when they are first asked.
"""

from __future__ import annotations

import os

VISIBLE = "CUDA_VISIBLE_DEVICES"
HIDDEN = {VISIBLE: ""}
"""What a process finds in its environment that is to see no GPU."""
_shown: list[str | None] = []
"""What the variable said before this process hid its GPUs, None where it said nothing; empty where it hides none."""


def hide() -> None:
    """Hide the GPUs from this process; to be called before it imports PyTorch."""
    if not _shown:
        _shown.append(os.environ.get(VISIBLE))
        os.environ.update(HIDDEN)


def environment() -> dict[str, str]:
    """The environment of a process that may use the GPUs, whether this one hides them from itself or not."""
    found = dict(os.environ)
    if _shown:
        del found[VISIBLE]
        found |= {} if _shown[0] is None else {VISIBLE: _shown[0]}
    return found
