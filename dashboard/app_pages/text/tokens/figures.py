"""A text as numbered tokens, a window of it place by place, and what each place sees: HTML and Plotly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
import plotly.graph_objects as go

from dashboard.figures.kit.token_axis import elided, safe
from dashboard.theme import LIGHT, Palette, template

TOGETHER = 8
"""Places of a window in a row."""


@dataclass(frozen=True)
class Numbered:
    """A token and its id; `window` is where it stands, from 1, and None for one that is left out."""

    text: str
    number: int
    window: int | None = None
    unknown: bool = False


def numbered_tokens(
    tokens: Sequence[Numbered], *, first: int, chosen: int | None, spoken: str, palette: Palette = LIGHT
) -> str:
    """Tokens in a row that wraps, each with its id below, the first at place `first` of the text, from 1.

    A word before each window says which it is; the `chosen` one is framed. Left out tokens are faint, unknown ones
    dashed. `spoken` says in words what is shown.
    """
    boxes, before = [], None
    for place, token in enumerate(tokens, first):
        if token.window is not None and token.window != before:
            weight = 700 if token.window == chosen else 400
            boxes.append(
                f'<span style="align-self:center;font-size:13px;color:{palette.muted};font-weight:{weight};'
                f'margin-left:6px">window {token.window}</span>'
            )
        before = token.window
        boxes.append(_box(token, place, token.window is not None and token.window == chosen, palette))
    return (
        f'<div role="img" aria-label="{escape(spoken, quote=True)}" style="display:flex;flex-wrap:wrap;gap:5px 4px">'
        f"{''.join(boxes)}</div>"
    )


def _box(token: Numbered, place: int, chosen: bool, palette: Palette) -> str:
    """One token of the row; the pointer says what it is."""
    where = "in no window" if token.window is None else f"in window {token.window}"
    said = f"token {place}: {token.text}, id {token.number}{', unknown' if token.unknown else ''}, {where}"
    frame = f"2px solid {palette.accent}" if chosen else f"1.5px solid {palette.grid}"
    ground, ink = (palette.background, palette.muted) if token.window is None else (palette.surface, palette.text)
    return _face(token, frame, palette, ground=ground, ink=ink, said=said)


def _face(token: Numbered, frame: str, palette: Palette, *, ground: str, ink: str, said: str = "") -> str:
    """A token above its id, in a frame; an unknown one has another."""
    border = f"2px dashed {palette.wrong}" if token.unknown else frame
    return (
        f'<span title="{escape(said, quote=True)}" style="display:block;text-align:center;border:{border};'
        f'border-radius:6px;padding:1px 5px;background:{ground}">'
        f'<span style="display:block;font:600 16px/22px monospace;white-space:pre;color:{ink}">'
        f"{escape(elided(token.text))}</span>"
        f'<span style="display:block;font-size:12px;line-height:15px;color:{palette.muted}">{token.number}</span>'
        "</span>"
    )


def window_table(
    read: Sequence[Numbered],
    predicted: Sequence[Numbered],
    seen: Sequence[int],
    *,
    spoken: str,
    palette: Palette = LIGHT,
) -> str:
    """A window place by place: what is read, what is to be predicted, and how many tokens of the text are seen."""

    def faces(tokens: Sequence[Numbered], colour: str) -> list[str]:
        frame = f"2px solid {colour}"
        return [_face(token, frame, palette, ground=palette.surface, ink=palette.text) for token in tokens]

    parts = []
    for first in range(0, len(read), TOGETHER):
        part = slice(first, first + TOGETHER)
        places = range(first + 1, first + len(read[part]) + 1)
        rows = (
            _row("place", [str(place) for place in places], palette, head=True),
            _row("reads", faces(read[part], palette.measured), palette),
            _row("to predict", faces(predicted[part], palette.right), palette),
            _row("tokens seen", [f"<b>{count}</b>" for count in seen[part]], palette),
        )
        parts.append(
            f'<table aria-label="{escape(spoken, quote=True)}" style="border-collapse:separate;border-spacing:3px;'
            f'color:{palette.text};font-size:15px;line-height:22px">{"".join(rows)}</table>'
        )
    return f'<div style="overflow-x:auto">{"".join(parts)}</div>'


def _row(name: str, cells: Sequence[str], palette: Palette, *, head: bool = False) -> str:
    style = f"text-align:center;color:{palette.muted};font-weight:400" if head else "text-align:center;min-width:54px"
    tag = 'th scope="col"' if head else "td"
    inner = "".join(f'<{tag} style="{style}">{cell}</{tag[:2]}>' for cell in cells)
    return (
        f'<tr><th scope="row" style="text-align:left;font-weight:400;padding-right:8px;white-space:nowrap;'
        f'color:{palette.muted}">{escape(name)}</th>{inner}</tr>'
    )


def context_bars(
    window: np.ndarray, seen: np.ndarray, tokens: Sequence[str], *, chosen: int, palette: Palette = LIGHT
) -> go.Figure:
    """What is seen before each token of a text: int [token], its window from 1 and 0 for none, and the tokens it sees.

    The dotted line is what stands before it in the text: what a single window of the whole text would see.
    """
    places = np.arange(1, len(window) + 1)
    inside = window > 0
    colours = np.where(window == chosen, palette.accent, palette.before)
    traces = [
        {
            "type": "bar",
            "x": places[inside],
            "y": seen[inside],
            "name": "in its window",
            "marker": {"color": colours[inside].tolist(), "line": {"width": 0}},
            "customdata": [[safe(tokens[i]), int(window[i])] for i in np.flatnonzero(inside).tolist()],
            "hovertemplate": "token %{x}: %{customdata[0]}<br>%{y} seen in window %{customdata[1]}<extra></extra>",
        },
        {
            "type": "scatter",
            "mode": "lines",
            "x": places,
            "y": places - 1,
            "name": "in the text",
            "line": {"color": palette.chance, "width": 2, "dash": "dot"},
            "hovertemplate": "token %{x}: %{y} before it in the text<extra></extra>",
        },
    ]
    layout = {
        "template": template(palette),
        "bargap": 0.1,
        "margin": {"l": 60, "r": 16, "t": 34, "b": 48},
        "xaxis": {"title": {"text": "token of the text"}, "range": [0.5, len(window) + 0.5]},
        "yaxis": {"title": {"text": "tokens seen before it"}, "rangemode": "tozero", "nticks": 6},
        "legend": {"orientation": "h", "x": 1, "xanchor": "right", "y": 1.02, "yanchor": "bottom"},
        "showlegend": True,
    }
    return go.Figure(data=traces, layout=layout)
