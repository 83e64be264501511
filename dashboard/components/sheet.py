"""Shows HTML in the page and lets it be saved as the figures are: its picture as it is laid out, its exact numbers.

The HTML is drawn by st.html, at once and without a script; the component beside it is the button alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import streamlit as st

from dashboard.components.origin import Maker
from dashboard.components.payload import Body, pack
from dashboard.components.registration import renderer

HTML = '<div class="al-sheet"></div>'
DTYPES = {"b": "|b1", "f4": "<f4", "f8": "<f8", "i": "<i4", "U": "<U"}
"""How a kind of array, or a kind and its bytes, is called in what is saved."""


@dataclass(frozen=True, eq=False)
class Axis:
    """What runs along a side of an array."""

    name: str
    places: np.ndarray
    """int or float [entry], as they are counted on the screen; nan for an entry without a place, such as a sum."""
    tokens: tuple[str, ...] | None = None


@dataclass(frozen=True, eq=False)
class Series:
    """An array of numbers, truths or texts, as it is to be saved."""

    name: str
    values: np.ndarray
    axes: tuple[Axis, ...]
    """One for each dimension of the values, in order."""
    beside: Mapping[str, np.ndarray] = field(default_factory=dict)
    """What else is known of each value, by name, in arrays of the same shape."""


def sheet(
    markup: str,
    series: Sequence[Series],
    *,
    key: str,
    alt: str,
    note: str = "",
    makers: Sequence[Maker] | None = None,
) -> None:
    """Show `markup`, HTML of our own making, with the button that saves it; its numbers are `series`.

    `alt` says in a sentence what is to be seen and `note` what must be known of the numbers; both go into the files
    only. `makers` are named there where they are others than the page's.
    """
    with st.container(key=key, gap=None):
        st.html(markup)
        mount = renderer("sheet", html=HTML, isolate_styles=False)  # for it shows when the pointer is on the HTML
        mount(key=f"sheet-{key}", data=pack_sheet(series, key=key, alt=alt, note=note, makers=makers))


def pack_sheet(
    series: Sequence[Series], *, key: str, alt: str, note: str = "", makers: Sequence[Maker] | None = None
) -> bytes:
    """The message for the browser: numbers to the last bit in the body, texts in the header."""
    if not alt.strip():
        raise ValueError("A sheet needs alt: one sentence that says in words what it shows.")
    body = Body()
    header: dict[str, Any] = {
        "key": key,
        "alt": alt,
        "note": note,
        "makers": None if makers is None else [asdict(maker) for maker in makers],
        "series": [_packed(each, body) for each in series],
    }
    return pack(header, bytes(body.data))


def _packed(series: Series, body: Body) -> dict[str, Any]:
    """A series as web/takeaway/series.js has it."""
    shape = tuple(len(axis.places) for axis in series.axes)
    for name, values in {series.name: series.values, **series.beside}.items():
        if values.shape != shape:
            raise ValueError(f"{name} is {list(values.shape)}, its axes are {list(shape)}.")
    for axis in series.axes:
        if axis.tokens is not None and len(axis.tokens) != len(axis.places):
            raise ValueError(f"{len(axis.tokens)} tokens for the {len(axis.places)} places of {axis.name}.")
    column = "text" if series.values.dtype.kind == "U" else "value"  # numbers and texts do not mix in a column
    return {
        "name": series.name,
        "dims": [
            {"name": axis.name, "at": _column(axis.name, axis.places, body), "tokens": axis.tokens}
            for axis in series.axes
        ],
        "values": _column(column, series.values, body),
        "extra": [_column(name, values, body) for name, values in series.beside.items()],
    }


def _column(name: str, values: np.ndarray, body: Body) -> dict[str, Any]:
    """An array with its data: texts as they are, numbers as their place in the body."""
    kind = values.dtype.kind
    dtype = DTYPES.get(kind) or DTYPES[f"{kind}{values.dtype.itemsize}"]
    if dtype == "<U":
        return {"name": name, "dtype": dtype, "data": values.ravel().tolist()}
    numbers = np.ascontiguousarray(values, dtype=dtype)
    return {"name": name, "dtype": dtype, "count": numbers.size, "offset": body.add(numbers.tobytes())}
