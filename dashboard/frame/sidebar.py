"""The sidebar: the model, the step and what the model reads, as far as a page follows them; or a model not ours."""

from __future__ import annotations

from concurrent.futures import wait
from dataclasses import replace
from typing import cast

import streamlit as st

from dashboard.frame import small_map
from dashboard.models import background, imported, passages
from dashboard.models.imported import Imported
from dashboard.models.model import Model
from dashboard.models.passages import in_a_line, in_link, parsed
from dashboard.parts.prose import plain, sentence
from dashboard.parts.widgets import bound_choice, controlled
from dashboard.view import clicks, session, training
from dashboard.view import imported as view
from dashboard.view.link import longest
from dashboard.view.pages import Page
from transformer.foundation.checks import UserError
from transformer.tasks import Question
from transformer.text.task import Text


def length(model: Model) -> None:
    """How many tokens of the text are read: the same passage goes on, or another one is drawn."""
    task, question = cast("Text", model.task), session.question(model)

    def picked(wanted: int) -> None:
        longer = passages.around(task.known.held_out, question, wanted)
        drawn = session.draw(model, wanted) if longer is None else longer
        session.update(input=passages.in_a_line(task.typed(drawn)))

    controlled(
        st.select_slider,
        "Tokens",
        passages.lengths(task.length, len(question)),
        key="control-tokens",
        value=len(question),
        picked=picked,
        help="How many tokens the passage has. A passage of the held-out text becomes longer or shorter; in "
        "place of any other, "
        "a new one is drawn.",
    )


def note(model: Model) -> str:
    """How much of a text can be typed, and how much of it the model has no word for."""
    question = session.question(model)
    unknown = int((question == model.task.symbols - 1).sum())
    said = f"1 to {model.task.length} tokens. Blanks and line ends count as tokens."
    if not unknown:
        return said
    are = "is" if unknown == 1 else "are"
    return f"{said} {unknown} of these {len(question)} {are} not among the {passages.known(model.task)} it knows."


def sidebar(page: Page) -> None:
    """Which model, where in it the page is, and which input: what the page follows of them."""
    with st.sidebar:
        if page.imported:
            _imported()
            return
        model = session.chosen()  # first: a run that is gone is said on any page
        if not page.follows:
            # Something stands here at once: a sidebar that opens late moves the whole page.
            st.caption(f"This page does not depend on the model that is open, {plain(model.name)}.")
            return
        _model_menu(model)
        if page.follows != "model":
            _step(model)
        small_map.draw(page, model.config.model)
        if page.follows == "input":
            _input(model)


def _model_menu(model: Model) -> None:
    """Which model, what it is, and the way to go on with its training."""
    menu = session.choices()

    def picked(name: str) -> None:
        if name != session.chosen().name:
            session.open_run(name)

    controlled(
        st.selectbox,
        "Model",
        list(menu),
        key="control-run",
        value=model.name,
        picked=picked,
        format_func=lambda name: menu[name].label(),
    )
    choice = menu[model.name]
    st.caption(choice.description())
    for said in session.notices("model"):
        st.caption(f":material/info: {said}")
    if choice.state.status not in ("finished",) and choice.state.reason:
        st.caption(f":material/info: {sentence(plain(choice.state.reason))}")
    run = model.run
    if run is not None and run.resumable and session.started() != run.name:
        st.button(
            "Resume its training", on_click=training.resume, args=(run,), icon=":material/resume:", width="stretch"
        )


def _step(model: Model) -> None:
    """Which step of its training is shown, where several are kept."""
    steps = list(session.choices()[model.name].snapshots)
    if len(steps) > 1:
        bound_choice(
            st.select_slider,
            "Step of training",
            "step",
            steps,
            steps[-1],
            help="Every page about the model shows it as it was at this step.",
        )


def _input(model: Model) -> None:
    """What the model reads: typed, or drawn."""
    task, lawful, failed = model.task, model.task.lawful, "input_error" in st.session_state
    afresh = {} if lawful else {"query": None, "key": None}  # of other words another place is worth a look

    def drawn() -> None:
        session.update(input=in_a_line(task.typed(session.draw(model))), **afresh)

    question_field(model, session.question(model))
    st.button("Draw another", on_click=drawn, width="stretch", shortcut="D", icon=":material/casino:")
    if not lawful:
        length(model)
    if failed:
        return
    st.caption(f"Type {task.input_rule}. {_length_note(model)}" if lawful else note(model))


def question_field(model: Model, question: Question) -> None:
    """Draw the field with what the model reads; what it cannot read stays there, with the reason."""
    task, lawful = model.task, model.task.lawful
    afresh = {} if lawful else {"query": None, "key": None}  # of other words another place is worth a look
    shown = task.typed(question)
    error = st.session_state.pop("input_error", "")

    def written(typed: str) -> None:
        try:
            parsed(task, typed)
        except ValueError as error:
            st.session_state.input_error, st.session_state.input_typed = sentence(str(error)), typed
            clicks.touch()
            return
        session.update(input=in_link(task, typed), **afresh)

    controlled(
        st.text_input if lawful else st.text_area,
        "The question" if lawful else "Input",
        key="control-input",
        # What was typed stays in the field as long as the error about it does.
        value=st.session_state.pop("input_typed", shown) if error else shown,
        picked=written,
        max_chars=longest("input"),
    )
    if error:
        st.error(plain(error), icon=":material/error:")


def _length_note(model: Model) -> str:
    length = len(session.question(model))
    if length not in model.task.lengths:
        lengths = model.task.lengths
        seen = str(lengths.stop - 1) if len(lengths) == 1 else f"{lengths.start} to {lengths.stop - 1}"
        return f":orange[It was trained on length {seen} only: {length} is new to it.]"
    return ""


# --- a model that is not ours


def _imported() -> None:
    """Which of them, and what it reads: once it is opened, that is known."""
    model = view.chosen()
    controlled(
        st.selectbox,
        "Imported model",
        list(imported.listed()),
        key="control-imported",
        value=model.name,
        picked=view.choose,
    )
    opened = model.opened()
    wait([opened], background.AT_ONCE)
    st.session_state.imported_open = opened.done()
    if not opened.done() or opened.exception() is not None:
        return
    foreign = opened.result()
    says = foreign.says
    if says == "picture":
        _picture()
        return
    texts = {"imported_input": "Token numbers" if foreign.hint else "Input"}
    if says in ("pair", "token pair"):
        texts["imported_second"] = "The decoder reads"
    for field, label in texts.items():
        _typed(model, says, field, label)
    st.caption(" ".join(filter(None, [f"Up to {foreign.longest} tokens.", plain(foreign.hint)])))


def _typed(model: Imported, says: str, field: str, label: str) -> None:
    """A field of the view that the model reads; what it cannot read stays in the field, with the reason."""
    asked = view.asked(says)
    shown = asked.text if field == "imported_input" else asked.second
    error, typed = st.session_state.pop(f"{field}-error", ("", ""))

    def written(text: str) -> None:
        clicks.touch()
        tried = replace(asked, text=text) if field == "imported_input" else replace(asked, second=text)
        try:
            imported.given(model, tried)
        except UserError as problem:
            st.session_state[f"{field}-error"] = str(problem).rstrip("."), text
            return
        session.update(**{field: text, "query": None, "key": None, "window": ""})

    controlled(
        st.text_area,
        label,
        key=f"control-{field}",
        value=typed if error else shown,
        picked=written,
        max_chars=longest(field),
    )
    if error:
        st.error(sentence(plain(error)), icon=":material/error:")


def _picture() -> None:
    """A picture of one's own; it stays in this session, and no link holds it."""
    found = st.file_uploader("Picture", type=["png", "jpg", "jpeg"], key="imported-picture-file")
    st.session_state.imported_picture = None if found is None else found.getvalue()
    st.caption("A link does not hold your picture: whoever opens it sees the one that is drawn here.")
