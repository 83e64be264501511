"""Models without encoded positions: ALiBi's penalty of distance, and a model that sees a bag."""

from __future__ import annotations

import math

import numpy as np
import streamlit as st

from dashboard.app_pages.positions.positions.figures import alibi, norms
from dashboard.app_pages.positions.positions.settings import MOST_LONG, PositionsSettings
from dashboard.components.plot import coloured, plot
from dashboard.figures.html.tokens import Token, token_strip
from dashboard.figures.kit.numbers import tiny
from dashboard.models import passages
from dashboard.models import positions as models_positions
from dashboard.models.model import Model
from dashboard.parts.prose import encoding_name, with_positions
from dashboard.parts.widgets import bound_number, controlled
from dashboard.view import session
from transformer.foundation.claims import claim
from transformer.positions import described

MOST_HEADS = 16
MOST_NORMS = 400
"""Tokens of a vocabulary whose lengths are drawn, the commonest of a text first: more, and their dots are a bar."""
LONGER = 2.0
"""From so many times the length of an embedding at its start, vectors would drown it."""
MOST_READ = 64
"""Tokens up to which an input is written out from front to back and from back to front."""


# --- ALiBi


@claim
def penalised(model: Model) -> str:
    """The slopes, one head's bias, and what is left of a weight at each distance. Returns the page's headline."""
    from transformer.analysis.encodings import penalty, slopes

    own = model.config.model.n_heads
    one, two, three = st.columns(3, gap="large")
    with one:
        heads = bound_number("Heads", "pe_heads", own, 1, max(own, MOST_HEADS), also={"slope": 0})
    with two:
        own_length = min(model.network().n_ctx, MOST_LONG)
        length = bound_number("Length, positions", "pe_length", own_length, 1, MOST_LONG, also={"cursor": None})
    with three:
        head = bound_number("Head", "slope", 0, 0, heads - 1)
    found = slopes(heads)
    left, right = st.container(key="positions-row").columns(2, gap="large")
    with left:
        _bars(found, head)
    with right:
        st.markdown(f"**What head {head} adds to its scores** · $-m\\,|q-k|$")
        far = found[head] * (length - 1)
        said = f"Head {head} subtracts {found[head]:.3g} for each position of distance: up to {far:.3g} here."
        figure = coloured(alibi.bias_heatmap, penalty(float(found[head]), length))
        plot(figure, key="penalty", alt=said, height=380)
        st.caption(f"{said} Row = query (who looks), column = key (looked at).")
    st.markdown("**What distance leaves of a weight** · $e^{-m\\,|q-k|}$, before the softmax makes each row sum to one")
    half = [math.log(2) / slope for slope in found]
    said = f"Head {head} halves a key's weight every {half[head]:.3g} positions."
    plot(coloured(alibi.fading_lines, found, length, chosen=head), key="fading", alt=said, height=300)
    st.caption(said)
    if heads == 1:
        return f"ALiBi tells distances: its head halves a key's weight every {half[0]:.3g} positions."
    return f"Head 0 halves a key's weight every {half[0]:.3g} positions, head {heads - 1} every {half[-1]:.3g}."


def _bars(slopes: np.ndarray, head: int) -> None:
    key = "slopes"

    def clicked() -> None:
        picked = (st.session_state[key]["click"] or {}).get("customdata")
        if isinstance(picked, int) and 0 <= picked < len(slopes):
            session.update(slope=picked)

    n = len(slopes)
    st.markdown(f"**Slopes** · $m_h = 2^{{-8(h+1)/{n}}}$")
    said = slopes_sentence(slopes)
    figure = coloured(alibi.slope_bars, slopes, chosen=head)
    plot(figure, key=key, alt=said, height=380, on_click=clicked)
    st.caption(f"{said}{formula_of_the_paper(n)} Click a bar to see its head.")


@claim
def slopes_sentence(slopes: np.ndarray) -> str:
    """How the slopes of ALiBi's heads go down from the first to the last."""
    n = len(slopes)
    if n == 1:
        return f"The only head's slope is {slopes[0]:.3g}."
    step = slopes[1] / slopes[0]
    return f"Each next head's slope is {step:.3g} times the one before: from {slopes[0]:.3g} to {slopes[-1]:.3g}."


def formula_of_the_paper(heads: int) -> str:
    """Whose slopes these are, where the authors' code has others: for numbers of heads that are no power of two."""
    if heads & (heads - 1) == 0:
        return ""
    return f" This is the paper's formula; for {heads} heads, no power of two, its authors' code takes other slopes."


# --- none


@claim
def unordered(model: Model) -> str:
    """What reading an input backwards changes, when no position is told: nothing. Returns the page's headline."""
    question = session.question(model)
    blind = models_positions.reversal(model, question, everything_seen=True)
    masked = models_positions.reversal(model, question, everything_seen=False)
    own = model.config.model.positions
    whose = (
        "This model" if described(own).told == "nowhere" else f"This model without its {encoding_name(own)} positions"
    )
    st.markdown(f"**{whose} reads the input forwards and backwards**, with no mask")
    words = model.task.vocabulary
    tokens = model.task.encode([question]).tokens[0]
    if len(tokens) <= MOST_READ:
        there, back = ([words[i] for i in logits.argmax(axis=1)] for logits in (blind.forwards, blind.backwards))
        rows = {"→ in": [words[i] for i in tokens], "→ out": there, "← in": [words[i] for i in tokens[::-1]]}
        rows["← out"] = back
        st.html(coloured(token_strip, {name: [Token(text) for text in row] for name, row in rows.items()}))
    st.markdown(
        f"Every token keeps its output: its logits change by {tiny(blind.moved)} at most, which is rounding. "
        "Attention sums over a set of keys, and a set has no order."
    )
    told = (
        "Only the mask tells the order: by how many tokens are in sight."
        if masked.moved > 1e-6
        else "This mask tells no order either."
    )
    st.caption(f"Under its own mask, {model.config.model.mask_label}, they change by up to {masked.moved:.2f}. {told}")
    return (
        "Without positions and without a mask, this model sees no order: reading backwards changes no logit by "
        "more than "
        f"{tiny(blind.moved)}."
    )


# --- what is added to what


def norms_side_by_side(model: Model, name: str) -> None:
    """How long token embeddings and position vectors are, and why one multiplies by the root of d_model."""
    found = models_positions.lengths(model, name)
    st.header("What is added to what", anchor=False)
    if found.positions is None:
        st.caption(
            f"Nothing: {with_positions(name)} no vector is added to the token embeddings, so there is nothing to "
            f"compare. This model "
            f"{'multiplies' if found.scaled else 'does not multiply'} them by $\\sqrt{{d_{{\\text{{model}}}}}}$."
        )
        return
    width, factor = model.config.model.d_model, found.factor
    scaled = _scale_toggle(found.scaled, width)
    tokens, other = (found.tokens * (factor if times else 1.0) for times in (scaled, not scaled))
    vocabulary = list(model.task.vocabulary[: len(tokens)])
    places = [str(place) for place in range(1, len(found.positions) + 1)]
    title = f"token embeddings × √{width}" if scaled else "token embeddings"
    drawn = slice(0, MOST_NORMS)
    strips = [
        norms.Strip(title, vocabulary[drawn], tokens[drawn], other[drawn]),
        norms.Strip("position vectors", places, found.positions),
    ]
    said = _balance(tokens, found.positions)
    st.markdown(f"**{said}**")
    plot(coloured(norms.norm_strips, strips), key="norms", alt=said, height=300)
    does = "multiplies" if found.scaled else "does not multiply"
    some = f" Drawn: the {MOST_NORMS} commonest of {passages.known(model.task)}." if len(tokens) > MOST_NORMS else ""
    whose = "its own" if name == model.config.model.positions else f"{encoding_name(name)}, at its sizes, not its own"
    long = float(found.positions.mean())
    why = ": this is why one scales" if long > LONGER else ""
    st.caption(
        f"Euclidean lengths at this model's own width. This model {does} its token embeddings by "
        f"√{width} = {factor:.3g}; the positions are {whose}. Hollow: the tokens with the scale switched over. Padding "
        f"is left out.{some} Embeddings are drawn from N(0, 1/d), so they start about 1 long. These positions are "
        f"{long:.3g} long on average{why}."
    )


def _scale_toggle(own: bool, width: int) -> bool:
    """The toggle, at first as the model does it."""
    view, factor = session.mine(PositionsSettings).scaled, f"√{width} = {math.sqrt(width):.3g}"
    toggle = controlled(
        st.toggle,
        r"Scale token embeddings by $\sqrt{d_{\text{model}}}$",
        key="control-scaled",
        value=own if view is None else bool(view),
        picked=lambda scaled: session.update(scaled=None if scaled == own else int(scaled)),
        help=f"By {factor}, as in section 3.4 of the paper. Only the picture changes, not the model.",
    )
    return bool(toggle)


def _balance(tokens: np.ndarray, positions: np.ndarray) -> str:
    """Which of the two dominates the sum, in words."""
    token, position = float(tokens.mean()), float(positions.mean())
    if min(token, position) == 0:
        return f"Tokens are {token:.2f} long on average, positions {position:.2f}."
    lengths = f"tokens are {token:.2f} long on average, positions {position:.2f}"
    ratio = token / position
    if ratio >= 2:
        return f"Tokens dominate the sum: {lengths}, {ratio:.1f} times less."
    if ratio <= 0.5:
        return f"Positions dominate the sum: {lengths}, {1 / ratio:.1f} times more."
    return f"Neither dominates the sum: {lengths}."
