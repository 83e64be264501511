"""What the first page needs, made ready while the first browser still loads its own part."""

from __future__ import annotations

from threading import Thread


def make_ready() -> None:
    """Begin, in a thread: import what pages import, and draw a figure for nobody.

    Plotly reads its definitions at the first figure.
    """
    Thread(target=_make_ready, name="first page", daemon=True).start()


def _make_ready() -> None:
    import numpy as np

    from dashboard.figures.patterns import pattern_heatmap
    from dashboard.frame import health, live, sharing, sidebar, training_panel  # noqa: F401
    from dashboard.frame.guided import exercise, lecture, prediction  # noqa: F401

    cells = np.eye(2, dtype=bool)
    pattern_heatmap(cells.astype(float), cells, ("a", "b"), ("a", "b"))
