"""Accuracy taken apart, as its page shows it: over training, by head, symbol and length, what is said for what, and the
sequences that are hardest.

Only what is asked for is counted and drawn.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import streamlit as st

from dashboard.app_pages.training.accuracy import counts as accuracy_counts
from dashboard.app_pages.training.accuracy import figures, hardest, text
from dashboard.app_pages.training.accuracy.words import (
    asked,
    confusion_sentence,
    forced,
    head_sentence,
    length_sentence,
    symbol_sentence,
    what,
    which,
)
from dashboard.components.plot import coloured, plot
from dashboard.models.heads import removal_takes_long
from dashboard.models.model import Model, maker_of
from dashboard.parts import waiting
from dashboard.parts.film import Rows, dots, order_sentence
from dashboard.parts.learning import order_heatmap
from dashboard.parts.prose import labels_of
from dashboard.parts.widgets import bound, bound_choice
from dashboard.view import session, settings
from dashboard.view.pages import PAGES
from transformer.analysis.accuracy import breakdown
from transformer.analysis.intervals import wilson

LOOKS = {
    "training": "over training",
    "head": "by head",
    "symbol": "by symbol",
    "length": "by length",
    "confusion": "confusion",
    "hardest": "hardest",
}


def closer_look(model: Model, length: int) -> None:
    """The section of the page: what the accuracy at one length is made of."""
    default = "training" if model.run else "head"
    drawn = DRAWN if model.task.lawful else READ
    menu = [look for look in drawn if look != "head" or model.config.model.attends]
    called = LOOKS if model.task.lawful else LOOKS | {"symbol": "by token"}
    look = bound_choice(st.segmented_control, "Look closer", "depth", menu, default, format_func=called.__getitem__)
    if session.first_look() and look != "training":  # the bars come first; a film is kept beside its run
        waiting.hourglass("About to look closer …")
    else:
        drawn[look](model, length)


# --- over training


def _over_training(model: Model, _: int) -> None:
    if model.run is None:
        st.info(
            "This model was not trained: its weights were written by hand. Choose a trained model in the "
            "sidebar to see "
            "which position is learned when.",
            icon=":material/movie:",
        )
        return
    film, key = model.film(), "depth-training"
    kept = list(model.run.snapshots())

    def clicked() -> None:
        column = (st.session_state[key]["click"] or {}).get("x")  # of a dot too, which has no column
        if not isinstance(column, int) or not 0 <= column < len(film.steps):
            return
        step = min(kept, key=lambda step: abs(step - int(film.steps[column])))
        session.update(step=None if step == kept[-1] else step)

    figure = order_heatmap(film, model.config)
    said = order_sentence(film, model.config)
    st.markdown(f"**{said}**")
    last = maker_of(model.run, int(film.steps[-1]))
    alt = f"Accuracy by position and step. {said}"
    plot(figure, key=key, alt=alt, height=_height(len(Rows.of(model.config).names)), on_click=clicked, makers=[last])
    others = "" if model.task.lawful else "Measured during the training, on other windows than those above: "
    st.caption(
        f"{others}{asked(model, film.sequences, model.task.length)}{dots(model.config)} Every "
        f"page shows step {model.step} now. Click a column to go to the nearest step whose weights are kept: "
        f"{', '.join(map(str, kept))}."
    )


def _height(rows: int) -> int:
    return 90 + max(16, min(34, 560 // rows)) * rows


# --- by head


def _by_head(model: Model, length: int) -> None:
    if removal_takes_long(model):
        st.info("This model is too large to remove its heads while you wait. In Python, `without_each_head` does it.")
        return
    sequences = accuracy_counts.removal_sequences(model, session.settings().sequences, length)
    whole, without = accuracy_counts.without_each_head(model, sequences, length)
    heads, labels = list(without), labels_of(list(without))
    known, names = accuracy_counts.known(model, length), [str(head) for head in heads]
    missing = "This model has no head of that name. The page shows the one whose removal costs most."
    named = session.named("head", names, "", lambda _: missing)
    left = np.array([accuracy.mean[known].mean() for accuracy in without.values()])
    worst = int(left.argmin())
    said = head_sentence(whole, list(without.values()), labels, known, what(model, length))
    st.markdown(f"**{said}**")
    focus = names.index(named) if named else worst
    key = "depth-head"

    def clicked() -> None:
        row = (st.session_state[key]["click"] or {}).get("row")
        if row and row <= len(heads):  # the first row is the whole model's
            session.update(head=str(heads[row - 1]))

    figure = coloured(
        figures.accuracy_by_head_heatmap,
        np.stack([whole.mean, *(accuracy.mean for accuracy in without.values())]),
        labels,
        whole.names,
        whole.groups,
        focus=focus,
    )
    plot(figure, key=key, alt=said, height=_height(len(heads) + 1), on_click=clicked)
    st.caption(
        f"Each row is the accuracy when one head’s output z is set to zero, on the same {sequences:,} fresh "
        "sequences of "
        f"length {length}. The sentence counts {which(model, length)}. Click a row to enlarge that head on every page."
    )
    removal = f"zero:{heads[focus]}"
    edits = [part for part in session.settings().edits.split(settings.JOINT) if part and part != removal]
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.page_link(PAGES["heads"].script, label=f"See head {labels[focus]}", icon=":material/grid_view:")
        if model.config.model.recurrent:
            return
        if st.button(f"Go on without head {labels[focus]}", icon=":material/edit:", help="Opens the page Edits"):
            session.update(edits=settings.JOINT.join([*edits, removal]))
            st.switch_page(PAGES["edits"].script)


# --- by symbol


def _by_symbol(model: Model, length: int) -> None:
    answers = accuracy_counts.answers(model, session.settings().sequences, length)
    tokens = model.task.vocabulary
    correct, seen = breakdown.by_symbol(answers, len(tokens))
    rows = np.flatnonzero(seen.any(axis=1))
    known = accuracy_counts.known(model, length)
    said = symbol_sentence(correct[:, known].sum(axis=1), seen[:, known].sum(axis=1), tokens, what(model, length))
    st.markdown(f"**{said}**")
    figure = coloured(
        figures.accuracy_by_symbol_heatmap,
        correct[rows],
        seen[rows],
        wilson(correct[rows], np.maximum(seen[rows], 1)),
        [tokens[row] for row in rows],
        model.task.target_names(length),
        model.task.groups(length),
    )
    plot(figure, key="depth-symbol", alt=said, height=_height(len(rows)))
    grey = " Grey: never the right token there." if (seen[rows] == 0).any() else ""
    st.caption(
        f"{asked(model, len(answers), length)} The sentence counts {which(model, length)}. Hover for counts and "
        f"intervals.{grey}"
    )


# --- by length


def _by_length(model: Model, _: int) -> None:
    found, task = accuracy_counts.by_length(model, session.settings().sequences), model.task
    names, lengths = task.target_names(task.length), list(found)
    table = np.full((len(lengths), len(names)), np.nan)
    places = {name: place for place, name in enumerate(names)}
    for row, accuracy in enumerate(found.values()):
        table[row, [places[name] for name in accuracy.names]] = accuracy.mean
    exact = np.array([accuracy.exact / accuracy.sequences for accuracy in found.values()])
    trained = [length in task.lengths for length in lengths]
    said = length_sentence(exact, lengths, trained)
    st.markdown(f"**{said}**")
    figure = coloured(
        figures.accuracy_by_length_heatmap, table, exact, lengths, trained, names, task.groups(task.length)
    )
    plot(figure, key="depth-length", alt=said, height=_height(len(lengths)))
    counts = sorted({accuracy.sequences for accuracy in found.values()})
    each = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
    new = " New: the model was not trained on that length." if not all(trained) else ""
    st.caption(
        f"{each} fresh sequences of each length{forced(model)}. The last column is the share of whole "
        f"answers that are right.{new} Grey: a target that sequences of this length do not have."
    )


# --- confusion


def _confusion(model: Model, length: int) -> None:
    names, tokens = model.task.target_names(length), model.task.vocabulary
    menu = range(len(names) + 1)
    chosen: int = session.named(
        "confused", menu, 0, lambda target: f"There is no target {target} here: a sequence has {len(names)}."
    )
    known = accuracy_counts.known(model, length)
    counted = np.arange(len(names)) == chosen - 1 if chosen else known
    answers = accuracy_counts.answers(model, session.settings().sequences, length)
    counts = breakdown.confusion(answers, counted, len(tokens))
    said = confusion_sentence(counts, tokens, f"target {names[chosen - 1]}" if chosen else what(model, length))
    st.markdown(f"**{said}**")
    picture, control = st.columns([2, 1], gap="large")
    with control:
        bound(
            st.selectbox,
            "Counted",
            "confused",
            options=menu,
            format_func=lambda i: f"position {i}: {names[i - 1]}" if i else "all of the answer",
        )
        these = f"target {names[chosen - 1]} alone" if chosen else which(model, length)
        st.caption(
            f"{asked(model, len(answers), length)} Counted: {these}. A row is the right symbol, and its "
            "cells are the shares of what the model says there. A 1 on the diagonal is always right."
        )
    true = np.flatnonzero(counts.any(axis=1))
    other = np.flatnonzero(counts.any(axis=0) | (np.arange(len(tokens)) < model.task.symbols))
    figure = coloured(
        figures.confusion_heatmap, counts[np.ix_(true, other)], [tokens[i] for i in true], [tokens[i] for i in other]
    )
    with picture:
        plot(figure, key="depth-confusion", alt=said, height=_height(len(true)))


DRAWN: dict[str, Callable[[Model, int], None]] = {
    "training": _over_training,
    "head": _by_head,
    "symbol": _by_symbol,
    "length": _by_length,
    "confusion": _confusion,
    "hardest": lambda model, length: hardest.table(model, length, lambda typed: session.update(input=typed)),
}
READ: dict[str, Callable[[Model, int], None]] = {
    "training": _over_training,
    "head": text.by_head,
    "symbol": text.by_token,
    "confusion": text.confusion,
    "hardest": text.hardest,
}
"""Of a model that reads a text: it has no law, thousands of symbols, and every length in each of its windows."""
