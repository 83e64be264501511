"""The verdict on a piece of code: what is wrong, its stages beside the reference's, conventions, where it was run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from dashboard.app_pages.learn.check import words
from dashboard.app_pages.learn.check.desk import Desk
from dashboard.app_pages.learn.check.running import Check
from dashboard.app_pages.learn.check.verdict import Explained, Known
from dashboard.components.plot import coloured
from dashboard.figures.html.number_table import Block, Label, number_table
from dashboard.frame.guided import reaching
from dashboard.parts import waiting
from dashboard.parts.prose import plain, sentence
from dashboard.view import clicks, session
from transformer.checking.verdict import Verdict

LEAST = 480
"""Pixels of the table of stages, at least."""
WIDTHS = (140, 84)
"""Of what is said of a stage, and of its difference."""


def title(mine: Desk) -> str:
    """The answer, as far as there is one."""
    check = mine.check
    if check is None or check.stopped:
        return words.ASK
    if not check.over:
        return words.UNDER_WAY
    if check.verdict is None:
        return words.NO_VERDICT
    if check.asked != mine.asked:
        return words.CHANGED
    return plain(words.headline(check.verdict))


def draw(mine: Desk) -> None:
    """The answer to the last check, or how far it is; before the first, what can be checked."""
    check = mine.check
    if check is None:
        st.markdown(f"{words.HOW}\n\n**What can be checked**\n\n{words.LIST}")
    elif check.stopped:
        st.info("The check was stopped. Nothing of it runs any more.", icon=":material/stop_circle:")
    elif not check.over:
        waiting.until(lambda: check.over, lambda: _progress(check), news=lambda: (check.over, _so_far(check)))
    elif check.verdict is None:
        st.error(plain(sentence(check.problem.rstrip("."))), icon=":material/error:")
    else:
        if check.asked != mine.asked:
            st.warning(
                "What follows is about the code before your last change. Check again.", icon=":material/history:"
            )
        _verdict(check.verdict)


def _progress(check: Check) -> None:
    waiting.hourglass(_so_far(check))


def _so_far(check: Check) -> str:
    return words.goes_on(check.seconds) if check.begun else words.waits(check.ahead)


def _verdict(verdict: Explained) -> None:
    if verdict.not_run:
        st.error(plain(words.on_page(verdict.not_run)), icon=":material/error:")
    if verdict.undecided:
        st.info(plain(verdict.undecided), icon=":material/help:")
    if verdict.known is not None:
        st.markdown(f"**To mend it:** {plain(verdict.known.mend)}")
    if found := words.wrong(verdict):
        st.markdown("\n\n".join(f"✕ {plain(each)}" for each in found))
    if verdict.stages:
        _stages(verdict)
    elif not verdict.not_run:
        st.caption(words.NO_STAGES)
    if verdict.known is not None:
        _known(verdict.known)
        st.button(
            "Open it in the gallery",
            on_click=_open_in_gallery,
            args=(verdict.mistake,),
            key="check-gallery",
            icon=":material/menu_book:",
        )
    _list("Conventions, named and not failed", verdict.conventions)
    _list("Worth knowing", verdict.notes)
    for said in (words.checked_as(verdict), words.tried(verdict), words.held(verdict)):
        if said:
            st.caption(plain(said))


def _known(known: Known) -> None:
    """The words of the gallery."""
    st.caption(
        f"This mistake is in the gallery: “{plain(known.title)}”. **Why it is not noticed:** {plain(known.hidden)} "
        f"**What gives it away:** {plain(known.exposes)}"
    )
    folded = st.expander(
        "The gallery’s code: − is wrong, + is right", icon=":material/difference:", key="check-difference"
    )
    folded.code("\n".join(known.difference), language=None)


@clicks.once
def _open_in_gallery(mistake: str) -> None:
    """Show the mistake on the gallery's page; the code and its verdict stay on this one."""
    session.update(mistake=mistake, riddle=0)
    reaching.ask("mistakes")


def _list(heading: str, sentences: Sequence[str]) -> None:
    if sentences:
        lines = "\n".join(f"- {plain(each)}" for each in sentences)
        st.markdown(f"**{heading}**\n\n{lines}")


def _stages(verdict: Verdict) -> None:
    labels, blocks = table(verdict)
    said = words.stages(verdict)
    spoken = said.replace("**", "")
    st.html(coloured(number_table, labels, blocks, axis=None, spoken=spoken, least=LEAST))
    st.caption(said)


def table(verdict: Verdict) -> tuple[list[Label], list[Block]]:
    """A row a stage, in the order of the computation; the first that differs is framed."""
    rows = verdict.stages
    nothing = np.full((len(rows), 1), np.nan)
    most = max((each.difference or 0.0 for each in rows), default=0.0) or 1.0
    shades = np.array([[np.nan if each.reached else (each.difference or np.nan) / most] for each in rows])
    labels = [Label(each.name, chosen=each.name == verdict.first) for each in rows]

    def column(heading: str, texts: list[str], ground: np.ndarray = nothing, width: int | None = None) -> Block:
        return Block((heading,), tuple((text,) for text in texts), ground, signed=False, width=width)

    blocks = [
        column("beside the reference", [words.mark(verdict, each) for each in rows], width=WIDTHS[0]),
        column("difference", [words.amount(each) for each in rows], shades, WIDTHS[1]),
        column("your shape", [words.shape(each.shape) for each in rows]),
        column("reference’s", [words.shape(each.expected) for each in rows]),
    ]
    return labels, blocks
