"""The head in focus: its pattern, and what it contributes."""

from __future__ import annotations

import numpy as np

from dashboard import theme
from dashboard.app_pages.look_inside.heads.comparison import reference
from dashboard.components.appearance import is_dark
from dashboard.components.focus import View
from dashboard.models import heads
from dashboard.models.model import Model
from dashboard.parts.head_focus import draw
from transformer.analysis.findings import Detail, Head


def pattern(model: Model, question: np.ndarray, head: Head, mean: np.ndarray | None = None) -> None:
    """Draw the pattern of a head large, with its arcs, and how it differs from what the view names.

    Or its `mean` over many sequences, float [query, key].
    """
    detail = heads.detail(model, question, head.site)
    values = detail.pattern[head.index] if mean is None else mean
    title = "Pattern" if mean is None else "Mean pattern"
    views = [View("pattern", title, values, 0.0, 1.0, theme.pattern_colours(is_dark()))]
    other = None if mean is not None else reference(model, question, head, values.shape)
    if other is not None:
        difference = values - other.pattern
        most = _most(np.abs(difference), detail)
        colours = theme.signed_colours(is_dark())
        views.append(View("difference", f"Pattern − {other.words}", difference, -most, most, colours))
    makers = [model.maker(), other.maker] if other is not None and other.maker != model.maker() else None
    draw(model, question, head, detail, views, key="head-pattern", says=mean is None, makers=makers)


def contribution(model: Model, question: np.ndarray, head: Head) -> None:
    """Draw what a head's readings write into the residual stream: attention is not effect."""
    detail = heads.detail(model, question, head.site)
    values = detail.contribution(head.index)
    colours = theme.pattern_colours(is_dark())
    formula = "‖pattern · v‖" if model.config.model.recurrent else "‖pattern · v · W_O‖"
    view = View("contribution", f"Contribution: {formula}", values, 0.0, _most(values, detail), colours)
    draw(model, question, head, detail, [view], key="head-contribution", says=True)


def _most(values: np.ndarray, detail: Detail) -> float:
    """The end of a scale: the greatest value that is allowed; 1 where all are zero."""
    return float(values[detail.mask].max(initial=0.0)) or 1.0
