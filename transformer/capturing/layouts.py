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

from transformer.capturing.following import NOTHING, Root, Weighing
from transformer.capturing.products import ALONE, Letters

BLOCKS = "attention within {} blocks, windows or frames of the input, each a matrix of its own"
"""What attention does that runs on more sequences than the model was given."""
STEPS = "values are weighed in two steps, one pattern after the other, so no matrix over tokens is made"
WINDOW = "each place has keys of its own there, as in a window: that is no matrix over tokens"
FEATURES = "queries and keys are features, not positions: that is no matrix over tokens"


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
        found = arranged(tensor, letters, (*self.groups(part), *rows, *columns), sizes)
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


def arranged(tensor: Tensor, letters: Letters, wanted: Letters, sizes: Mapping[int, int]) -> Tensor:
    """A tensor with its axes in this order; it is spread over those that it has not."""
    for axis in reversed([axis for axis, letter in enumerate(letters) if letter == ALONE]):
        tensor = tensor.select(axis, 0)
    own = [letter for letter in letters if letter != ALONE]
    tensor = tensor.permute([own.index(letter) for letter in wanted if letter in own])
    for axis, letter in enumerate(wanted):
        if letter not in own:
            tensor = tensor.unsqueeze(axis)
    return tensor.expand([sizes[letter] for letter in wanted])


def layouts(weighings: Sequence[Weighing], batches: Sequence[tuple[int, ...]]) -> list[Layout]:
    """All attention that was followed, in the order of the calls; heads that are joined are one.

    `batches` are the first two sizes of each tensor that the model was given.
    """
    found: list[Layout] = []
    taken: set[Weighing] = set()
    shown: set[Root] = set()
    for weighing in weighings:
        if weighing in taken or (weighing.root is not None and weighing.root in shown):
            continue
        layout = _laid_out(weighing, weighings, batches)
        taken.update(layout.parts)
        if not layout.problem:
            shown.update(part.root for part in layout.parts if part.root is not None)
        found.append(layout)
    return found


def _laid_out(weighing: Weighing, weighings: Sequence[Weighing], batches: Sequence[tuple[int, ...]]) -> Layout:
    """The reading of what was weighed that says most: where heads are joined, else where it was used, else as it is."""
    assert weighing.latest is not None
    if any(len(each.ends) == len(each.fed) == 1 for each in (weighing, *_feeders(weighing, weighings))):
        return _without(weighing, STEPS)
    read = [(_read(labels, axes, weighing, weighings, batches), bool(axes)) for labels, axes in weighing.ends]
    read.append((_read(weighing.latest, (), weighing, weighings, batches, loose=True), True))
    known = [(each, used) for each, used in read if each is not None]
    if not known:
        return _without(weighing, "what it weighs is laid out in a way that is not read")
    features = next((each for each, _ in known if each.problem == FEATURES), None)
    return features or min(known, key=lambda each: (each[0].problem != "", each[0].table.shape[1] <= 1, not each[1]))[0]


def _feeders(weighing: Weighing, weighings: Sequence[Weighing]) -> list[Weighing]:
    return [each for each in weighings if weighing in each.fed]


def _without(weighing: Weighing, problem: str) -> Layout:
    return Layout((weighing,), ((),), np.zeros((0, 0, 2), dtype=int), problem, weighing.has_queries)


def _read(
    labels: Tensor,
    summed: Letters,
    weighing: Weighing,
    weighings: Sequence[Weighing],
    batches: Sequence[tuple[int, ...]],
    *,
    loose: bool = False,
) -> Layout | None:
    """What the axes of a tensor that holds results are, told by where its numbers come from.

    `loose` takes two axes that say which sequence or head for both, where nothing joined them.
    """
    starts = np.array([each.start for each in weighings])
    like = (weighing.product.letters, weighing.product.result, weighing.one, weighing.keys)
    place = _first(labels, weighing)
    if place is None:
        return None

    alike = [(each.product.letters, each.product.result, each.one, each.keys) == like for each in weighings]

    def origins(values: np.ndarray) -> list[tuple[int, dict[int, int]]]:
        pairs = zip(np.searchsorted(starts, values, side="right") - 1, values, strict=True)
        return [(int(owner), _coordinates(weighings[owner], int(value))) for owner, value in pairs if alike[owner]]

    varies: list[set[int | str]] = []
    for axis in range(labels.dim()):
        line = labels[tuple(slice(None) if each == axis else place[each] for each in range(labels.dim()))]
        along = origins(line[line != NOTHING].cpu().numpy())
        owners = {owner for owner, _ in along}
        within = [each for owner, each in along if owner == along[0][0]]
        moving = {letter for letter in within[0] if len({each[letter] for each in within}) > 1}
        varies.append(moving | ({"part"} if len(owners) > 1 else set()))

    free = set(weighing.result_letters) - set(weighing.own)
    alone = set(weighing.alone)
    channels = set(summed) or {axis for axis, moving in enumerate(varies) if moving & free}
    if not channels:
        channels = {labels.dim() - 1} if labels.dim() and not varies[-1] & alone else set()
    positions = {axis for axis, moving in enumerate(varies) if axis not in channels and moving & alone}
    if len(positions) > 1 and labels.shape[min(positions)] in {shape[0] for shape in batches if shape}:
        positions -= {min(positions)}  # its sequences share their values
    rest = [axis for axis in range(labels.dim()) if axis not in channels | positions]
    for axis in positions:
        if varies[axis] - alone:
            return _without(weighing, "attention within blocks or windows, each a matrix of its own")
    others = {letter for axis in (*channels, *rest) for letter in varies[axis]}
    queries = tuple(letter for letter in weighing.own if letter in alone and letter not in others)

    picked = labels[tuple(0 if axis in positions else slice(None) for axis in range(labels.dim()))]
    left = [axis for axis in range(labels.dim()) if axis not in positions]
    order = [left.index(axis) for axis in (*rest, *sorted(channels))]
    sizes = [labels.shape[axis] for axis in rest]
    rows = picked.permute(order).reshape(math.prod(sizes), -1).cpu().numpy()
    table = []
    parts: dict[int, int] = {}
    for row in rows:
        groups: dict[tuple[int, int], None] = {}
        for owner, where in origins(row[row != NOTHING]):
            one = weighings[owner]
            own = tuple(letter for letter in one.own if letter not in queries)
            group = 0
            for letter in own:
                group = group * one.sizes[letter] + where[letter]
            groups[parts.setdefault(owner, len(parts)), group] = None
        table.append(list(groups))
    if len({len(each) for each in table}) != 1:
        return None
    found = np.array(table).reshape(len(table), -1, 2)
    if loose and found.shape[1] == 1 and len(rest) > 1:
        found = found.reshape(sizes[0], -1, 2)
    elif loose and found.shape[1] == 1 and len(rest) == 1 and "part" in varies[rest[0]]:
        found = found.reshape(1, -1, 2)
    members = tuple(weighings[owner] for owner in parts)
    if any(_shape(each, queries) != _shape(weighing, queries) for each in members):
        return None
    batch, after = found.shape[0], bool(positions) and bool(rest) and min(rest) > min(positions)
    given = {size for shape in batches for size in shape[: 1 + after]}
    problem = ""
    several = [axis for axis in rest if labels.shape[axis] > 1]
    if any(varies[axis] & alone and not varies[axis] & free for axis in summed):
        problem = FEATURES
    elif (not queries and (labels.dim() > 2 or len(weighing.own) > 2)) or (
        weighing.root is not None and not weighing.has_queries and len(several) > 1
    ):
        problem = WINDOW
    elif batch > 1 and given and batch not in given:
        problem = BLOCKS.format(batch)
    return Layout(members, (queries,) * len(members), found, problem, weighing.has_queries)


def _first(labels: Tensor, weighing: Weighing) -> tuple[int, ...] | None:
    """The first place that holds something of a result."""
    flat = labels.reshape(-1)
    if not len(flat):
        return None
    held = (flat >= weighing.start) & (flat < weighing.start + weighing.result.numel())
    at = int(held.int().argmax())
    return tuple(map(int, np.unravel_index(at, labels.shape))) if held[at] else None


def _coordinates(weighing: Weighing, label: int) -> dict[int, int]:
    where = np.unravel_index(label - weighing.start, weighing.result.shape)
    return dict(zip(weighing.result_letters, map(int, where), strict=True))


def _shape(weighing: Weighing, queries: Letters) -> tuple[int, int]:
    sizes = weighing.sizes
    return math.prod(sizes[each] for each in queries), math.prod(sizes[each] for each in weighing.keys)
