"""Up to four runs on one chart and one clock: who learns, who does not, and who is first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.lines import DASHES, SYMBOLS, level, level_name, round_up, waiting
from dashboard.figures.kit.numbers import share_text
from dashboard.figures.kit.token_axis import safe
from dashboard.theme import LIGHT, Palette, template

MOST_RUNS = 4
MOST_POINTS = 800
"""More points than this in a curve, and only every second, third, … is drawn, the last always."""
MARKS = ("●", "■", "◆", "▲")
"""The same, as letters."""
LINE = 21
"""Pixels from one name to the next."""
TOP, BOTTOM = 14, 48
"""Pixels above and below the axes."""
LOWER, NARROW = 14, 260
"""Half lines by which a name gives way to a curve, at most; pixels of the horizontal axis in a narrow window."""
LONGEST = 26
"""Longer names are cut short at the line's end; hovering says them in full."""
Clock = Literal["steps", "seconds"]
Measure = Literal["accuracy", "loss"]


@dataclass(frozen=True)
class Curve:
    """One run: what was measured, at which step and how many seconds after its own start."""

    name: str
    steps: np.ndarray
    """int [point]"""
    seconds: np.ndarray
    """float [point]"""
    values: np.ndarray
    """float [point]: accuracy of a part of the answer from 0 to 1, or loss in nats."""
    solved: bool = False
    """Was the task solved at the last point?"""
    place: int = 0
    """Which of the four colours and dashes it has: a run keeps its own when another has nothing to show yet."""
    part: str = "last part"
    """The part of the answer that is counted, after "the"."""


def learning_curves(
    curves: Sequence[Curve],
    *,
    measure: Measure = "accuracy",
    clock: Clock = "steps",
    chance: Sequence[float] = (),
    floors: Sequence[float] = (),
    guess: str = "guessing",
    part: str = "last part",
    height: int = 380,
    palette: Palette = LIGHT,
) -> go.Figure:
    """Accuracy of a part of the answer, or loss, of at most four runs, each on its own clock from its own start.

    `chance` are the levels of guessing, one for each vocabulary among the runs, called `guess` where losses are drawn;
    `floors` are the least losses that their masks allow. `part` is what the axis calls the part. Look for who leaves
    chance first, and for who never does.
    """
    if len(curves) > MOST_RUNS:
        raise ValueError(f"at most {MOST_RUNS} runs can be told apart, not {len(curves)}")
    shown = [curve for curve in curves if len(curve.steps)]
    last = max((float(_times(curve, clock)[-1]) for curve in shown), default=10.0)
    low, high = _range(shown, measure, chance)
    widest = max((len(_label(curve, clock)) for curve in shown), default=0)
    # Where losses begin high and end low, there is room for a name above on the right.
    losses = measure == "loss"
    lines, names = _levels(chance, guess if losses else "chance", "dot", palette.chance, palette, above=losses)
    least, least_names = _levels(floors if losses else (), "loss floor", "dash", palette.ceiling, palette)
    layout = {
        "template": template(palette),
        "showlegend": False,
        "hovermode": "closest",
        "xaxis": {
            "title": {"text": "step" if clock == "steps" else "seconds since its start"},
            "range": [0, round_up(last)],
            "nticks": 7,
        },
        "yaxis": {
            "title": {"text": "loss (nats)" if losses else f"{part} right"},
            "range": [low, high],
            "nticks": 6,
            "tickvals": None if losses else [0, 0.25, 0.5, 0.75, 1],
        },
        "shapes": [*lines, *least],
        "annotations": [
            *([] if shown else [waiting("waiting for the first measurement", palette)]),
            *names,
            *least_names,
            *_names(shown, measure, clock, (low, high), height, palette),
        ],
        "margin": {"t": TOP, "b": BOTTOM, "r": 36 + 7 * widest},
    }
    return go.Figure([trace for curve in shown for trace in _line(curve, measure, clock, palette)], layout)


def colours(palette: Palette) -> tuple[str, ...]:
    """The colour of each place."""
    return palette.categorical[:MOST_RUNS]


def stagger(heights: Sequence[float], apart: float, low: float, high: float) -> list[float]:
    """Places for names, from above: each at its height, or below the one before it, `apart` from each other.

    What would fall below `low` moves up again, and pushes those above it.
    """
    places: list[float] = []
    for height in heights:
        places.append(min([high, height, *(place - apart for place in places[-1:])]))
    floor = low
    for i in reversed(range(len(places))):
        places[i] = max(places[i], floor)
        floor = places[i] + apart
    return places


def _line(curve: Curve, measure: Measure, clock: Clock, palette: Palette) -> list[dict[str, object]]:
    """The curve, and a mark at its newest point."""
    colour = colours(palette)[curve.place]
    every = -(-len(curve.steps) // MOST_POINTS)
    kept = np.unique(np.append(np.arange(0, len(curve.steps), every), len(curve.steps) - 1))
    times, words = _times(curve, clock), f"{curve.part} right in" if measure == "accuracy" else "loss"
    unit = "" if measure == "accuracy" else " nats"
    hover = [
        f"{safe(curve.name)}, step {curve.steps[i]}, {curve.seconds[i]:.2f} s: {words} {curve.values[i]:.3f}{unit}"
        for i in kept
    ]
    line = {
        "type": "scatter",
        "x": times[kept],
        "y": curve.values[kept].astype(np.float32),
        "mode": "lines",
        "line": {"color": colour, "width": 3, "dash": DASHES[curve.place]},
        "hovertext": hover,
        "hovertemplate": "%{hovertext}<extra></extra>",
        "name": curve.name,
    }
    newest = {
        "type": "scatter",
        "x": times[-1:],
        "y": curve.values[-1:].astype(np.float32),
        "mode": "markers",
        "marker": {
            "color": colour,
            "size": 14 if curve.solved else 10,
            "symbol": SYMBOLS[curve.place],
            "line": {"color": palette.background, "width": 1.5},
        },
        "hovertext": [f"{hover[-1]}{': solved' if curve.solved else ''}"],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "cliponaxis": False,
        "meta": {"numbers": False},  # the curve's own last point
        "name": f"{curve.name}: {'solved' if curve.solved else 'now'}",
    }
    return [line, newest]


def _names(
    curves: Sequence[Curve],
    measure: Measure,
    clock: Clock,
    span: tuple[float, float],
    height: int,
    palette: Palette,
) -> list[dict[str, object]]:
    """Each curve's name at its end, led there by a line where the place is taken by another name or another curve."""
    low, high = span
    unit = (high - low) / _room(height)  # nats, or shares, a pixel
    apart, down = LINE * unit, 1 if measure == "accuracy" else -1  # into the room that learning leaves free
    ends = [float(np.clip(np.nan_to_num(curve.values[-1], nan=high), low, high)) for curve in curves]
    times = [float(_times(curve, clock)[-1]) for curve in curves]
    order = _order([down * end for end in ends], times, apart)
    bounds = sorted((down * (low + apart / 2), down * high))
    staggered = stagger([down * ends[i] for i in order], apart, *bounds)
    places: list[float] = []
    for i, place in zip(order, staggered, strict=True):
        tried = [place - step * apart / 2 for step in range(LOWER) if place - step * apart / 2 >= bounds[0]]
        others = [*(down * each for each in places), *staggered[len(places) + 1 :]]
        apart_from_all = [each for each in tried if all(abs(each - other) >= 0.99 * apart for other in others)]
        free = (down * each for each in apart_from_all if not _met(i, down * each, apart, curves, clock))
        places.append(next(free, down * place))
    return [
        {
            "x": times[i],
            "y": ends[i],
            "ax": 16,
            "ay": -round((place - ends[i]) / unit),
            "xanchor": "left",
            "yanchor": "middle",
            "showarrow": True,
            "arrowhead": 0,
            "arrowwidth": 1.5,
            "arrowcolor": colours(palette)[curves[i].place],
            "standoff": 6,
            "text": _marked(curves[i], clock, palette),
            "align": "left",
            "font": {"color": palette.text, "size": 14},
        }
        for i, place in zip(order, places, strict=True)
    ]


def _met(i: int, height: float, apart: float, curves: Sequence[Curve], clock: Clock) -> bool:
    """Does another curve run through the place of a name, at this height beside the end of its own curve?

    In the narrowest window the axis has so many pixels: NARROW.
    """
    times = _times(curves[i], clock)
    pixel = round_up(max(float(_times(curve, clock)[-1]) for curve in curves)) / NARROW
    across = float(times[-1]) + np.linspace(8, 16 + 7.5 * (3 + len(_label(curves[i], clock))), 60) * pixel
    for j, other in enumerate(curves):
        ends = _times(other, clock)
        beside = across[(across >= ends[0]) & (across <= ends[-1])]
        if j != i and (np.abs(np.interp(beside, ends, other.values) - height) < 0.6 * apart).any():
            return True
    return False


def _marked(curve: Curve, clock: Clock, palette: Palette) -> str:
    """A curve's label after its mark, in its colour."""
    mark = f'<span style="color:{colours(palette)[curve.place]}">{MARKS[curve.place]}</span>'
    return f"{mark} {safe(_label(curve, clock))}"


def _order(heights: Sequence[float], times: Sequence[float], apart: float) -> list[int]:
    """From above; of ends so close that their names would touch, the last in time first: none stands to its right."""
    groups: list[list[int]] = []
    for i in sorted(range(len(heights)), key=lambda i: -heights[i]):
        if groups and heights[groups[-1][-1]] - heights[i] < apart:
            groups[-1].append(i)
        else:
            groups.append([i])
    return [i for group in groups for i in sorted(group, key=lambda i: -times[i])]


def _label(curve: Curve, clock: Clock) -> str:
    """The name, and what became of it: where it was solved, or what was measured last."""
    name = curve.name if len(curve.name) <= LONGEST else f"{curve.name[: LONGEST - 1]}…"
    if not curve.solved:
        return f"{name}: {share_text(float(curve.values[-1]))}"
    return f"{name} ✓ {f'step {curve.steps[-1]}' if clock == 'steps' else f'{curve.seconds[-1]:.1f} s'}"


def _times(curve: Curve, clock: Clock) -> np.ndarray:
    return curve.steps if clock == "steps" else curve.seconds


def _range(curves: Sequence[Curve], measure: Measure, chance: Sequence[float]) -> tuple[float, float]:
    """Room for every value; for the names of the lines below as well."""
    if measure == "accuracy":
        return -0.08, 1.06
    tops = [float(np.nanmax(curve.values, initial=0.0, where=np.isfinite(curve.values))) for curve in curves]
    top = max([*tops, *(1.1 * level for level in chance)], default=1.0) * 1.03 or 1.0
    return -0.12 * top, top


def _room(height: int) -> int:
    """Pixels that the vertical axis has."""
    return max(LINE * MOST_RUNS, height - TOP - BOTTOM)


def _levels(
    levels: Sequence[float], name: str, dash: str, colour: str, palette: Palette, *, above: bool = False
) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """What the curves are to be read against; one name for all, under the lowest on the left, or over the highest."""
    found = sorted(set(levels))
    lines = [level(height, {"color": colour, "width": 2, "dash": dash}) for height in found]
    text = f"{name}: {' and '.join(dict.fromkeys(f'{height:.2f}' for height in found))}"
    ends = found[-1:] if above else found[:1]
    return lines, [level_name(height, text, colour, palette, above=above) for height in ends]
