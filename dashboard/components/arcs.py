"""Draws a question and its answer as tokens, with arcs to where a head looks for each; takes one that is typed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from typing import Any, Literal

import numpy as np

from dashboard.components.appearance import palette
from dashboard.components.payload import Body, pack
from dashboard.components.registration import nothing, renderer
from dashboard.theme import Palette

HTML = """
<div class="arcs" role="application" tabindex="0" aria-describedby="help">
  <canvas class="base"></canvas>
  <canvas class="overlay"></canvas>
  <input class="typed" type="text" autocomplete="off" autocapitalize="off" spellcheck="false" hidden>
</div>
<div class="foot"><p class="sentence" role="status" aria-live="polite"></p></div>
<p class="help" id="help">Left and right arrow keys move from answer to answer and say where the head looks.</p>
"""


Verdict = Literal["right", "wrong", "open"]


@dataclass(frozen=True)
class Said:
    """A token of the answer, and its verdict: right, wrong (`truth` is right), or open: nobody can know."""

    text: str
    verdict: Verdict
    truth: str = ""


@dataclass(frozen=True, eq=False)
class Typing:
    """What may be typed in place of the question."""

    symbols: str
    """The letters that are symbols, one each."""
    alphabet: str
    """The same in words: "0 to 9"."""
    longest: int
    """So many of them at the most."""
    hint: str
    """What is to be typed, without a full stop: "Type 1 to 8 symbols, 0 to 9"."""


@dataclass(frozen=True, eq=False)
class Looks:
    """Where a head looks for each answer."""

    head: str
    """What it is called: "head 0.2"."""
    pattern: np.ndarray
    """float [query, key]."""
    rows: tuple[int, ...]
    """The query of each answer; -1 where this head has none."""
    places: tuple[int, ...]
    """For each key the token it stands at, counted over question, separator and answers; -1 where none is drawn."""


@dataclass(frozen=True, eq=False)
class Arcs:
    """A `question`, what is said of it, and where a head `looks` for that.

    In one row where there is room and a separator between, else in two with lines across. `hint` is what the pointer
    may do, `alt` what is to be seen, in a sentence. Arcs and plots of one `link` share the hovered query and key.
    """

    question: tuple[str, ...]
    said: Sequence[Said]
    _: KW_ONLY
    key: str
    alt: str
    hint: str
    separator: str = ""
    looks: Looks | None = None
    typing: Typing | None = None
    link: str | None = None

    def draw(self, on_question: Callable[[], None] | None = None) -> None:
        """Mount it. In `on_question` what was typed, "3 1 4", is `st.session_state[key]["question"]`."""
        mount = renderer("arcs", html=HTML, isolate_styles=True)
        mount(key=self.key, data=self.pack(palette()), on_question_change=on_question or nothing)

    def pack(self, colours: Palette) -> bytes:
        """The message for the browser: tokens in the header, the pattern as float32 in the body.

        Raises ValueError for what cannot be drawn.
        """
        self._check()
        body, looks, typing = Body(), self.looks, self.typing
        shades = ("dark", "accent", "muted", "surface", "grid", "text", "right", "wrong", "measured", "background")
        header: dict[str, Any] = {
            "key": self.key,
            "alt": self.alt,
            "hint": self.hint,
            "question": self.question,
            "separator": self.separator,
            "said": [asdict(each) for each in self.said],
            "link": self.link,
            **{name: getattr(colours, name) for name in shades},
        }
        if looks is not None:
            numbers = np.ascontiguousarray(looks.pattern, dtype="<f4")
            header["looks"] = {
                "head": looks.head,
                "shape": numbers.shape,
                "pattern": body.add(numbers.tobytes()),
                "rows": looks.rows,
                "places": looks.places,
            }
        if typing is not None:
            header["typing"] = asdict(typing)
        return pack(header, bytes(body.data))

    def _check(self) -> None:
        looks, tokens = self.looks, len(self.question) + bool(self.separator) + len(self.said)
        if not self.alt.strip():
            raise ValueError("Arcs need alt: one sentence that says in words what they show.")
        if looks is None:
            return
        if len(looks.rows) != len(self.said) or len(looks.places) != looks.pattern.shape[1]:
            raise ValueError(
                f"{len(looks.rows)} rows for {len(self.said)} answers, {len(looks.places)} places for "
                f"{looks.pattern.shape[1]} keys."
            )
        if max((*looks.rows, 0)) >= looks.pattern.shape[0] or max((*looks.places, 0)) >= tokens:
            raise ValueError(
                f"A row or a place lies beyond the pattern {list(looks.pattern.shape)} or {tokens} tokens."
            )
