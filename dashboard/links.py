"""Reads a link: a URL's parameters as the view that they describe, and what of them cannot be used."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from dashboard.settings import LIMITS, LONGER, MAX_TEXT, Settings

PASSAGES = ("input", "against", "other", "prompt")
"""What may be a stretch of a text, with whatever kinds of blanks it has."""


def from_query(query: Mapping[str, str]) -> tuple[Settings, list[str]]:
    """Read a URL's parameters. What cannot be used is left at its default and named in the notices."""
    values: dict[str, object] = {}
    notices = []
    kinds = {field.name: field for field in dataclasses.fields(Settings)}
    for name, text in query.items():
        if name not in kinds:
            notices.append(f"The link's “{_short(name)}” means nothing here and was left out.")
            continue
        try:
            values[name] = _read(name, str(kinds[name].type), text)
        except ValueError:
            notices.append(f"The link's {name}={_short(text)} cannot be used; the default stands instead.")
    return Settings(**values), notices  # type: ignore[arg-type]


def _read(name: str, kind: str, text: str) -> object:
    if kind == "bool":
        if text not in ("0", "1"):
            raise ValueError(text)
        return text == "1"
    if kind.startswith(("int", "float")):
        low, high = LIMITS.get(name, (1, 65_536))
        value = float(text) if kind == "float" else int(text)
        if not low <= value <= high:
            raise ValueError(text)
        return value
    readable = text.isprintable() or (name in PASSAGES and all(c.isprintable() or c.isspace() for c in text))
    if len(text) > (LONGER.get(name, MAX_TEXT)) or not readable:
        raise ValueError(text)
    return text


def _short(text: str) -> str:
    """A foreign text, made safe to repeat in a notice."""
    kept = "".join(c for c in text if c.isalnum() or c in " .,-_:")[:30]
    return kept or "…"
