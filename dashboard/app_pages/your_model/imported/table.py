"""Find the one: every head measured on the input that is shown, as a table and as a scatter of two metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler

from dashboard import theme
from dashboard.app_pages.your_model.imported import words
from dashboard.components.appearance import palette
from dashboard.components.plot import coloured, plot
from dashboard.figures.heads import Axis, metrics_scatter
from dashboard.models.imported import METRICS, Look
from dashboard.parts.claims import foremost, heads_in_words
from dashboard.parts.prose import labels_of
from dashboard.parts.tables import ticked_table
from dashboard.parts.widgets import bound_choice
from dashboard.view import session
from transformer.analysis.findings import Head
from transformer.foundation.claims import claim

HEIGHT = 420
MIXED = "no single thing"


def find_the_one(seen: Look, measured: Mapping[str, np.ndarray], focus: Head) -> None:
    """The section of the page: a row for each head, and two metrics of all of them against each other."""
    st.header("Compare the heads", anchor=False)
    heads, labels = seen.heads, labels_of(seen.heads)
    said = words.table_sentence(heads, measured)
    st.markdown(f"**{said}**")
    kinds = [found[0] if (found := words.does(measured, i)) else MIXED for i in range(len(heads))]
    _table(heads, labels, kinds, measured, focus, said)
    _scatter(heads, labels, kinds, measured, focus)


def _table(
    heads: Sequence[Head],
    labels: Sequence[str],
    kinds: Sequence[str],
    measured: Mapping[str, np.ndarray],
    focus: Head,
    said: str,
) -> None:
    def ticked(found: list[str]) -> None:
        if found:
            session.update(head=found[0])

    does = [METRICS[kind].title if kind in METRICS else kind for kind in kinds]
    frame = pd.DataFrame(
        {"head": labels, "does": does, **{METRICS[name].title: each for name, each in measured.items()}}
    )
    columns = {
        METRICS[name].title: st.column_config.NumberColumn(help=words.metric_help(name), format="%.3f")
        for name in measured
    }
    ticked_table(
        styled(frame, measured),
        [str(head) for head in heads],
        [str(focus)],
        ticked,
        key="find-table",
        mode="single-row-required",
        placeholder="–",
        column_config={
            "head": st.column_config.TextColumn("Head", pinned=True),
            "does": st.column_config.TextColumn(
                "Looks at", help="The one thing that has at least half of the head’s attention on this input."
            ),
            **columns,
        },
        alt=f"Table of {len(heads)} heads and {len(measured)} metrics. {said}",
    )
    st.caption(
        "Means over the queries of this input that see more than one key. A dash: nothing of the kind could be asked "
        "of this head here. Induction is measured on the input’s tokens, twice in a row. Tick a row, or click a point, "
        "to see that head above."
    )


def styled(frame: pd.DataFrame, measured: Mapping[str, np.ndarray]) -> Styler:
    """The frame with shares on the colours of patterns."""
    colours = palette()
    css = pd.DataFrame("", index=frame.index, columns=frame.columns)
    for name, each in measured.items():
        if METRICS[name].unit == "share":
            for row in np.flatnonzero(np.isfinite(each)):
                ground, letters = theme.share_colours(float(each[row]), colours)
                css.loc[row, METRICS[name].title] = f"background-color: {ground}; color: {letters}"
    return frame.style.apply(lambda _: css, axis=None)


def _scatter(
    heads: Sequence[Head],
    labels: Sequence[str],
    kinds: Sequence[str],
    measured: Mapping[str, np.ndarray],
    focus: Head,
) -> None:
    menu = [name for name, each in measured.items() if np.isfinite(each).any()]
    one, other = st.columns(2)
    with one:
        across = _menu("Horizontal metric", "across", menu, "previous")
    with other:
        up = _menu("Vertical metric", "up", menu, "induction" if "induction" in menu else "entropy")
    key = "find-scatter"

    def clicked() -> None:
        index = (st.session_state[key]["click"] or {}).get("customdata")
        if isinstance(index, int) and 0 <= index < len(heads):
            session.update(head=str(heads[index]))

    order = [name for name in [*words.LOOKS, MIXED] if name in kinds]
    names = [METRICS[kind].title if kind in METRICS else kind for kind in kinds]
    figure = coloured(
        metrics_scatter,
        _axis(measured, across),
        _axis(measured, up),
        labels,
        names,
        [METRICS[name].title if name in METRICS else name for name in order],
        focus=list(heads).index(focus),
    )
    said = scatter_sentence(labels, measured, across, up)
    plot(figure, key=key, alt=said, height=HEIGHT, on_click=clicked)
    st.caption(said)


@claim
def scatter_sentence(labels: Sequence[str], measured: Mapping[str, np.ndarray], across: str, up: str) -> str:
    """Which heads have the most of two metrics; where no digit tells several apart, all of them."""
    return " ".join(_largest(labels, measured[name], METRICS[name].title) for name in dict.fromkeys((across, up)))


def _largest(labels: Sequence[str], values: np.ndarray, title: str) -> str:
    found = {label: value for label, value in zip(labels, values.tolist(), strict=True) if value == value}
    most = foremost(found)
    who, several = heads_in_words(most)
    amount = f"{found[most[0]]:.2f}{' each' * several}"
    if len(most) == len(labels):
        return f"{who} {'have' if several else 'has'} {title} {amount}."
    return f"{who} {'have' if several else 'has'} the largest {title}, {amount}."


def _menu(label: str, field: str, menu: list[str], default: str) -> str:
    default = default if default in menu else menu[0]
    return bound_choice(
        st.selectbox,
        label,
        field,
        menu,
        default,
        format_func=lambda name: f"{METRICS[name].title}, {METRICS[name].unit}",
    )


def _axis(measured: Mapping[str, np.ndarray], name: str) -> Axis:
    metric, each = METRICS[name], measured[name]
    return Axis(metric.title, metric.unit, each, each, each)
