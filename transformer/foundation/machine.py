"""Small files about this machine: what was measured on it once, and need not be measured again."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from transformer.foundation.atomic_files import write_whole
from transformer.foundation.foreign import DAMAGED, read_record


def folder() -> Path:
    """Where they lie: $ATTENTION_LAB_CACHE, or the user's cache."""
    given = os.environ.get("ATTENTION_LAB_CACHE")
    return Path(given) if given else user_cache_path("attention-lab")


def remember(name: str, found: dict[str, Any]) -> None:
    """Write down a record. Where nothing can be written, nothing is remembered."""
    with contextlib.suppress(OSError):
        path = folder() / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(found).encode())


def recall(name: str) -> dict[str, Any]:
    """The record of that name; empty where there is none that can be read."""
    try:
        return read_record(folder() / name)
    except (*DAMAGED, OSError):
        return {}
