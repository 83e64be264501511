"""What is shown of a followed attention: its pattern as it is used; and what is said where rows do not sum to 1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from transformer.capturing.following import NOTHING, Weighing, sums_to_one, version_of
from transformer.capturing.layouts import Layout

FORBIDDEN = -9000.0
"""A number that is added to scores, or a score, is no lower: what is was put there by a mask. Masks are written as
numbers from -10,000 (GPT) down to minus infinity."""
DIVIDED = "its exponentials are divided by something else than their sum"
ADDED = "patterns are added or subtracted between the softmax and the values"
LISTED = 8
"""Rows that are named by their numbers at most."""
CHANGED = "its weights are changed, or heads are summed, between the softmax and the values"
MIXED = "patterns, or heads, are mixed between the softmax and the values"


def seen_in(layout: Layout) -> dict[str, Tensor]:
    """The tensors [batch, head, …] of a followed attention: pattern, value, z; scores and mask if known."""
    kinds: dict[str, list[Tensor]] = {}
    for number, part in enumerate(layout.parts):
        for kind, tensor in _matrices(layout, number, part).items():
            kinds.setdefault(kind, []).append(tensor)
    return {kind: layout.heads(found) for kind, found in kinds.items() if len(found) == len(layout.parts)}


def _matrices(layout: Layout, number: int, part: Weighing) -> dict[str, Tensor]:
    queries, keys, letters = layout.queries[number], part.keys, part.product.letters[part.one]
    width = tuple(each for each in part.result_letters if each not in part.own)
    found = {}
    for kind, tensor in part.more.items():
        if kind in ("scores", "mask"):
            found[kind] = layout.matrices(number, tensor, letters, queries, keys)
        else:
            sizes, in_front = {**part.sizes, ALL: tensor.shape[-1]}, tensor.dim() - 2
            rows, own = (queries, letters[:-1]) if kind == "query" else (keys, (*letters[:in_front], letters[-1]))
            found[kind] = layout.matrices(number, tensor, (*own, ALL), rows, (ALL,), sizes)
    if (scores := _scores(part)) is not None:
        scores = layout.matrices(number, scores, letters, queries, keys)
        found["scores"] = scores
        if (low := scores <= FORBIDDEN).any():
            found["mask"] = ~low
    found["pattern"] = layout.matrices(number, part.pattern, letters, queries, keys)
    found["value"] = layout.matrices(number, part.value, part.product.letters[1 - part.one], keys, width)
    found["z"] = layout.matrices(number, part.result, part.result_letters, queries, width)
    return found


ALL = -2
"""The letter of what a query and a key are multiplied over."""


def _scores(part: Weighing) -> Tensor | None:
    """What softmax was given, laid out as the pattern is; None where it was changed since, or does not fit."""
    root = part.root
    if root is None or part.mixed or part.others or version_of(root.scores) != root.version:
        return None
    if part.labels is None:
        return root.scores.detach() if root.scores.shape == part.pattern.shape else None
    if bool((part.labels == NOTHING).any()):
        return None
    return root.scores.detach().reshape(-1)[part.labels]


def lost_to(part: Weighing, weighings: Sequence[Weighing]) -> str:
    """Why the rows of a pattern may sum to something else than 1, in words."""
    root = part.root
    if root is None:
        return ""
    if any(_meet(one.labels, part.labels) for one in part.others):
        return ADDED
    if part.mixed:
        return MIXED
    if root.exponential:
        return DIVIDED
    if part.labels is None:
        return CHANGED
    if any(each.root is root and each is not part for each in weighings):
        return "the rest of its softmax weighs something else"
    used = part.labels[part.labels != NOTHING].cpu().numpy()
    shape = tuple(root.scores.shape)
    columns = set(np.unravel_index(used, shape)[root.over].tolist())
    lost = shape[root.over] - len(columns)
    if not lost or len(used) * shape[root.over] != root.scores.numel() * len(columns):
        return CHANGED
    which = "a column that belongs" if lost == 1 else f"{lost} columns that belong"
    return f"the rest goes to {which} to no value, as to a sink"


def _meet(one: Tensor | None, other: Tensor | None) -> bool:
    """Do two softmaxes meet in one place of a pattern, by their labels? They do not where each has rows of its own."""
    return one is None or other is None or bool(((one != NOTHING) & (other != NOTHING)).any())


def remarks_on(pattern: Float[Tensor, "batch head query key"], why: str) -> Iterator[str]:
    """What is to be said of a pattern whose rows do not sum to 1: `why` that is, or what is known better."""
    exact = pattern.to(torch.promote_types(pattern.dtype, torch.float32))
    sums = exact.sum(dim=-1)
    nothing = sums.isnan().any(dim=0).any(dim=0).nonzero().flatten().tolist()
    if nothing:
        rows = ", ".join(map(str, nothing[:LISTED])) + (" …" if len(nothing) > LISTED else "")
        which = f"row {rows} is" if len(nothing) == 1 else f"rows {rows} are"
        yield f"{which} NaN, as of queries that may see no key"
    if sums_to_one(sums, pattern.dtype):
        return
    if sums_to_one(exact.sum(dim=-2), pattern.dtype):
        yield "its columns sum to 1 and its rows do not: its softmax is taken over the queries"
        return
    known = sums[~sums.isnan()]
    low, high = float(known.min()), float(known.max())
    digits = next((many for many in (2, 4) if {f"{low:.{many}f}", f"{high:.{many}f}"} != {f"{1:.{many}f}"}), 6)
    ends = dict.fromkeys(f"{each:.{digits}f}" for each in (low, high))
    yield f"its rows sum to {' to '.join(ends)}" + (f": {why}" if why else "")
