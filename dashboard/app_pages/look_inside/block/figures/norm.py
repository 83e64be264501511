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


def norm_panels(
    steps: Mapping[str, np.ndarray], sizes: Sequence[float], sign: str, *, centres: bool, palette: Palette = LIGHT
) -> go.Figure:
    """The numbers of one vector, float [d_model], after each step of a norm, by what was done: two of them to four.

    The divided ones, which come last, stand below the others: their names say so. Where the norm `centres`, the dashed
    line is the mean, else it is 0. The band goes to either side by what the norm measures, `sizes`, whose sign is
    `sign`. The numbers stand in words above. Two panels side by side have one scale. The lower ones have a scale
    of their own, so that every panel can be read.
    """
    vectors, above = list(steps.values()), next(i for i, name in enumerate(steps) if name.startswith("÷"))
    traces, shapes, words = [], [], []
    layout: dict[str, object] = {}
    for i, (name, values) in enumerate(steps.items()):
        n = "" if i == 0 else str(i + 1)
        row = int(i >= above)
        column, beside = i - row * above, vectors[above:] if row else vectors[:above]
        mean = float(values.mean(dtype=np.float64)) if centres else 0.0
        spread = sizes[i]
        said = f"{f'μ = {signed(mean)}, ' if centres else ''}{sign} = {spread:.2f}"
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
