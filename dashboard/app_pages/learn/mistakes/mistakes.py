"""The gallery of mistakes: wrong code beside right code, and two models that differ in nothing else, measured."""

from __future__ import annotations

from concurrent.futures import wait
from typing import TYPE_CHECKING

import streamlit as st

from dashboard.app_pages.learn.mistakes import choice, measured, results, riddle, scaling, words
from dashboard.app_pages.learn.mistakes.figures.code_difference import code_panes
from dashboard.app_pages.learn.mistakes.settings import MistakesSettings
from dashboard.components.plot import coloured
from dashboard.models import background
from dashboard.models.on_the_spot import hidden as hidden_mistakes
from dashboard.parts import waiting
from dashboard.parts.prose import plain, sentence, show_code
from dashboard.parts.widgets import controlled, late_title
from dashboard.server.streamlit_private import DeltaGenerator
from dashboard.view import permission, session

if TYPE_CHECKING:
    from dashboard.app_pages.learn.mistakes.measured import Pair
    from transformer.mistakes import Mistake, Signature

GALLERY = "The gallery"


def show(title: DeltaGenerator) -> None:
    """The mistake of the view, or a hidden one."""
    choose_part()
    if session.settings().riddle:
        hidden(title)
        return
    mistake = choice.chosen()
    choice.choose(mistake)
    described(mistake)
    code(mistake)
    if mistake.name == scaling.MISTAKE:
        scaling.show()
    if mistake.trains:
        measure(mistake, session.mine(MistakesSettings).mistake_seed, title)
    found = measured.demonstration(mistake.name)
    if found is not None:
        if not mistake.trains:
            title.title(plain(words.shown(found)), anchor=False)
        results.demonstrated(found)


def choose_part() -> None:
    """The gallery, or a riddle."""
    controlled(
        st.segmented_control,
        "Part",
        [GALLERY, riddle.QUESTION],
        key="control-riddle",
        value=riddle.QUESTION if session.settings().riddle else GALLERY,
        picked=lambda part: session.update(riddle=0) if part == GALLERY else riddle.draw(),
        label_visibility="collapsed",
    )


def hidden(title: DeltaGenerator) -> None:
    """A hidden mistake: what was measured of it, and once it is answered its words and its code."""
    (mistake, seed), said = hidden_mistakes.drawn(session.settings().riddle), riddle.guess()
    controls, revealed = st.container(), st.container()
    found = measure(mistake, seed, title, hidden=said is None, called=riddle.headline(mistake, said))
    with controls:
        riddle.ask(mistake, found)
    if said is not None:
        with revealed:
            described(mistake)
            code(mistake)


def described(mistake: type[Mistake]) -> None:
    """Why it is not noticed, what gives it away, how it is mended, and where it was met."""
    said = {
        "The mistake": f"{mistake.title}.",
        "Why it is not noticed": mistake.hidden,
        "What exposes it": mistake.exposes,
        "How to mend it": mistake.mend,
        "Where it was met": f"In {mistake.met}.",
    }
    st.markdown("  \n".join(f"**{label}:** {plain(text)}" for label, text in said.items()))


def code(mistake: type[Mistake]) -> None:
    """Both codes, side by side; on a narrow screen one below the other."""
    panes = coloured(code_panes, mistake.difference())
    heads = ("**Wrong**: lines marked − must go", "**Right**: lines marked + take their place")
    for column, head, pane in zip(st.container(key="stacked-mistake").columns(2), heads, panes, strict=True):
        with column:
            st.markdown(head)
            st.html(pane)


def measure(
    mistake: type[Mistake], seed: int, title: DeltaGenerator, *, hidden: bool = False, called: str = ""
) -> Signature | None:
    """Both models, trained on the spot and then measured; the signature of the mistake, once it is there.

    The title is the finding, unless the page is `called` something else.
    """
    name, pair = called or f"{mistake.title}:", measured.pair(mistake, seed)
    if pair is None:
        title.title(plain(called or f"{name} wrong and right code."), anchor=False)
        st.info(f"{permission.LOOKING} So no model is trained for you.", icon=":material/visibility:")
        return None
    wait([each.future for each in pair.lessons], background.AT_ONCE)
    if not pair.done:
        title.title(plain(called or f"{name} two models are being trained."), anchor=False)
        waiting.until(
            lambda: pair.done, lambda: progress(pair), news=lambda: [each.progress() for each in pair.lessons]
        )
        return None
    if pair.problem:
        title.title(plain(called or f"{name} the training broke off."), anchor=False)
        st.warning(sentence(plain(pair.problem)), icon=":material/warning:")
        return None
    wrong, right = pair.measured()
    title.title(plain(called or words.headline(wrong.signature)), anchor=False)
    results.shown(mistake, pair.wrong.config, wrong, right, hidden=hidden)
    return wrong.signature


def progress(pair: Pair) -> None:
    """How far both are."""
    for name, lesson in zip(("with the mistake", "with the right code"), pair.lessons, strict=True):
        taken, most = len(lesson.steps), lesson.config.training.max_steps
        waits = "waits for another training" if lesson.waiting else f"step {taken} of {most}"
        st.progress(min(1.0, taken / most), text=f"A model {name}: {waits}")


title = late_title()
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
