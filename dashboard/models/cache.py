"""The one kind of cache: bounded, shared by all sessions, and quick to look up."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
import streamlit as st

from dashboard.models import background
from dashboard.models.background import Wanted
from dashboard.server.streamlit_private import may_draw
from transformer.config import RunConfig
from transformer.foundation.interruption import Interrupted, go_on

P = ParamSpec("P")
T = TypeVar("T")
LOOK = 0.2
"""Seconds between two looks at what is waited for."""


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


def cached(most: int, words: str = "") -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Remember the `most` latest answers of a function.

    What takes a while has `words` that say what goes on. It is worked out behind the page, which shows them meanwhile,
    and lets a click go on with something else; what no page waits for any more is given up.

    Arguments are told apart by what they hold, arrays by every cell, type and shape; answers are shared by all sessions
    and must not be written into. The same argument given by place and by name, or left to its default, is looked up
    as another.
    """
    remember = st.cache_resource(max_entries=most, show_spinner=False, hash_funcs=_keys)

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        function.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]  # else read at each look-up
        return waited_for(function, words) if words else remember(function)

    def waited_for(function: Callable[P, T], words: str) -> Callable[P, T]:
        @remember
        @wraps(function)
        def begun(*args: P.args, **kwargs: P.kwargs) -> Wanted[T]:
            return Wanted(partial(function, *args, **kwargs))

        @wraps(function)
        def answer(*args: P.args, **kwargs: P.kwargs) -> T:
            while True:
                work = begun(*args, **kwargs)
                wait_for(work, words)
                error = work.future.exception()
                if error is None:
                    return work.future.result()
                begun.clear(*args, **kwargs)
                if not isinstance(error, Interrupted):  # nobody had waited any more, and now somebody does
                    raise error

        answer.clear = begun.clear  # type: ignore[attr-defined]
        return answer

    return decorate


def wait_for(work: Wanted[Any], words: str) -> None:
    """Wait until work is done. What takes longer than AT_ONCE is said in `words` where the page has come to.

    The words take no place among the elements of the page. Otherwise the next rerun, which waits no more, would draw
    all below them at other places, and the browser would make it anew, amid a stroke or a drag. A click may interrupt
    the page meanwhile.
    """
    if work.done(background.AT_ONCE):
        return
    drawing = may_draw()
    with st.spinner(words) if drawing else nullcontext():
        while not work.done(LOOK):
            go_on()
            if drawing:
                st.session_state.get("page")  # Streamlit lets a click interrupt a page wherever it reads this
