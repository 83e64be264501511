"""The sequences that are hardest for a model, as a table of which each row can be opened on every page."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import streamlit as st

from dashboard.app_pages.training.accuracy import counts
from dashboard.app_pages.training.accuracy.words import asked, forced, hardest_sentence, what
from dashboard.models.model import OWN_WORDS, Model
from dashboard.parts.claims import reads_answers
from dashboard.parts.tables import ticked_table
from dashboard.view import session
from dashboard.view.pages import PAGES
from transformer.analysis.accuracy import breakdown

MOST_HARD = 20
"""Rows of the table of the hardest sequences."""
OPENED_ON = ("heads", "inside", "layers", "information", "masks")
"""The pages on which a ticked sequence may be opened."""


def table(model: Model, length: int, choose: Callable[[str], None]) -> None:
    """The hardest sequences of those that were asked; a tick hands one to `choose`, as it would be typed."""
    answers, known = counts.answers(model, session.settings().sequences, length), counts.known(model, length)
    rows = breakdown.hardest(answers, known, MOST_HARD)
    frame = frame_of(model, answers, rows, known)
    said = hardest_sentence(frame, int((answers.right | ~known).all(axis=1).sum()), len(answers), what(model, length))
    st.markdown(f"**{said}**")
    typed = list(frame["input"])
    shown = " ".join(model.task.vocabulary[symbol] for symbol in session.question(model))
    ticked_table(
        frame,
        typed,
        [shown],
        lambda found: choose(next(iter(found), "")),
        key="depth-hardest",
        mode="single-row",
        column_config={
            "input": st.column_config.TextColumn("Input"),
            "right": st.column_config.TextColumn("Right answer"),
            "says": st.column_config.TextColumn("It says", help="Wrong tokens in brackets"),
            "alone": st.column_config.TextColumn("By itself", help="What it says when it reads its own words"),
            "wrong": st.column_config.NumberColumn("Wrong", help=f"Wrong tokens{forced(model)}"),
            "p": st.column_config.NumberColumn("p", format="%.3g", help=_of_the_answer(model)),
            "log p": st.column_config.NumberColumn(
                "Mean ln p", format="%.3f", help="Mean log-probability of the right tokens, in nats"
            ),
        },
        alt=f"Table of the {len(frame)} hardest sequences. {said}",
    )
    hidden = (
        " A dot stands for a token that cannot be known under the mask. It is not counted."
        if "·" in frame["says"][0]
        else ""
    )
    alone = ""
    if "alone" in frame:
        others = int((frame["says"] != frame["alone"]).sum())
        alone = f" When it reads its own words it says something else in {others} of these {len(frame)}."
    st.caption(
        f"The hardest of {asked(model, len(answers), length)} Most wrong tokens first, then the smallest p. "
        f"In brackets: wrong.{hidden}{alone}"
    )
    ticked_now = shown in typed
    st.markdown(
        f"Every page reads **{shown}** now. Open it on:" if ticked_now else "Tick a row, and open it on any page:"
    )
    with st.container(horizontal=True, gap="small"):
        for page in (PAGES[address] for address in OPENED_ON):
            if model.config.model.recurrent and page.transformer:
                continue
            st.page_link(page.script, label=page.title, icon=f":material/{page.icon}:", disabled=not ticked_now)


def _of_the_answer(model: Model) -> str:
    """What the column p holds."""
    if model.config.model.recurrent:
        return "The product of the right tokens’ probabilities, each after the model’s own words"
    return "Probability of the right answer: the product of the probabilities of its tokens that can be known"


def frame_of(model: Model, answers: breakdown.Answers, rows: np.ndarray, known: np.ndarray) -> pd.DataFrame:
    """What the table shows of some sequences: wrong tokens in brackets, a dot for what is not counted."""
    names, questions = model.task.vocabulary, answers.questions[rows]
    answer = model.task.answers(questions.shape[1])
    log_p = answers.log_probability[rows][:, known].astype(np.float64)
    targets, said = answers.targets[rows][:, answer], answers.predicted[rows][:, answer]

    def words(tokens: np.ndarray) -> str:
        return " ".join(names[token] for token in tokens)

    def marked(tokens: np.ndarray, right: np.ndarray) -> str:
        return " ".join(
            "·" if not counted else names[token] if token == wanted else f"[{names[token]}]"
            for token, wanted, counted in zip(tokens, right, known[answer], strict=True)
        )

    own = {}
    if reads_answers(model) and not model.config.model.recurrent and questions.shape[1] <= OWN_WORDS:
        alone = counts.by_itself(model, questions)
        own["alone"] = [marked(*pair) for pair in zip(alone, targets, strict=True)]
    return pd.DataFrame(
        {
            "input": [words(question) for question in questions],
            "right": [words(row) for row in targets],
            "says": [marked(*pair) for pair in zip(said, targets, strict=True)],
            **own,
            "wrong": ((said != targets) & known[answer]).sum(axis=1),
            "p": np.exp(log_p.sum(axis=1)),
            "log p": log_p.mean(axis=1),
        }
    )
