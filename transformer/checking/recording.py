"""What a piece of code computed, step by step: every call of a PyTorch function, its inputs and its result."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from transformer.capturing.functions import DOORS
from transformer.capturing.record import Notes
from transformer.checking.faults import LONGEST_NAME

MOST_STEPS = 2000
LARGEST, MOST = 400_000, 4_000_000
"""Numbers in a result that is remembered, and in all of them."""
TURNING = (
    *("__get__", "t", "transpose", "permute", "contiguous", "view", "reshape", "unflatten", "flatten", "detach"),
    *("__getitem__", "chunk", "split", "unbind", "narrow"),
)
"""Functions and attributes that give a weight in another shape, or a part of it."""
FUSED = (functional.scaled_dot_product_attention, functional.multi_head_attention_forward)
"""Functions that do a whole attention at once."""
SCALED, WEIGHED = "scaled scores", "z"
"""What two of the steps are called that such a function does: the product of queries and keys, and that with values."""


@dataclass(frozen=True)
class Step:
    """One call of a PyTorch function."""

    name: str
    """The function's name, as "softmax"."""
    value: Tensor
    sources: tuple[str, ...]
    """Where its tensors come from: "input 0", "parameter query.weight", "step 3"; "" for any other."""
    dim: int | None = None
    """The dimension that it was asked to run over, counted from 0."""

    @property
    def parameter(self) -> str:
        """The first parameter that it reads; empty where it reads none."""
        return next((each.split(" ", 1)[1] for each in self.sources if each.startswith("parameter ")), "")


class Recording(TorchFunctionMode):
    """While it is entered, calls of PyTorch's functions on this thread are written down as `steps`."""

    def __init__(self, inputs: Sequence[Any] = (), parameters: Iterable[tuple[str, Tensor]] = ()) -> None:
        super().__init__()
        self.steps: list[Step] = []
        self._left = MOST
        self._alive: list[Tensor] = []
        """Held, so that no address is used twice."""
        self._origins: dict[int, str] = {}
        for number, value in enumerate(inputs):
            if isinstance(value, Tensor):
                self._origins[id(value)] = f"input {number}"
        for name, parameter in parameters:
            self._origins[id(parameter)] = f"parameter {name}"

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func in FUSED:
            notes = Notes(None)
            result = DOORS[func](notes, func, *args, **kwargs)
            self._open(func, notes, result, args, kwargs)
        else:
            result = func(*args, **kwargs)
        for each in result if isinstance(result, tuple | list) else (result,):
            if isinstance(each, Tensor):
                self._write(func, each, args, kwargs)
        return result

    def _write(self, func: Callable[..., Any], value: Tensor, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        name = str(getattr(func, "__name__", ""))[:LONGEST_NAME]
        if not (value.is_floating_point() or value.dtype == torch.bool) or self._origin(value).startswith("parameter "):
            return
        groups = [each if isinstance(each, tuple | list) else (each,) for each in (*args, *kwargs.values())]
        sources = tuple(self._origin(each) for group in groups for each in group if isinstance(each, Tensor))
        if len(sources) == 1 and sources[0].startswith("parameter ") and name in TURNING:
            self._origins[id(value)] = sources[0]  # still that weight
            self._alive.append(value)
            return
        dim = kwargs.get("dim", next((each for each in args[1:2] if type(each) is int), None))
        if not isinstance(dim, int) or not -value.dim() <= dim < value.dim():
            dim = None
        self._note(name, value, sources, None if dim is None else dim % value.dim())

    def _note(self, name: str, value: Tensor, sources: tuple[str, ...], dim: int | None = None) -> str:
        """Write one step down; how later steps refer to it."""
        if value.numel() > min(LARGEST, self._left) or len(self.steps) >= MOST_STEPS:
            return ""
        self._left -= value.numel()
        self._alive.append(value)
        self._origins[id(value)] = f"step {len(self.steps)}"
        self.steps.append(Step(name, value.detach().clone(), sources, dim))
        return self._origins[id(value)]

    def _origin(self, tensor: Tensor) -> str:
        return self._origins.get(id(tensor), "")

    def _open(
        self, func: Callable[..., Any], notes: Notes, result: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        """Write down what a function computed that does a whole attention at once, and of which `notes` were taken."""
        seen = {site.rsplit(".", 1)[-1]: tensor for site, tensor in notes.captured(result).sites.items()}
        given = [self._origin(each) for each in (*args, *kwargs.values()) if isinstance(each, Tensor)]
        weights = [each for each in given if each.startswith("parameter ")]
        whole = func is functional.multi_head_attention_forward and {"query", "key", "value"} <= seen.keys()
        if whole:
            given[:3] = [
                self._note("linear", seen[kind].transpose(1, 2).flatten(2), (origin, weights[0]))
                for kind, origin in zip(("query", "key", "value"), given, strict=False)
            ]
        if {"scores", "pattern", "z"} <= seen.keys():
            last = self._note(SCALED, seen["scores"], tuple(given[:2] if whole else [*given[:2], *given[3:]]))
            if "mask" in seen:
                last = self._note("masked_fill", seen["scores"].masked_fill(~seen["mask"], -math.inf), (last,))
            last = self._note("softmax", seen["pattern"], (last,), seen["pattern"].dim() - 1)
            self._note(WEIGHED, seen["z"], (last, *given[2:3]))
        if whole and "z" in seen:
            merged = self._note("merge", seen["z"].transpose(1, 2).flatten(2), ())
            out = result[0] if isinstance(result, tuple) else result
            self._note("linear", out.transpose(0, 1) if out.dim() == 3 else out, (merged, weights[-1]))
