"""The ways of information through the layers: every path from a token to one output, and the layers it takes.

A path goes up one layer at a time, along the mask or straight on (the residual path); in an encoder-decoder it may
start in the source, and cross over from the encoder's output into any layer of the decoder. No PyTorch, no model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from transformer.analysis.accuracy.ceilings import masks_of
from transformer.masks import Mask
from transformer.tasks import Task

Matrix = Bool[np.ndarray, "query key"]


@dataclass(frozen=True)
class Column:
    """The places of one stack at one layer boundary: 0 is what is read, L what the last layer leaves."""

    stack: str
    """ "source" (the encoder of an encoder-decoder) or "tokens" (the stack that predicts)."""
    layer: int
    leads: Bool[np.ndarray, "place"]
    """Does a path go on from here to the output?"""
    carries: Bool[np.ndarray, "place"]
    """Can what the output needs have arrived here?"""


@dataclass(frozen=True)
class Link:
    """The steps of all paths to the output between two columns."""

    start: int
    end: int
    """Which columns."""
    attention: Bool[np.ndarray, "to from_"]
    """Steps along a mask, from another place or, across the stacks, from any."""
    straight: Bool[np.ndarray, "to from_"]
    """Steps along the residual path; none across the stacks."""


@dataclass(frozen=True)
class Flow:
    """All paths that end at one output."""

    columns: tuple[Column, ...]
    links: tuple[Link, ...]

    @property
    def arrives(self) -> bool:
        """Does anything that the output needs reach it?"""
        last = self.columns[-1]
        return bool((last.leads & last.carries).any())


def flow(
    mask: Bool[np.ndarray, "target target"],
    n_layers: int,
    target: int,
    needed: Bool[np.ndarray, "slot"],
    *,
    cross: Bool[np.ndarray, "target source"] | None = None,
    source: Bool[np.ndarray, "source source"] | None = None,
) -> Flow:
    """The paths to `target`, counted from 0; `needed` marks the slots (source, then tokens) that it needs one of.

    Whether something carries what is needed is followed upwards, whether something leads to the target downwards.
    """
    width = 0 if cross is None else cross.shape[1]
    stacks = [("tokens", _step(mask), needed[width:])]
    if cross is not None and source is not None:
        stacks.insert(0, ("source", _step(source), needed[:width]))
    names = [(name, layer) for name, _, _ in stacks for layer in range(n_layers + 1)]
    number = {name: index for index, name in enumerate(names)}
    hops: dict[tuple[int, int], Matrix] = {}
    for name, step, _ in stacks:
        hops |= {(number[name, layer], number[name, layer + 1]): step for layer in range(n_layers)}
    if cross is not None:
        read = number["source", n_layers]
        hops |= {(read, number["tokens", layer]): cross for layer in range(1, n_layers + 1)}

    carries = [np.zeros(len(step), dtype=bool) for _, step, _ in stacks for _ in range(n_layers + 1)]
    leads = [found.copy() for found in carries]
    for name, _, slots in stacks:
        carries[number[name, 0]] = slots.copy()
    leads[-1][target] = True
    for (start, end), step in sorted(hops.items(), key=lambda hop: hop[0][1]):
        carries[end] |= (step & carries[start]).any(axis=1)
    for (start, end), step in sorted(hops.items(), key=lambda hop: -hop[0][1]):
        leads[start] |= (step & leads[end][:, None]).any(axis=0)
    columns = tuple(Column(*name, leads[i], carries[i]) for i, name in enumerate(names))
    links = tuple(_link(start, end, step & leads[end][:, None], names) for (start, end), step in hops.items())
    return Flow(columns, links)


def _link(start: int, end: int, steps: Matrix, names: list[tuple[str, int]]) -> Link:
    """Residual steps told from the others; where a query may also see itself, the step counts as straight."""
    straight = np.zeros_like(steps)
    if names[start][0] == names[end][0]:
        np.fill_diagonal(straight, True)
    return Link(start, end, steps & ~straight, steps & straight)


def _step(mask: Matrix) -> Matrix:
    return mask | np.eye(len(mask), dtype=bool)


def flow_of_mask(task: Task, mask: Mask | Matrix, n_layers: int, length: int, target: int) -> Flow:
    """The paths to one output of a task when every layer of the predicting stack has this mask."""
    matrix, cross, source = masks_of(task, mask, length)
    return flow(matrix, n_layers, target, needed_by(task, length)[target], cross=cross, source=source)


def least_layers(task: Task, mask: Mask | Matrix, length: int, target: int) -> int:
    """How many layers what a target needs takes at least to arrive; 0: it stands there; -1: it never does.

    Of a target that needs all of the question, the layers until the last of it arrives.
    """
    needed, slots = needed_by(task, length)[target], task.symbols_of_slots(length)
    symbol = task.symbols_of_targets(length)[target]
    whole = needed & (slots < length) if symbol >= length else None
    for layers, here in enumerate(_arriving(*masks_of(task, mask, length), target)):
        everything = whole is not None and not (whole & ~here).any()
        if symbol < 0 or everything or (here & (slots == symbol)).any():
            return layers
    return -1


def _arriving(
    mask: Matrix,
    cross: Bool[np.ndarray, "target source"] | None,
    source: Bool[np.ndarray, "source source"] | None,
    target: int,
) -> Iterator[Bool[np.ndarray, "slot"]]:
    """What can have reached one target after 0, 1, 2, … layers, as long as more arrives: see `ceilings.reachable`.

    A row at a time, so that hundreds of layers cost no more than a few of all targets.
    """
    step = (mask | np.eye(len(mask), dtype=bool)).astype(np.float32)
    tokens = np.arange(len(mask)) == target
    cross = np.zeros((len(mask), 0), dtype=bool) if cross is None else cross
    source = np.zeros((0, 0), dtype=bool) if source is None else source
    encoded, heard = np.eye(len(source), dtype=bool), np.zeros(len(source), dtype=bool)
    while True:
        yield np.concatenate([heard @ encoded, tokens])
        wider = tokens @ step > 0, heard | (tokens @ cross), encoded | (encoded @ source)
        if all(np.array_equal(new, old) for new, old in zip(wider, (tokens, heard, encoded), strict=True)):
            return
        tokens, heard, encoded = wider


def needed_by(task: Task, length: int) -> Bool[np.ndarray, "target slot"]:
    """The slots that bear on each target: those that carry its symbol; none where its position alone decides.

    Where no place of the question carries it (sorting), all of the question does.
    """
    slots, targets = task.symbols_of_slots(length), task.symbols_of_targets(length)
    needed = (slots[None, :] == targets[:, None]) & (targets >= 0)[:, None]
    return needed | ((targets >= length)[:, None] & ((slots >= 0) & (slots < length))[None, :])
