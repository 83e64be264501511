"""The numbers in whatever a function gives, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import torch


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, np.ndarray]]:
    """The arrays and numbers in records, lists and mappings, each with its way there; words are left out."""
    if isinstance(value, torch.Tensor):
        yield name, value.detach().cpu().numpy()
    elif isinstance(value, (np.ndarray, np.generic, bool, int, float)):
        yield name, np.asarray(value)
    elif is_dataclass(value):
        for field in fields(value):
            yield from leaves(getattr(value, field.name), f"{name}.{field.name}")
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from leaves(each, f"{name}[{key}]")
    elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        for index, each in enumerate(value):
            yield from leaves(each, f"{name}[{index}]")
