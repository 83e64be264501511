"""The steps to a context vector as tables: the numbers of each, its shapes, and all scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dashboard.app_pages.learn.context.steps import CALLED, STAGES
from dashboard.components.sheet import Axis, Series
from dashboard.figures.html.number_table import Block, Label
from dashboard.figures.html.step_strip import Shape, Thumb
from dashboard.parts.steps import Table, number_block, shades

if TYPE_CHECKING:
    from transformer.recurrent.look_back import Weighing


def hand_table(work: Weighing, stage: str) -> Table:
    """The numbers of a step."""
    look = work.look
    if stage in ("values", "keys"):
        symbol, vectors = ("v", look.value) if stage == "values" else ("k", look.key)
        blocks = [number_block("given", ("x", "y"), look.given), _pair("states", "h", look.states)]
        return Table(_corners(work), [*blocks, _pair(stage, symbol, vectors, present=True)])
    if stage in ("scores", "exp", "sum", "divide"):
        return _scores(work, stage)
    return {"query": _query, "context": _context, "join": _join, "output": _output}[stage](work)


def scores_table(works: Sequence[Weighing]) -> Table:
    """The same weights under each kind of scores, a row each: shares, context, what is said, and how far off.

    The scores that the model was trained with are framed.
    """
    labels = [
        Label(CALLED[work.scoring].replace(" product", ""), chosen=work.scoring == work.look.trained) for work in works
    ]
    n = len(works[0].pattern)
    shares = number_block(
        "shares", tuple(f"α_{i + 1}" for i in range(n)), np.stack([w.pattern for w in works]), share=True
    )
    return Table(
        labels,
        [
            shares,
            _pair("context", "c", np.stack([w.context for w in works])),
            number_block("said", ("says x", "says y"), np.stack([w.said for w in works])),
            number_block("missed", ("off by",), np.array([[w.missed] for w in works]), plain=True),
        ],
        axis=None,
    )


def hand_shapes(work: Weighing, stage: str) -> tuple[Shape, ...]:
    """What goes in, and last what comes out."""
    n, d, both, out = ("key", len(work.pattern)), ("d_model", 2), ("d_features", 4), ("coordinate", 2)
    row = (n,)
    mapped = (Shape("W", (d, d)),) if {"values": "value", "keys": "key", "query": "query"}.get(stage) in (
        work.look.maps
    ) else ()  # fmt: skip
    return {
        "values": (Shape("H", (n, d)), *mapped, Shape("V", (n, d))),
        "keys": (Shape("H", (n, d)), *mapped, Shape("K", (n, d))),
        "query": (Shape("s", (d,)), *mapped, Shape("q", (d,))),
        "scores": (Shape("q", (d,)), Shape("K", (n, d)), Shape("e", row)),
        "exp": (Shape("e", row), Shape("exp", row)),
        "sum": (Shape("exp", row), Shape("Σ")),
        "divide": (Shape("exp", row), Shape("Σ"), Shape("α", row)),
        "context": (Shape("α", row), Shape("V", (n, d)), Shape("c", (d,))),
        "join": (Shape("c", (d,)), Shape("s", (d,)), Shape("[c ; s]", (both,))),
        "output": (Shape("[c ; s]", (both,)), Shape("W", (out, both)), Shape("y", (out,))),
    }[stage]


def hand_thumbs(work: Weighing) -> list[Thumb]:
    """Every step in small."""
    look = work.look
    shown = {
        "values": shades(look.value),
        "keys": shades(look.key),
        "query": shades(work.query[None]),
        "scores": shades(work.scores[:, None]),
        "exp": work.exponentials[:, None],
        "sum": np.array([[work.total / len(work.pattern)]]),
        "divide": work.pattern[:, None],
        "context": shades(work.context[None]),
        "join": shades(work.features[None]),
        "output": shades(work.said[None]),
    }
    return [
        Thumb(STAGES[name].symbol, np.repeat(values, 4, axis=1), signed=name not in ("exp", "sum", "divide"))
        for name, values in shown.items()
    ]


def hand_series(work: Weighing) -> list[Series]:
    """Every number of every step, as it was computed."""
    look = work.look
    key = Axis("key", np.arange(1, len(work.pattern) + 1))
    d, both, out = (Axis(n, np.arange(k)) for n, k in (("d_model", 2), ("d_features", 4), ("coordinate", 2)))
    vectors = {"given": look.given, "states": look.states, "values": look.value, "keys": look.key}
    rows = {
        "dots": work.dots,
        "cosines": work.cosines,
        "scores": work.scores,
        "exponentials": work.exponentials,
        "pattern": work.pattern,
    }
    return [
        *(Series(name, values, (key, out if name == "given" else d)) for name, values in vectors.items()),
        Series("state", look.state, (d,)),
        Series("query", work.query, (d,)),
        *(Series(name, values, (key,)) for name, values in rows.items()),
        Series("total", np.array(work.total), ()),
        Series("context", work.context, (d,)),
        Series("features", work.features, (both,)),
        Series("said", work.said, (out,)),
    ]


# --- the steps


def _query(work: Weighing) -> Table:
    look = work.look
    rows = np.stack([look.query, work.query][: 1 + _is_moved(work)])
    nothing = np.full_like(rows, np.nan)
    nothing[0] = look.state
    labels = [Label("decoder"), Label("q, moved", chosen=True)][: len(rows)]
    read = np.full_like(rows, np.nan)
    read[0] = look.read
    blocks = [number_block("read", ("reads x", "reads y"), read), _pair("state", "s", nothing)]
    return Table(labels, [*blocks, _pair("query", "q", rows, present=True)], axis=None)


def _scores(work: Weighing, stage: str) -> Table:
    """The query and below it every key, how they fit, and a column for each step so far; those to come stand empty."""
    look, foot = work.look, np.full(1, np.nan)
    total = work.total if stage in ("sum", "divide") else np.nan
    columns = {
        "scores": np.concatenate([foot, work.scores, foot]),
        "exp": np.concatenate([foot, work.exponentials, [total]]),
        "divide": np.concatenate([foot, work.pattern, [work.pattern.sum()]]),
    }
    headings = {"scores": "e", "exp": "exp", "divide": "α"}
    vectors = np.vstack([work.query, look.key, np.full((1, 2), np.nan)])
    blocks = [_pair("keys", "k", vectors), *_fit(work)]
    done = list(STAGES).index(stage)
    for name, values in columns.items():
        here = name == stage or (name, stage) == ("exp", "sum")
        if list(STAGES).index(name) > done:
            values = np.full_like(values, np.nan)
        column = number_block(name, (headings[name],), values[:, None], share=name != "scores", present=here)
        ground = np.append(column.shades[:-1], [[np.nan]], axis=0)  # a sum is no share
        blocks.append(replace(column, shades=ground))
    return Table([Label("q"), *_corners(work), Label("Σ", above=True)], blocks)


def _fit(work: Weighing) -> list[Block]:
    """What the scores are made of, by their kind."""
    look = work.look
    lengths = np.linalg.norm(work.query) * np.linalg.norm(look.key, axis=1)
    products = {f"q_{i}k_{i}": work.query[i] * look.key[:, i] for i in range(2)}
    parts = {
        "uniform": {},
        "cosine": {"q · k": work.dots, "‖q‖‖k‖": lengths},
        "dot": products,
        "scaled-dot": {**products, "q · k": work.dots},
        "additive": {f"tanh_{i}": np.tanh(work.query + look.key)[:, i] for i in range(2)},
    }[work.scoring]
    if not parts:
        return []
    rows = np.stack(list(parts.values()), axis=1)
    edge = np.full((1, rows.shape[1]), np.nan)
    return [number_block("parts", tuple(parts), np.vstack([edge, rows, edge]))]


def _context(work: Weighing) -> Table:
    """Each value times its share, and their sum."""
    nothing = np.full((1, 2), np.nan)
    return Table(
        [*_corners(work), Label("Σ = c", above=True)],
        [
            number_block("pattern", ("α",), np.append(work.pattern, np.nan)[:, None], share=True),
            _pair("values", "v", np.vstack([work.look.value, nothing])),
            _pair("weighted", "αv", np.vstack([work.weighted, work.context]), present=True),
        ],
    )


def _join(work: Weighing) -> Table:
    """Both vectors, side by side."""
    return Table(
        [Label("[c ; s]")],
        [
            _pair("context", "c", work.context[None], present=True),
            _pair("state", "s", work.look.state[None], present=True),
        ],
        axis=None,
    )


def _output(work: Weighing) -> Table:
    """Four products, the bias, and their sum; beside it what is right."""
    weight, bias = work.look.out
    headings = ("w c_0", "w c_1", "w s_0", "w s_1")
    return Table(
        [Label("x"), Label("y")],
        [
            number_block("products", headings, weight * work.features, axis="d_features"),
            number_block("bias", ("+ b",), bias[:, None]),
            number_block("said", ("= said",), work.said[:, None], present=True),
            number_block("true", ("true",), work.look.true[:, None]),
        ],
        axis="coordinate",
    )


# --- parts


def _corners(work: Weighing) -> list[Label]:
    return [Label("corner", i + 1) for i in range(len(work.pattern))]


def _is_moved(work: Weighing) -> bool:
    return not np.array_equal(work.query, work.look.query)


def _pair(name: str, symbol: str, rows: np.ndarray, *, present: bool = False) -> Block:
    """Vectors of the plane, a row each."""
    return number_block(name, tuple(f"{symbol}_{i}" for i in range(2)), rows, axis="d_model", present=present)
