"""The verdict on a reader's code, with what the gallery says of the mistake that it is called by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from transformer.checking.verdict import Verdict


@dataclass(frozen=True)
class Known:
    """A mistake of the gallery."""

    title: str
    hidden: str
    exposes: str
    mend: str
    met: str
    difference: tuple[str, ...]
    """From wrong to right, line by line, as the gallery has it."""


@dataclass(frozen=True)
class Explained(Verdict):
    """A verdict, and the mistake of the gallery that gives the same results, if there is one."""

    known: Known | None = None


def explained(said: Mapping[str, Any]) -> Explained:
    """What the process that checks has answered (transformer/checking/serving.py)."""
    known = said["gallery"]
    mistake = None if known is None else Known(**{**known, "difference": tuple(known["difference"])})
    return replace(Explained.read(said["verdict"]), known=mistake)
