"""The devices that a test is repeated on: stand-ins by night, and by `make gpu` the GPU of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

REAL = torch.cuda.is_available()
"""Is there a GPU? The stand-in, once it is imported, takes its place in PyTorch: then nothing real works any more."""
if not REAL:
    from tests.kit.gpu.standin import StandIn

STAND_INS = ("stand-in cuda", "stand-in mps")
GPU = pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(not REAL, reason="no GPU here")])
ON_A_GPU = pytest.mark.parametrize("where", [pytest.param(STAND_INS[0], marks=pytest.mark.nightly), GPU])
ON_EVERY_DEVICE = pytest.mark.parametrize(
    "where", [*(pytest.param(each, marks=pytest.mark.nightly) for each in STAND_INS), GPU]
)


@contextmanager
def present(where: str) -> Iterator[torch.device]:
    """Have a device for a while: a stand-in, or the GPU that is here."""
    kind = where.removeprefix("stand-in ")
    if kind == where:
        yield torch.device(kind)
        return
    if REAL:
        pytest.skip("a real GPU is here, and no stand-in beside it")
    with StandIn(kind).installed():
        yield torch.device(kind)
