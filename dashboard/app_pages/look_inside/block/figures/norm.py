"""A token's vector on its way through a LayerNorm."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.lines import veil
from dashboard.theme import LIGHT, Palette, template

APART, LOWEST = 0.09, 0.15
"""Between two panels, and of the lowest one, as shares of the height."""


def norm_bars(before: np.ndarray, standard: np.ndarray, after: np.ndarray, *, palette: Palette = LIGHT) -> go.Figure:
    """The numbers of one vector, float [d_model], three times: as it comes, with mean 0 and spread 1, and as it leaves.

    The dashed line is the mean, the band goes one standard deviation to either side. A unit is as high in every panel,
    so that what is divided is seen to shrink: a panel is as high as its numbers need.
    """
    panels = [("x", before), ("centred and divided", standard), ("× gain + shift", after)]
    limits = np.array([1.1 * float(np.abs(values).max(initial=0.0)) or 1.0 for _, values in panels])
    heights = np.maximum(limits / limits.sum(), LOWEST)
    heights *= (1 - APART * (len(panels) - 1)) / heights.sum()
    ends = heights * float((limits / heights).max())
    tops = 1 - np.append(0.0, (heights + APART).cumsum()[:-1])
    colours = (palette.before, palette.muted, palette.measured)
    traces, shapes, words = [], [], []
    layout: dict[str, object] = {}
    for number, (name, values) in enumerate(panels):
        n = "" if number == 0 else str(number + 1)
        mean, spread = float(values.mean(dtype=np.float64)), float(values.std(dtype=np.float64))
        traces.append(
            {
                "type": "bar",
                "y": values.astype(np.float32),
                "xaxis": "x",
                "yaxis": f"y{n}",
                "marker": {"color": colours[number], "line": {"width": 0}},
                "hovertemplate": f"{name}, dimension %{{x}}: %{{y:.3f}}<extra></extra>",
                "name": name,
            }
        )
        across = {"xref": "x domain", "x0": 0, "x1": 1, "yref": f"y{n}"}
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
                "xref": "x domain",
                "xanchor": "left",
                "y": 1,
                "yref": f"y{n} domain",
                "yanchor": "bottom",
                "text": f"<b>{name}</b>",
                "showarrow": False,
                "bgcolor": veil(palette),
                "font": {"size": 15},
            }
        )
        layout[f"yaxis{n}"] = {
            "domain": [max(0.0, float(tops[number] - heights[number])), float(tops[number])],
            "nticks": 4,
            "range": [-float(ends[number]), float(ends[number])],
        }
    layout |= {
        "template": template(palette),
        "showlegend": False,
        "bargap": 0.15,
        "xaxis": {
            "title": {"text": "dimension"},
            "anchor": "y3",
            "showgrid": False,
            "range": [-0.6, len(before) - 0.4],
        },
        "shapes": shapes,
        "annotations": words,
        "margin": {"t": 24, "r": 8},
    }
    return go.Figure(traces, layout)
