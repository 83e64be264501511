"""Which axis is which: the batch, the heads, the queries and the keys of attention that was followed.

A pattern may hold its heads in any axis, folded into the batch, or in modules of their own. What it weighed tells: in
the tensor that W_O reads, the last axis holds the parts of the heads beside each other, and another the queries.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from transformer.capturing.following import NOTHING, Axes, Root, Weighing
from transformer.capturing.products import Letters, arrange_axes

BLOCKS = "attention within {} blocks, windows or frames of the input, each a matrix of its own"
"""What attention does that runs on more sequences than the model was given."""
IN_TURNS = "its queries are taken in turns, each turn a matrix of its own"
IN_BLOCKS = "attention within blocks or windows, each a matrix of its own"
UNREAD = "what it weighs is laid out in a way that is not read"
STEPS = "values are weighed in two steps, one pattern after the other, so no single matrix says what a query reads"
WINDOW = "each place has keys of its own there, as in a window: that is no matrix over tokens"
FEATURES = "queries and keys are features, not positions: that is no matrix over tokens"
PART = -3
"""In place of a letter: which weighing it is."""


@dataclass(frozen=True)
class Layout:
    """Where each sequence has each of its heads."""

    parts: tuple[Weighing, ...]
    queries: tuple[Letters, ...]
    """Of each part the letters of its queries."""
    table: Int[np.ndarray, "batch head 2"]
    """The part that holds a head of a sequence, and its place among the groups of that part."""
    problem: str = ""
    """Why this is no matrix of queries and keys; empty where it is one."""
    is_attention: bool = True
    """Is it known that queries attend to keys, whatever the problem is?"""

    @property
    def shape(self) -> tuple[int, int]:
        """How many queries and keys each head has."""
        return _shape(self.parts[0], self.queries[0])

    @property
    def says_most(self) -> bool:
        """Is it known whole, with heads that are joined?"""
        return not self.problem and self.table.shape[1] > 1

    def groups(self, part: int) -> Letters:
        """The letters of a part that say which sequence and which head."""
        return tuple(each for each in self.parts[part].own if each not in self.queries[part])

    def matrices(
        self,
        part: int,
        tensor: Tensor,
        letters: Letters,
        rows: Letters,
        columns: Letters,
        sizes: Mapping[int, int] | None = None,
    ) -> Tensor:
        """A tensor of a part with these letters as [group, row, column]."""
        sizes = sizes or self.parts[part].sizes
        found = arrange_axes(tensor, letters, (*self.groups(part), *rows, *columns), sizes)
        one, two, three = (math.prod(sizes[each] for each in each) for each in (self.groups(part), rows, columns))
        return found.reshape(one, two, three)

    def heads(self, found: Sequence[Tensor]) -> Tensor:
        """[batch, head, row, column] of what each part has as [group, row, column]."""
        batch, heads, _ = self.table.shape
        if len(found) == 1:
            order = torch.from_numpy(self.table[..., 1].reshape(-1).copy()).to(found[0].device)
            picked = found[0] if np.array_equal(self.table[..., 1].ravel(), range(len(found[0]))) else found[0][order]
            return picked.unflatten(0, (batch, heads))
        each = [found[part][group] for part, group in self.table.reshape(-1, 2)]
        return torch.stack(each).unflatten(0, (batch, heads))


def layouts(weighings: Sequence[Weighing], batches: Sequence[tuple[int, ...]]) -> tuple[list[Layout], list[Layout]]:
    """All attention that was followed, in the order of the calls, heads that are joined as one; and its twins.

    A twin is what a pattern weighs that has weighed something before, as positions beside values.

    `batches` are the first two sizes of each tensor that the model was given.
    """
    found: list[Layout] = []
    twins: list[Layout] = []
    taken: set[Weighing] = set()
    shown: set[Root] = set()
    for weighing in weighings:
        if weighing in taken:
            continue
        layout = _laid_out(weighing, weighings, batches)
        taken.update(layout.parts)
        if weighing.root is not None and weighing.root in shown:
            twins.append(layout)
            continue
        if not layout.problem:
            shown.update(part.root for part in layout.parts if part.root is not None)
        found.append(layout)
    return found, twins


def _laid_out(weighing: Weighing, weighings: Sequence[Weighing], batches: Sequence[tuple[int, ...]]) -> Layout:
    """The reading of what was weighed that says most: where heads are joined, else where it was used, else as it is."""
    assert weighing.latest is not None
    before = _feeders(weighing, weighings) if weighing.has_queries else []
    if any(len(each.ends) == len(each.fed) == 1 and each.fed[0].has_queries for each in (weighing, *before)):
        return _without(weighing, STEPS)
    best: Layout | None = None
    for labels, axes in (*weighing.ends, (weighing.latest, None)):
        try:
            found = _read(labels, axes or ((), ()), weighing, weighings, batches, loose=axes is None)
        except (RuntimeError, ValueError, IndexError, KeyError):
            continue
        if found is None:
            continue
        if found.problem in (FEATURES, UNREAD) or (found.says_most and axes and axes[0]):
            return found
        if best is None or (bool(best.problem), not best.says_most) > (bool(found.problem), not found.says_most):
            best = found
    return best or _without(weighing, UNREAD)


def _feeders(weighing: Weighing, weighings: Sequence[Weighing]) -> list[Weighing]:
    return [each for each in weighings if weighing in each.fed]


def _without(weighing: Weighing, problem: str, *, is_attention: bool = False) -> Layout:
    is_attention = is_attention or weighing.has_queries or weighing.is_of_pairs
    return Layout((weighing,), ((),), np.zeros((0, 0, 2), dtype=int), problem, is_attention)


class _Origins:
    """Where the numbers of a tensor come from that holds results of one weighing, and perhaps of others like it."""

    def __init__(self, labels: Tensor, weighing: Weighing, weighings: Sequence[Weighing]) -> None:
        self.labels, self.weighing, self.weighings = labels, weighing, weighings
        self.starts = np.array([each.start for each in weighings])
        own = _signature(weighing)
        self.alike = np.array([_signature(each) == own for each in weighings])

    def decoded(self, labels: Tensor) -> tuple[np.ndarray, dict[int, np.ndarray]]:
        """Of labels whose weighings it is, and the places in their results by letter; of those alike only."""
        values = labels.reshape(-1).cpu().numpy()
        values = values[values != NOTHING]
        owners = np.searchsorted(self.starts, values, side="right") - 1
        values, owners = values[self.alike[owners]], owners[self.alike[owners]]
        where = np.unravel_index(values - self.starts[owners], self.weighing.result.shape)
        return owners, dict(zip(self.weighing.result_letters, where, strict=True))

    def varying(self) -> list[set[int]] | None:
        """The letters that vary along each axis, and PART where the weighing does; None where it is not in there."""
        place = self._first()
        if place is None:
            return None
        found = []
        for axis in range(self.labels.dim()):
            line = self.labels[tuple(slice(None) if each == axis else at for each, at in enumerate(place))]
            owners, where = self.decoded(line)
            first = owners == owners[0]
            moving = {letter for letter, at in where.items() if (at[first] != at[first][0]).any()}
            found.append(moving | ({PART} if not first.all() else set()))
        return found

    def split(self, letter: int, axes: Sequence[int]) -> bool:
        """Read an axis of the patterns that holds heads and queries as two, if its queries lie along one of `axes`."""
        place = self._first()
        assert place is not None
        for axis in axes:
            owners, where = self.decoded(
                self.labels[tuple(slice(None) if one == axis else at for one, at in enumerate(place))]
            )
            at, many = where[letter], self.weighing.sizes[letter]
            if len(at) != self.labels.shape[axis] or many % len(at) or (owners != owners[0]).any():
                continue
            step, heads = int(at[1] - at[0]) if len(at) > 1 else 0, many // len(at)
            if step in (1, heads) and np.array_equal(at, at[0] + step * np.arange(len(at))):
                for each in [one for one, alike in zip(self.weighings, self.alike, strict=True) if alike]:
                    each.split(letter, (heads, len(at)) if step == 1 else (len(at), heads))
                return True
        return False

    def table(self, rows: Tensor, groups: Letters) -> tuple[list[int], np.ndarray] | None:
        """The weighings in rows of labels, and [row, head, 2]: which of them, which group; None where rows differ."""
        sizes = self.weighing.sizes
        shape = [sizes[each] for each in groups]
        parts: list[int] = []
        table = []
        for row in rows:
            owners, where = self.decoded(row)
            number = np.ravel_multi_index([where[each] for each in groups], shape) if groups else 0 * owners
            pairs = owners * math.prod(shape) + number
            _, first = np.unique(pairs, return_index=True)
            order = np.sort(first)
            parts += [owner for owner in dict.fromkeys(owners[order].tolist()) if owner not in parts]
            found = zip(owners[order], number[order], strict=True)
            table.append([(parts.index(owner), group) for owner, group in found])
        if len({len(each) for each in table}) != 1 or not table[0]:
            return None
        return parts, np.array(table)

    def _first(self) -> tuple[int, ...] | None:
        """The first place that holds something of the weighing."""
        flat, start, many = self.labels.reshape(-1), self.weighing.start, self.weighing.result.numel()
        if not len(flat):
            return None
        at = 0
        if not start <= int(flat[0]) < start + many:
            at = int(((flat >= start) & (flat < start + many)).int().argmax())
        held = start <= int(flat[at]) < start + many
        return tuple(map(int, np.unravel_index(at, self.labels.shape))) if held else None


def _is_again(one: Weighing, other: Weighing) -> bool:
    """Do both weigh with the very same pattern?"""
    return one.root is not None and one.root is other.root and torch.equal(one.pattern, other.pattern)


def _signature(weighing: Weighing) -> tuple[object, ...]:
    """What two weighings have in common whose heads may stand beside each other."""
    return weighing.product.letters, weighing.result_letters, weighing.one, weighing.result.shape, weighing.keys


def _read(
    labels: Tensor,
    by_weights: Axes,
    weighing: Weighing,
    weighings: Sequence[Weighing],
    batches: Sequence[tuple[int, ...]],
    *,
    loose: bool = False,
) -> Layout | None:
    """What the axes of a tensor that holds results are, told by where its numbers come from.

    `loose` takes two axes that say which sequence or head for both, where nothing joined them.
    """
    origins = _Origins(labels, weighing, weighings)
    varies = origins.varying()
    if varies is None:
        return None
    axes = range(labels.dim())
    summed, shared = by_weights
    free = set(weighing.result_letters) - set(weighing.own)
    alone = set(weighing.alone)
    channels = {*summed, *shared} or {axis for axis in axes if varies[axis] & free}
    if not channels:
        channels = {labels.dim() - 1} if axes and not varies[-1] & alone else set()
    positions = {axis for axis in axes if axis not in channels and varies[axis] & alone}
    if len(positions) > 1 and labels.shape[min(positions)] in {shape[0] for shape in batches if shape}:
        positions -= {min(positions)}  # its sequences share their values
    folded = {each for axis in positions for other in channels for each in varies[axis] & varies[other] & alone}
    if folded:  # heads and queries are one axis of the pattern
        if not origins.split(folded.pop(), sorted(positions)):
            return _without(weighing, UNREAD)
        return _read(labels, by_weights, weighing, weighings, batches, loose=loose)
    if any(varies[axis] - alone for axis in positions):
        turns = all(varies[axis] - alone <= {PART} for axis in positions)
        return _without(weighing, IN_TURNS if turns else IN_BLOCKS)
    rest = [axis for axis in axes if axis not in channels | positions]
    others = {letter for axis in (*channels, *rest) for letter in varies[axis]}
    queries = tuple(letter for letter in weighing.own if letter in alone and letter not in others)
    if not loose and weighing.root is not None and not weighing.has_queries:
        along = [labels.shape[axis] for axis in rest if PART in varies[axis]]
        if any(size not in {shape[0] for shape in batches if shape} for size in along):
            return _without(weighing, IN_TURNS, is_attention=True)

    picked = labels[tuple(0 if axis in positions else slice(None) for axis in axes)]
    left = [axis for axis in axes if axis not in positions]
    sizes = [labels.shape[axis] for axis in rest]
    rows = picked.permute([left.index(axis) for axis in (*rest, *sorted(channels))]).reshape(math.prod(sizes), -1)
    read = origins.table(rows, tuple(each for each in weighing.own if each not in queries))
    if read is None:
        return None
    parts, found = read
    one = parts.index(weighings.index(weighing))
    if len(parts) > 1 and all(_is_again(weighings[owner], weighing) for owner in parts):
        parts, found = [parts[one]], found[:, found[0, :, 0] == one] * [0, 1]  # its values are weighed in pieces
    if loose and found.shape[1] == 1 and len(rest) > 1:
        found = found.reshape(sizes[0], -1, 2)
    elif (
        loose
        and found.shape[1] == 1
        and len(rest) == 1
        and PART in varies[rest[0]]
        and len(found) not in {shape[0] for shape in batches if shape}
    ):
        found = found.reshape(1, -1, 2)
    batch, after = found.shape[0], bool(positions) and bool(rest) and min(rest) > min(positions)
    given = {size for shape in batches for size in shape[: 1 + after]}
    problem = ""
    if any(varies[axis] & alone for axis in summed) and not any(varies[axis] & free for axis in summed):
        problem = FEATURES
    elif (not queries or (weighing.root is not None and not weighing.has_queries)) and sum(
        each > 1 for each in sizes
    ) > 1:
        problem = WINDOW
    elif batch > 1 and given and batch not in given:
        problem = BLOCKS.format(batch)
    members = tuple(weighings[owner] for owner in parts)
    return Layout(members, (queries,) * len(members), found, problem, weighing.has_queries or weighing.is_of_pairs)


def _shape(weighing: Weighing, queries: Letters) -> tuple[int, int]:
    sizes = weighing.sizes
    return math.prod(sizes[each] for each in queries), math.prod(sizes[each] for each in weighing.keys)
