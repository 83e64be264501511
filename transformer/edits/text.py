"""Edits as short texts, for a link: "zero:decoder.1.self_attention.3", "swap:3,5", "places-shift:2".

Positions count from 1.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import quote, unquote

import numpy as np
from jaxtyping import Bool

from transformer.edits.base import Edit, EditError, HeadEdit
from transformer.edits.heads import AblateHead, KeepOnlyHead
from transformer.edits.patterns import ForcePattern, ScaleScores, ShiftScores
from transformer.edits.places import RemovePositions, ShiftPositions, ShufflePositions, SwapPositions, TurnPositions
from transformer.edits.wishes import ExpectPattern, PatchInput, PatchStep
from transformer.foundation import packed_cells

SYMBOLS = re.compile(r"[0-9a-z](_[0-9a-z]){0,499}", re.ASCII)
QUOTED = re.compile(r"=[\w.%-]{1,9000}", re.ASCII)
"""How the input of a patch is written: symbol by symbol, or a passage with percent signs as in an address."""
HEAD = re.compile(r"((?:encoder|decoder)\.\d{1,3}\.(?:self|cross)_attention)\.(\d{1,3})", re.ASCII)


def edit_text(edit: Edit) -> str:
    """The short text that `parse_edit` reads. Raises EditError where there is none: masks, patches of tensors."""
    match edit:
        case RemovePositions():
            return "unplaced"
        case SwapPositions():
            return f"swap:{edit.first + 1},{edit.second + 1}"
        case TurnPositions():
            return f"places-turn:{edit.by}"
        case ShiftPositions():
            return f"places-shift:{edit.by}"
        case ShufflePositions():
            return f"places-shuffle:{edit.seed}"
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
        case PatchInput():
            symbols = edit.typed.replace(" ", "_")
            return f"{edit.kind}:{head}:{symbols if SYMBOLS.fullmatch(symbols) else _quoted(edit.typed)}"
        case PatchStep():
            return f"{edit.kind}:{head}:{edit.step}"
        case ForcePattern():
            return f"painted:{head}:{pattern_text(edit.chosen)}"
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
    if kind in PLACE_KINDS:
        if not re.fullmatch(r"[+-]?\d{1,4}" if kind != "places-shuffle" else r"\d{1,9}", rest, re.ASCII):
            raise EditError(f"{kind} needs a whole number, not “{_tame(rest)}”")
        return PLACE_KINDS[kind](int(rest))
    if kind not in HEAD_KINDS:
        raise EditError(
            f"there is no edit “{_tame(kind)}”: choose {', '.join((*HEAD_KINDS, *PLACE_KINDS))}, swap or unplaced"
        )
    named, _, number = rest.partition(":")
    found = HEAD.fullmatch(named)
    if not found:
        raise EditError(f"{kind} names a head, as in {kind}:decoder.1.self_attention.3, not “{_tame(named)}”")
    if bool(number) != (kind in MORE):
        more = MORE.get(kind)
        raise EditError(f"{kind} needs {more} after the head" if more else f"{kind} takes nothing after the head")
    return HEAD_KINDS[kind](found[1], int(found[2]), number)


def _scaled(site: str, head: int, number: str) -> Edit:
    if not re.fullmatch(r"-?\d{1,3}(\.\d{1,10})?", number, re.ASCII):
        raise EditError(f"scale needs a number such as 0.5, not “{_tame(number)}”")
    return ScaleScores(f"{site}.scores", head, float(number))


def _shifted(site: str, head: int, number: str) -> Edit:
    if not re.fullmatch(r"[+-]?\d{1,4}", number, re.ASCII):
        raise EditError(f"shift needs a whole number of keys, not “{_tame(number)}”")
    return ShiftScores(f"{site}.scores", head, int(number))


def pattern_text(chosen: Bool[np.ndarray, "query key"]) -> str:
    """A painted pattern as a text: its size, "x" and its cells as hexadecimal digits; of many queries "z" and the cells
    as `transformer.foundation.packed_cells` writes them."""
    n_query, n_key = chosen.shape
    written = (
        f"x{packed_cells.packed(chosen).hex()}" if n_query <= packed_cells.PLAIN else f"z{packed_cells.written(chosen)}"
    )
    return f"{n_query}x{n_key}{written}"


def _painted(site: str, head: int, number: str) -> Edit:
    found = re.fullmatch(r"([1-9]\d{0,2})x([1-9]\d{0,2})(?:x([0-9a-f]*)|z([\w-]*))", number, re.ASCII)
    if not found:
        raise EditError("a painted pattern is written as its size and its cells, as in 4x4xffff")
    n_query, n_key = int(found[1]), int(found[2])
    if found[4] is not None:
        try:
            return ForcePattern.of(packed_cells.read(found[4], n_query, n_key), f"{site}.scores", head)
        except ValueError as error:
            raise EditError(f"this is no painted pattern of {n_query} × {n_key}: {error}") from None
    if len(found[3]) != 2 * packed_cells.size(n_query, n_key):
        raise EditError("a painted pattern is written as its size and its cells, as in 4x4xffff")
    return ForcePattern(f"{site}.scores", head, "painted", n_query, n_key, bytes.fromhex(found[3]))


def _from_input(site: str, head: int, typed: str) -> Edit:
    if QUOTED.fullmatch(typed):
        return PatchInput(f"{site}.z", head, unquote(typed[1:]))
    if not SYMBOLS.fullmatch(typed):
        raise EditError(f"patch-input needs an input such as 3_1_4, or a passage as in =To%20be, not “{_tame(typed)}”")
    return PatchInput(f"{site}.z", head, typed.replace("_", " "))


def _quoted(passage: str) -> str:
    """A passage with nothing in it that means something between edits."""
    return f"={quote(passage, safe='').replace('~', '%7E')}"


def _from_step(site: str, head: int, step: str) -> Edit:
    if not re.fullmatch(r"0|[1-9]\d{0,7}", step, re.ASCII):
        raise EditError(f"patch-step needs a step such as 20, not “{_tame(step)}”")
    return PatchStep(f"{site}.z", head, int(step))


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
    "patch-input": _from_input,
    "patch-step": _from_step,
}
"""The edits of a head, by the word that begins their text."""
PLACE_KINDS: dict[str, Callable[[int], Edit]] = {
    "places-shift": lambda number: ShiftPositions(by=number),
    "places-turn": lambda number: TurnPositions(by=number),
    "places-shuffle": lambda number: ShufflePositions(seed=number),
}
"""The edits of all positions, by the word that begins their text; one number follows."""
MORE = {
    "scale": "a number",
    "shift": "a number",
    "painted": "a size and cells",
    "patch-input": "an input",
    "patch-step": "a step",
}
"""What stands behind the head, for the edits that need more."""


def _tame(text: str) -> str:
    """A foreign text, made safe to repeat."""
    return "".join(c for c in text if c.isalnum() or c in "._-,")[:30] or "…"
