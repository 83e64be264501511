"""A head's circuits as heatmaps: row = what asks or is found, column = what fits or is said."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.colour_bar import bar_layout, scaled
from dashboard.figures.kit.token_axis import matrix_axes
from dashboard.theme import LIGHT, Palette, template


def circuit_heatmap(
    values: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    titles: tuple[str, str],
    sentence: Callable[[int, int], str],
    palette: Palette = LIGHT,
) -> go.Figure:
    """Float [row, column] on a diverging scale centred on 0; `titles` name the rows and the columns.

    Look for a diagonal: like fits like, or is copied. `sentence` says a cell in words.
    """
    limit = float(np.abs(values).max(initial=0.0)) or 1.0
    n_rows, n_columns = values.shape
    cells = {
        "type": "heatmap",
        "z": values.astype(np.float32),
        **scaled(-limit, limit, palette.signed),
        "xgap": 1,
        "ygap": 1,
        "text": [[sentence(row, column) for column in range(n_columns)] for row in range(n_rows)],
        "hovertemplate": "%{text}<extra></extra>",
        "name": "values",
    }
    layout = {
        "template": template(palette),
        **matrix_axes((titles[0], rows), (titles[1], columns)),
        **bar_layout(-limit, limit, palette),
    }
    return go.Figure([cells], layout)
