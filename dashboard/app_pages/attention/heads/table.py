"""Find the one: every head measured over many sequences, as a table, a scatter of two metrics, and a map of likeness.

All three speak of the head in focus, and each can change it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from copy import copy

import numpy as np
import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler

from dashboard import theme
from dashboard.app_pages.attention.heads import measured
from dashboard.app_pages.attention.heads.words import (
    kind_of,
    likeness_sentence,
    named_sentence,
    role,
    scatter_sentence,
)
from dashboard.components.appearance import is_dark, palette
from dashboard.components.plot import coloured, plot
from dashboard.figures.heads import Axis, likeness_heatmap, metrics_scatter
from dashboard.figures.kit.numbers import interval
from dashboard.models import heads as models_heads
from dashboard.models.cache import cached
from dashboard.models.model import Model
from dashboard.parts import claims, waiting
from dashboard.parts.heads import LEANING, working_sentence
from dashboard.parts.prose import labels_of
from dashboard.parts.tables import ticked_table
from dashboard.parts.widgets import bound, bound_choice
from dashboard.view import session
from transformer.analysis.findings import Head
from transformer.analysis.heads.kinds import KINDS, Kinds
from transformer.analysis.heads.metrics import MARGIN, METRICS, MIXED, NAMES, HeadMetrics
from transformer.foundation.words import counted

HEIGHT = 460
BREATH = 0.12
"""Seconds in which the browser paints the head that was chosen, before the table and two plots follow: with 0.08 their
work came between, and a click was answered after 155 to 177 ms in place of 141."""


def find_the_one(model: Model, focus: Head, kinds: Kinds | None) -> None:
    """The section of a page: what each head does over many sequences, and what removing it costs.

    `kinds` is what the page above knows of the tokens on which the heads look: the page is drawn anew once it is there.
    """
    st.header("Compare the heads", anchor=False)
    if session.first_look():  # the heads come first: the table's program alone is a megabyte for the browser
        waiting.hourglass("Every head is about to be measured …")
        return
    time.sleep(BREATH)
    metrics = waiting.ready(measured.head_metrics(model), "Measuring every head over many sequences …")
    if metrics is None:
        return
    if not model.task.points:
        metrics = metrics.without("expected")
    if _removed(model):
        drop = waiting.ready(measured.removal(model), "Removing each head in turn …")
        if drop is not None:
            metrics = metrics.with_drop(drop)
        elif _drop_is_asked_for():
            return
    labels = labels_of(metrics.heads)
    names = [metrics.name(head) for head in metrics.heads]
    roles, does, called, order = names, names, names, [*NAMES, MIXED]
    if measured.has_kinds(model):
        if kinds is None:  # also where it came while this was drawn: what stands above does not know it yet
            there = measured.kinds(model).done
            words = "Measuring on which tokens every head looks …"
            waiting.until(there, lambda: waiting.hourglass(words), news=there)
            return
        roles = [role(kinds, head, name) for head, name in zip(metrics.heads, names, strict=True)]
        called = [kind_of(kinds, head, name) for head, name in zip(metrics.heads, names, strict=True)]
        order = list(dict.fromkeys(KINDS.get(name, name) for name in [*KINDS, *NAMES, MIXED]))
        does = [
            LEANING if name == MIXED and kinds.leaning(head) else name
            for head, name in zip(metrics.heads, names, strict=True)
        ]
    said = (
        working_sentence(model, focus, model.survey())
        if model.config.model.recurrent  # whose one head is measured against the token itself, not a state beside it
        else named_sentence(labels, does, choice=bool(metrics.asked["entropy"].any()))
    )
    st.markdown(f"**{said}**")
    if "drop" in metrics.estimates and model.task.lawful:
        words = claims.works(labels, metrics.estimates["drop"])
        if model.config.model.recurrent:
            words += " The network was given the right tokens here; on *Accuracy by position* it reads its own words."
        st.markdown(words)
    _table(model, metrics, labels, tuple(roles), focus, said)
    left, right = st.columns([1.3, 1], gap="medium")
    with left:
        _scatter(metrics, labels, called, order, focus)
    with right:
        _likeness(metrics, labels, focus)


def _removed(model: Model) -> bool:
    """Is each head to be removed in turn? Always where that is quick; elsewhere the reader says so."""
    if not models_heads.removal_takes_long(model):
        return True
    return _drop_is_asked_for() or bool(
        bound(
            st.toggle,
            "Remove each head in turn",
            "removal",
            help="Measures how much worse the model is without each head. With this many large heads it takes a while.",
        )
    )


def _drop_is_asked_for() -> bool:
    view = session.settings()
    return "drop" in (view.across, view.up)


def _choose(heads: Sequence[Head], index: object) -> None:
    """Make a head the focus; an index that the browser sent of another model is passed over."""
    if isinstance(index, int) and 0 <= index < len(heads):
        session.update(head=str(heads[index]))


# --- the table


@cached(8)
def _painted(model: Model, shown: tuple[str, ...], dark: bool, roles: tuple[str, ...], _metrics: HeadMetrics) -> Styler:
    """The table of a model in a theme: of 144 heads it takes 0.13 s, which no click should wait for."""
    return styled(frame_of(_metrics, labels_of(_metrics.heads), roles), _metrics)


def _table(
    model: Model, metrics: HeadMetrics, labels: Sequence[str], roles: tuple[str, ...], focus: Head, said: str
) -> None:
    def ticked(found: list[str]) -> None:
        if found:
            session.update(head=found[0])

    shown = [name for name in METRICS if name in metrics.estimates]
    columns = {
        METRICS[name].title: st.column_config.NumberColumn(help=f"{METRICS[name].meaning}. In {METRICS[name].unit}.")
        for name in shown
    }
    ticked_table(
        copy(_painted(model, tuple(metrics.estimates), is_dark(), roles, metrics)),
        [str(head) for head in metrics.heads],
        [str(focus)],
        ticked,
        key="find-table",
        mode="single-row-required",
        placeholder="–",
        column_config={
            "head": st.column_config.TextColumn("Head", pinned=True),
            "does": st.column_config.TextColumn(
                "Role",
                help="A head gets a name if one share is above one half (evenness: 0.9) and above every other name by "
                f"{MARGIN:g}, with its whole interval. In a text a head is called by the kind of token on which it has "
                f"{MARGIN:g} more than a head that looks evenly, where a word asks, and by its share there. The rest "
                "are mixed.",
            ),
            **columns,
        },
        alt=f"Table of {counted(len(labels), 'head')} and {counted(len(shown), 'metric')}. {said}",
    )
    measured_on = (
        f"{metrics.sequences} fresh sequences" if model.task.lawful else f"{metrics.sequences} held-out passages"
    )
    st.caption(
        f"Means over {measured_on} with 95 % intervals. Only queries that see more than one key "
        f"count.{_drop_note(metrics)}{_even_note(metrics, labels, focus)} Tick a row, or click a point or a cell of "
        "the map, to see that head above."
    )


def frame_of(metrics: HeadMetrics, labels: Sequence[str], names: Sequence[str]) -> pd.DataFrame:
    """One row a head, in the order of the data's way; the columns are the metrics' titles."""
    columns = {METRICS[name].title: estimate.mean for name, estimate in metrics.estimates.items()}
    return pd.DataFrame({"head": list(labels), "does": list(names), **columns})


def styled(frame: pd.DataFrame, metrics: HeadMetrics) -> Styler:
    """The frame with its intervals written out, and shares on the colours of patterns; it sorts by the means."""
    colours = palette()
    css = pd.DataFrame("", index=frame.index, columns=frame.columns)
    texts: list[dict[str, str]] = [{} for _ in frame.index]
    for name, estimate in metrics.estimates.items():
        title = METRICS[name].title
        for row, (mean, half) in enumerate(zip(estimate.mean, estimate.half, strict=True)):
            texts[row][title] = interval(mean, half)
            if METRICS[name].unit == "share" and not math.isnan(mean):
                ground, letters = theme.share_colours(float(mean), colours)
                css.loc[row, title] = f"background-color: {ground}; color: {letters}"
    styler = frame.style.apply(lambda _: css, axis=None)
    for row, written in enumerate(texts):
        says = {title: (lambda _, text=text: text) for title, text in written.items()}
        styler = styler.format(says, subset=pd.IndexSlice[[row], list(written)])
    return styler


def _drop_note(metrics: HeadMetrics) -> str:
    """On how many sequences heads were removed, if these are fewer."""
    drop = metrics.estimates.get("drop")
    return f" Heads were removed on {drop.sequences} of them." if drop and drop.sequences < metrics.sequences else ""


def _even_note(metrics: HeadMetrics, labels: Sequence[str], focus: Head) -> str:
    """What the head in focus would get if it looked at all alike."""
    index = metrics.heads.index(focus)
    even = [
        f"{METRICS[name].title} {metrics.even[name][index]:.3f}"
        for name in NAMES
        if name != "uniform" and not math.isnan(metrics.even[name][index])
    ]
    return f" If head {labels[index]} looked evenly, it would have: {', '.join(even)}." if even else ""


# --- the scatter


def _scatter(
    metrics: HeadMetrics, labels: Sequence[str], names: Sequence[str], order: Sequence[str], focus: Head
) -> None:
    menu = [name for name in METRICS if name in metrics.estimates]
    one, other = st.columns(2)
    with one:
        across = _axis_menu("Horizontal metric", "across", menu, "expected" if "expected" in menu else "previous")
    with other:
        up = _axis_menu("Vertical metric", "up", menu, "drop" if "drop" in menu else "entropy")
    key = "find-scatter"

    def clicked() -> None:
        click = st.session_state[key]["click"] or {}
        _choose(metrics.heads, click.get("customdata"))

    figure = coloured(
        metrics_scatter,
        _axis(metrics, across),
        _axis(metrics, up),
        labels,
        names,
        order,
        focus=metrics.heads.index(focus),
    )
    said = scatter_sentence(metrics, labels, across, up)
    plot(figure, key=key, alt=said, height=HEIGHT - 70, on_click=clicked)
    st.caption(said)


def _axis_menu(label: str, field: str, menu: list[str], default: str) -> str:
    return bound_choice(
        st.selectbox,
        label,
        field,
        menu,
        default,
        format_func=lambda name: f"{METRICS[name].title}, {METRICS[name].unit}",
    )


def _axis(metrics: HeadMetrics, name: str) -> Axis:
    estimate, metric = metrics.estimates[name], METRICS[name]
    even = {round(float(value), 6) for value in metrics.even.get(name, ()) if not math.isnan(value)}
    return Axis(
        metric.title,
        metric.unit,
        estimate.mean,
        estimate.low,
        estimate.high,
        even.pop() if len(even) == 1 else None,
    )


# --- the map


def _likeness(metrics: HeadMetrics, labels: Sequence[str], focus: Head) -> None:
    st.markdown("**Which heads are alike?**")
    said = likeness_sentence(metrics, labels)
    if not metrics.likenesses():
        st.caption(said)
        return
    key = "find-alike"
    kinds = list(dict.fromkeys(head.kind for head in metrics.heads))
    order = sorted(range(len(metrics.heads)), key=lambda i: kinds.index(metrics.heads[i].kind))
    heads = [metrics.heads[i] for i in order]

    def clicked() -> None:
        click = st.session_state[key]["click"] or {}
        _choose(heads, click.get("row"))

    figure = coloured(
        likeness_heatmap, metrics.alike[np.ix_(order, order)], [labels[i] for i in order], focus=heads.index(focus)
    )
    plot(figure, key=key, alt=said, height=HEIGHT - 20, on_click=clicked)
    grey = (
        " Grey: the two heads are of different kinds, so their rows belong to different tokens."
        if np.isnan(metrics.alike).any()
        else ""
    )
    st.caption(
        f"{said} A cell is the cosine of two heads’ rows, averaged over queries and sequences. 1: they look alike. "
        f"0: they never look at the same key.{grey}"
    )
