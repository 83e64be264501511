"""Edits as short texts, for a link: "zero:decoder.1.self_attention.3", "swap:3,5". Positions count from 1."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from transformer.edits.base import Edit, EditError, HeadEdit
from transformer.edits.heads import AblateHead, KeepOnlyHead
from transformer.edits.patterns import ForcePattern, ScaleScores, ShiftScores
from transformer.edits.places import RemovePositions, SwapPositions
from transformer.tasks import Task

HEAD = re.compile(r"((?:encoder|decoder)\.\d{1,3}\.(?:self|cross)_attention)\.(\d{1,3})", re.ASCII)


@dataclass(frozen=True)
class ExpectPattern(HeadEdit):
    """Let a head look at the key that holds the token to be said: a wish until `resolved` knows the task and length."""

    kind: ClassVar[str] = "expected"

    def resolved(self, task: Task, length: int) -> ForcePattern:
        """The pattern itself. Raises EditError where the right key depends on the question, as in sorting."""
        up, down = np.arange(length) % task.symbols, np.arange(length)[::-1] % task.symbols
        expected = task.expected_keys(up)
        if not np.array_equal(expected, task.expected_keys(down)):
            raise EditError(f"in the task {task.name} the expected key is another for each question: paint one")
        return ForcePattern.of(expected, self.site, self.head, kind=self.kind)

    def apply(self, value):
        raise EditError(f"{self.words}: it must be resolved for a task first")

    @property
    def words(self) -> str:
        return f"{self.name} looking at the expected key"


def resolve(edits: tuple[Edit, ...], task: Task, length: int) -> tuple[Edit, ...]:
    """The edits as they are for questions of one length."""
    return tuple(edit.resolved(task, length) if isinstance(edit, ExpectPattern) else edit for edit in edits)


def edit_text(edit: Edit) -> str:
    """The short text that `parse_edit` reads. Raises EditError for edits that have none: patches and masks."""
    if isinstance(edit, RemovePositions):
        return "unplaced"
    if isinstance(edit, SwapPositions):
        return f"swap:{edit.first + 1},{edit.second + 1}"
    if not isinstance(edit, HeadEdit):
        raise EditError(f"{edit.words}: this edit does not fit into a link")
    head = f"{edit.site.rpartition('.')[0]}.{edit.head}"
    match edit:
        case AblateHead():
            return f"{edit.mode}:{head}"
        case KeepOnlyHead():
            return f"only:{head}"
        case ScaleScores():
            return f"scale:{head}:{edit.factor:.10g}"
        case ShiftScores():
            return f"shift:{head}:{edit.keys}"
        case ExpectPattern() | ForcePattern(kind="uniform" | "diagonal" | "expected"):
            return f"{edit.kind}:{head}"
        case ForcePattern():
            return f"painted:{head}:{edit.n_query}x{edit.n_key}x{edit.packed.hex()}"
    raise EditError(f"{edit.words}: this edit does not fit into a link")


def parse_edit(text: str) -> Edit:
    """Read what `edit_text` wrote. Raises EditError, a ValueError, with a sentence for anything else."""
    kind, _, rest = text.partition(":")
    if kind == "unplaced" and not rest:
        return RemovePositions()
    if kind == "swap":
        found = re.fullmatch(r"(\d{1,5}),(\d{1,5})", rest, re.ASCII)
        if not found or "0" in found.groups():
            raise EditError("a swap names two positions, as in swap:3,5")
        return SwapPositions(first=int(found[1]) - 1, second=int(found[2]) - 1)
    if kind not in HEAD_KINDS:
        raise EditError(f"there is no edit “{_tame(kind)}”: choose {', '.join(HEAD_KINDS)}, swap or unplaced")
    named, _, number = rest.partition(":")
    found = HEAD.fullmatch(named)
    if not found:
        raise EditError(f"{kind} names a head, as in {kind}:decoder.1.self_attention.3, not “{_tame(named)}”")
    if bool(number) != (kind in ("scale", "shift", "painted")):
        raise EditError(f"{kind} needs a number after the head" if not number else f"{kind} takes no number")
    return HEAD_KINDS[kind](found[1], int(found[2]), number)


def _scaled(site: str, head: int, number: str) -> Edit:
    if not re.fullmatch(r"-?\d{1,3}(\.\d{1,10})?", number, re.ASCII):
        raise EditError(f"scale needs a number such as 0.5, not “{_tame(number)}”")
    return ScaleScores(f"{site}.scores", head, float(number))


def _shifted(site: str, head: int, number: str) -> Edit:
    if not re.fullmatch(r"[+-]?\d{1,4}", number, re.ASCII):
        raise EditError(f"shift needs a whole number of keys, not “{_tame(number)}”")
    return ShiftScores(f"{site}.scores", head, int(number))


def _painted(site: str, head: int, number: str) -> Edit:
    found = re.fullmatch(r"(\d{1,3})x(\d{1,3})x([0-9a-f]*)", number, re.ASCII)
    if not found or len(found[3]) != 2 * -(-int(found[1]) * int(found[2]) // 8):
        raise EditError("a painted pattern is written as its size and its cells, as in 4x4xffff")
    return ForcePattern(f"{site}.scores", head, "painted", int(found[1]), int(found[2]), bytes.fromhex(found[3]))


HEAD_KINDS: dict[str, Callable[[str, int, str], Edit]] = {
    "zero": lambda site, head, _: AblateHead(f"{site}.z", head),
    "mean": lambda site, head, _: AblateHead(f"{site}.z", head, "mean"),
    "shuffled": lambda site, head, _: AblateHead(f"{site}.z", head, "shuffled"),
    "only": lambda site, head, _: KeepOnlyHead(f"{site}.z", head),
    "uniform": lambda site, head, _: ForcePattern(f"{site}.scores", head, "uniform"),
    "diagonal": lambda site, head, _: ForcePattern(f"{site}.scores", head, "diagonal"),
    "expected": lambda site, head, _: ExpectPattern(f"{site}.scores", head),
    "painted": _painted,
    "scale": _scaled,
    "shift": _shifted,
}
"""The edits of a head, by the word that begins their text."""


def _tame(text: str) -> str:
    """A foreign text, made safe to repeat."""
    return "".join(c for c in text if c.isalnum() or c in "._-,")[:30] or "…"
