"""The numbers of each step inside a head, as tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dashboard.app_pages.attention.inside.anatomy import MOST_KEYS, Anatomy, dimensions_note
from dashboard.app_pages.attention.inside.steps import NUMBERS, VECTORS, undivided
from dashboard.components.sheet import Axis, Series
from dashboard.figures.html.number_table import Block, Label
from dashboard.figures.kit.numbers import written
from dashboard.parts import steps
from dashboard.parts.steps import shades

SCORES = ("scale", "bias", "mask", "exp", "sum", "divide")
"""The steps that have a number for each key."""


class Table(steps.Table):
    """The numbers of a step inside a head."""

    def series(self) -> list[Series]:
        """What its blocks round, in full; a block whose numbers are still to come is left out."""
        rows = _rows(self.labels, self.axis)
        return [_series(block, rows) for block in self.blocks if any("".join(texts) for texts in block.texts)]


def step_table(anatomy: Anatomy, stage: str, key: int | None = None) -> Table:
    """The numbers of a step; the row of `key`, counted from 0, is framed."""
    if stage in SCORES:
        table = _scores(anatomy, stage)
    elif stage == "dot":
        table = _products(anatomy, anatomy.inside.strongest or 0 if key is None else key)
    else:
        tables = {
            "query": _queries,
            "keys": _keys,
            "values": _values,
            "weigh": _weighed,
            "project": _projected,
            "add": _stream,
        }
        table = tables[stage](anatomy)
    return table if key is None or stage == "query" else _framed(table, key)


def _framed(table: Table, key: int) -> Table:
    """The same table with a frame around the last row that bears the place of this key."""
    rows = [i for i, label in enumerate(table.labels) if label.place == key + 1]
    labels = [replace(label, chosen=i in rows[-1:]) for i, label in enumerate(table.labels)]
    return replace(table, labels=labels)


# --- vectors


def _queries(anatomy: Anatomy) -> Table:
    """The queries of all places, or of some around this one, which is framed."""
    inside, dims = anatomy.inside, anatomy.fitting
    n = len(inside.queries)
    first = min(max(0, inside.place - MOST_KEYS // 2), max(0, n - MOST_KEYS))
    places = range(first, min(n, first + MOST_KEYS))
    labels = [Label(inside.queries[i], i + 1, chosen=i == inside.place) for i in places]
    around = "" if len(places) == n else f"The {len(places)} queries around it, of {n}. "
    block = _vectors("queries", inside.every_query[places][:, dims], dims, "d_head")
    return Table(labels, [block], "query", around + _dimensions_note(anatomy))


def _keys(anatomy: Anatomy) -> Table:
    """The query, and below it every key: on one scale, for they are multiplied."""
    inside, dims = anatomy.inside, anatomy.fitting
    rows = np.vstack([inside.query, inside.key[anatomy.keys]])
    return Table(_below_query(anatomy), [_vectors("keys", rows[:, dims], dims, "d_head")], "key", _fit_note(anatomy))


def _products(anatomy: Anatomy, key: int) -> Table:
    """The query, one key, and their products with their sum; below them those of the query with every other key."""
    inside, dims = anatomy.inside, anatomy.fitting
    keys = np.append(key, anatomy.keys[anatomy.keys != key])
    query = inside.query.astype(np.float64)
    factors, products = np.stack([query, inside.key[key]]), query * inside.key[keys]
    above, below = (_vectors("", rows[:, dims], dims, "d_head") for rows in (factors, products))  # digits of their own
    block = replace(
        below,
        name="products",
        texts=above.texts + below.texts,
        shades=np.vstack([above.shades, below.shades]),
        values=np.vstack([factors, products])[:, dims],
    )
    blocks = [block]
    left_out = np.setdiff1d(np.arange(len(query)), dims)
    if len(left_out):
        others = np.append(_nothing(query, len(factors)), products[:, left_out].sum(axis=1))
        blocks.append(replace(_column("others", "others", others, VECTORS), width=60))
    sums = _column("dots", "q · k", np.append(_nothing(inside.dots, len(factors)), inside.dots[keys]))
    blocks.append(replace(sums, present=True, strong=True, width=72))
    chosen, *rows = (Label(inside.keys[each], int(each) + 1) for each in keys)
    if rows:
        rows[0] = replace(rows[0], above=True)
    labels = [Label("q", inside.place + 1), Label("k", key + 1), replace(chosen, above=True), *rows]
    return Table(labels, blocks, "key", _fit_note(anatomy))


def _values(anatomy: Anatomy) -> Table:
    """What each key has to give, beside its share."""
    inside, dims = anatomy.inside, anatomy.giving
    given = inside.value[np.ix_(anatomy.keys, dims)]
    rows = np.vstack([given, _nothing(given, _feet(anatomy), len(dims))])
    return _gifts(anatomy, "values", rows)


def _weighed(anatomy: Anatomy) -> Table:
    """Each value that may be seen times its share, and their sum, z."""
    anatomy = anatomy.weighed()
    inside, dims = anatomy.inside, anatomy.giving
    rows = [inside.weighted[anatomy.keys], inside.z[None]]
    if len(anatomy.rest):
        rows.insert(1, inside.weighted[anatomy.rest].sum(axis=0)[None])
    table = _gifts(anatomy, "weighted", np.vstack(rows)[:, dims])
    hidden = int((~inside.visible).sum())
    left_out = f"Not shown: {hidden} key{'s' * (hidden > 1)} that the mask forbids, with weight 0." if hidden else ""
    return replace(table, note=f"{left_out} {table.note}".strip())


def _gifts(anatomy: Anatomy, name: str, rows: np.ndarray) -> Table:
    inside, dims = anatomy.inside, anatomy.giving
    share = replace(_share(anatomy, "pattern", "p", inside.pattern), strong=True, width=60)
    labels = [*anatomy.labels(), Label("z", above=not len(anatomy.rest))]
    note = dimensions_note(dims, len(inside.z), "that carry most")
    return Table(labels, [share, _vectors(name, rows, dims, "d_head")], "key", f"{anatomy.keys_note()} {note}".strip())


def _projected(anatomy: Anatomy) -> Table:
    """Each number of z times its row of W_O, where this head writes most, and their sum."""
    inside, shown, dims = anatomy.inside, anatomy.giving, anatomy.writing
    products = inside.z[:, None].astype(np.float64) * inside.output_weight[:, dims]
    rows, labels = [products[shown], inside.written[None, dims]], [Label(str(i)) for i in shown]
    left_out = np.setdiff1d(np.arange(len(products)), shown)
    if len(left_out):
        rows.insert(1, products[left_out].sum(axis=0)[None])
        labels.append(Label(f"{len(left_out)} others", above=True))
    labels.append(Label("Σ", above=not len(left_out)))
    z = _nothing(inside.z, len(labels))
    z[: len(shown)] = inside.z[shown]
    blocks = [
        replace(_column("z", "z", z, VECTORS), strong=True, width=56),
        _vectors("products", np.vstack(rows), dims, "d_model"),
    ]
    return Table(labels, blocks, "d_head", _write_note(anatomy))


def _stream(anatomy: Anatomy) -> Table:
    """What is added to the residual stream, where this head writes most."""
    inside, dims = anatomy.inside, anatomy.writing
    rows = {
        f"head {inside.head.short}": inside.written,
        "+ other heads": inside.others,
        "+ bias b_O": inside.output_bias,
        "+ stream": inside.before,
        "= new stream": inside.after,
    }
    labels = [Label(name, above=name.startswith("=")) for name in rows]
    block = _vectors("stream", np.stack(list(rows.values()))[:, dims], dims, "d_model")
    return Table(labels, [block], None, _write_note(anatomy))


# --- a number for each key


def _scores(anatomy: Anatomy, stage: str) -> Table:
    """A column for each step so far; those to come stand empty. Beside the division: what it does to the weights."""
    inside, done = anatomy.inside, SCORES.index(stage)
    added = stage in ("sum", "divide")
    dark = float(np.abs(inside.dots[anatomy.keys]).max(initial=0.0))  # one scale, so that the division is to be seen
    divided = f"÷ √{len(inside.query)}"
    columns = {
        "scale": _score(anatomy, "scaled", divided, inside.scaled, dark),
        "bias": _score(anatomy, "scores", "+ bias", inside.scores, dark),
        "mask": _may_see(anatomy),
        "exp": _share(anatomy, "exponentials", "exp", inside.exponentials, inside.total if added else np.nan),
        "divide": _share(anatomy, "pattern", "÷ Σ", inside.pattern, float(inside.pattern.sum())),
    }
    blocks = [_score(anatomy, "dots", "q · k", inside.dots, dark)]
    for name in (name for name in columns if name in anatomy.stages):
        block, present = columns[name], name == stage or (name, stage) == ("exp", "sum")
        if stage == "scale" and not present:
            continue
        if SCORES.index(name) > done:
            block = _score(anatomy, block.name, block.headings[0], np.full(len(inside.keys), np.nan), dark)
        blocks.append(replace(block, present=present, strong=present))
    if stage == "scale":
        without = undivided(inside)
        blocks.append(_share(anatomy, "pattern", f"weight with {divided}", inside.pattern, float(inside.pattern.sum())))
        blocks.append(_share(anatomy, "undivided", "weight without", without, float(without.sum())))
    labels = [*anatomy.labels(), Label("Σ", above=not len(anatomy.rest))]
    return Table(labels, blocks, "key", anatomy.keys_note())


def _score(anatomy: Anatomy, name: str, heading: str, values: np.ndarray, dark: float) -> Block:
    """A number of either sign for each key, with nothing to add up; `dark` is the size that is darkest."""
    rows = np.append(values[anatomy.keys], _nothing(values, _feet(anatomy)))
    return replace(_column(name, heading, rows), shades=(rows / (dark or 1.0)).astype(np.float64)[:, None])


def _share(anatomy: Anatomy, name: str, heading: str, values: np.ndarray, total: float = np.nan) -> Block:
    """A number from 0 to 1 for each key, the sum of those left out, and the total; what is forbidden is hatched."""
    foot = [values[anatomy.rest].sum(), total] if len(anatomy.rest) else [total]
    rows = np.append(values[anatomy.keys].astype(np.float64), foot)
    dark = rows[:, None].copy()
    dark[len(anatomy.keys) :] = np.nan
    return replace(_column(name, heading, rows), shades=dark, signed=False, forbidden=_forbidden(anatomy))


def _may_see(anatomy: Anatomy) -> Block:
    """The mask, in words."""
    seen = anatomy.inside.visible[anatomy.keys]
    texts = [("yes",) if may else ("no",) for may in seen] + [("",)] * _feet(anatomy)
    nothing = np.full((len(texts), 1), np.nan)
    return Block(("may see",), tuple(texts), nothing, forbidden=_forbidden(anatomy), name="may_see")


def _forbidden(anatomy: Anatomy) -> np.ndarray:
    hidden = ~anatomy.inside.visible[anatomy.keys]
    return np.append(hidden, np.zeros(_feet(anatomy), dtype=bool))[:, None]


def _feet(anatomy: Anatomy) -> int:
    """Rows below the keys: the others, if any, and the sum."""
    return 1 + bool(len(anatomy.rest))


# --- parts


def _below_query(anatomy: Anatomy) -> list[Label]:
    return [Label("q", anatomy.inside.place + 1), *anatomy.labels(others=False)]


def _fit_note(anatomy: Anatomy) -> str:
    return f"{anatomy.keys_note()} {_dimensions_note(anatomy)}".strip()


def _dimensions_note(anatomy: Anatomy) -> str:
    return dimensions_note(anatomy.fitting, len(anatomy.inside.query), "that matter most to the fit")


def _write_note(anatomy: Anatomy) -> str:
    return dimensions_note(anatomy.writing, len(anatomy.inside.written), "it writes most into")


def _vectors(name: str, rows: np.ndarray, dims: np.ndarray, axis: str) -> Block:
    """A row a vector, a column a dimension; large numbers leave less room behind the point."""
    largest = float(np.nanmax(np.abs(rows), initial=0.0))
    decimals = VECTORS if largest < 9.995 else 1 if largest < 99.95 else 0
    headings = tuple(str(i) for i in dims)
    return Block(headings, _texts(rows, decimals), shades(rows), axis=axis, present=True, name=name, values=rows)


def _column(name: str, heading: str, values: np.ndarray, decimals: int = NUMBERS) -> Block:
    column = values[:, None]
    return Block((heading,), _texts(column, decimals), shades(column), name=name, values=column)


def _nothing(like: np.ndarray, *shape: int) -> np.ndarray:
    """Places without a number, in the type of the numbers beside them."""
    return np.full(shape, np.nan, dtype=like.dtype)


def _texts(values: np.ndarray, decimals: int) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(written(float(value), decimals) for value in row) for row in values)


# --- to be taken along


def _rows(labels: Sequence[Label], axis: str | None) -> Axis:
    """What runs down a table: the places or dimensions that its labels name, else the rows themselves, from 1."""
    texts = tuple(label.text for label in labels)
    if axis is None:
        return Axis("row", np.arange(1, len(labels) + 1), texts)
    if axis == "d_head":
        places = [int(text) if text.isdecimal() else np.nan for text in texts]
    else:
        places = [np.nan if label.place is None else label.place for label in labels]
    return Axis(axis, np.array(places), texts)


def _series(block: Block, rows: Axis) -> Series:
    """The numbers of a block, or its texts; beside them the mask, where it forbids anything."""
    values = np.array(block.texts) if block.values is None else block.values
    mask = {} if block.forbidden is None else {"mask": ~block.forbidden}
    if block.axis is None:
        return Series(block.name, values[:, 0], (rows,), {name: each[:, 0] for name, each in mask.items()})
    columns = Axis(block.axis, np.array([int(heading) for heading in block.headings]))
    return Series(block.name, values, (rows, columns), mask)
