"""Draws a text word by word: a colour for each, arcs from one of them to those it has to do with, a click on any."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from typing import Any

import numpy as np

from dashboard.components.appearance import palette
from dashboard.components.origin import Maker
from dashboard.components.payload import Body, pack
from dashboard.components.registration import nothing, renderer
from dashboard.theme import Palette

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


@dataclass(frozen=True, eq=False)
class Passage:
    """`words`, coloured by `ground`; at most `height` pixels high, beyond which it scrolls.

    `chosen` is outlined; `arcs`, float [token], 0 to 1, are drawn from it to the words with the greatest of them. With
    `follow` the end stays in view while the text grows. `alt` says in a sentence what is to be seen. `makers` are named
    in what is saved of it, where they are others than the page's.
    """

    words: Words
    _: KW_ONLY
    key: str
    alt: str
    ground: Ground | None = None
    chosen: int | None = None
    arcs: np.ndarray | None = None
    height: int = 420
    follow: bool = False
    makers: Sequence[Maker] | None = None

    def draw(self, on_choose: Callable[[], None] | None = None) -> None:
        """Mount it. In `on_choose` the index of the word chosen is `st.session_state[key]["choose"]`."""
        mount = renderer("passage", html=HTML, isolate_styles=True)
        mount(key=self.key, data=self.pack(palette()), on_choose_change=on_choose or nothing)

    def pack(self, colours: Palette) -> bytes:
        """The message for the browser: the words in the header, the numbers as float32 in the body.

        Raises ValueError for what cannot be drawn.
        """
        self._check()
        body, ground = Body(), self.ground
        header: dict[str, Any] = {
            "key": self.key,
            "alt": self.alt,
            **asdict(self.words),
            **{name: getattr(colours, name) for name in ("dark", "accent", "muted")},
            "chosen": self.chosen,
            "height": self.height,
            "follow": self.follow,
            "makers": None if self.makers is None else [asdict(maker) for maker in self.makers],
        }
        if ground is not None:
            header["ground"] = {
                "values": body.add(np.ascontiguousarray(ground.values, dtype="<f4").tobytes()),
                "colours": body.add(ground.colours.tobytes()),
                **{name: getattr(ground, name) for name in ("low", "high", "title", "digits", "faded")},
            }
        if self.arcs is not None:
            header["arcs"] = body.add(np.ascontiguousarray(self.arcs, dtype="<f4").tobytes())
        return pack(header, bytes(body.data))

    def _check(self) -> None:
        words, ground, n = self.words, self.ground, len(self.words.tokens)
        if not self.alt.strip():
            raise ValueError("A passage needs alt: one sentence that says in words what it shows.")
        if words.says is not None and len(words.says) != n:
            raise ValueError(f"{len(words.says)} sentences for {n} words.")
        if ground is not None:
            if ground.values.shape != (n,):
                raise ValueError(f"The values of {ground.title} are {list(ground.values.shape)} for {n} words.")
            if not ground.low < ground.high:
                raise ValueError(f"The scale of {ground.title} must rise, not go from {ground.low} to {ground.high}.")
        if self.chosen is not None and not words.first <= self.chosen < n:
            raise ValueError(f"The word chosen is one of {words.first} to {n - 1}, not {self.chosen}.")
        if self.arcs is not None and self.arcs.shape != (n,):
            raise ValueError(f"The arcs are {list(self.arcs.shape)} for {n} words.")
