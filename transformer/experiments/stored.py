"""Reading a measurement that was written down as JSON: from anywhere, whole or not at all. No PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformer.foundation.checks import reason
from transformer.foundation.foreign import MOST_WORDS, read_record


def read_stored(path: Path, form: str, noun: str, error: type[ValueError]) -> dict[str, Any]:
    """The values of a file whose "format" is `form`. Raises `error` with one sentence, in which it is called `noun`."""
    try:
        if path.stat().st_size > MOST_WORDS:
            raise error(f"{path.name} is too large to be a {noun}")
        values = read_record(path)
    except FileNotFoundError:
        raise error(f"there is no file {path.name}") from None
    except (OSError, ValueError) as cause:
        if isinstance(cause, error):
            raise
        raise error(f"{path.name} cannot be read: {reason(cause)}") from None
    if values.pop("format", None) != form:
        raise error(f"{path.name} is not a {noun}, or it is from another version")
    return values


def damaged(path: Path, cause: Exception) -> str:
    """The sentence for a file whose values are not those of a measurement."""
    return f"{path.name} is damaged: {reason(cause)}"
