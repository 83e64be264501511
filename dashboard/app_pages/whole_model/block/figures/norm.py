"""A token's vector on its way through a norm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.lines import veil
from dashboard.figures.kit.numbers import signed
from dashboard.theme import LIGHT, Palette, template

ACROSS, WHOLE, DOWN = ((0.0, 0.47), (0.53, 1.0)), (0.0, 1.0), ((0.59, 1.0), (0.0, 0.41))
"""From where to where the panels of a column, one alone in its row, and those of a row reach, as shares of the width
and of the height."""


REACHED = 1 + 1e-5
"""So many times the greatest distance a size may be, for it is rounded."""


def line_of(values: np.ndarray, *, centres: bool) -> float:
    """Where the dashed line of a panel is: at the mean where the norm centres, else at 0."""
    return float(values.mean(dtype=np.float64)) if centres else 0.0


def panels_without_reach(steps: Mapping[str, np.ndarray], sizes: Sequence[float], *, centres: bool) -> list[int]:
    """The panels, from 1, in which no number is as far from the dashed line as the norm's size.

    There a band of that size would cover all bars and more: it is so of a range or a length, and never of a standard
    deviation, a root mean square or a mean absolute value.
    """
    far = [float(np.abs(each - line_of(each, centres=centres)).max(initial=0.0)) for each in steps.values()]
    return [i for i, (size, most) in enumerate(zip(sizes, far, strict=True), 1) if size > REACHED * most]


def norm_panels(
    steps: Mapping[str, np.ndarray], sizes: Sequence[float], sign: str, *, centres: bool, palette: Palette = LIGHT
) -> go.Figure:
    """The numbers of one vector, float [d_model], after each step of a norm, by what was done: two of them to four.

    The divided ones, which come last, stand below the others: their names say so. Where the norm `centres`, the dashed
    line is the mean, else it is 0. The band goes to either side by what the norm measures, `sizes`, whose sign is
    `sign`; there is none where it would cover a whole panel (`panels_without_reach`). The numbers stand in words above.
    Two panels side by side have one scale. The lower ones have a scale of their own, so that every panel can be read.
    """
    vectors, above = list(steps.values()), next(i for i, name in enumerate(steps) if name.startswith("÷"))
    traces, shapes, words = [], [], []
    banded = not panels_without_reach(steps, sizes, centres=centres)
    layout: dict[str, object] = {}
    for i, (name, values) in enumerate(steps.items()):
        n = "" if i == 0 else str(i + 1)
        row = int(i >= above)
        column, beside = i - row * above, vectors[above:] if row else vectors[:above]
        middle, size = line_of(values, centres=centres), sizes[i]
        said = f"{f'μ = {signed(middle)}, ' if centres else ''}{sign} = {size:.2f}"
        traces.append(
            {
                "type": "bar",
                "y": values.astype(np.float32),
                "xaxis": f"x{n}",
                "yaxis": f"y{n}",
                "marker": {"color": palette.measured if row else palette.before, "line": {"width": 0}},
                "hovertemplate": f"{name}, dimension %{{x}}: %{{y:.3f}}<extra></extra>",
                "name": name,
            }
        )
        across = {"xref": f"x{n} domain", "x0": 0, "x1": 1, "yref": f"y{n}"}
        if banded:
            shapes.append(
                {
                    **across,
                    "type": "rect",
                    "y0": middle - size,
                    "y1": middle + size,
                    "fillcolor": palette.accent,
                    "opacity": 0.16,
                    "line": {"width": 0},
                    "layer": "below",
                }
            )
        shapes.append(
            {**across, "type": "line", "y0": middle, "y1": middle, "line": {"color": palette.text, "dash": "dash"}}
        )
        words.append(
            {
                "x": 0,
                "xref": f"x{n} domain",
                "xanchor": "left",
                "y": 1,
                "yref": f"y{n} domain",
                "yanchor": "bottom",
                "text": f"<b>{i + 1} {name}</b>  {said}",
                "showarrow": False,
                "bgcolor": veil(palette),
                "font": {"size": 15},
            }
        )
        limit = 1.1 * max(float(np.abs(each).max(initial=0.0)) for each in beside) or 1.0
        layout[f"xaxis{n}"] = {
            "domain": ACROSS[column] if len(beside) > 1 else WHOLE,
            "anchor": f"y{n}",
            "showgrid": False,
            "range": [-0.6, len(values) - 0.4],
            **({"title": {"text": "dimension"}} if row else {"showticklabels": False}),
        }
        layout[f"yaxis{n}"] = {"domain": DOWN[row], "anchor": f"x{n}", "nticks": 5, "range": [-limit, limit]}
    layout |= {
        "template": template(palette),
        "showlegend": False,
        "bargap": 0.15,
        "shapes": shapes,
        "annotations": words,
        "margin": {"t": 26, "r": 8},
    }
    return go.Figure(traces, layout)
