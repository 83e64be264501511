"""Positions at work: how much of a head's scores comes from position, and what the answer loses without."""

import math

import numpy as np
import streamlit as st

from dashboard.app_pages.positions.order import displaced
from dashboard.app_pages.positions.order import measured as order_measured
from dashboard.app_pages.positions.order.figures.terms import pattern_pair, share_bars, term_heatmaps
from dashboard.components.plot import coloured, plot
from dashboard.models import heads as model_heads
from dashboard.parts import claims, waiting
from dashboard.parts.heads import focused
from dashboard.parts.prose import capital, plain, sentence, show_code
from dashboard.parts.widgets import late_title, pick_head
from dashboard.parts.yardstick import yardstick
from dashboard.view import session
from transformer.analysis.assumptions import NotCovered
from transformer.analysis.findings import Head
from transformer.analysis.heads.measure import heads_of
from transformer.analysis.heads.score_terms import TERMS, Shares, splittable
from transformer.foundation.claims import claim

MOST_TOKENS = 64  # more, and four maps of them are a blur that weighs megabytes

model = session.chosen()
task, question = model.task, session.question(model)
yard = yardstick(model, len(question) if len(question) in task.lengths else task.length)
encoding = model.config.model.encoding
own = capital(plain(encoding.title))
movable = encoding.told != "nowhere" and model.transformer().positions.movable
heads, shares, fault = list[Head](), None, ""
try:
    heads = list(splittable(model.transformer()))
    shares = model_heads.shares(model) if heads else None
except NotCovered as error:
    fault = sentence(plain(str(error)))
several = len({head.kind for head in heads}) > 1


def called(head: Head) -> str:
    """A head as the page names it; with its stack where it has two. All of them are self-attention."""
    return f"{head.kind.split()[0]} head {head.short}" if several else f"head {head.short}"


def pick(shares: Shares) -> int:
    """Which head: the one in focus, or where its scores cannot be split the one that goes by positions most."""
    focus = focused(list(heads_of(model.network())), model.survey())
    goes_by = int(np.nan_to_num(shares.share[:, -1], nan=-math.inf).argmax())
    index = heads.index(focus) if focus in heads else goes_by
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        pick_head(heads, heads[index])
        if focus not in heads:
            st.caption(
                f"Head {focus.short} ({focus.kind}) cannot be taken apart: it reads what attention has written "
                "before, so "
                "its scores are more than content plus position."
            )
    return index


@claim
def nothing_to_move() -> str:
    """What is said of a model without positions."""
    return "This model has no positional encoding, so there is nothing to take apart or to move."


@claim
def headline(head: Head, share: np.ndarray) -> str:
    """What tells the keys of a head apart, in a sentence."""
    name = called(head)
    if np.isnan(share).any():
        return f"{name[0].upper()}{name[1:]} gives every key that it may see the same score."
    most = int(share.argmax())
    return claims.map_of(name, TERMS[most], float(share[most]))


def maps(head: Head) -> None:
    """The four terms on this input, and the patterns beside each other."""
    st.markdown(f"**The four terms of {called(head)}’s scores**, on this input")
    split = order_measured.split(model, question, head.site)
    if len(split.queries) > MOST_TOKENS:
        st.info(f"The four maps are drawn for inputs of up to {MOST_TOKENS} tokens. This one has {len(split.queries)}.")
        return
    if not split.mask.any():
        st.info("No query may see a key, so there are no scores to take apart.")
        return
    apart = split.apart[:, head.index]
    strength = [float(np.abs(term[split.mask]).mean()) for term in apart]
    words = "Mean distance from the row’s mean: " + ", ".join(
        f"{name} {value:.2f}" for name, value in zip(TERMS, strength, strict=True)
    )
    figure = coloured(term_heatmaps, apart, TERMS, split.mask, split.queries, split.keys)
    plot(figure, key="order-terms", alt=f"{words}.", height=600)
    kind = model.config.model.kind_of_norm
    norm = (
        f" {kind.title} divides by the {kind.size_name} that it has in this forward pass."
        if model.config.model.norm == "pre"
        else ""
    )
    st.caption(
        f"{words}. The query’s part is named first. Softmax ignores what all keys of a row have in common, so "
        "each row is "
        "shown minus its mean over the keys it may see. The four maps then add up to the scores; biases count as "
        f"position.{norm}"
    )


def pair(head: Head, distance: float, sequences: int) -> None:
    """The pattern, and what it would be if only positions counted."""
    st.markdown("**The pattern, and that of position–position alone**")
    split = order_measured.split(model, question, head.site)
    moves = f"{distance:.2f} of the attention moves to other keys"
    if math.isnan(distance):
        moves = "no attention moves to another key, for no query sees more than one"
    if len(split.queries) <= MOST_TOKENS:
        both = np.stack([split.pattern[head.index], split.alone[head.index]])
        names = ("everything", "positions alone")
        figure = coloured(pattern_pair, both, names, split.mask, split.queries, split.keys)
        words = f"Between the two patterns of {called(head)}, {moves}."
        plot(figure, key="order-patterns", alt=words, height=310)
    st.caption(
        f"Over {sequences} sequences, {moves} when only position–position counts (total variation distance, 0 to 1)."
        if not math.isnan(distance)
        else f"When only position–position counts, {moves}."
    )


def bars(shares: Shares, index: int) -> None:
    """What tells keys apart in every head whose scores can be split; a click chooses the head."""
    st.markdown("**Which term makes the scores differ**, head by head")

    def clicked() -> None:
        click = st.session_state["order-shares"]["click"]
        place = click.get("customdata") if click else None
        if isinstance(place, int) and 0 <= place < len(heads):
            session.update(head=str(heads[place]))

    letters = {"encoder self-attention": "e", "decoder self-attention": "d"}
    names = [f"{letters[head.kind]}{head.short}" if several else head.short for head in heads]
    figure = coloured(share_bars, shares.share, TERMS, names, focus=index)
    said = [f"{name} {value:.2f}" for name, value in zip(names, shares.share[:, -1], strict=True) if value == value]
    words = f"Share of position–position: head {', '.join(said)}." if said else "No head tells one key from another."
    plot(figure, key="order-shares", alt=words, height=280, on_click=clicked)
    key = " e encoder, d decoder." if several else ""
    st.caption(
        "Each part of a bar is one term’s share of the variance within the rows of scores: its covariance with the "
        f"scores, over {shares.sequences} sequences. The shares of a head sum to 1.{key}"
    )


def terms(shares: Shares) -> None:
    """The four terms, the patterns, the shares; and the title."""
    title = late_title()
    index = pick(shares)
    head = heads[index]
    title.title(headline(head, shares.share[index]), anchor=False)
    left, right = st.container(key="stacked-order").columns([1.2, 1], gap="medium")
    with left:
        maps(head)
    with right:
        pair(head, float(shares.distance[index]), shares.sequences)
        bars(shares, index)


def without_terms() -> None:
    """A title where scores cannot be split, from what the answer loses without positions; and the reason."""
    if encoding.told == "nowhere":
        st.title(nothing_to_move(), anchor=False)
        st.info("It knows the order of tokens only from its mask. Choose a model with a positional encoding.")
        return
    fixed = f"{own} positions: each head {encoding.does}."
    st.title(displaced.without(yard) if movable else fixed, anchor=False)
    st.info(
        fault
        or f"{own} positions are not added to the tokens: each head {encoding.does}. Each "
        "score mixes content and position in one product, so there are no four terms to show."
    )


if shares is not None:
    terms(shares)
else:
    without_terms()
if encoding.told != "nowhere":
    st.header("With other positions", anchor=False)
    if not movable:
        st.info(f"{own} positions do not say what a token is told that stands elsewhere, so none is moved here.")
    elif session.first_look():
        waiting.hourglass("Measuring it with other positions …")
    else:
        displaced.interventions(yard)
show_code(
    "transformer.analysis.heads.score_terms.split_scores",
    "transformer.analysis.heads.score_terms.measure_shares",
    "transformer.edits.places.places_shift.ShiftPositions",
    "transformer.positions.PositionalEncoding.at",
)
