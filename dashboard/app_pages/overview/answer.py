"""The answer to one question: its tokens, arcs to where the head in focus looks, and a question to be typed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from dashboard.components.arcs import Arcs, Looks, Said, Typing
from dashboard.models.model import Model
from dashboard.models.passages import in_link, parsed
from dashboard.parts.heads import LINK
from dashboard.parts.prose import head_label, sentence
from dashboard.view import clicks, permission, session, training
from transformer.analysis.findings import Head

if TYPE_CHECKING:
    from transformer.tasks import Question

ALL_LENGTHS: dict[str, Any] = {"learning_rate": 2e-3, "batch_size": 128}
"""How a reversal of any length is learned: the quick recipe does not get there in 2,000 steps."""
MOST_TOKENS = 36
"""Of a question, and of its answer; more have no room."""


def draw(model: Model, question: Question, said: Sequence[Said], head: Head | None) -> None:
    """A question and what is `said`, with arcs of a head; at most MOST_TOKENS of each."""
    task, names = model.task, model.task.vocabulary
    shown = question[:MOST_TOKENS]
    separated = not task.has_source and not task.answers(len(question)).all() and len(question) <= MOST_TOKENS
    looks = None if head is None else _looks(model, question, head, len(shown), len(said), separated)
    hint = "Type a question of your own over this one." + " Point at an answer: where does the head look?" * bool(looks)
    own = _own(model)
    Arcs(
        tuple(names[symbol] for symbol in shown),
        said,
        key="overview-tokens",
        alt=f"in: {', '.join(names[symbol] for symbol in shown)}. out: {', '.join(map(_verdict_in_words, said))}.",
        hint=hint,
        separator=names[task.separator] if separated else "",
        looks=looks,
        typing=own,
        link=LINK,
    ).draw(lambda: _asked(model))


def offer_all_lengths(model: Model, question: Question) -> None:
    """Where the question is of a length that the model was not trained on: a button that trains one on all lengths."""
    task = model.task
    if not model.step or len(question) in task.lengths or len(question) > task.length or not task.may_vary():
        return
    longer = replace(
        model.config,
        task=replace(model.config.task, min_length=1),
        training=replace(model.config.training, **ALL_LENGTHS),
    )

    def train() -> None:
        session.update(**training.fields_of(longer))
        training.start_training()

    label, problem = f"Train one on 1 to {task.length} symbols", permission.to_train([longer])
    st.button(label, on_click=train, disabled=bool(problem), icon=":material/play_arrow:", help=problem or None)


def _asked(model: Model) -> None:
    typed = st.session_state["overview-tokens"]["question"]
    try:
        parsed(model.task, typed or "")
    except ValueError as error:
        clicks.touch()
        session.notice(sentence(str(error)))
        return
    session.update(input=in_link(model.task, typed))


def _verdict_in_words(said: Said) -> str:
    if said.verdict == "open":
        return f"{said.text}, which cannot be known"
    return f"{said.text} {said.verdict}" + f", it is {said.truth}" * (said.verdict == "wrong")


def _own(model: Model) -> Typing:
    """What may be typed in place of the question."""
    task = model.task
    hint = f"Type {task.input_rule}"
    return Typing("".join(task.vocabulary[: task.symbols]), task.alphabet, min(task.length, MOST_TOKENS), hint)


def _looks(model: Model, question: Question, head: Head, shown: int, said: int, separated: bool) -> Looks | None:
    """Where a head looks for each answer; None where it looks at nothing that is drawn."""
    attention, task = model.sample(question).attentions[head.site], model.task
    if attention.factor > 1:
        return None
    n, keys = len(question), np.arange(attention.pattern.shape[2])
    rows = np.flatnonzero(task.answers(n))[:said]
    places = keys if separated else np.where(keys < shown, keys, -1)
    if head.site.startswith("encoder.") and task.has_source:
        rows = np.full(said, -1)  # what an encoder asks is asked for no answer in particular
    elif task.has_source and not head.site.endswith("cross_attention"):
        places = np.where((keys > 0) & (keys <= said), shown + keys - 1, -1)  # before its own words stands SEP, undrawn
    places = np.where(places < shown + separated + said, places, -1)
    name = head_label(head, model.config.model)
    return Looks(name, attention.pattern[head.index], tuple(rows.tolist()), tuple(places.tolist()))
