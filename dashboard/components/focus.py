"""Draws one head large: its matrices side by side, and the same attention as arcs between the tokens."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dashboard.components.origin import Maker
from dashboard.components.payload import Body, pack
from dashboard.components.registration import renderer

HTML = """
<div class="focus" role="application" tabindex="0" aria-describedby="help">
  <canvas class="base"></canvas>
  <canvas class="overlay"></canvas>
</div>
<button type="button" class="lock" hidden></button>
<div class="foot"><p class="sentence" role="status" aria-live="polite"
  data-hint="Point at a cell or a token to read it; click to lock its query."></p></div>
<p class="help" id="help">Arrow keys move from cell to cell; Enter locks the query, Escape unlocks it.</p>
"""


@dataclass(frozen=True, eq=False)
class View:
    """One matrix of a head: what it is called, its numbers, and their scale."""

    name: str
    """What the sentence under the pictures calls it: "contribution"."""
    title: str
    values: np.ndarray
    """float [query, key]; where nothing is allowed, whatever: the mask decides."""
    low: float
    high: float
    colours: np.ndarray
    """The scale from low to high, uint8 [256, 3]."""
    digits: int = 2
    """Digits after the point."""


@dataclass(frozen=True, eq=False)
class Whole:
    """A downsampled picture of the whole pattern, of which the views show a window."""

    pattern: np.ndarray
    """float [block, block], 0 to 1."""
    mask: np.ndarray
    """bool [block, block]."""
    factor: int
    """How many tokens a side of a block stands for."""


@dataclass(frozen=True, eq=False)
class Subject:
    """The head that is drawn, and what its rows and columns mean."""

    head: str
    """Its path: "decoder.1.self_attention.3"."""
    name: str
    """Its short name: "1.3"."""
    number: int
    """Its number in the grid of all heads."""
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    mask: np.ndarray
    """bool [query, key] of what the views show, True = may be seen."""
    first: tuple[int, int] = (0, 0)
    """The query and the key at which the views begin, from 0: of a long input they are a window."""
    marks: np.ndarray | None = None
    """bool [query, key] of what the views show: cells to outline."""
    says: tuple[str, ...] | None = None
    """What the model says at each query, if that is known."""
    factor: int = 1
    """How many tokens a row and a column stand for."""


@dataclass(frozen=True)
class Ink:
    """The colours, as "#rrggbb"."""

    dark: bool
    accent: str
    mark: str
    muted: str
    forbidden: tuple[int, int, int]
    scale: np.ndarray
    """The scale of patterns, uint8 [256, 3]."""


def focus(
    subject: Subject,
    views: Sequence[View],
    *,
    key: str,
    alt: str,
    ink: Ink,
    whole: Whole | None = None,
    locked: int | None = None,
    link: str | None = None,
    height: int = 380,
    arcs: bool = True,
    by_row: bool = False,
    makers: Sequence[Maker] | None = None,
    on_lock: Callable[[], None] | None = None,
    on_window: Callable[[], None] | None = None,
) -> None:
    """Draw `views` of one head, at most `height` pixels high each; the first with its `arcs` beside it.

    `locked` is the query, from 0, whose lines stay. In `on_lock` the query chosen by a click is
    `st.session_state[key]["lock"]`, -1 when it was unlocked; in `on_window` the place that the window is to be centred
    on is `st.session_state[key]["window"]`, a dict of row and column. Grids, plots and focuses of one `link` share
    their hovered cell, and a grid of that link outlines this head. `makers` are named in what is saved of it, where
    they are others than the page's.
    """
    mount = renderer("focus", html=HTML, isolate_styles=True)
    mount(
        key=key,
        data=pack_focus(
            subject,
            views,
            key=key,
            alt=alt,
            ink=ink,
            whole=whole,
            locked=locked,
            link=link,
            height=height,
            arcs=arcs,
            by_row=by_row,
            makers=makers,
        ),
        on_lock_change=on_lock or (lambda: None),
        on_window_change=on_window or (lambda: None),
    )


def pack_focus(
    subject: Subject,
    views: Sequence[View],
    *,
    key: str,
    alt: str,
    ink: Ink,
    whole: Whole | None = None,
    locked: int | None = None,
    link: str | None = None,
    height: int = 380,
    arcs: bool = True,
    by_row: bool = False,
    makers: Sequence[Maker] | None = None,
) -> bytes:
    """The message for the browser: values as float32, masks, marks and the downsampled whole as bytes, its
    mask as bits."""
    _check(subject, views, alt)
    body = Body()
    rows, columns = subject.mask.shape
    header: dict[str, Any] = {
        "key": key,
        "alt": alt,
        "head": subject.head,
        "name": subject.name,
        "number": subject.number,
        "rows": rows,
        "columns": columns,
        "first": subject.first,
        "queries": subject.queries,
        "keys": subject.keys,
        "says": subject.says,
        "factor": subject.factor,
        "locked": locked,
        "link": link,
        "height": height,
        "arcs": arcs,
        "byRow": by_row,
        "makers": None if makers is None else [asdict(maker) for maker in makers],
        "dark": ink.dark,
        "accent": ink.accent,
        "mark": ink.mark,
        "muted": ink.muted,
        "forbidden": list(ink.forbidden),
        "views": [
            {
                "name": view.name,
                "title": view.title,
                "low": view.low,
                "high": view.high,
                "digits": view.digits,
                "values": body.add(np.ascontiguousarray(view.values, dtype="<f4").tobytes()),
                "colours": body.add_once(view.colours.tobytes()),
            }
            for view in views
        ],
    }
    if not subject.mask.all():
        header["mask"] = body.add(_bytes(subject.mask))
    if subject.marks is not None and subject.marks.any():
        header["marks"] = body.add(_bytes(subject.marks))
    if whole is not None:
        levels = np.rint(np.clip(np.nan_to_num(whole.pattern), 0, 1) * 255)
        header["whole"] = {
            "rows": whole.pattern.shape[0],
            "columns": whole.pattern.shape[1],
            "factor": whole.factor,
            "values": body.add(_bytes(levels)),
            "mask": body.add(np.packbits(whole.mask).tobytes()),
            "colours": body.add_once(ink.scale.tobytes()),
        }
    return pack(header, bytes(body.data))


def _bytes(array: np.ndarray) -> bytes:
    return np.ascontiguousarray(array, dtype=np.uint8).tobytes()


def _check(subject: Subject, views: Sequence[View], alt: str) -> None:
    if not views:
        raise ValueError("A focus needs at least one view.")
    if not alt.strip():
        raise ValueError("A focus needs alt: one sentence that says in words what the pictures show.")
    shape = subject.mask.shape
    for view in views:
        if view.values.shape != shape:
            raise ValueError(f"The view {view.name} is {list(view.values.shape)}, the mask {list(shape)}.")
        if not view.low < view.high:
            raise ValueError(f"The scale of {view.name} must rise, not go from {view.low} to {view.high}.")
    if subject.marks is not None and subject.marks.shape != shape:
        raise ValueError(f"The marks are {list(subject.marks.shape)}, the mask {list(shape)}.")
    ends = tuple(begin + size for begin, size in zip(subject.first, shape, strict=True))
    if ends[0] > len(subject.queries) or ends[1] > len(subject.keys):
        raise ValueError(
            f"{len(subject.queries)} query labels and {len(subject.keys)} key labels for cells up to {list(ends)}."
        )
