"""Which mistake is this? A hidden one is drawn, named from what was measured of it, and then revealed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from dashboard.app_pages.learn.mistakes import words
from dashboard.app_pages.learn.mistakes.choice import write
from dashboard.components.payload import pack
from dashboard.components.registration import renderer
from dashboard.frame.guided import reaching
from dashboard.models.on_the_spot import hidden
from dashboard.parts.prose import plain
from dashboard.view import clicks, session
from dashboard.view.link import limits

if TYPE_CHECKING:
    from transformer.mistakes import Mistake, Signature

QUESTION = "Which mistake is this?"
SCORE = """
<div class="al-score"><p class="words" role="status"></p><button type="button" hidden>Forget the score</button></div>
"""


@dataclass(frozen=True)
class Guess:
    """What was said of a hidden mistake."""

    name: str
    ticked: tuple[str, ...]
    """The detectors that gave it away, as one thinks."""


@clicks.once
def draw() -> None:
    """Hide another one."""
    session.update(riddle=int(np.random.default_rng().integers(1, int(limits("riddle")[1]) + 1)))


def guess() -> Guess | None:
    """What this session has said of the hidden mistake of the view; None where it has said nothing yet."""
    found: dict[int, Guess] = st.session_state.get("riddle_guesses", {})
    return found.get(session.settings().riddle)


# --- the controls


def ask(mistake: type[Mistake], signature: Signature | None) -> None:
    """The name, what gave it away, and the answer; `signature` is None until the model is measured."""
    number, said = session.settings().riddle, guess()
    if said is None:
        _form(number, signature is not None)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if said is None:
            named = st.session_state.get(f"riddle-name-{number}") is not None
            st.button(
                "Answer",
                on_click=answer,
                args=(number,),
                disabled=signature is None or not named,
                type="primary",
                icon=":material/check:",
            )
        else:
            st.button("Open it in the gallery", on_click=open_in_gallery, icon=":material/menu_book:")
        st.button("Another one", on_click=draw, icon=":material/casino:")
        st.button(
            "Look at it on every page",
            on_click=look_at_it,
            disabled=signature is None,
            icon=":material/search:",
            help="Opens this model on Attention heads. Every other page shows it as well. Come back here to name it.",
        )
        right = None if said is None else said.name == mistake.name
        mount = renderer("score", html=SCORE, isolate_styles=True)
        mount(key="riddle-score", data=pack({"round": f"r{number}", "right": right}, b""), width="content")
    if said is not None and signature is not None:
        st.markdown(f"**{plain(gave_away(said.ticked, signature.exposed_by()))}**")


def _form(number: int, measured: bool) -> None:
    """What one says of it; `measured` are the numbers from which one can tell."""
    titles = {each.name: each.title for each in sorted(hidden.pool(), key=lambda each: each.title)}
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.selectbox(
            "It is this mistake",
            list(titles),
            index=None,
            format_func=titles.__getitem__,
            placeholder="Choose one",
            key=f"riddle-name-{number}",
            width=380,
        )
        st.pills(
            "What gave it away?",
            list(words.NAMES),
            format_func=words.NAMES.__getitem__,
            selection_mode="multi",
            key=f"riddle-ticked-{number}",
        )
    st.caption(
        f"It is one of {len(titles)} mistakes that leave a trace in what a model does. "
        f"{'The first answer of each round counts.' if measured else 'Its numbers come when it is trained.'}"
    )


@clicks.once
def answer(number: int) -> None:
    """Keep what was said of this one, for this session alone."""
    name, ticked = (st.session_state.get(f"riddle-{which}-{number}") for which in ("name", "ticked"))
    if name in {each.name for each in hidden.pool()}:
        known = st.session_state.get("riddle_guesses", {})
        st.session_state.riddle_guesses = {**known, number: Guess(name, tuple(ticked or ()))}


@clicks.once
def open_in_gallery() -> None:
    """Show the mistake in the gallery, by its name."""
    mistake, seed = hidden.drawn(session.settings().riddle)
    session.update(riddle=0, mistake_seed=seed)
    write(mistake.name)


@clicks.once
def look_at_it() -> None:
    """Make the hidden model the one that every page is about."""
    session.open_run(hidden.called(session.settings().riddle))
    reaching.ask("heads")


# --- words


def headline(mistake: type[Mistake], said: Guess | None) -> str:
    """The question, or what it is."""
    if said is None:
        return QUESTION
    if said.name == mistake.name:
        return f"Right: {_quoted(mistake.title)}."
    from transformer.mistakes import MISTAKES

    return f"No: it is not {_quoted(MISTAKES[said.name].title)}, it is {_quoted(mistake.title)}."


def _quoted(title: str) -> str:
    return f"“{title}”"


def gave_away(ticked: Sequence[str], rings: Sequence[str]) -> str:
    """Which detectors ring, and how many of them were ticked."""
    hit, silent = len(set(ticked) & set(rings)), len(set(ticked) - set(rings))
    if not ticked:
        return f"These ring: {words.detectors(rings)}." if rings else "No detector rings."
    also = f", and {silent} that {'is' if silent == 1 else 'are'} silent" if silent else ""
    if not rings:
        return f"No detector rings. You ticked {silent}."
    return f"These ring: {words.detectors(rings)}. You ticked {hit} of {len(rings)}{also}."
