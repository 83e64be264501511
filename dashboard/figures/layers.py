"""Numbers layer by layer, as lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.lines import DASHES, SYMBOLS
from dashboard.figures.kit.token_axis import safe
from dashboard.theme import LIGHT, Palette, template


@dataclass(frozen=True)
class Line:
    """One model: a number at each layer, or at each boundary between two, float [layer]."""

    name: str
    values: np.ndarray


def layer_lines(
    lines: Sequence[Line],
    *,
    across: str,
    up: str,
    powers: bool = False,
    places: Sequence[int] | None = None,
    palette: Palette = LIGHT,
) -> go.Figure:
    """Numbers by layer, from 0, or at `places`; with `powers` on a scale of powers of ten. Look for which line falls.

    Without, the scale is that of cosines, 0 to 1, and lower where a number is below.
    """
    traces = [
        {
            "type": "scatter",
            "x": list(range(len(line.values)) if places is None else places),
            "y": line.values.astype(np.float32),
            "mode": "lines+markers",
            "line": {"color": palette.categorical[place], "width": 3, "dash": DASHES[place]},
            "marker": {"size": 10, "symbol": SYMBOLS[place]},
            "cliponaxis": False,
            "hovertemplate": f"{safe(line.name)}, %{{x}}: %{{y:.3g}}<extra></extra>",
            "name": line.name,
        }
        for place, line in enumerate(lines)
    ]
    values = np.concatenate([line.values for line in lines])
    scale = (
        _powers(values)
        if powers
        else {"range": [float(values.min(initial=0.0, where=np.isfinite(values))) - 0.05, 1.05]}
    )
    most = max(len(line.values) for line in lines)
    ticks = {"dtick": 1, "range": [-0.2, most - 0.8]}
    if places is not None:
        ticks = {"tickvals": list(places), "range": [places[0] - 0.2, places[-1] + 0.2]}
    layout = {
        "template": template(palette),
        "xaxis": {"title": {"text": across}, **ticks},
        "yaxis": {"title": {"text": up}, **scale},
        "legend": {"font": {"size": 15}},
        "margin": {"r": 12},
    }
    return go.Figure(traces, layout)


def _powers(values: np.ndarray) -> dict[str, object]:
    """A logarithmic axis with ticks at 1, 2 and 5 times each power of ten, and room for two of them at least.

    What has no place on it (0, infinity, no number) decides nothing: a norm that a reader brings may give it.
    """
    values = values[np.isfinite(values) & (values > 0)]
    if not len(values):
        return {"type": "log"}
    low, high = float(np.log10(values.min())) - 0.2, float(np.log10(values.max())) + 0.2
    ticks = [
        factor * 10.0**power
        for power in range(int(np.floor(low)), int(np.ceil(high)))
        for factor in ((1, 2, 5) if high - low < 2.5 else (1,))
    ]
    return {"type": "log", "range": [low, high], "tickvals": ticks, "ticktext": [f"{tick:g}" for tick in ticks]}
