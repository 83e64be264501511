"""Up to four runs on one chart and one clock: who learns, who does not, and who is first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.token_axis import safe
from dashboard.theme import LIGHT, Palette, rgb, template

MOST_RUNS = 4
MOST_POINTS = 800
"""More points than this in a curve, and only every second, third, … is drawn, the last always."""
DASHES = ("solid", "dash", "dot", "dashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up")
MARKS = ("●", "■", "◆", "▲")
"""The same, as letters."""
LINE = 21
"""Pixels from one name to the next."""
TOP, BOTTOM = 14, 48
"""Pixels above and below the axes."""
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
    """float [point]: accuracy of the second half from 0 to 1, or loss in nats."""
    solved: bool = False
    """Was the task solved at the last point?"""
    place: int = 0
    """Which of the four colours and dashes it has: a run keeps its own when another has nothing to show yet."""


def learning_curves(
    curves: Sequence[Curve],
    *,
    measure: Measure = "accuracy",
    clock: Clock = "steps",
    chance: Sequence[float] = (),
    floors: Sequence[float] = (),
    height: int = 380,
    palette: Palette = LIGHT,
) -> go.Figure:
    """Accuracy of the second half, or loss, of at most four runs, each on its own clock from its own start.

    `chance` are the levels of guessing, one for each vocabulary among the runs; `floors` the least losses that their
    masks allow. Look for who leaves chance first, and for who never does.
    """
    if len(curves) > MOST_RUNS:
        raise ValueError(f"at most {MOST_RUNS} runs can be told apart, not {len(curves)}")
    shown = [curve for curve in curves if len(curve.steps)]
    figure = go.Figure()
    for curve in shown:
        _line(figure, curve, measure, clock, palette)
    last = max((float(_times(curve, clock)[-1]) for curve in shown), default=10.0)
    low, high = _range(shown, measure, chance)
    if not shown:
        _say(figure, "waiting for the first measurement", palette)
    if measure == "accuracy":
        _levels(figure, chance, "chance", "dot", palette.chance, palette)
    else:  # where losses begin high and end low, there is room for a name above on the right
        _levels(figure, chance, "guessing", "dot", palette.chance, palette, above=True)
        _levels(figure, floors, "loss floor", "dash", palette.ceiling, palette)
    _name(figure, shown, measure, clock, low, high, height, palette)
    widest = max((len(_label(curve, clock)) for curve in shown), default=0)
    figure.update_layout(
        template=template(palette),
        showlegend=False,
        hovermode="closest",
        xaxis={
            "title": {"text": "step" if clock == "steps" else "seconds since its start"},
            "range": [0, round_up(last)],
            "nticks": 7,
        },
        yaxis={
            "title": {"text": "second half right" if measure == "accuracy" else "loss (nats)"},
            "range": [low, high],
            "nticks": 6,
            **({"tickvals": [0, 0.25, 0.5, 0.75, 1]} if measure == "accuracy" else {}),
        },
        margin={"t": TOP, "b": BOTTOM, "r": 36 + 7 * widest},
    )
    return figure


def round_up(value: float) -> float:
    """Rounded up to 1, 1.5, 2, 3, … times a power of ten, so that an axis moves seldom; 0.1 at least."""
    power = 10.0 ** math.floor(math.log10(max(value, 0.1)))
    return next(power * f for f in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if value <= power * f * (1 + 1e-9))


def share_text(share: float) -> str:
    """A share with two digits; nearly all is not all, and gets three."""
    return f"{math.floor(1000 * share) / 1000:.3f}" if 0.995 <= share < 1 else f"{share:.2f}"


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


def _line(figure: go.Figure, curve: Curve, measure: Measure, clock: Clock, palette: Palette) -> None:
    """The curve, and a mark at its newest point."""
    colour = colours(palette)[curve.place]
    every = -(-len(curve.steps) // MOST_POINTS)
    kept = np.unique(np.append(np.arange(0, len(curve.steps), every), len(curve.steps) - 1))
    times, words = _times(curve, clock), "second half right in" if measure == "accuracy" else "loss"
    unit = "" if measure == "accuracy" else " nats"
    hover = [
        f"{safe(curve.name)}, step {curve.steps[i]}, {curve.seconds[i]:.2f} s: {words} {curve.values[i]:.3f}{unit}"
        for i in kept
    ]
    figure.add_scatter(
        x=times[kept],
        y=curve.values[kept].astype(np.float32),
        mode="lines",
        line={"color": colour, "width": 3, "dash": DASHES[curve.place]},
        hovertext=hover,
        hovertemplate="%{hovertext}<extra></extra>",
        name=curve.name,
    )
    figure.add_scatter(
        x=times[-1:],
        y=curve.values[-1:].astype(np.float32),
        mode="markers",
        marker={
            "color": colour,
            "size": 14 if curve.solved else 10,
            "symbol": SYMBOLS[curve.place],
            "line": {"color": palette.background, "width": 1.5},
        },
        hovertext=[f"{hover[-1]}{': solved' if curve.solved else ''}"],
        hovertemplate="%{hovertext}<extra></extra>",
        cliponaxis=False,
        meta={"numbers": False},  # the curve's own last point
        name=f"{curve.name}: {'solved' if curve.solved else 'now'}",
    )


def _name(
    figure: go.Figure,
    curves: Sequence[Curve],
    measure: Measure,
    clock: Clock,
    low: float,
    high: float,
    height: int,
    palette: Palette,
) -> None:
    """Each curve's name at its end, led there by a short line where the place itself is taken."""
    unit = (high - low) / _room(height)  # nats, or shares, a pixel
    apart, down = LINE * unit, 1 if measure == "accuracy" else -1  # into the room that learning leaves free
    ends = [float(np.clip(np.nan_to_num(curve.values[-1], nan=high), low, high)) for curve in curves]
    order = _order([down * end for end in ends], [float(_times(curve, clock)[-1]) for curve in curves], apart)
    bounds = sorted((down * (low + apart / 2), down * high))
    places = [down * place for place in stagger([down * ends[i] for i in order], apart, *bounds)]
    curves, ends = [curves[i] for i in order], [ends[i] for i in order]
    for curve, end, place in zip(curves, ends, places, strict=True):
        colour = colours(palette)[curve.place]
        figure.add_annotation(
            x=float(_times(curve, clock)[-1]),
            y=end,
            ax=16,
            ay=-round((place - end) / unit),
            xanchor="left",
            yanchor="middle",
            showarrow=True,
            arrowhead=0,
            arrowwidth=1.5,
            arrowcolor=colour,
            standoff=6,
            text=f'<span style="color:{colour}">{MARKS[curve.place]}</span> {safe(_label(curve, clock))}',
            align="left",
            bgcolor=_veil(palette),
            borderpad=1,
            font={"color": palette.text, "size": 14},
        )


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
    figure: go.Figure,
    levels: Sequence[float],
    name: str,
    dash: str,
    colour: str,
    palette: Palette,
    above: bool = False,
) -> None:
    """What the curves are to be read against; one name for all, under the lowest on the left, or over the highest."""
    found = sorted(set(levels))
    for level in found:
        figure.add_hline(y=level, line={"color": colour, "width": 2, "dash": dash})
    if found:
        figure.add_annotation(
            x=0.995 if above else 0.005,
            xref="paper",
            xanchor="right" if above else "left",
            y=found[-1] if above else found[0],
            yanchor="bottom" if above else "top",
            text=f"{name}: {' and '.join(dict.fromkeys(f'{level:.2f}' for level in found))}",
            showarrow=False,
            borderpad=1,
            bgcolor=_veil(palette),
            font={"color": colour, "size": 14},
        )


def _say(figure: go.Figure, text: str, palette: Palette) -> None:
    figure.add_annotation(
        x=0.5,
        y=0.5,
        xref="paper",
        yref="paper",
        text=text,
        showarrow=False,
        font={"size": 15, "color": palette.muted},
    )


def _veil(palette: Palette) -> str:
    """The background, a little transparent: what a name stands on where lines may pass."""
    r, g, b = rgb(palette.background)
    return f"rgba({r},{g},{b},0.8)"
