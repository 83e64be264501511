"""What heads do wherever something is read: induction and previous-token heads, and how far each head looks.

Both sections speak of the head in focus, and each can change it.
"""

from __future__ import annotations

import numpy as np
import streamlit as st

from dashboard.app_pages.text.reading import measured, words
from dashboard.app_pages.text.reading.figures import Curve, distance_bars, distance_heatmap, repetition_lines
from dashboard.components.plot import coloured, plot
from dashboard.figures.heads import Axis, metrics_scatter
from dashboard.models.model import Model
from dashboard.parts.prose import labels_of
from dashboard.parts.widgets import bound_choice, told
from dashboard.view import session
from transformer.analysis.findings import Head
from transformer.analysis.heads.distances import Distances
from transformer.analysis.heads.induction import NEITHER, Repetition, common_tokens
from transformer.analysis.heads.metrics import Estimate, Metric

ORDER = (*words.NAMES, NEITHER)
TWICE = {"random": "random tokens", "passages": "passages held out"}
ROW, MOST_HIGH = 22, 520
"""Pixels of a head's row, and of the tallest map."""
LONG, TOGETHER = 32, 4
"""From LONG tokens of a block on so many places are drawn as one: words and blanks cost so differently."""
_NATS = Metric("loss", "nats", "Cross-entropy of a token", most=float("inf"))


def induction(model: Model) -> None:
    """The heads that carry on with what came before, found on blocks that are read twice."""
    st.header("Which heads use repetition?", anchor=False)
    with told():
        passages = _passages(model)
        found = measured.repetition(model, passages)
        _repetition(model, found, passages)


def _passages(model: Model) -> bool:
    """Are passages repeated, and not random tokens? Only of a text there are any."""
    if model.task.lawful:
        return False
    menu = list(TWICE)
    picked = bound_choice(st.segmented_control, "Test text", "repeated", menu, menu[0], format_func=TWICE.__getitem__)
    return picked == "passages"


def _repetition(model: Model, found: Repetition, passages: bool) -> None:
    labels = labels_of(found.heads)
    on = f"{TWICE['passages' if passages else 'random']}, read twice"
    said, drop = words.named(found, labels, on), words.drop_sentence(found)
    st.markdown(f"**{said} {drop}**")
    closest = found.heads[int((found.induction.mean - found.unrepeated.mean).argmax())]
    focus = _focus(model, found.heads, closest)
    left, right = st.container(key="reading-repeats").columns(2, gap="medium")
    with left:
        _scatter(found, labels, focus)
    with right:
        together = TOGETHER if found.block >= LONG and found.block % TOGETHER == 0 else 1
        curves = [
            _curve("first block", found.first, together),
            _curve("repeated", found.again, together),
            _curve("new block", found.another, together),
        ]
        plot(coloured(repetition_lines, curves, together=together), key="reading-twice", alt=drop, height=380)
        what = (
            "stretches of the works held out"
            if passages
            else f"different tokens, drawn from the {common_tokens(model.task):,} commonest"
            if not model.task.lawful
            else "different symbols, drawn at random"
        )
        st.caption(
            f"{found.sequences} blocks of {found.block} tokens, {what}. Each is read twice in a row, and once "
            "followed by "
            "a new block (Olsson et al., 2022). Means with 95 % intervals; the difference leaves out the first "
            "token of "
            f"a block.{f' The lines average {together} neighbouring positions.' if together > 1 else ''}"
        )


def _scatter(found: Repetition, labels: list[str], focus: Head) -> None:
    key = "reading-scores"

    def clicked() -> None:
        click = st.session_state[key]["click"] or {}
        _choose(found.heads, click.get("customdata"))

    even = {round(float(value), 6) for value in found.even}
    level = even.pop() if len(even) == 1 else None
    before, behind = (
        Axis(title, "share", score.mean, score.low, score.high, level)
        for title, score in (("on the previous token", found.previous), ("after the first occurrence", found.induction))
    )
    names = [found.name(head) for head in found.heads]
    index = found.heads.index(focus)
    figure = coloured(metrics_scatter, before, behind, labels, names, ORDER, focus=index)
    said = words.head_sentence(found, focus, labels[index])
    plot(figure, key=key, alt=said, height=380, on_click=clicked)
    st.caption(f"{said} {words.rule()}")


def _curve(name: str, nats: np.ndarray, together: int) -> Curve:
    """The mean over sequences, float [sequence, place], with its interval; so many places are one."""
    found = Estimate.of(nats.reshape(len(nats), -1, together).mean(axis=2), _NATS)
    return Curve(name, found.mean, found.low, found.high)


def distances(model: Model) -> None:
    """Attention by distance, of all heads as a map and of the one in focus beside an even head."""
    st.header("How far each head looks", anchor=False)
    found = measured.distances(model)
    labels = labels_of(found.heads)
    st.markdown(f"**{words.distance_title(found, labels)}**")
    focus = _focus(model, found.heads, found.heads[int(found.mean.mean.argmin())])
    index = found.heads.index(focus)
    left, right = st.container(key="reading-distances").columns([1.2, 1], gap="medium")
    with left:
        _map(found, labels, focus)
    with right:
        bins = found.bins()
        own, even = (found.binned(values)[index] for values in (found.share, found.even))
        figure = coloured(distance_bars, own, even, bins, f"head {labels[index]}")
        said = words.distance_sentence(found, focus, labels[index])
        plot(figure, key="reading-distance", alt=said, height=_height(found))
        st.caption(said)


def _height(found: Distances) -> int:
    return min(MOST_HIGH, 90 + ROW * max(10, len(found.heads)))


def _map(found: Distances, labels: list[str], focus: Head) -> None:
    key = "reading-map"

    def clicked() -> None:
        click = st.session_state[key]["click"] or {}
        _choose(found.heads, click.get("row"))

    figure = coloured(distance_heatmap, found.binned(found.share), labels, found.bins(), focus=found.heads.index(focus))
    plot(figure, key=key, alt=words.distance_title(found, labels), height=_height(found), on_click=clicked)
    st.caption(
        f"Share of attention by distance; each bin is twice as wide as the one before. Means over the second half of "
        f"{found.sequences} sequences of {found.tokens} tokens. Click a row to see that head on the right."
    )


def _focus(model: Model, heads: tuple[Head, ...], default: Head) -> Head:
    """The head that the view names, or the section's choice: a head that looks at a source has no distances."""
    from transformer.analysis.heads.measure import heads_of

    named = session.settings().head
    if named and named not in map(str, heads_of(model.network())):
        session.notice(f"This model has no such head. You see head {default.short}.")
        session.update(head="")
    return next((head for head in heads if str(head) == named), default)


def _choose(heads: tuple[Head, ...], index: object) -> None:
    """Make a head the focus; an index that the browser sent of another model is passed over."""
    if isinstance(index, int) and 0 <= index < len(heads):
        session.update(head=str(heads[index]))
