"""The steps inside a head, one after the other, as numbers: tables, thumbnails and shapes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dashboard.figures.number_table import Block, Label, written
from dashboard.figures.step_strip import Shape, Thumb
from dashboard.narration import NUMBERS, STAGES, VECTORS, number

if TYPE_CHECKING:
    from transformer.analysis.inside import Inside

MOST_KEYS = 17
"""More keys than this, and only those that are looked at most are shown, one by one."""
MOST_DIMENSIONS = 16
SCORES = ("scale", "bias", "mask", "exp", "sum", "divide")
"""The steps that have a number for each key."""


@dataclass(frozen=True)
class Table:
    """The arguments of a `number_table`, and what it leaves out, in words."""

    labels: tuple[Label, ...]
    blocks: tuple[Block, ...]
    axis: str | None
    note: str


class Anatomy:
    """One query of one head: which keys and dimensions are shown of it, and the table of each step."""

    def __init__(self, inside: Inside) -> None:
        self.inside = inside
        n_keys = len(inside.keys)
        if n_keys <= MOST_KEYS:
            self.keys = np.arange(n_keys)
        else:
            self.keys = np.sort(np.argsort(-inside.pattern, kind="stable")[: MOST_KEYS - 1])
        self.rest = np.setdiff1d(np.arange(n_keys), self.keys)
        products = np.abs(inside.query * inside.key[self.keys]).max(axis=0, initial=0.0)
        self.fitting = _largest(products)
        self.giving = _largest(np.abs(inside.weighted[self.keys]).max(axis=0, initial=0.0))
        self.writing = _largest(np.abs(inside.written))
        self.stages = [name for name in STAGES if name != "bias" or inside.bias is not None]

    def shapes(self, stage: str) -> tuple[Shape, ...]:
        """What goes in, and last what comes out."""
        n, d, wide = ("key", len(self.inside.keys)), ("d_head", len(self.inside.query)), len(self.inside.written)
        stream, row = ("d_model", wide), (n,)
        memory = "memory" if self.inside.head.site.endswith("cross_attention") else "x"
        return {
            "query": (Shape("x", (stream,)), Shape("W_Q", (stream, d)), Shape("q", (d,))),
            "keys": (Shape(memory, (n, stream)), Shape("W_K", (stream, d)), Shape("K", (n, d))),
            "dot": (Shape("q", (d,)), Shape("K", (n, d)), Shape("q · K", row)),
            "scale": (Shape("q · K", row), Shape("scores", row)),
            "bias": (Shape("scores", row), Shape("bias", row), Shape("scores", row)),
            "mask": (Shape("scores", row), Shape("mask", row), Shape("scores", row)),
            "exp": (Shape("scores", row), Shape("e", row)),
            "sum": (Shape("e", row), Shape("Σ")),
            "divide": (Shape("e", row), Shape("Σ"), Shape("pattern", row)),
            "values": (Shape(memory, (n, stream)), Shape("W_V", (stream, d)), Shape("V", (n, d))),
            "weigh": (Shape("pattern", row), Shape("V", (n, d)), Shape("z", (d,))),
            "project": (Shape("z", (d,)), Shape("W_O", (d, stream)), Shape("written", (stream,))),
            "add": (Shape("x", (stream,)), Shape("written", (stream,)), Shape("x", (stream,))),
        }[stage]

    def table(self, stage: str) -> Table:
        """The numbers of a step."""
        if stage in ("query", "keys", "dot"):
            return self._fits(stage)
        if stage in SCORES:
            return self._scores(stage)
        return {"project": self._projection, "add": self._stream}.get(stage, lambda: self._gifts(stage))()

    def thumbs(self) -> list[Thumb]:
        """Every step in small."""
        inside, keys = self.inside, self.keys
        fitting, giving = np.ix_(keys, self.fitting), np.ix_(keys, self.giving)
        hidden = np.where(inside.visible, 1.0, np.nan)[keys, None]
        shown = {
            "query": _shades(inside.query[None, self.fitting]),
            "keys": _shades(inside.key[fitting]),
            "dot": _shades(inside.dots[keys, None]),
            "scale": _shades(inside.scaled[keys, None]),
            "bias": _shades(inside.scores[keys, None]),
            "mask": _shades(inside.scores[keys, None]) * hidden,
            "exp": inside.exponentials[keys, None] * hidden,
            "sum": np.array([[inside.total / max(1, int(inside.visible.sum()))]]),
            "divide": inside.pattern[keys, None] * hidden,
            "values": _shades(inside.value[giving]),
            "weigh": _shades(inside.z[None, self.giving]),
            "project": _shades(inside.written[None, self.writing]),
            "add": _shades(inside.after[None, self.writing]),
        }
        signs = {"scale": f"÷ √{len(inside.query)}"}
        return [
            Thumb(signs.get(name, STAGES[name].symbol), shown[name], signed=name not in ("exp", "sum", "divide"))
            for name in self.stages
        ]

    # --- tables

    def _fits(self, stage: str) -> Table:
        """The query above, below it the keys, or their products with it and the sum of each."""
        inside, dims = self.inside, self.fitting
        query, keys = inside.query[None].astype(np.float64), inside.key[self.keys].astype(np.float64)
        below = {"query": np.full_like(keys, np.nan), "keys": keys, "dot": query * keys}[stage]
        headings = tuple(str(i) for i in dims)
        shades = np.vstack([_shades(query[:, dims], keys), _shades(below[:, dims])])
        if stage == "keys":  # one scale for what is multiplied
            shades = _shades(np.vstack([query, keys])[:, dims])
        block = Block(
            headings, _texts(np.vstack([query, below])[:, dims], VECTORS), shades, axis="d_head", present=True
        )
        blocks = [block]
        if stage == "dot":
            left_out = np.setdiff1d(np.arange(keys.shape[1]), dims)
            if len(left_out):
                others = _column("others", below[:, left_out].sum(axis=1), above=1, decimals=VECTORS)
                blocks.append(replace(others, width=60))
            sums = _column("q · k", inside.dots[self.keys], above=1)
            blocks.append(replace(sums, present=True, strong=True, width=72))
        labels = (Label("q", inside.place + 1), *self._labels(others=False))
        return Table(labels, tuple(blocks), "key", self._note(dims, len(inside.query), "fits"))

    def _scores(self, stage: str) -> Table:
        """A column for each step so far; those to come stand empty."""
        inside, keys, done = self.inside, self.keys, SCORES.index(stage)
        visible = inside.visible[keys]
        sums = stage in ("sum", "divide")
        rest = self.rest
        columns = [
            (f"÷ √{len(inside.query)}", "scale", inside.scaled, None),
            ("+ bias", "bias", inside.scores, None),
            ("may see", "mask", None, None),
            ("exp", "exp", inside.exponentials, inside.total),
            ("÷ Σ", "divide", inside.pattern, float(inside.pattern.sum())),
        ]
        blocks = [_column("q · k", inside.dots[keys], below=bool(len(rest)) + 1)]
        for heading, name, values, total in columns:
            if name not in self.stages:
                continue
            present = name == stage or (name, stage) == ("exp", "sum")
            if SCORES.index(name) > done:
                blocks.append(_column(heading, np.full(len(keys), np.nan), below=bool(len(rest)) + 1))
                continue
            foot = [] if not len(rest) else [np.nan if total is None else float(values[rest].sum())]  # type: ignore[index]
            foot.append(total if total is not None and sums else np.nan)
            blocks.append(self._score_column(heading, name, values, np.array(foot), visible, present))
        labels = (*self._labels(), Label("Σ", above=not len(rest)))
        return Table(labels, tuple(blocks), "key", self._note())

    def _score_column(
        self,
        heading: str,
        name: str,
        values: np.ndarray | None,
        foot: np.ndarray,
        visible: np.ndarray,
        present: bool,
    ) -> Block:
        hidden = np.concatenate([~visible, np.zeros(len(foot), dtype=bool)])[:, None]
        if values is None:
            texts = (*((("yes",) if seen else ("no",)) for seen in visible), *(("",) for _ in foot))
            return Block((heading,), texts, np.full(hidden.shape, np.nan), forbidden=hidden, present=present)
        all_values = np.concatenate([values[self.keys].astype(np.float64), foot])[:, None]
        shares = name in ("exp", "divide")
        shades = all_values.copy() if shares else _shades(all_values)
        shades[len(visible) :] = np.nan
        return Block(
            (heading,),
            _texts(all_values, NUMBERS),
            shades,
            signed=not shares,
            forbidden=hidden if shares else None,
            present=present,
            strong=present,
        )

    def _gifts(self, stage: str) -> Table:
        """What each key gives: its value, or its value times its share, and z, the sum."""
        inside, dims, rest = self.inside, self.giving, self.rest
        gifts = inside.value if stage == "values" else inside.weighted
        rows, shares = gifts[self.keys].astype(np.float64), inside.pattern[self.keys].astype(np.float64)
        if len(rest):
            other = np.full_like(rows[:1], np.nan) if stage == "values" else gifts[rest].sum(axis=0)[None]
            rows, shares = np.vstack([rows, other]), np.append(shares, inside.pattern[rest].sum())
        foot = np.full_like(rows[:1], np.nan) if stage == "values" else inside.z[None]
        rows, shares = np.vstack([rows, foot])[:, dims], np.append(shares, np.nan)
        hidden = np.zeros((len(rows), 1), dtype=bool)
        hidden[: len(self.keys), 0] = ~inside.visible[self.keys]
        blocks = (
            Block(
                ("p",),
                _texts(shares[:, None], NUMBERS),
                shares[:, None],
                signed=False,
                forbidden=hidden,
                strong=True,
                width=60,
            ),
            Block(tuple(str(i) for i in dims), _texts(rows, VECTORS), _shades(rows), axis="d_head", present=True),
        )
        labels = (*self._labels(), Label("z", above=not len(rest)))
        return Table(labels, blocks, "key", self._note(dims, len(inside.z), "gives"))

    def _projection(self) -> Table:
        """Each number of z times its row of W_O, where this head writes most, and their sum."""
        inside, rows, dims = self.inside, self.giving, self.writing
        products = inside.z[:, None].astype(np.float64) * inside.output_weight[:, dims]
        z, labels = inside.z[rows].astype(np.float64), [Label(str(i)) for i in rows]
        shown = products[rows]
        left_out = np.setdiff1d(np.arange(len(products)), rows)
        if len(left_out):
            shown, z = np.vstack([shown, products[left_out].sum(axis=0)]), np.append(z, np.nan)
            labels.append(Label(f"{len(left_out)} others", above=True))
        shown, z = np.vstack([shown, inside.written[dims]]), np.append(z, np.nan)
        labels.append(Label("Σ", above=not len(left_out)))
        blocks = (
            Block(("z",), _texts(z[:, None], VECTORS), _shades(z[:, None]), strong=True, width=56),
            Block(tuple(str(i) for i in dims), _texts(shown, VECTORS), _shades(shown), axis="d_model", present=True),
        )
        return Table(tuple(labels), blocks, "d_head", self._note(dims, len(inside.written), "writes"))

    def _stream(self) -> Table:
        """What is added to the residual stream, where this head writes most."""
        inside, dims = self.inside, self.writing
        rows = np.stack([inside.written, inside.others, inside.output_bias, inside.before, inside.after])[:, dims]
        block = Block(tuple(str(i) for i in dims), _texts(rows, VECTORS), _shades(rows), axis="d_model", present=True)
        labels = (
            Label(f"head {inside.head.short}"),
            Label("+ other heads"),
            Label("+ bias b_O"),
            Label("+ stream"),
            Label("= new stream", above=True),
        )
        return Table(labels, (block,), None, self._note(dims, len(inside.written), "writes"))

    # --- words

    def _labels(self, others: bool = True) -> list[Label]:
        labels = [Label(self.inside.keys[key], int(key) + 1) for key in self.keys]
        return labels + ([Label(f"{len(self.rest)} others", above=True)] if others and len(self.rest) else [])

    def _note(self, dims: np.ndarray | None = None, width: int = 0, verb: str = "") -> str:
        """What is not shown."""
        notes = []
        if len(self.rest):
            share = number(self.inside.pattern[self.rest].sum())
            most = f"The {len(self.keys)} keys that are looked at most, of {len(self.inside.keys)}"
            notes.append(f"{most}; the others share {share}.")
        if dims is not None and len(dims) < width:
            most = {"fits": "that matter most to the fit", "gives": "that carry most", "writes": "it writes most into"}[
                verb
            ]
            notes.append(f"The {len(dims)} dimensions {most}, of {width}.")
        return " ".join(notes)


def _largest(weights: np.ndarray) -> np.ndarray:
    """Which dimensions are shown, in order: all, or those that weigh most."""
    if len(weights) <= MOST_DIMENSIONS:
        return np.arange(len(weights))
    return np.sort(np.argsort(-weights, kind="stable")[:MOST_DIMENSIONS])


def _shades(values: np.ndarray, scale_of: np.ndarray | None = None) -> np.ndarray:
    """Values from -1 to 1: shares of the largest, of their own or of others."""
    finite = np.abs(values if scale_of is None else np.vstack([values, scale_of[:, : values.shape[1]]]))
    limit = float(np.nanmax(finite, initial=0.0)) or 1.0
    return values.astype(np.float64) / limit


def _texts(values: np.ndarray, decimals: int) -> tuple[tuple[str, ...], ...]:
    """Numbers as they are written; among the many of a vector, large ones leave less room behind the point."""
    if decimals == VECTORS:
        largest = np.nanmax(np.abs(values), initial=0.0)
        decimals = 2 if largest < 9.995 else 1 if largest < 99.95 else 0
    return tuple(tuple(written(float(value), decimals) for value in row) for row in values)


def _column(heading: str, values: np.ndarray, *, above: int = 0, below: int = 0, decimals: int = NUMBERS) -> Block:
    """A column of numbers, with empty cells above and below."""
    padded = np.pad(values.astype(np.float64), (above, below), constant_values=np.nan)[:, None]
    return Block((heading,), _texts(padded, decimals), _shades(padded))
