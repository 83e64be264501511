"""Run any model once and keep what its attention did."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from transformer.capturing.functions import Calls
from transformer.capturing.hugging_face import door
from transformer.capturing.record import Captured, Notes
from transformer.network import Network
from transformer.observation import Observation, observe

_locks: WeakKeyDictionary[nn.Module, threading.Lock] = WeakKeyDictionary()
_one_at_a_time = threading.Lock()


def capture(model: Callable[..., Any], *inputs: Any, **named: Any) -> Captured:
    """Call `model(*inputs, **named)` once and return its output with every attention pattern that was seen on the way.

    Ours are seen by their trace. Models of Hugging Face's transformers are asked by its attention interface, whichever
    of its kernels they use. Anything else is seen where it calls `torch.nn.functional.scaled_dot_product_attention`,
    `torch.nn.MultiheadAttention` (so also `nn.TransformerEncoder` and `nn.TransformerDecoder`) or `flex_attention`, and
    where what comes out of a softmax weighs values (`following.py`), however its axes lie. Nothing is patched. What
    `torch.compile` compiled runs as it was written meanwhile. A module is run in evaluation mode, and left in the mode
    it was in, with the attention it had, also after an exception. Others may capture other models at the same time; two
    captures of one model wait for each other.

    What it returns is, bit for bit, what it returns without capture where the kernels are the same. They are not where
    a Hugging Face model uses another than the eager one, and where PyTorch has a fast path for a whole encoder layer:
    there it is the same to rounding.
    Raises what the model raises.
    """
    if isinstance(model, Network):
        return of_ours(observe(model, *inputs, **named))
    return run(model, Notes(model, batches(inputs, named)), inputs, named)


def of_ours(seen: Observation) -> Captured:
    """An observation of one of our own models as a capture."""
    crossing = frozenset(site for site in seen.attentions() if site.endswith("cross_attention"))
    return Captured(seen.sites, seen.logits, (), crossing)


def run(model: Callable[..., Any], notes: Notes, inputs: Sequence[Any], named: Mapping[str, Any]) -> Captured:
    """Call a model once, all doors open, and return what `notes` saw.

    Gradients are switched off. A model that asks for some in its forward pass fails so, and is called again with them.
    """
    try:
        with (
            torch.set_grad_enabled(notes.differentiates),
            _evaluated(model),
            _without_compiling(),
            door(model, notes),
            Calls(notes),
        ):
            output = model(*inputs, **named)
    except RuntimeError as error:
        if notes.differentiates or NO_GRADIENT not in str(error):
            raise
        notes.differentiates = True
        notes.restart()
        return run(model, notes, inputs, named)
    with torch.no_grad():
        return notes.captured(output)


NO_GRADIENT = "does not require grad"
"""What PyTorch says where a gradient is asked for and gradients are switched off."""


def batches(inputs: Sequence[Any], named: Mapping[str, Any]) -> tuple[tuple[int, ...], ...]:
    """The first two sizes of each tensor among the inputs, however deep it lies in lists and dictionaries."""
    found: list[tuple[int, ...]] = []
    left: list[Any] = [*inputs, *named.values()]
    while left:
        each = left.pop()
        if isinstance(each, Tensor):
            found.append(tuple(each.shape[:2]))
        elif isinstance(each, Mapping):
            left += each.values()
        elif isinstance(each, list | tuple):
            left += each
    return tuple(found)


_eager = threading.Lock()
_looking = [0]
"""How many captures go on, in which what is compiled runs as it was written."""


@contextmanager
def _without_compiling() -> Iterator[None]:
    """Meanwhile what `torch.compile` compiled runs as it was written: a kernel made of it would show nothing."""
    if "torch._dynamo" not in sys.modules:  # so nothing is compiled
        yield
        return
    with _eager:
        _looking[0] += 1
        if _looking[0] == 1:
            torch.compiler.set_stance("force_eager")
    try:
        yield
    finally:
        with _eager:
            _looking[0] -= 1
            if _looking[0] == 0:
                torch.compiler.set_stance("default")


@contextmanager
def _evaluated(model: object) -> Iterator[None]:
    """A module in evaluation mode, in the hands of one thread; afterwards each part is in the mode it was in."""
    if not isinstance(model, nn.Module):
        yield
        return
    with _one_at_a_time:
        lock = _locks.setdefault(model, threading.Lock())
    with lock:
        modes = [(module, module.training) for module in model.modules()]
        try:
            model.eval()
            yield
        finally:
            for module, training in modes:
                module.training = training
