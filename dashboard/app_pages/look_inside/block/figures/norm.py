"""A token's vector on its way through a LayerNorm."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.lines import veil
from dashboard.figures.kit.numbers import signed
from dashboard.theme import LIGHT, Palette, template

STEPS = ("before", "− mean", "÷ spread", "× gain + shift")
"""What was done to the numbers of each panel, in this order."""
ACROSS, DOWN = ((0.0, 0.47), (0.53, 1.0)), ((0.59, 1.0), (0.0, 0.41))
"""From where to where the panels of a column and of a row reach, as shares of the width and the height."""


def norm_panels(
    before: np.ndarray, centred: np.ndarray, standard: np.ndarray, after: np.ndarray, *, palette: Palette = LIGHT
) -> go.Figure:
    """The numbers of one vector, float [d_model], four times: before, less the mean, divided by the spread, scaled and
    shifted.

    The dashed line is the mean, the band goes one standard deviation to either side; both stand in words above. Two
    panels side by side have one scale. The lower ones have a scale of their own, so that every panel can be read.
    """
    vectors = (before, centred, standard, after)
    colours = (palette.before, palette.before, palette.measured, palette.measured)
    traces, shapes, words = [], [], []
    layout: dict[str, object] = {}
    for i, (name, values) in enumerate(zip(STEPS, vectors, strict=True)):
        n = "" if i == 0 else str(i + 1)
        row, column = divmod(i, 2)
        mean, spread = float(values.mean(dtype=np.float64)), float(values.std(dtype=np.float64))
        traces.append(
            {
                "type": "bar",
                "y": values.astype(np.float32),
                "xaxis": f"x{n}",
                "yaxis": f"y{n}",
                "marker": {"color": colours[i], "line": {"width": 0}},
                "hovertemplate": f"{name}, dimension %{{x}}: %{{y:.3f}}<extra></extra>",
                "name": name,
            }
        )
        across = {"xref": f"x{n} domain", "x0": 0, "x1": 1, "yref": f"y{n}"}
        shapes += [
            {
                **across,
                "type": "rect",
                "y0": mean - spread,
                "y1": mean + spread,
                "fillcolor": palette.accent,
                "opacity": 0.16,
                "line": {"width": 0},
                "layer": "below",
            },
            {**across, "type": "line", "y0": mean, "y1": mean, "line": {"color": palette.text, "dash": "dash"}},
        ]
        words.append(
            {
                "x": 0,
                "xref": f"x{n} domain",
                "xanchor": "left",
                "y": 1,
                "yref": f"y{n} domain",
                "yanchor": "bottom",
                "text": f"<b>{i + 1} {name}</b>  μ = {signed(mean)}, σ = {spread:.2f}",
                "showarrow": False,
                "bgcolor": veil(palette),
                "font": {"size": 15},
            }
        )
        beside = vectors[2 * row : 2 * row + 2]
        limit = 1.1 * max(float(np.abs(each).max(initial=0.0)) for each in beside) or 1.0
        layout[f"xaxis{n}"] = {
            "domain": ACROSS[column],
            "anchor": f"y{n}",
            "showgrid": False,
            "range": [-0.6, len(before) - 0.4],
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
