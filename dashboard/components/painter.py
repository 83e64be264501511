"""A mask to paint on: a canvas of queries × keys, its brushes, undo and redo. Python hears of whole strokes only."""

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, replace
from typing import Any

import numpy as np
import streamlit as st

from dashboard.components.appearance import palette
from dashboard.components.payload import pack
from dashboard.components.registration import renderer
from dashboard.theme import Palette, rgb

_BRUSHES = {
    "cell": ("Cell", "M7 7h10v10H7z"),
    "row": ("Row", "M2 9h20v6H2z"),
    "column": ("Column", "M9 2h6v20H9z"),
    "diagonal": ("Diagonal", "M2 2h6v6h6v6h6v8h-6v-6H8V8H2z"),
    "antidiagonal": ("Anti-diagonal", "M22 2h-6v6h-6v6H2v8h8v-6h6V8h6z"),
    "box": ("Box", "M3 6h18v12H3z"),
}
_MIRRORS = {
    "main": ("Mirror at the diagonal", "M3 3l18 18", "M14 4h6v6zM10 20H4v-6z"),
    "anti": ("Mirror at the anti-diagonal", "M21 3L3 21", "M4 10V4h6zM20 14v6h-6z"),
}
_ACTS = {
    "undo": ("Undo (Ctrl+Z)", "↶"),
    "redo": ("Redo (Ctrl+Shift+Z)", "↷"),
    "clear": ("Clear: switch every cell on", "Clear"),
    "invert": ("Invert: switch every cell over", "Invert"),
}


def _button(attributes: str, name: str, content: str) -> str:
    return f'<button type="button" {attributes} aria-label="{name}" title="{name}">{content}</button>'


def _icon(solid: str, line: str = "") -> str:
    dashed = (
        f'<path d="{line}" fill="none" stroke="currentColor" stroke-width="2" stroke-dasharray="3 2"/>' if line else ""
    )
    return f'<svg viewBox="0 0 24 24" aria-hidden="true"><path d="{solid}" fill="currentColor"/>{dashed}</svg>'


def _tools() -> str:
    brushes = [
        _button(
            f'role="radio" data-brush="{key}" aria-checked="{"false" if i else "true"}" tabindex="{-1 if i else 0}"',
            f"Brush: {name.lower()}",
            _icon(shape),
        )
        for i, (key, (name, shape)) in enumerate(_BRUSHES.items())
    ]
    mirrors = [
        _button(f'data-mirror="{key}"', name, _icon(shape, line)) for key, (name, line, shape) in _MIRRORS.items()
    ]
    acts = [_button(f'data-act="{key}"', name, text) for key, (name, text) in _ACTS.items()]
    groups = (("radiogroup", "Brush", brushes), ("group", "Mirror", mirrors), ("group", "Strokes", acts))
    return "".join(f'<div role="{role}" aria-label="{name}">{"".join(each)}</div>' for role, name, each in groups)


HTML = f"""
<div class="all">
<div class="painter" role="application" tabindex="0" aria-describedby="help">
  <canvas class="base"></canvas>
  <canvas class="overlay"></canvas>
</div>
<div class="tools">{_tools()}</div>
<div class="foot"><p class="sentence" role="status" aria-live="polite"></p></div>
<p class="blind" role="status" aria-live="polite"></p>
<p class="help" id="help">Arrow keys move from cell to cell, the space bar paints with the brush; Control and Z takes a
stroke back.</p>
</div>
"""


@dataclass(frozen=True)
class Words:
    """What the cells mean: of a painted one, of a bare one, of a row that has none painted, and of several such rows.

    `name` and `value` are what the matrix and its numbers are called when they are saved.
    """

    on: str = "may see"
    off: str = "may not see"
    empty: str = "may see nothing: its attention is zero"
    empties: str = "may see nothing: their attention is zero"
    hint: str = "Drag to forbid or to allow."
    name: str = "mask"
    value: str = "may_see"


MASK = Words()


@dataclass(frozen=True)
class Squares:
    """What is painted: squares of `factor` × `factor` cells, each with a label of its own down and across."""

    factor: int
    queries: Sequence[str]
    keys: Sequence[str]


@dataclass(frozen=True, eq=False)
class Stroke:
    """What was painted: the mask as it stands now, and when, in milliseconds of the browser's clock."""

    mask: np.ndarray
    """bool [query, key]."""
    at: int

    @classmethod
    def read(cls, said: Any) -> "Stroke | None":
        """What the browser said, if that is a mask; a browser may say anything."""
        try:
            n, at, packed = int(said["n"]), int(said["at"]), base64.b64decode(said["cells"], validate=True)
            if n < 1 or len(packed) != -(-(n**2) // 8):
                return None
        except (TypeError, KeyError, ValueError, binascii.Error, OverflowError):
            return None
        bits = np.unpackbits(np.frombuffer(packed, dtype=np.uint8), count=n**2)
        return cls(bits.astype(bool).reshape(n, n), at)


@dataclass(frozen=True, eq=False)
class Painter:
    """`mask`, bool [query, key] and square, True = may see, to be painted on; at most `height` pixels high.

    Plots and grids of one `link` share their hovered cell. `words` say what its cells mean, where they are not a
    mask's. Where the cells are many they are shown and painted in `squares`. `answered` is when the last stroke was
    made of which `mask` knows, `refused` when one was made that could not be had: the picture goes back to `mask`.
    """

    mask: np.ndarray
    queries: Sequence[str]
    keys: Sequence[str]
    _: KW_ONLY
    key: str
    alt: str
    link: str | None = None
    height: int = 310
    words: Words = MASK
    squares: Squares | None = None
    answered: int = 0
    refused: int = 0

    def draw(self, on_stroke: Callable[[np.ndarray], bool]) -> None:
        """Mount it. `on_stroke` is given the mask, before the rerun, when a stroke, an undo or the like has ended.

        It says whether that mask can be had. Reports may come twice or late, and each holds the whole mask: only a
        newer one counts.
        """
        known = st.session_state.setdefault("strokes", {"answered": 0, "refused": 0})

        def painted() -> None:
            stroke = Stroke.read(st.session_state[self.key]["stroke"])
            if stroke and stroke.mask.shape == self.mask.shape and stroke.at > known["answered"]:
                known["answered"] = stroke.at
                if not on_stroke(stroke.mask):
                    known["refused"] = stroke.at

        mount = renderer("painter", html=HTML, isolate_styles=True)
        mount(key=self.key, data=replace(self, **known).pack(palette()), on_stroke_change=painted)

    def pack(self, colours: Palette) -> bytes:
        """The message for the browser: the cells as `numpy.packbits` writes them, 1 = may see.

        Raises ValueError for what cannot be painted.
        """
        n, squares = len(self.queries), self.squares or Squares(1, self.queries, self.keys)
        if self.mask.shape != (n, n) or len(self.keys) != n:
            raise ValueError(f"{n} query labels and {len(self.keys)} key labels for a mask of {list(self.mask.shape)}.")
        if not len(squares.queries) == len(squares.keys) == -(-n // squares.factor):
            raise ValueError(f"{n} cells a side are not {len(squares.queries)} squares of {squares.factor}.")
        if not self.alt.strip():
            raise ValueError("A painter needs alt: one sentence that says in words what the mask is.")
        header = {
            "key": self.key,
            "alt": self.alt,
            "n": n,
            "queries": list(self.queries),
            "keys": list(self.keys),
            "squares": {"factor": squares.factor, "queries": list(squares.queries), "keys": list(squares.keys)},
            "answered": self.answered,
            "refused": self.refused,
            "link": self.link,
            "height": self.height,
            "words": asdict(self.words),
            "dark": colours.dark,
            "muted": colours.muted,
            "blind": colours.wrong,
            "colours": list(rgb(colours.scale[1])),
            "forbidden": list(rgb(colours.forbidden)),
        }
        return pack(header, np.packbits(self.mask).tobytes())
