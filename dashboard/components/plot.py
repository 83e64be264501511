"""Shows a Plotly figure that updates in place: zoom and node are kept, and a click on any trace reaches Python.

A figure, or a piece of HTML, is drawn in the palette of the rerun by `coloured`.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, ParamSpec, TypeVar

import plotly
import plotly.graph_objects as go

from dashboard.components.appearance import palette
from dashboard.components.origin import Maker
from dashboard.components.payload import pack
from dashboard.components.registration import nothing, renderer
from dashboard.server.plotly_js import TRACES

HTML = """
<div class="al-plot" role="group" tabindex="0" aria-busy="true" data-state="loading">
  <div class="al-plot-alt"></div>
  <div class="al-plot-skeleton" aria-hidden="true"></div>
  <div class="al-plot-stage"></div>
  <div class="al-plot-crosshair" aria-hidden="true"></div>
  <p class="al-plot-failure" hidden></p>
</div>
"""

P = ParamSpec("P")
T = TypeVar("T")


def coloured(draw: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What `draw` makes of these arguments in the palette of the rerun, which it takes as `palette`."""
    kwargs["palette"] = palette()
    return draw(*args, **kwargs)


def plot(
    figure: go.Figure,
    *,
    key: str,
    alt: str,
    height: int | None = 360,
    on_click: Callable[[], None] | None = None,
    makers: Sequence[Maker] | None = None,
) -> dict[str, Any] | None:
    """Draw `figure`, `height` pixels high and as wide as its place, and return the click of this rerun, if any.

    A click is `{curve, name, x, y, z, customdata, meta}`, and for a heatmap also `row` and `column`, counted from 0.
    In `on_click` the same record is `st.session_state[key]["click"]`. Without a `height` the figure says how high it is
    at which width: one of a head (figures/head_focus.py), whose click is `{lock: row}`, -1 when it was unlocked, or
    `{window: {row, column}}`, the place that its window is to be centred on. The click of a figure whose cursor can be
    dragged (`layout.meta.cursor`, figures/encodings.py) is `{cursor: position}`, counted from 1, once it is let go.

    `alt` is the sentence a screen reader says in place of the picture. Figures with the same
    `layout.meta = {"link": group}` share their hovered heatmap cell with each other, and with a `head_grid` of that
    group. A heatmap with `meta = {"pairs": names}` gets "one, other" as the text of each cell, by the names of its row
    and its column. A trace with `meta = {"least_width": pixels}` is left out where there is less room. Zoom survives
    new data; to forget it, give the figure another `layout.uirevision`.

    `makers` says whose numbers these are, where they are not those of the page's model. Of what is saved, decoration is
    left out: traces with `hoverinfo="skip"`, and what `meta={"numbers": False}` says is none (web/plot/takeaway.js).
    """
    mount = renderer("plot", html=HTML, isolate_styles=False)  # Plotly keeps its style sheet in the document's head
    result = mount(
        key=key,
        data=pack_figure(figure, key=key, alt=alt, height=height, makers=makers),
        height="content" if height is None else height,
        on_click_change=on_click or nothing,
    )
    click: dict[str, Any] | None = result.click
    return click


def pack_figure(
    figure: go.Figure, *, key: str, alt: str, height: int | None, makers: Sequence[Maker] | None = None
) -> bytes:
    """The message for the browser; the same figure gives the same bytes, which the browser then need not redraw."""
    if not alt.strip():
        raise ValueError("A plot needs alt: one sentence that says in words what the figure shows.")
    height = figure.layout.height if height is None else height
    if height < 1:
        raise ValueError(f"A plot's height is a positive number of pixels, not {height}.")
    if unknown := {trace.type for trace in figure.data}.difference(TRACES):
        raise ValueError(f"The browser's plotly.js draws no trace of the type {min(unknown)}.")
    header: dict[str, Any] = {"alt": alt, "height": height, "revision": key, "plotly": plotly.__version__}
    if makers is not None:
        header["makers"] = [asdict(maker) for maker in makers]
    return pack(header, figure.to_json(validate=False).encode())
