"""Draws a text word by word: a colour for each, arcs from one of them to those it has to do with, a click on any."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dashboard.components.appearance import palette
from dashboard.components.origin import Maker
from dashboard.components.payload import Body, pack
from dashboard.components.registration import renderer

HTML = """
<div class="scroller">
  <div class="passage" role="application" tabindex="0" aria-describedby="help">
    <canvas class="base"></canvas>
    <canvas class="overlay"></canvas>
  </div>
</div>
<div class="foot"><p class="sentence" role="status" aria-live="polite"
  data-hint="Point at a word to read it; click to choose it."></p></div>
<p class="help" id="help">Arrow keys move from word to word and choose it.</p>
"""


@dataclass(frozen=True, eq=False)
class Words:
    """A text in its tokens, as they stand in it: line ends break the line, blanks are blanks."""

    tokens: tuple[str, ...]
    says: tuple[str, ...] | None = None
    """A sentence for each, said when the pointer is on it; without it, the word and its position."""
    given: int = 0
    """So many at the beginning are underlined: they were given, not written."""
    first: int = 0
    """The first that can be chosen."""
    name: str = "words"
    """What it is called where it is saved."""


@dataclass(frozen=True, eq=False)
class Ground:
    """A number for each word, as the colour it stands on."""

    values: np.ndarray
    """float [token]; nan leaves a word without a colour."""
    low: float
    high: float
    colours: np.ndarray
    """The scale from low to high, uint8 [256, 3]."""
    title: str
    """What the numbers are, beside their scale."""
    digits: int = 2
    """Digits after the point."""
    faded: bool = False
    """Write words of low values in fainter letters as well."""


@dataclass(frozen=True)
class Ink:
    """The colours beside the theme's own, as "#rrggbb"."""

    dark: bool
    accent: str
    muted: str


def passage(
    words: Words,
    *,
    key: str,
    alt: str,
    ground: Ground | None = None,
    chosen: int | None = None,
    arcs: np.ndarray | None = None,
    height: int = 420,
    follow: bool = False,
    makers: Sequence[Maker] | None = None,
    on_choose: Callable[[], None] | None = None,
) -> None:
    """Draw `words`, coloured by `ground`; at most `height` pixels high, beyond which it scrolls.

    `chosen` is outlined; `arcs`, float [token], 0 to 1, are drawn from it to the words with the greatest of them. With
    `follow` the end stays in view while the text grows. In `on_choose` the index of the word chosen by click or arrow
    key is `st.session_state[key]["choose"]`. `alt` says in a sentence what is to be seen. `makers` are named in what is
    saved of it, where they are others than the page's.
    """
    colours = palette()
    mount = renderer("passage", html=HTML, isolate_styles=True)
    data = pack_passage(
        words,
        key=key,
        alt=alt,
        ink=Ink(colours.dark, colours.accent, colours.muted),
        ground=ground,
        chosen=chosen,
        arcs=arcs,
        height=height,
        follow=follow,
        makers=makers,
    )
    mount(key=key, data=data, on_choose_change=on_choose or (lambda: None))


def pack_passage(
    words: Words,
    *,
    key: str,
    alt: str,
    ink: Ink,
    ground: Ground | None = None,
    chosen: int | None = None,
    arcs: np.ndarray | None = None,
    height: int = 420,
    follow: bool = False,
    makers: Sequence[Maker] | None = None,
) -> bytes:
    """The message for the browser: the words in the header, the numbers as float32 in the body."""
    _check(words, alt, ground, chosen, arcs)
    body = Body()
    header: dict[str, Any] = {
        "key": key,
        "alt": alt,
        **asdict(words),
        **asdict(ink),
        "chosen": chosen,
        "height": height,
        "follow": follow,
        "makers": None if makers is None else [asdict(maker) for maker in makers],
    }
    if ground is not None:
        header["ground"] = {
            "values": body.add(np.ascontiguousarray(ground.values, dtype="<f4").tobytes()),
            "colours": body.add(ground.colours.tobytes()),
            "low": ground.low,
            "high": ground.high,
            "title": ground.title,
            "digits": ground.digits,
            "faded": ground.faded,
        }
    if arcs is not None:
        header["arcs"] = body.add(np.ascontiguousarray(arcs, dtype="<f4").tobytes())
    return pack(header, bytes(body.data))


def _check(words: Words, alt: str, ground: Ground | None, chosen: int | None, arcs: np.ndarray | None) -> None:
    n = len(words.tokens)
    if not alt.strip():
        raise ValueError("A passage needs alt: one sentence that says in words what it shows.")
    if words.says is not None and len(words.says) != n:
        raise ValueError(f"{len(words.says)} sentences for {n} words.")
    if ground is not None:
        if ground.values.shape != (n,):
            raise ValueError(f"The values of {ground.title} are {list(ground.values.shape)} for {n} words.")
        if not ground.low < ground.high:
            raise ValueError(f"The scale of {ground.title} must rise, not go from {ground.low} to {ground.high}.")
    if chosen is not None and not words.first <= chosen < n:
        raise ValueError(f"The word chosen is one of {words.first} to {n - 1}, not {chosen}.")
    if arcs is not None and arcs.shape != (n,):
        raise ValueError(f"The arcs are {list(arcs.shape)} for {n} words.")
