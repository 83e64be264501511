"""The one kind of cache: bounded, shared by all sessions, and quick to look up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import streamlit as st

P = ParamSpec("P")
T = TypeVar("T")


def kept(most: int, spinner: str | bool = False) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Remember the `most` latest answers of a function; `spinner` is said while one is worked out.

    A model is told apart by its repr, which names every field of its config: Streamlit would walk through them one by
    one, for 0.4 ms a look-up, and a page looks up dozens of times.
    """
    told_apart: dict[str | type[Any], Callable[[Any], str]] = {
        "dashboard.models.model.Model": repr,
        "transformer.config.RunConfig": repr,
    }
    return st.cache_resource(max_entries=most, show_spinner=spinner, hash_funcs=told_apart)
