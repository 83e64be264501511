"""The one kind of cache: bounded, shared by all sessions, and quick to look up."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numpy as np
import streamlit as st

from transformer.config import RunConfig

P = ParamSpec("P")
T = TypeVar("T")


def _all_of(array: np.ndarray) -> bytes:
    """An array of numbers, every cell of it: of a large one Streamlit would compare a sample."""
    return f"{array.dtype.str}{array.shape}".encode() + array.tobytes()


_keys: dict[str | type[Any], Callable[[Any], Any]] = {np.ndarray: _all_of, RunConfig: repr}
"""What arguments of these classes are told apart by. Streamlit reads it at each look-up: a class may enter later."""


def keyed_by_repr(cls: type[T]) -> type[T]:
    """Tell arguments of this very class apart by their repr, which has to name every field.

    Streamlit would walk through a model's config field by field, for 0.4 ms a look-up, and a page looks up dozens of
    times.
    """
    _keys[cls] = repr
    return cls


def cached(most: int, spinner: str | bool = False) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Remember the `most` latest answers of a function; `spinner` is said while one is worked out.

    Arguments are told apart by what they hold, arrays by every cell, type and shape; answers are shared by all sessions
    and must not be written into. The same argument given by place and by name, or left to its default, is looked up
    as another.
    """
    remember = st.cache_resource(max_entries=most, show_spinner=spinner, hash_funcs=_keys)

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        function.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]  # else read at each look-up
        return remember(function)

    return decorate
