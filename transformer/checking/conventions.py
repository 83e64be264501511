"""Conventions: the same thing written in another way. They are recognised and named, and nothing is failed for them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class MaskForm:
    """A way to write down which keys are seen."""

    words: str
    write: Callable[[Tensor], Tensor]
    """From Bool, True where a key is seen."""
    read: Callable[[Tensor], Tensor | None]
    """Back to that; None for what is written in another way."""


def _added(seen: Tensor) -> Tensor:
    return torch.zeros(seen.shape).masked_fill(~seen, -math.inf)


def _truths(mask: Tensor) -> Tensor | None:
    """A mask of truth values, or of ones and zeros, as Bool."""
    return mask.bool() if bool(((mask == 0) | (mask == 1)).all()) else None


def _from_added(mask: Tensor) -> Tensor | None:
    low = mask < -1000
    return ~low if mask.is_floating_point() and bool((low | (mask == 0)).all()) and bool(low.any()) else None


def _not(mask: Tensor | None) -> Tensor | None:
    return None if mask is None else ~mask


SEEN = MaskForm("True where a query may see a key", lambda seen: seen, _truths)
HIDDEN = MaskForm("True where a key is hidden", lambda seen: ~seen, lambda mask: _not(_truths(mask)))
ADDED = MaskForm("0 where a key is seen and −inf where it is hidden, added to the scores", _added, _from_added)
ONES = MaskForm("1 where a query may see a key, as numbers", lambda seen: seen.float(), _truths)
ZEROS = MaskForm("1 where a key is hidden, as numbers", lambda seen: (~seen).float(), lambda mask: _not(_truths(mask)))
MASK_FORMS = (SEEN, HIDDEN, ADDED, ONES, ZEROS)


@dataclass(frozen=True)
class Layout:
    """The order of the axes in which queries, keys and values are handed over, and the axes of their mask."""

    words: str
    write: Callable[[Tensor], Tensor]
    """From [batch, head, position, d_head]."""
    read: Callable[[Tensor, int, int], Tensor]
    """Back, with the numbers of sequences and of heads."""
    axes: int
    mask_axes: tuple[str, ...] = ("full", "matrix")


def _first(tensor: Tensor, batch: int, heads: int) -> Tensor:
    return tensor[None, None]


LAYOUTS = (
    Layout("[batch, head, position, d_head]", lambda x: x, lambda x, b, h: x, 4, ("full", "matrix", "batch")),
    Layout(
        "[batch, position, head, d_head]",
        lambda x: x.transpose(1, 2),
        lambda x, b, h: x.transpose(1, 2),
        4,
        ("full", "matrix", "batch"),
    ),
    Layout("[batch, position, d]", lambda x: x.flatten(0, 1), lambda x, b, h: x.unflatten(0, (b, h)), 3),
    Layout(
        "[position, batch, d]",
        lambda x: x.flatten(0, 1).transpose(0, 1),
        lambda x, b, h: x.transpose(0, 1).unflatten(0, (b, h)),
        3,
    ),
    Layout("[position, d]", lambda x: x[0, 0], _first, 2, ("matrix",)),
)


def _pairs(angle: Tensor) -> Tensor:
    return torch.cat([angle, angle], dim=-1)


ROTATIONS: tuple[Callable[[Tensor], tuple[Tensor, ...]], ...] = (
    lambda angle: (torch.polar(torch.ones_like(angle), angle),),
    lambda angle: (torch.stack([angle.cos(), angle.sin()], dim=-1),),
    lambda angle: (_pairs(angle)[None].cos(), _pairs(angle)[None].sin()),
    lambda angle: (angle.cos(), angle.sin()),
    lambda angle: (_pairs(angle).cos(), _pairs(angle).sin()),
)
"""Ways to hand over rotations, from their angles [position, pair]: complex, an axis of two, or cosines and sines."""


def laid_out(seen: Tensor, layout: Layout, axes: str, heads: int) -> Tensor | None:
    """A mask [batch, 1, query, key] with the axes that go with a layout; None where it cannot be said so."""
    if layout.axes == 2:
        return seen[0, 0]
    if axes == "matrix":
        return seen[0, 0] if bool((seen == seen[:1]).all()) else None
    if axes == "batch":
        return seen[:, 0]
    return seen if layout.axes == 4 else seen.expand(-1, heads, -1, -1).flatten(0, 1)
