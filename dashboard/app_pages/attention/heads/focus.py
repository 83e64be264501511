"""The head in focus, large: its pattern, what it contributes, and how it differs from what it is compared with."""

from __future__ import annotations

import numpy as np

from dashboard.app_pages.attention.heads.comparison import reference
from dashboard.figures.head_focus import View
from dashboard.models import heads
from dashboard.models.model import Model
from dashboard.parts.head_focus import draw
from transformer.analysis.findings import Detail, Head


def large(model: Model, question: np.ndarray, head: Head, mean: np.ndarray | None = None) -> None:
    """Draw a head large: its pattern with its arcs, what its readings write into the residual stream, for attention is
    not effect, and how the pattern differs from what the view names.

    Or its `mean` over many sequences, float [query, key], alone.
    """
    detail = heads.detail(model, question, head.site)
    values = detail.pattern[head.index] if mean is None else mean
    views = [View("pattern", "Pattern" if mean is None else "Mean pattern", values, 0.0, 1.0)]
    makers = None
    if mean is None:
        written = detail.contribution(head.index)
        formula = "‖pattern · v‖" if model.config.model.recurrent else "‖pattern · v · W_O‖"
        views.append(View("contribution", f"Contribution: {formula}", written, 0.0, _most(written, detail)))
        if other := reference(model, question, head, values.shape):
            difference = values - other.pattern
            most = _most(np.abs(difference), detail)
            views.append(View("difference", f"Pattern − {other.words}", difference, -most, most))
            makers = [model.maker(), other.maker] if other.maker != model.maker() else None
    draw(model, question, head, detail, views, key="head-pattern", says=mean is None, makers=makers)


def _most(values: np.ndarray, detail: Detail) -> float:
    """The end of a scale: the greatest value that is allowed; 1 where all are zero."""
    return float(values[detail.mask & np.isfinite(values)].max(initial=0.0)) or 1.0
