"""A text cut into tokens, the tokens numbered and cut into windows, and what a window does not see."""

from __future__ import annotations

import numpy as np
import streamlit as st

from dashboard.app_pages.text.tokens import cut as cutting
from dashboard.app_pages.text.tokens import words
from dashboard.app_pages.text.tokens.cut import Cut
from dashboard.app_pages.text.tokens.figures import Numbered, context_bars, numbered_tokens, window_table
from dashboard.app_pages.text.tokens.settings import TokensSettings
from dashboard.components.plot import coloured, plot
from dashboard.components.presses import counted_button
from dashboard.components.sheet import Axis, Series, sheet
from dashboard.frame import other_models
from dashboard.models.passages import as_typed, in_a_line
from dashboard.parts.prose import plain, show_code
from dashboard.parts.steps import draw_line
from dashboard.parts.widgets import bound, bound_choice, bound_number, controlled, late_title
from dashboard.view import clicks, session
from dashboard.view.link import longest
from dashboard.view.pages import PAGES
from transformer.text import tokens as text_tokens
from transformer.text.task import Text

DRAWN = 200
"""Tokens that are drawn at once: those of the window in view among them."""
PASSAGE = 64
"""Tokens of a passage that is drawn."""
AFRESH: dict[str, object] = {"cut_at": 1}


# --- what is cut


def controls(task: Text) -> tuple[str, str, int]:
    """The text, into what it is cut, and how long a window is."""
    text = as_typed(session.mine(TokensSettings).cut_text) or task.typed(task.example)
    left, right = st.container(key="stacked-cut").columns([1.5, 1], gap="medium")
    with left:
        controlled(
            st.text_area,
            "Text",
            key="control-cut_text",
            value=text,
            picked=lambda typed: set_text(task, typed),
            height=110,
            help=f"Up to {longest('cut_text'):,} characters. An empty field brings back the page's own passage.",
        )
        for said in session.notices("cut"):
            st.warning(said, icon=":material/info:")
    with right:
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
            by = bound_choice(
                st.segmented_control, "Cut into", "cut_by", cutting.WAYS, task.split, also=AFRESH, width="content"
            )
            st.button("Draw a passage", on_click=draw, args=(task,), shortcut="D", icon=":material/casino:")
        bound(
            st.slider,
            "Window length",
            "cut_window",
            also=AFRESH,
            help=f"In tokens. This model was trained with windows of {task.length}.",
        )
    return text, by, session.mine(TokensSettings).cut_window


def set_text(task: Text, typed: str) -> None:
    """Cut what was typed; nothing stands for the page's own passage."""
    most = longest("cut_text")
    if len(typed) > most:
        session.notice(words.too_long(len(typed), most), "cut")
        typed = typed[:most]
    if lost := [letter for letter in typed if not (letter.isprintable() or letter.isspace())]:
        session.notice(words.lost_letters(lost), "cut")
    kept = in_a_line(typed)
    session.update(cut_text="" if as_typed(kept) == task.typed(task.example) else kept, **AFRESH)


@clicks.once
def draw(task: Text) -> None:
    """A passage of the held-out text."""
    (passage,) = task.draw(np.random.default_rng(), 1, min(PASSAGE, *map(len, task.known.held_out)))
    session.update(cut_text=in_a_line(task.typed(passage))[: longest("cut_text")], **AFRESH)


def window_in_view(cut: Cut) -> int:
    """Which window is looked at, from 0: by number, by button, by key."""
    count = len(cut.places)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        back, on = (st.container(width="content") for _ in range(2))
        with st.container(width=320):
            at = bound_number("Window", "cut_at", 1, 1, count)

    def go(by: int) -> None:
        session.update(cut_at=min(max(session.mine(TokensSettings).cut_at + by, 1), count))

    with back:
        counted_button("Back", lambda n: go(-n), key="window-back", letter="B", disabled=at == 1, width="content")
    with on:
        last = at == count
        counted_button("Forward", go, key="window-on", letter="F", disabled=last, primary=True, width="content")
    return at - 1


# --- the sections


def numbered(cut: Cut, at: int | None) -> None:
    """The tokens with their ids, and in which window each stands."""
    n = len(cut.tokens)
    start = 0 if at is None else int(cut.places[at, 0])
    first = 0 if at is None or int(cut.places[at, -1]) < DRAWN else min(start, n - DRAWN)
    end = min(n, first + DRAWN)
    said = words.spoken(cut, first, end)
    unknown = cut.unknown
    boxes = [
        Numbered(
            text_tokens.shown(cut.tokens[place]),
            int(cut.ids[place]),
            None if cut.window[place] < 0 else int(cut.window[place]) + 1,
            bool(unknown[place]),
        )
        for place in range(first, end)
    ]
    markup = coloured(numbered_tokens, boxes, first=first + 1, chosen=None if at is None else at + 1, spoken=said)
    axis = Axis("position", np.arange(1, n + 1), tuple(map(text_tokens.shown, cut.tokens)))
    series = [
        Series("id", cut.ids, (axis,), {"window": cut.window + 1, "unknown": unknown}),
    ]
    sheet(markup, series, key="cut-tokens", alt=said)
    if end - first < n:
        st.caption(f"Tokens {first + 1} to {end} of {n} are drawn.")


def named(cut: Cut, ids: np.ndarray) -> list[Numbered]:
    """The tokens of a row, by id."""
    return [Numbered(cut.shown(each), each, None, each == cut.vocabulary.unknown) for each in ids.tolist()]


def one_window(cut: Cut, at: int) -> None:
    """What is read, what is to be predicted, and what is seen, place by place."""
    said = words.shifted(cut, at)
    markup = coloured(
        window_table, named(cut, cut.read[at]), named(cut, cut.predicted[at]), cut.seen.tolist(), spoken=said
    )
    axis = (Axis("place", np.arange(1, cut.length + 1)),)
    names = ("read", "predicted", "seen")
    rows = (cut.read[at], cut.predicted[at], cut.seen)
    sheet(markup, [Series(name, row, axis) for name, row in zip(names, rows, strict=True)], key="cut-window", alt=said)
    st.caption(plain(said))


def edges(cut: Cut, at: int) -> None:
    """How much of the text each token is predicted from."""
    seen = np.zeros(len(cut.tokens), dtype=np.int64)
    seen[cut.places] = cut.seen
    said = words.forgotten(cut)
    shown = [text_tokens.shown(token) for token in cut.tokens]
    figure = coloured(context_bars, cut.window + 1, seen, shown, chosen=at + 1)
    plot(figure, key="cut-context", alt=said, height=300)
    st.caption(said)


def page(task: Text) -> None:
    title = late_title()
    text, by, length = controls(task)
    cut = cutting.cut(task, text, by, length)
    title.title(plain(words.headline(cut)), anchor=False)
    tokens_place = st.container()
    at: int | None = None
    if len(cut.places):
        st.markdown("**A window**: what the model reads, and what it has to predict")
        at = window_in_view(cut)
        left, right = st.container(key="stacked-window").columns([1.5, 1], gap="medium")
        with left:
            one_window(cut, at)
        with right:
            draw_line(("transformer.text.corpus:windows", "sliding_window_view(work, length)"))
            draw_line(("transformer.tasks._layouts:begun_with", "np.concatenate([np.full("))
        st.markdown("**What a window forgets**: nothing before its first token is seen")
        left, right = st.container(key="stacked-edges").columns([1.5, 1], gap="medium")
        with left:
            edges(cut, at)
        with right:
            draw_line(("transformer.masks.causal:Causal.visible", "key <= query"))
            st.page_link(
                PAGES["accuracy"].script,
                label="What a token costs at place 1, and later",
                icon=f":material/{PAGES['accuracy'].icon}:",
            )
            st.caption(
                f"This model reads {task.length} tokens at a time. “Accuracy by position” measures what a held-out "
                "token costs, by its place in the window."
            )
    with tokens_place:
        st.markdown(f"**Tokens and their ids**, cut into {by}")
        numbered(cut, at)
        left, right = st.container(key="stacked-ids").columns([1.5, 1], gap="medium")
        with left:
            st.caption(plain(words.numbered(cut)))
            if cut.vocabulary is not task.known.vocabulary:
                st.caption(words.made_here(cut, task.min_count, len(cutting.excerpt(task))))
            if at is not None:
                st.caption(words.windowed(cut))
        with right:
            draw_line(("transformer.text.tokens:split", "return list(text)"))
            draw_line(("transformer.text.tokens:Vocabulary.encode_tokens", "index.get(token, unknown)"))
            st.caption(words.splitting(cut))


model = session.chosen()
if isinstance(model.task, Text):
    page(model.task)
elif not other_models.opens_text("Tokens and windows", model):
    other_models.text_wanted("Tokens and windows", model)
show_code(
    "transformer.text.tokens.split",
    "transformer.text.tokens.Vocabulary",
    "transformer.text.corpus.windows",
    "transformer.text.task.Text._layout",
    "transformer.tasks._layouts.begun_with",
)
