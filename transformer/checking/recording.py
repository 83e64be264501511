"""What a piece of code computed, step by step: every call of a PyTorch function, its inputs and its result."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

MOST_STEPS = 2000
LARGEST = 20_000
"""Numbers in a result that is remembered."""
REFERRED = ("input", "parameter", "step")


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

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> Step:
        """The step that a message holds."""
        return cls(said["name"], said["value"], tuple(said["sources"]), said["dim"])

    @property
    def parameter(self) -> str:
        """The first parameter that it reads; empty where it reads none."""
        return next((each.split(" ", 1)[1] for each in self.sources if each.startswith("parameter ")), "")


class Recording(TorchFunctionMode):
    """While it is entered, calls of PyTorch's functions on this thread are written down as `steps`."""

    def __init__(self, inputs: Sequence[Any] = (), parameters: Iterable[tuple[str, Tensor]] = ()) -> None:
        super().__init__()
        self.steps: list[Step] = []
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
        result = func(*args, **kwargs)
        results = result if isinstance(result, tuple | list) else (result,)
        for each in results:
            if isinstance(each, Tensor) and len(self.steps) < MOST_STEPS:
                self._write(func, each, args, kwargs)
        return result

    def _write(self, func: Callable[..., Any], value: Tensor, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        name = getattr(func, "__name__", "")
        if value.numel() > LARGEST or not (value.is_floating_point() or value.dtype == torch.bool):
            return
        given = [each for each in (*args, *kwargs.values()) if isinstance(each, Tensor)]
        given += [each for group in args if isinstance(group, tuple | list) for each in group if isinstance(each, Tensor)]
        parameter = self._origins.get(id(value), "")
        sources = tuple(self._origins.get(id(each), "") for each in given)
        if name == "__get__" and parameter.startswith("parameter "):
            return
        if name in ("__get__", "t", "transpose", "mT") and len(sources) == 1 and sources[0].startswith("parameter "):
            self._origins[id(value)] = sources[0]  # a weight, turned
            self._alive.append(value)
            return
        dim = kwargs.get("dim", next((each for each in args[1:2] if type(each) is int), None))
        if dim is not None and not -value.dim() <= dim < max(1, value.dim()):
            dim = None
        self._origins[id(value)] = f"step {len(self.steps)}"
        self._alive.append(value)
        self.steps.append(
            Step(name, value.detach().clone(), sources, None if dim is None else dim % max(1, value.dim()))
        )


def written(steps: Sequence[Step]) -> list[dict[str, Any]]:
    """Steps as a message holds them."""
    return [{field.name: getattr(step, field.name) for field in dataclasses.fields(step)} for step in steps]
