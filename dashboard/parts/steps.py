"""A computation step by step: what a step is, its table of numbers, its line of code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import streamlit as st

from dashboard.components.origin import Maker
from dashboard.components.plot import coloured, plot
from dashboard.components.sheet import Axis, Series, sheet
from dashboard.figures.dot_products import growth_panels
from dashboard.figures.html.number_table import Block, Label, number_table
from dashboard.figures.html.step_strip import Shape, code_excerpt, shape_line
from dashboard.figures.kit.numbers import written
from dashboard.models.walks.by_hand import measured
from dashboard.parts.prose import code_around
from dashboard.server.streamlit_private import DeltaGenerator


@dataclass(frozen=True)
class Stage:
    """A step: its title, its symbol in the strip, its formula in LaTeX."""

    title: str
    symbol: str
    formula: str
    code: tuple[str, str]
    """The function, and what marks the line in it."""


@dataclass(frozen=True)
class Table:
    """The arguments of a `number_table`, and what it leaves out, in words."""

    labels: Sequence[Label]
    blocks: Sequence[Block]
    axis: str | None = "key"
    note: str = ""

    def series(self) -> list[Series]:
        """The numbers that its blocks round, in full; of a block without numbers there is nothing to save yet."""
        places = np.array([np.nan if label.place is None else label.place for label in self.labels])
        rows = Axis(self.axis or "row", places, tuple(label.text for label in self.labels))
        return [
            Series(block.name, block.values, (rows, Axis("column", np.arange(len(block.headings)), block.headings)))
            for block in self.blocks
            if block.values is not None
        ]

    def draw(self, *, key: str, says: str, makers: Sequence[Maker] | None = None) -> None:
        """Show it, with the button that saves its numbers. `says` is its sentence."""
        markup = coloured(number_table, self.labels, self.blocks, axis=self.axis, spoken=says)
        sheet(markup, self.series(), key=key, alt=says, note=self.note, makers=makers)
        if self.note:
            st.caption(self.note)


def draw_words(formula: str, words: str) -> None:
    """What a step computes, as LaTeX, and beside it what that is for these numbers."""
    _, beside = draw_formula(formula, "content")
    beside.markdown(words)


def draw_formula(formula: str, width: int | Literal["content"]) -> tuple[DeltaGenerator, DeltaGenerator]:
    """What a step computes, as LaTeX. Returns its column, `width` pixels wide, and the one beside it."""
    with st.container(horizontal=True, vertical_alignment="center", gap="medium", key="beside-formula"):
        column, beside = st.container(width=width), st.container()
    column.markdown(f"$\\displaystyle {formula}$", width="content")
    return column, beside


def draw_code(shapes: Sequence[Shape], code: tuple[str, str]) -> None:
    """The shapes that meet in a step, and the line of code that takes it: its function, and what marks the line."""
    st.html(coloured(shape_line, shapes))
    draw_line(code)


def draw_line(code: tuple[str, str]) -> None:
    """A line of code between its neighbours: its function, and what marks the line."""
    name, mark = code
    st.html(coloured(code_excerpt, name.partition(":")[2], *code_around(name, mark)))


def number_block(
    name: str,
    headings: tuple[str, ...],
    rows: np.ndarray,
    *,
    digits: int = 3,
    share: bool = False,
    plain: bool = False,
    present: bool = False,
    axis: str | None = None,
) -> Block:
    """Columns of numbers: of either sign, or shares from 0 to 1, or on the page's own ground if `plain`."""
    texts = tuple(tuple(written(float(value), digits) for value in row) for row in rows)
    empty = not any("".join(row) for row in texts)
    ground = np.full(rows.shape, np.nan) if plain else rows.astype(np.float64) if share else shades(rows)
    return Block(
        headings,
        texts,
        ground,
        signed=not share,
        present=present,
        strong=present,
        axis=axis,
        name=name,
        values=None if empty else rows,
    )


def shades(values: np.ndarray) -> np.ndarray:
    """Values from -1 to 1: shares of the one that is farthest from 0."""
    limit = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    return values.astype(np.float64) / limit


def why_divided(height: int = 330) -> None:
    """Why scores are divided by √d: the measured growth of dot products, as a picture and in words."""
    found = measured()
    d, most = int(found.widths[-1]), len(found.widths) - 1
    said = (
        f"At d = {d} the standard deviation of q · k is {found.spread[most]:.2f}, and √{d} = {found.law[most]:.2f}. "
        f"The largest of {found.keys} weights is {found.largest[most]:.2f} on average, and "
        f"{found.largest_scaled[most]:.2f} if the scores are divided by √d first."
    )
    st.markdown(
        "**Why √d**: wider vectors have larger dot products, and the softmax then puts nearly all weight on one key"
    )
    figure = coloured(
        growth_panels, found.widths, found.spread, found.law, (found.largest, found.largest_scaled), found.keys
    )
    plot(figure, key="growth", alt=said, height=height, makers=[Maker("random vectors, seed 0", 0)])
    st.caption(
        f"{said} Each point: {found.draws:,} random queries with {found.keys} random keys each, all numbers with "
        "mean 0 and variance 1. A weight near 1 leaves a gradient near 0."
    )
