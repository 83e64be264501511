"""Patterns of long inputs, downsampled to blocks that can be sent, seen and painted."""

from __future__ import annotations

import dataclasses

import numpy as np

from dashboard.components.head_grid import downsampled
from dashboard.components.painter import Squares
from transformer.analysis.findings import Attention, blocks

MOST_CELLS = 96
"""Cells on a side that are sent to the browser: more of three pictures would weigh megabytes."""


def from_afar(attention: Attention, most: int = MOST_CELLS, *, words: bool = False) -> Attention:
    """An attention over many tokens in blocks, each its strongest cell: no more than `most` on a side.

    The blocks are called by their places, or by a word in each.
    """
    factor = -(-max(attention.mask.shape) // most)
    if factor == 1:
        return attention
    rows, columns = attention.whole or attention.mask.shape
    words &= attention.factor == 1
    whole, seen = (rows, columns), np.where(attention.mask, attention.scores, -np.inf)
    return dataclasses.replace(
        attention,
        scores=np.stack([downsampled(head, factor) for head in seen]),
        mask=downsampled(attention.mask, factor),
        pattern=np.stack([downsampled(head, factor) for head in attention.pattern]),
        queries=blocks(attention.queries if words else ("",) * rows, factor * attention.factor, words=words),
        keys=blocks(attention.keys if words else ("",) * columns, factor * attention.factor, words=words),
        factor=factor * attention.factor,
        whole=whole,
    )


def squares(seen: Attention) -> Squares:
    """What is painted on an attention that is seen from afar."""
    return Squares(seen.factor, seen.queries, seen.keys)


def spans(seen: Attention) -> tuple[np.ndarray, np.ndarray] | None:
    """From which query to which each row goes and from which key to which each column, counted from 1: int [row, 2];
    None where each is one."""
    if seen.factor == 1:
        return None
    n_query, n_key = seen.whole or seen.mask.shape
    return _ranges(n_query, seen.factor), _ranges(n_key, seen.factor)


def _ranges(n: int, factor: int) -> np.ndarray:
    first = np.arange(0, n, factor)
    return np.stack([first + 1, np.minimum(first + factor, n)], axis=1)


def squares_sentence(factor: int, some: str) -> str:
    """What a square is that is more than one cell; `some` says of which its colour is between the two."""
    return (
        f"Each square is {factor} × {factor} positions. Where {some}, its colour is between the two. The brush "
        "sets all "
        "cells of the squares that it touches."
    )
