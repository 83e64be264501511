"""What a page shows of a model it does not suit: the reason, and models that do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from dashboard.components.plot import coloured, plot
from dashboard.figures.encodings import encoding_heatmap
from dashboard.figures.kit.numbers import signed
from dashboard.models.cache import cached
from dashboard.models.menu import Choice
from dashboard.models.model import Model
from dashboard.parts import waiting
from dashboard.parts.prose import plain
from dashboard.view import clicks, session
from dashboard.view.link import OF_MODEL
from dashboard.view.pages import TEXT, Page
from transformer.config import RunConfig
from transformer.foundation.program import program

if TYPE_CHECKING:
    from transformer.tasks import Question


def transformer_wanted(page: str, model: Model) -> None:
    """Stand in for a page that opens a transformer, where the model is none."""
    st.title(f"“{page}” needs a transformer, and {plain(model.name)} is a GRU.", anchor=False)
    st.info(
        "A GRU reads one token after another and keeps what it has read in one state. It has no residual stream, no "
        "mask and no positional encoding. Choose a transformer in the sidebar or here.",
        icon=":material/account_tree:",
    )
    offer(model, lambda config: not config.model.recurrent)


def text_wanted(page: str, model: Model) -> None:
    """Stand in for a page about text, where the model's task has a law of its own."""
    st.title(
        f"“{page}” needs a model that reads text. {plain(model.name)} was trained on {plain(model.config.task.task)}.",
        anchor=False,
    )
    offer_text(model)


def opens_text(page: str, model: Model) -> bool:
    """Open a model that reads a text, where none was chosen for this page; False where there is none, or one was.

    The page is then drawn again. The model before comes back with the next page that is about no text: `give_back`.
    """
    free = not session.is_chosen_here() and any(map(_reads, session.choices().values()))
    if free:
        best = _nearest(model, lambda config: config.task.task == "text")
        view = session.settings()
        st.session_state.lent = best.name, {name: getattr(view, name) for name in ("run", *OF_MODEL)}
        session.open_run(best.name)
        session.notice(f"“{page}” needs a model that reads text, so {plain(best.name)} is open here.", "model")
        clicks.again()
    return free


def give_back(page: Page) -> None:
    """Open the model again that was open before a page about texts opened its own, unless another was chosen there.

    What was chosen inside it is chosen again.
    """
    if page.menu != TEXT and not page.imported and "lent" in st.session_state:
        lent, before = st.session_state.pop("lent")
        if session.settings().run == lent:
            session.update(**before)


def _reads(choice: Choice) -> bool:
    return choice.config.task.task == "text"


def offer_text(model: Model) -> None:
    """The way to a model that reads a text, or to training one."""
    if any(map(_reads, session.choices().values())):
        offer(model, lambda config: config.task.task == "text")
        return
    st.info(
        "There is no text model yet. Train one: choose the task *text* in the panel on the left, or run "
        f"`{program()} train --task text --text FILE`.",
        icon=":material/menu_book:",
    )


def attention_wanted(model: Model) -> None:
    """Say what a GRU without attention is given instead, and offer one that has it."""
    st.markdown(
        f"**Without attention** the encoder passes on only {handed_over(model)}, however long the sequence is. The "
        "decoder must produce the whole answer from that. With attention it can look back at the encoder's state "
        "after every token."
    )
    offer(model, lambda config: config.model.attends)


def handed_over(model: Model) -> str:
    """All that a decoder without attention gets, in words: "one vector of 64 numbers"."""
    shape = model.config.model
    return f"{'one vector' if shape.n_layers == 1 else f'{shape.n_layers} vectors'} of {shape.d_model} numbers"


def offer(model: Model, suits: Callable[[RunConfig], bool]) -> None:
    """A button to the model that suits and is most like this one; the one compiled by hand always does."""
    best = _nearest(model, suits)
    st.button(
        f"Look at {plain(best.name)}",
        on_click=session.open_run,
        args=(best.name,),
        icon=":material/arrow_forward:",
        key="elsewhere",
        type="primary",
        help=f"{best.config.model.shape[0].upper()}{best.config.model.shape[1:]}",
    )


def _nearest(model: Model, suits: Callable[[RunConfig], bool]) -> Choice:
    """The model that suits and is most like this one; there must be one."""

    def unlike(choice: Choice) -> tuple[bool, ...]:
        task, own = choice.config.task, model.config.task
        recurrent = choice.config.model.recurrent != model.config.model.recurrent
        return task.task != own.task, recurrent, task != own

    return min((choice for choice in session.choices().values() if suits(choice.config)), key=unlike)


def states(model: Model, question: Question, *, key: str, height: int) -> None:
    """Draw the encoder's states while it reads, and frame the one that is handed over."""
    if session.first_look():
        waiting.hourglass("Reading its states …")
        return
    table = encoder_states(model, question)
    low, high = (signed(value) for value in (table.min(), table.max()))
    said = (
        f"Each row is the encoder's state after one token: {table.shape[1]} numbers, here from {low} to {high}. "
        "The framed "
        f"row is the last of {len(table)}, the one that the decoder receives."
    )
    figure = coloured(encoding_heatmap, table, cursor=len(table))
    plot(figure, key=key, alt=said, height=height)
    layers = model.config.model.n_layers
    st.caption(
        said if layers == 1 else f"{said} This is the top one of {layers} layers; each passes on its own last state."
    )


@cached(32)
def encoder_states(model: Model, question: Question) -> np.ndarray:
    """A recurrent encoder's states, of its uppermost layer, after each token of a question: float [source, d_model]."""
    from transformer.analysis.sample import lay_out, observe_batch
    from transformer.trace import only

    batch = lay_out(model.task, question)
    seen = observe_batch(model.network(), batch, remember=only("encoder.states"))
    found: np.ndarray = seen["encoder.states"][0].numpy()
    return found
