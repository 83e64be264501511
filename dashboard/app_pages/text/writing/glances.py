"""Draws what every head looked at in a text: the text in small once for each head, its words as coloured blocks."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from dashboard.components.appearance import palette
from dashboard.components.payload import Body, pack
from dashboard.components.registration import nothing, renderer
from dashboard.theme import Palette, pattern_colours

HTML = """
<div class="glances" role="application" tabindex="0" aria-describedby="help">
  <canvas class="base"></canvas>
  <canvas class="overlay"></canvas>
</div>
<div class="foot"><p class="sentence" role="status" aria-live="polite"
  data-hint="Point at a head to read what it looked at most; click to see it in the text."></p></div>
<p class="help" id="help">Arrow keys choose a head. Point at a word to read how much a head looked at it.</p>
"""


@dataclass(frozen=True, eq=False)
class Glances:
    """`weights`, float [head, token], once for each of `heads`, (layer, head) from 0; nan is what none may see.

    Each is coloured from 0 to its own greatest weight, which stands beside its name. `query` is the token, from 0, that
    looks. `chosen` is outlined.
    """

    tokens: Sequence[str]
    heads: Sequence[tuple[int, int]]
    weights: np.ndarray
    _: KW_ONLY
    key: str
    alt: str
    query: int
    chosen: int | None = None

    def draw(self, on_choose: Callable[[], None] | None = None) -> None:
        """Mount it. In `on_choose` the index of the head chosen is `st.session_state[key]["choose"]`."""
        mount = renderer("glances", html=HTML, isolate_styles=True)
        mount(key=self.key, data=self.pack(palette()), on_choose_change=on_choose or nothing)

    def pack(self, colours: Palette) -> bytes:
        """The message for the browser: the weights as float32 in the body.

        Raises ValueError for what cannot be drawn.
        """
        if not self.alt.strip():
            raise ValueError("Glances need alt: one sentence that says in words what they show.")
        n, tokens = len(self.heads), len(self.tokens)
        if self.weights.shape != (n, tokens):
            raise ValueError(f"The weights are {list(self.weights.shape)} for {n} heads and {tokens} tokens.")
        if self.chosen is not None and not 0 <= self.chosen < n:
            raise ValueError(f"The head chosen is one of 0 to {n - 1}, not {self.chosen}.")
        body = Body()
        header: dict[str, Any] = {
            "key": self.key,
            "alt": self.alt,
            "tokens": list(self.tokens),
            "heads": [list(head) for head in self.heads],
            "accent": colours.accent,
            "query": self.query,
            "chosen": self.chosen,
            "weights": body.add(np.ascontiguousarray(self.weights, dtype="<f4").tobytes()),
            "colours": body.add(np.ascontiguousarray(pattern_colours(colours.dark)).tobytes()),
        }
        return pack(header, bytes(body.data))
