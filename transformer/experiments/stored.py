"""Reading a measurement that was written down as JSON: from anywhere, whole or not at all. No PyTorch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

LARGEST = 4_000_000
"""Bytes of a file that is read: a whole measurement has some 30,000."""


def read_stored(path: Path, form: str, noun: str, error: type[ValueError]) -> dict[str, Any]:
    """The values of a file whose "format" is `form`. Raises `error` with one sentence, in which it is called `noun`."""
    try:
        if path.stat().st_size > LARGEST:
            raise error(f"{path.name} is too large to be a {noun}")
        values = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise error(f"there is no file {path.name}") from None
    except (OSError, ValueError, RecursionError) as cause:
        if isinstance(cause, error):
            raise
        raise error(f"{path.name} cannot be read: it is not JSON") from None
    if not isinstance(values, dict) or values.pop("format", None) != form:
        raise error(f"{path.name} is not a {noun}, or it is from another version")
    return values


def damaged(path: Path, cause: Exception) -> str:
    """The sentence for a file whose values are not those of a measurement."""
    return f"{path.name} is damaged: {' '.join(str(cause).split())[:120]}"
