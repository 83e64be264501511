"""Fields of the view: what each may be, said where it is declared, and how a link's words are read as one.

A field's name is its name in links, in widgets and in `session.update`. Its values are switches, numbers and texts.

Links are read by hand: Streamlit binds a parameter to a widget, and most of a view has none; a library that checks
records (pydantic) would refuse a whole link for one bad value.
"""

from __future__ import annotations

import dataclasses
from typing import Any

MOST_SEED = 2**31 - 1
LONG_TEXT, MANY_CELLS = 8192, 12_000
"""Letters of an input of thousands of symbols, and of what was painted. A server takes an address of 64 kB."""


def number_field(default: float | None, low: float = 1, high: float = 65_536, *, of_model: bool = False) -> Any:
    """A field that is a number, and its limits. One `of_model` means nothing in another model."""
    return dataclasses.field(default=default, metadata={"limits": (low, high), "of_model": of_model})


def text_field(default: str = "", *, longest: int = 200, passage: bool = False, of_model: bool = False) -> Any:
    """A field that is a text, and the most letters of it. A `passage` may have line ends and blanks of any kind."""
    metadata = {"longest": longest, "passage": passage, "of_model": of_model}
    return dataclasses.field(default=default, metadata=metadata)


def words_of_limits(field: dataclasses.Field[Any]) -> str:
    """What a field may be in a link, in words: "a whole number from 1 to 32"."""
    kind, known = str(field.type), field.metadata
    if kind == "bool":
        return "0 or 1"
    if "limits" in known:
        low, high = known["limits"]
        number = "number" if kind.startswith("float") else "whole number"
        return f"a {number} from {in_link(low)} to {in_link(high)}"
    return f"a text of at most {known['longest']} {'letters' if known['passage'] else 'printable letters'}"


def in_link(value: object) -> str:
    """A value of the view as a link has it; empty for none."""
    if isinstance(value, bool):
        return str(int(value))
    return f"{value:.10g}" if isinstance(value, float) else "" if value is None else str(value)


def read(field: dataclasses.Field[Any], text: str) -> object:
    """A field's value, as a URL has it. Raises ValueError for one that it cannot have."""
    kind, known = str(field.type), field.metadata
    if kind == "bool":
        if text not in ("0", "1"):
            raise ValueError(text)
        return text == "1"
    if "limits" in known:
        low, high = known["limits"]
        value = float(text) if kind.startswith("float") else int(text)
        if not low <= value <= high:
            raise ValueError(text)
        return value
    readable = text.isprintable() or (known["passage"] and all(c.isprintable() or c.isspace() for c in text))
    if len(text) > known["longest"] or not readable:
        raise ValueError(text)
    return text
