"""The loss of models in training, against guessing and the floor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.lines import DASHES, SYMBOLS, level, level_name, round_up, waiting
from dashboard.figures.kit.token_axis import safe
from dashboard.figures.layers import Line
from dashboard.theme import LIGHT, Palette, template


def loss_lines(lines: Sequence[Line], *, floor: float, guess: float, palette: Palette = LIGHT) -> go.Figure:
    """Loss in nats by step, from 1, of models in training, between guessing and the floor that none passes.

    Look for the line that stays at guessing.
    """
    traces = [
        {
            "type": "scatter",
            "x": np.arange(1, len(line.values) + 1),
            "y": line.values.astype(np.float32),
            "mode": "lines+markers",
            "line": {"color": palette.categorical[place], "width": 3, "dash": DASHES[place]},
            "marker": {"size": [0] * (len(line.values) - 1) + [12], "symbol": SYMBOLS[place], "line": {"width": 0}},
            "cliponaxis": False,
            "hovertemplate": f"{safe(line.name)}, step %{{x}}: loss %{{y:.3f}} nats<extra></extra>",
            "name": line.name,
            "showlegend": True,
        }
        for place, line in enumerate(lines)
    ]
    top = max([1.25 * guess, *(float(line.values.max(initial=0.0)) for line in lines)])
    most = max(len(line.values) for line in lines)
    layout = {
        "template": template(palette),
        "xaxis": {"title": {"text": "step"}, "range": [0, round_up(float(most))], "nticks": 7},
        "yaxis": {"title": {"text": "loss (nats)"}, "range": [-0.13 * top, 1.03 * top], "nticks": 6},
        "shapes": [
            level(guess, {"color": palette.chance, "width": 2, "dash": "dot"}),
            level(floor, {"color": palette.ceiling, "width": 2, "dash": "dash"}),
        ],
        "annotations": [
            _under(guess, f"guessing: {guess:.2f}", palette.chance, palette),
            _under(floor, f"loss floor: {floor:.2f}", palette.ceiling, palette),
            *([] if most else [waiting("waiting for the first step", palette)]),
        ],
        "legend": {"font": {"size": 15}},
        "margin": {"r": 16},
    }
    return go.Figure(traces, layout)


def _under(height: float, text: str, colour: str, palette: Palette) -> dict[str, object]:
    """The name of a level, under it on the right: there a model that learns has long been lower, or is solved."""
    return {**level_name(height, text, colour, palette, above=True), "yanchor": "top"}
