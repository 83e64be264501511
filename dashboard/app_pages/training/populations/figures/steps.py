"""After how many steps each seed solved it, a row a combination: dots, their median, and its interval."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.lines import upright
from dashboard.figures.kit.token_axis import lines_of, safe
from dashboard.theme import LIGHT, Palette, template

BINS = 60
"""Dots whose steps fall into the same one of so many parts of the axis are stacked."""
DOT, LEAST, MOST = 7, 50, 130
"""Pixels of a dot in a stack, and of the lowest and the highest row."""
TOP, BOTTOM = 28, 48
"""Pixels above and below the rows."""
BASE, MEDIAN = 0.14, 0.33
"""Where in a row the stacks stand, and where the median lies, from its middle downwards."""
ASIDE, WIDE = 1.06, 1.3
"""Where the mark stands behind which nobody solved it, and where the axis ends, in units of the most steps."""
ABREAST = 10
"""Dots side by side behind that mark, where steps mean nothing."""


@dataclass(frozen=True)
class Seeds:
    """One combination: its seeds, and what is said of all of them."""

    name: str
    seeds: Sequence[int]
    steps: np.ndarray
    """float [seed]: inf where it was not solved."""
    median: float
    """inf where fewer than half are solved."""
    low: float
    """The interval of the median, nan where there is none; inf where it reaches beyond all steps."""
    high: float
    sentence: str


def steps_height(rows: Sequence[Seeds]) -> int:
    """Pixels of the whole picture."""
    return TOP + BOTTOM + len(rows) * _row_height(rows, _greatest(rows))


def steps_dots(
    rows: Sequence[Seeds], *, unsolved: str, chosen: int | None = None, palette: Palette = LIGHT
) -> go.Figure:
    """A dot a seed, stacked where several took as many steps; below them the median with its interval.

    Seeds that did not solve it stand apart, behind a mark that says `unsolved`. `chosen` is the row that other pictures
    of the page speak of. Look for how far a row is spread: one seed is one dot of it.
    """
    top = _greatest(rows)
    height = _row_height(rows, top)
    apart = any(math.isinf(step) for row in rows for step in row.steps)
    traces = []
    for place, row in enumerate(rows):
        traces += [_dots(place, row, top, height, palette), *_median(place, row, top, palette)]
    names = [f"<b>{safe(row.name)}</b>" if place == chosen else safe(row.name) for place, row in enumerate(rows)]
    mark = {
        "x": 1.0,
        "xref": "paper",
        "y": 1.0,
        "yref": "paper",
        "xanchor": "right",
        "yanchor": "bottom",
        "text": safe(unsolved),
        "showarrow": False,
        "font": {"size": 14, "color": palette.wrong},
    }
    layout = {
        "template": template(palette),
        "showlegend": False,
        "hovermode": "closest",
        "xaxis": {
            "title": {"text": "steps until solved"},
            "range": [0, (WIDE if apart else 1.05) * top],
            "tickvals": _ticks(top),
        },
        "yaxis": {
            "tickvals": list(range(len(rows))),
            "ticktext": [name.replace(", ", ",<br>") for name in names],
            "range": [len(rows) - 0.5, -0.5],
            "showgrid": False,
        },
        "shapes": [
            *(_parting(place, palette) for place in range(1, len(rows))),
            *([upright(ASIDE * top, {"color": palette.wrong, "width": 1.5, "dash": "dash"})] if apart else []),
        ],
        "annotations": [mark] if apart else [],
        "margin": {"t": TOP, "b": BOTTOM, "r": 12},
    }
    return go.Figure(traces, layout)


def _greatest(rows: Sequence[Seeds]) -> float:
    """The most steps after which a seed solved it: where the axis would end if all did."""
    return max([float(step) for row in rows for step in row.steps if math.isfinite(step)], default=1.0)


def _ticks(top: float) -> list[float]:
    """Round numbers of steps as far as some seed solved it: behind the mark there are no steps."""
    power = 10.0 ** math.floor(math.log10(top / 6))
    apart = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= top / 6)
    return [apart * i for i in range(int(top / apart) + 1)]


def _row_height(rows: Sequence[Seeds], top: float) -> int:
    """Pixels of a row: the highest stack has room, if it can."""
    tallest = max((max(_stacks(row, top).values(), default=1) for row in rows), default=1)
    return max(LEAST, min(MOST, DOT * tallest + 32))


def _stacks(row: Seeds, top: float) -> Counter[int]:
    """How many dots stand in each part of the axis; behind the mark so many abreast."""
    solved = Counter(_part(step, top) for step in row.steps if math.isfinite(step))
    aside = sum(math.isinf(step) for step in row.steps)
    return solved + Counter({BINS + 1: -(-aside // ABREAST)})  # a sum leaves out what is 0


def _part(step: float, top: float) -> int:
    return round(BINS * step / top)


def _dots(place: int, row: Seeds, top: float, height: int, palette: Palette) -> dict[str, object]:
    """A dot a seed. A stack that is too high for its row is pressed together."""
    tallest = max(_stacks(row, top).values(), default=1)
    apart = min(DOT / height, (0.5 + BASE - 0.06) / tallest)
    across, up, words = [], [], []
    seen: Counter[int] = Counter()
    aside = 0
    for seed, step in zip(row.seeds, row.steps, strict=True):
        if math.isfinite(step):
            part = _part(step, top)
            across.append(float(step))
            up.append(place + BASE - apart * (seen[part] + 0.5))
            seen[part] += 1
            words.append(f"{safe(row.name)}, seed {seed}: solved after {step:,.0f} steps")
        else:
            across.append(top * (ASIDE + 0.03 + 0.02 * (aside % ABREAST)))
            up.append(place + BASE - apart * (aside // ABREAST + 0.5))
            aside += 1
            words.append(f"{safe(row.name)}, seed {seed}: not solved")
    unsolved = np.isinf(row.steps)
    return {
        "type": "scatter",
        "x": across,
        "y": up,
        "mode": "markers",
        "marker": {
            "size": DOT,
            "color": [palette.wrong if each else palette.measured for each in unsolved],
            "symbol": ["x-thin" if each else "circle" for each in unsolved],
            "line": {
                "width": [1.5 if each else 0.5 for each in unsolved],
                "color": [palette.wrong if each else palette.background for each in unsolved],
            },
        },
        "customdata": [place] * len(across),
        "hovertext": words,
        "hovertemplate": "%{hovertext}<extra></extra>",
        "name": row.name,
    }


def _median(place: int, row: Seeds, top: float, palette: Palette) -> list[dict[str, object]]:
    """The median, a diamond, on the line of its interval; beyond the mark where it is beyond all steps."""
    beyond = ASIDE * top

    def at(value: float) -> float:
        return beyond if math.isinf(value) else value

    found: list[dict[str, object]] = []
    shared = {
        "type": "scatter",
        "hovertext": [lines_of(row.sentence)] * 2,  # of the line's two ends, and of the one point
        "hovertemplate": "%{hovertext}<extra></extra>",
    }
    if not math.isnan(row.low):
        found.append(
            {
                **shared,
                "x": [at(row.low), at(row.high)],
                "y": [place + MEDIAN] * 2,
                "mode": "lines",
                "line": {"color": palette.text, "width": 3},
                "customdata": [place] * 2,
                "name": f"{row.name}, 95 % interval of the median",
            }
        )
    found.append(
        {
            **shared,
            "x": [at(row.median)],
            "y": [place + MEDIAN],
            "mode": "markers",
            "marker": {
                "symbol": "triangle-right" if math.isinf(row.median) else "diamond",
                "size": 12,
                "color": palette.text,
                "line": {"color": palette.background, "width": 1.5},
            },
            "customdata": [place],
            "name": f"{row.name}, median",
        }
    )
    return found


def _parting(place: int, palette: Palette) -> dict[str, object]:
    """A thin line above a row."""
    line = {"color": palette.grid, "width": 1}
    return {"type": "line", "x0": 0, "x1": 1, "xref": "x domain", "y0": place - 0.5, "y1": place - 0.5, "line": line}
