"""One query of one head, ready to be drawn: what is shown of it, its shapes, and every step in small."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

import numpy as np

from dashboard.app_pages.attention.inside.steps import STAGES, number, stages_of
from dashboard.components.sheet import Axis, Series
from dashboard.figures.html.number_table import Label
from dashboard.figures.html.step_strip import Shape, Thumb
from dashboard.parts.steps import shades

if TYPE_CHECKING:
    from transformer.analysis.heads.inside import Inside


MOST_KEYS = 17
"""More keys than this, and only those that are looked at most are shown, one by one."""
MOST_WEIGHED = 8
"""The same where values are weighed: their sum is to stand on the screen with them."""
MOST_DIMENSIONS, BESIDE_OTHERS = 16, 12
"""Of a vector with more dimensions than this, so many are shown; fewer of a head's, beside a column for the others."""


class Anatomy:
    """What is shown of a query: of long sequences and wide heads, what weighs most. `rest` are the other keys.

    `key`, counted from 0, is shown in any case. `fitting`, `giving` and `writing` are the dimensions in which query and
    keys fit, values give, and the head writes.
    """

    def __init__(self, inside: Inside, key: int | None = None) -> None:
        self.inside, self.key = inside, key
        n_keys = len(inside.keys)
        self.ranked = np.argsort(-inside.pattern, kind="stable")
        if key is not None:
            self.ranked = np.append(key, self.ranked[self.ranked != key])
        self.keys = np.arange(n_keys) if n_keys <= MOST_KEYS else np.sort(self.ranked[: MOST_KEYS - 1])
        self.rest = np.setdiff1d(np.arange(n_keys), self.keys)
        products = np.abs(inside.query * inside.key[self.keys]).max(axis=0, initial=0.0)
        self.fitting = _largest(products, BESIDE_OTHERS)
        self.giving = _largest(np.abs(inside.weighted[self.keys]).max(axis=0, initial=0.0), BESIDE_OTHERS)
        self.writing = _largest(np.abs(inside.written))
        self.stages = stages_of(inside)

    def weighed(self) -> Anatomy:
        """The same without the keys that the mask forbids, whose weight is 0; `rest` are the others that are seen."""
        inside, found = self.inside, copy(self)
        seen = np.flatnonzero(inside.visible)
        most = self.ranked[inside.visible[self.ranked]]
        found.keys = seen if len(seen) <= MOST_WEIGHED else np.sort(most[: MOST_WEIGHED - 1])
        found.rest = np.setdiff1d(seen, found.keys)
        return found

    def shapes(self, stage: str) -> tuple[Shape, ...]:
        """What goes in, and last what comes out."""
        n, d, wide = ("key", len(self.inside.keys)), ("d_head", len(self.inside.query)), len(self.inside.written)
        stream, row = ("d_model", wide), (n,)
        memory = "memory" if self.inside.head.site.endswith("cross_attention") else "x"
        return {
            "query": (
                Shape("x", (("query", len(self.inside.queries)), stream)),
                Shape("W_Q", (stream, d)),
                Shape("Q", (("query", len(self.inside.queries)), d)),
            ),
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

    def thumbs(self) -> list[Thumb]:
        """Every step in small."""
        inside, keys = self.inside, self.keys
        fitting, giving = np.ix_(keys, self.fitting), np.ix_(keys, self.giving)
        hidden = np.where(inside.visible, 1.0, np.nan)[keys, None]
        shown = {
            "query": shades(inside.query[None, self.fitting]),
            "keys": shades(inside.key[fitting]),
            "dot": shades(inside.dots[keys, None]),
            "scale": shades(inside.scaled[keys, None]),
            "bias": shades(inside.scores[keys, None]),
            "mask": shades(inside.scores[keys, None]) * hidden,
            "exp": inside.exponentials[keys, None] * hidden,
            "sum": np.array([[inside.total / max(1, int(inside.visible.sum()))]]),
            "divide": inside.pattern[keys, None] * hidden,
            "values": shades(inside.value[giving]),
            "weigh": shades(inside.z[None, self.giving]),
            "project": shades(inside.written[None, self.writing]),
            "add": shades(inside.after[None, self.writing]),
        }
        signs = {"scale": f"÷ √{len(inside.query)}"}
        return [
            Thumb(signs.get(name, STAGES[name].symbol), shown[name], signed=name not in ("exp", "sum", "divide"))
            for name in self.stages
        ]

    def series(self) -> list[Series]:
        """Every number of every step, as it was computed: all keys and dimensions, also those that are not shown."""
        inside = self.inside
        key = Axis("key", np.arange(1, len(inside.keys) + 1), inside.keys)
        head, stream = (Axis(n, np.arange(len(v))) for n, v in (("d_head", inside.z), ("d_model", inside.written)))
        mask = {"mask": inside.visible}
        bias = [] if inside.bias is None else [Series("bias", inside.bias, (key,))]
        return [
            Series("query", inside.query, (head,)),
            Series("keys", inside.key, (key, head)),
            Series("dots", inside.dots, (key,)),
            Series("scaled", inside.scaled, (key,)),
            *bias,
            Series("scores", inside.scores, (key,), mask),
            Series("exponentials", inside.exponentials, (key,), mask),
            Series("total", np.array(inside.total), ()),
            Series("pattern", inside.pattern, (key,), mask),
            Series("values", inside.value, (key, head)),
            Series("z", inside.z, (head,)),
            Series("written", inside.written, (stream,)),
            Series("new_stream", inside.after, (stream,)),
        ]

    def labels(self, *, others: bool = True) -> list[Label]:
        """A row a key, and one for all that are left out."""
        rows = [Label(self.inside.keys[key], int(key) + 1) for key in self.keys]
        return rows + ([Label(f"{len(self.rest)} others", above=True)] if others and len(self.rest) else [])

    def keys_note(self) -> str:
        """Which keys are not shown, in words."""
        if not len(self.rest):
            return ""
        share, shown = number(self.inside.pattern[self.rest].sum()), len(self.keys)
        called = f"The {shown} keys that are looked at most"
        if self.key is not None and self.key not in np.argsort(-self.inside.pattern, kind="stable")[:shown]:
            called = f"The {shown - 1} keys that are looked at most and the chosen one"
        return f"{called}, of {len(self.inside.keys)}; the others share {share}."


def dimensions_note(shown: np.ndarray, width: int, most: str) -> str:
    """Which dimensions are not shown, in words."""
    return "" if len(shown) == width else f"The {len(shown)} dimensions {most}, of {width}."


def _largest(weights: np.ndarray, most: int = MOST_DIMENSIONS) -> np.ndarray:
    """Which dimensions are shown, in order: all, or those that weigh most."""
    if len(weights) <= MOST_DIMENSIONS:
        return np.arange(len(weights))
    return np.sort(np.argsort(-weights, kind="stable")[:most])
