"""The gallery of mistakes: wrong code beside right code, and two models that differ in nothing else, measured."""

from __future__ import annotations

from concurrent.futures import wait
from typing import TYPE_CHECKING

import streamlit as st

from dashboard.app_pages.learn_by_doing.mistakes import choice, measured, results, words
from dashboard.app_pages.learn_by_doing.mistakes.figures.code_difference import code_panes
from dashboard.components.plot import coloured
from dashboard.models import background
from dashboard.parts import waiting
from dashboard.parts.prose import plain, sentence, show_code
from dashboard.server.streamlit_private import DeltaGenerator
from dashboard.view import permission, session

if TYPE_CHECKING:
    from dashboard.app_pages.learn_by_doing.mistakes.measured import Pair
    from transformer.mistakes import Mistake


def show(title: DeltaGenerator) -> None:
    """The mistake of the view: its words, both codes, and what was measured."""
    mistake = choice.chosen()
    choice.choose(mistake)
    described(mistake)
    code(mistake)
    if mistake.trains:
        trained(mistake, title)
    found = measured.demonstration(mistake.name)
    if found is not None:
        if not mistake.trains:
            title.title(plain(words.shown(found)), anchor=False)
        results.demonstrated(found)


def described(mistake: type[Mistake]) -> None:
    """Why it is not noticed, what gives it away, how it is mended, and where it was met."""
    st.markdown(
        f"**{plain(mistake.title)}.** {plain(mistake.hidden)}\n\n"
        f"**What exposes it:** {plain(mistake.exposes)}\n\n"
        f"**How to mend it:** {plain(mistake.mend)}"
    )
    st.caption(f"Met in {plain(mistake.met)}.")


def code(mistake: type[Mistake]) -> None:
    """Both codes, side by side; on a narrow screen one below the other."""
    panes = coloured(code_panes, mistake.difference())
    heads = ("**Wrong**: lines marked − must go", "**Right**: lines marked + take their place")
    for column, head, pane in zip(st.container(key="stacked-mistake").columns(2), heads, panes, strict=True):
        with column:
            st.markdown(head)
            st.html(pane)


def trained(mistake: type[Mistake], title: DeltaGenerator) -> None:
    """Both models: trained on the spot, and then measured."""
    seed = session.settings().mistake_seed
    pair = measured.pair(mistake, seed)
    if pair is None:
        title.title(f"{plain(mistake.title)}: wrong and right code.", anchor=False)
        st.info(f"{permission.LOOKING} So no model is trained for you.", icon=":material/visibility:")
        return
    wait([each.future for each in pair.lessons], background.AT_ONCE)
    if not pair.done:
        title.title(f"{plain(mistake.title)}: two models are being trained.", anchor=False)
        waiting.until(lambda: pair.done, lambda: progress(pair))
    elif pair.problem:
        title.title(f"{plain(mistake.title)}: the training broke off.", anchor=False)
        st.warning(sentence(plain(pair.problem)), icon=":material/warning:")
    else:
        wrong, right = pair.measured()
        title.title(plain(words.headline(wrong.signature)), anchor=False)
        results.shown(mistake, pair.wrong.config, wrong, right)


def progress(pair: Pair) -> None:
    """How far both are."""
    for name, lesson in zip(("with the mistake", "with the right code"), pair.lessons, strict=True):
        taken, most = len(lesson.steps), lesson.config.training.max_steps
        waits = "waits for another training" if lesson.waiting else f"step {taken} of {most}"
        st.progress(min(1.0, taken / most), text=f"A model {name}: {waits}")


title = st.container()
if session.first_look():
    title.title("Wrong code beside right code, and what gives it away.", anchor=False)
    waiting.hourglass("The gallery is being opened …")
else:
    show(title)
show_code(
    "transformer.mistakes._base.Mistake",
    "transformer.mistakes._signature.trained",
    "transformer.mistakes._signature.measure",
)
