"""Heads side by side: a token's vector split into heads and joined again, and what each head writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from dashboard.app_pages.whole_model.block import measured
from dashboard.app_pages.whole_model.block.figures.heads import (
    attention_rows,
    output_weights,
    split_bars,
    written_rows,
)
from dashboard.app_pages.whole_model.block.picks import pick_among, pick_place
from dashboard.app_pages.whole_model.block.settings import BlockSettings
from dashboard.components.origin import Maker
from dashboard.components.plot import coloured, plot
from dashboard.figures.html.step_strip import Shape
from dashboard.figures.kit.numbers import share_text, signed, tiny
from dashboard.models.model import Model
from dashboard.parts import claims
from dashboard.parts.prose import plain, symbols
from dashboard.parts.steps import Stage, draw_code, draw_words
from dashboard.parts.widgets import bound, bound_choice
from dashboard.view import session
from transformer.foundation.claims import claim
from transformer.foundation.words import counted, listed

if TYPE_CHECKING:
    from transformer.analysis.heads.side_by_side import SideBySide


FORWARD = "transformer.attention:MultiHeadAttention.forward"
STAGES = {
    "read": Stage(
        "Read", "x", r"x \in \mathbb{R}^{d_{model}}", ("transformer.blocks:Block.forward", "x = norm.before")
    ),
    "project": Stage("Project", "q", r"q = x\,W_Q + b_Q", (FORWARD, 'trace("query"')),
    "split": Stage(
        "Split",
        "q_h",
        r"q = [\,q_0;\;q_1;\;\dots\,], \quad q_h \in \mathbb{R}^{d_{head}}",
        ("transformer.attention:MultiHeadAttention._split", "unflatten"),
    ),
    "attend": Stage(
        "Attend",
        "z_h",
        r"z_h = \mathrm{softmax}\!\left(\frac{q_h K_h^\top}{\sqrt{d_{head}}}\right) V_h",
        ("transformer.attention:scaled_dot_product_attention", "pattern @ value"),
    ),
    "join": Stage(
        "Join", "z", r"z = [\,z_0;\;z_1;\;\dots\,]", ("transformer.attention:MultiHeadAttention._merge", "flatten(2)")
    ),
    "mix": Stage("Times W_O", "out", r"\text{out} = z\,W_O + b_O", (FORWARD, "self.out(")),
}
"""In the order in which they are taken."""
SCALES = {
    "read": ("read",),
    "project": ("project", "split"),
    "split": ("project", "split"),
    "attend": ("attend", "join"),
    "join": ("attend", "join"),
}
"""The steps that are drawn on one scale: their numbers are the same, only moved."""


@dataclass(frozen=True)
class Shown:
    """What one step draws: numbers as float [head, d_head], whether they stand apart, whether they belong to heads."""

    values: np.ndarray
    apart: bool
    of_heads: bool


def answer(model: Model) -> str:
    """One token's vector through all heads of an attention, with the numbers of the model or of a lecture's."""
    is_wide = session.mine(BlockSettings).wide
    found = _wide() if is_wide else _own(model)
    makers = [Maker("untrained, 8 heads of 64", 0)] if is_wide else None
    with st.container(horizontal=True, vertical_alignment="center", gap="medium", key="compact-joint"):
        with st.container(width="content"):
            stage = _pick_stage()
        with st.container(width="content"):
            bound(
                st.toggle,
                "Show 512 = 8 heads × 64, untrained",
                "wide",
                help="60 tokens of 512 numbers, 8 heads of 64, as in many lectures, with untrained weights.",
            )
    config = (measured.WIDE if is_wide else model.config).model
    normed = rf"x = \mathrm{{{config.kind_of_norm.sign}}}(\text{{stream}})"
    formula = normed if stage == "read" and config.norm == "pre" else STAGES[stage].formula
    draw_words(formula, symbols(plain(_sentence(found, stage))))
    left, right = st.container(key="stacked-heads").columns([2, 1], gap="medium")
    with left:
        if stage == "mix":
            weight = measured.wide_output_weight() if is_wide else measured.output_weight(model, found.site)
            _weights(found, weight, makers)
        else:
            _bars(found, stage, makers)
    with right:
        draw_code(_shapes(found, stage), _code(found, stage))
    left, right = st.container(key="stacked-shares").columns([1, 1.25], gap="large")
    with left:
        _attention(found, makers)
    with right:
        _shares(found, makers)
    return _headline(found, is_wide)


def _own(model: Model) -> SideBySide:
    place = pick_place(model, label="Attention", ending="attention")
    return measured.side_by_side(model, session.question(model), place.path, place.place)


def _wide() -> SideBySide:
    tokens = measured.wide(0).queries
    return measured.wide(pick_among(tokens, len(tokens) - 1, "wide_query"))


def _pick_stage() -> str:
    name: str = bound_choice(
        st.segmented_control,
        "Step",
        "joint",
        list(STAGES),
        next(iter(STAGES)),
        format_func=lambda name: STAGES[name].title,
        label_visibility="collapsed",
    )
    return name


# --- the split and the join


def _bars(found: SideBySide, stage: str, makers: list[Maker] | None) -> None:
    drawn = _shown(found)
    shown, limit = drawn[stage], max(float(np.abs(drawn[each].values).max()) for each in SCALES[stage]) or 1.0
    figure = coloured(split_bars, shown.values, limit, apart=shown.apart, of_heads=shown.of_heads)
    plot(figure, key="split", alt=_sentence(found, stage), height=300, makers=makers)
    st.caption("A column is one number. A colour is one head. The columns keep their order, left to right.")


def _weights(found: SideBySide, weight: np.ndarray, makers: list[Maker] | None) -> None:
    """W_O between the joined z and the output."""
    figure = coloured(output_weights, found.z, weight, found.out, _largest(found))
    plot(figure, key="output-weights", alt=_sentence(found, "mix"), height=340, makers=makers)
    each = "" if len(weight) == 1 else " A colour is one head."
    st.caption(
        symbols(
            plain(
                f"Row i of W_O is multiplied by number i of z, which stands beside it.{each} Framed: the output in "
                f"dimension {_largest(found)} and the column of W_O that it adds up. The output also holds b_O."
            )
        )
    )


def _largest(found: SideBySide) -> int:
    """The dimension of the output that is farthest from 0."""
    return int(np.abs(found.out).argmax())


def _shown(found: SideBySide) -> dict[str, Shown]:
    like = found.query.shape
    return {
        "read": Shown(found.read.reshape(like), False, False),
        "project": Shown(found.query, False, True),
        "split": Shown(found.query, True, True),
        "attend": Shown(found.z, True, True),
        "join": Shown(found.z, False, True),
    }


def _sizes(found: SideBySide) -> tuple[int, int, int]:
    n_heads, width = found.query.shape
    return n_heads, width, n_heads * width


def _sentence(found: SideBySide, stage: str) -> str:
    """What a step does to this token's numbers."""
    n_heads, width, whole = _sizes(found)
    token, each = _token(found), f"{n_heads} × {width}"
    if stage == "read":
        return claims.largest_in_size(f"{token} comes with {counted(whole, 'number')}.", found.read)
    if stage == "project":
        turned = f" Then each head {found.turned}." if found.turned else ""
        return (
            f"One product with W_Q makes {whole} new numbers. Each head’s {width} depend on all {whole} numbers of x."
            f"{turned}"
        )
    if stage == "split":
        if n_heads == 1:
            return f"There is one head, so all {whole} numbers stay together."
        return (
            f"{whole} = {each}: the numbers are cut into {n_heads} parts. Nothing is computed. K and V are cut alike."
        )
    if stage == "attend":
        if not found.pattern.any():
            return "This token may see nothing, so every z is 0."
        memory = " Keys and values come from the encoder." if found.site.endswith("cross_attention") else ""
        return f"Each head attends by itself and makes {counted(width, 'number')}.{memory} {surest(found)}"
    if stage == "join":
        if n_heads == 1:
            return f"There is one head, so its {width} numbers are all of z."
        return f"The {n_heads} parts are put in a row again: {each} = {whole} numbers. Nothing is computed."
    if n_heads == 1:
        rows = f"W_O has {whole} rows, one for each number of z. Each of the {whole} outputs adds up all rows."
        return claims.largest_in_size(rows, found.out)
    rows = (
        f"W_O has {counted(width, 'row')} for each head, and each of the {whole} outputs adds up the rows of all heads."
    )
    return f"{claims.largest_in_size(rows, found.out)} {parts_of_output(found)}"


@claim
def surest(found: SideBySide) -> str:
    """Which head gives one token the most; where no digit tells several heads apart, all of them."""
    n_heads, peaks = len(found.pattern), found.pattern.max(axis=1)
    most = claims.foremost(dict(enumerate(peaks.tolist())), share_text)
    share, best = share_text(peaks[most[0]]), int(found.pattern[most[0]].argmax())
    looks = f"looks at '{found.keys[best]}' at {best + 1} with {share}"
    if n_heads == 1:
        return f"It {looks}."
    if len(most) == n_heads:
        return f"{'Both' if n_heads == 2 else f'All {n_heads}'} heads are as sure: each gives {share} to one token."
    if len(most) > claims.FEW:
        return f"{len(most)} of {n_heads} heads are the surest: each gives {share} to one token."
    if len(most) > 1:
        return f"Heads {listed([str(head) for head in most])} are the surest: each gives {share} to one token."
    return f"Head {most[0]} is the surest: it {looks}."


@claim
def parts_of_output(found: SideBySide) -> str:
    """What the head that adds most to the framed output, in size, adds to it, and what all others do."""
    i = _largest(found)
    head = int(np.abs(found.written[:, i]).argmax())
    adds = found.written[head, i]
    return (
        f"To the output in dimension {i} head {head} adds {signed(adds)}, the other heads and b_O "
        f"{signed(found.out[i] - adds)}."
    )


def _shapes(found: SideBySide, stage: str) -> tuple[Shape, ...]:
    n_heads, width, whole = _sizes(found)
    stream, split = ("d_model", whole), (("head", n_heads), ("d_head", width))
    n = ("key", len(found.keys))
    return {
        "read": (Shape("x", (stream,)),),
        "project": (Shape("x", (stream,)), Shape("W_Q", (stream, stream)), Shape("q", (stream,))),
        "split": (Shape("q", (stream,)), Shape("q", split)),
        "attend": (
            Shape("pattern", (("head", n_heads), n)),
            Shape("V", (("head", n_heads), n, ("d_head", width))),
            Shape("z", split),
        ),
        "join": (Shape("z", split), Shape("z", (stream,))),
        "mix": (Shape("z", (stream,)), Shape("W_O", (stream, stream)), Shape("out", (stream,))),
    }[stage]


def _code(found: SideBySide, stage: str) -> tuple[str, str]:
    """The function that takes a step, and what marks the line in it."""
    if stage == "read" and found.site.endswith("cross_attention"):
        return "transformer.blocks:Block.forward", "norm.before(resid), memory"
    return STAGES[stage].code


def _token(found: SideBySide) -> str:
    return f"'{found.queries[found.place]}' at {found.place + 1}"


# --- what each head does


def _attention(found: SideBySide, makers: list[Maker] | None) -> None:
    st.markdown(f"**Where each head looks** from {plain(_token(found))}")
    said = looking_sentence(found)
    figure = coloured(attention_rows, found.pattern, found.visible, found.keys)
    plot(figure, key="head-attention", alt=said, height=_high(len(found.pattern), 100), makers=makers)
    st.caption(plain(said))


@claim
def looking_sentence(found: SideBySide) -> str:
    """At which token each head looks most, and how many tokens may not be seen; where no digit tells several tokens
    apart, all of them."""
    n_heads, hidden = len(found.pattern), int((~found.visible.any(axis=0)).sum())
    level = [claims.foremost(dict(enumerate(row.tolist())), share_text) for row in found.pattern]
    different = len({key for keys in level for key in keys})
    all_heads = "Both heads" if n_heads == 2 else f"All {n_heads} heads"
    named = listed([f"'{found.keys[key]}' at {key + 1}" for key in level[0][: claims.FEW]])
    if not found.pattern.any():
        said = "This token may see nothing."
    elif n_heads == 1:
        each, several = share_text(found.pattern[0, level[0][0]]), len(level[0]) > 1
        tokens = named if different <= claims.FEW else f"{different} of {len(found.keys)} tokens"
        said = f"The head looks most at {tokens}: {each}{' each' * several}."
    elif different == 1:
        said = f"{all_heads} look most at the same token, {named}."
    elif all(keys == level[0] for keys in level):
        said = f"{all_heads} look most at the same {different} tokens, at each of them alike."
    elif all(len(keys) == 1 for keys in level):
        said = f"The {n_heads} heads look most at {different} different tokens."
    else:
        said = f"The {n_heads} heads look most at {different} different tokens, some at several alike."
    return f"{said} Grey: {hidden} of {len(found.keys)} tokens may not be seen." if hidden else said


def _shares(found: SideBySide, makers: list[Maker] | None) -> None:
    st.markdown("**What each head writes**: $\\;\\text{out} = \\sum_h z_h\\,W_O^{(h)} + b_O$")
    said = _sum_words(found)
    figure = coloured(written_rows, found.written, found.bias, found.out, found.shares)
    plot(figure, key="head-vectors", alt=said, height=_high(len(found.written) + 2, 100), makers=makers)
    st.caption(f"{said} {_cancel_words(found)}".strip())


@claim
def _sum_words(found: SideBySide) -> str:
    """How far the sum of what the heads write is from the output."""
    n_heads = len(found.written)
    heads = f"vectors of the {n_heads} heads" if n_heads > 1 else "vector of the head"
    return f"The {heads} and the bias add up to the output: the largest difference is {tiny(found.deviation)}."


@claim
def _cancel_words(found: SideBySide) -> str:
    """The lengths of what is added up beside the length of the sum, where these differ."""
    length = f"{np.linalg.norm(found.out.astype(np.float64)):.2f}"
    added = f"{found.lengths.sum() + np.linalg.norm(found.bias.astype(np.float64)):.2f}"
    if len(found.written) == 1 or length == added:
        return ""
    return f"Their lengths add up to {added}, but the output has length {length}: vectors can cancel each other."


def _high(rows: int, around: int) -> int:
    return around + max(120, min(36 * rows, 420))


@claim
def _headline(found: SideBySide, is_wide: bool) -> str:
    """Which head writes the longest vector, if one writes any; where no digit tells several apart, all of them."""
    n_heads, width, whole = _sizes(found)
    writes = bool(found.lengths.any())
    if n_heads == 1:
        end = "it alone writes" if writes else f"it writes nothing at {_token(found)}, which may see nothing"
        return f"There is one head: all {whole} numbers stay together, and {end}."
    whose = "Untrained, " if is_wide else ""
    cut = f"{whose}{whole} = {n_heads} × {width}"
    if not writes:
        return f"{cut}: no head writes anything at {_token(found)}, which may see nothing."
    longest = claims.foremost(dict(enumerate(found.lengths.tolist())), "{:.3g}".format)
    if len(longest) == n_heads:
        both = "both" if n_heads == 2 else f"all {n_heads}"
        return f"{cut}: {both} heads write equally long vectors at {_token(found)}."
    if len(longest) > 1:
        many = len(longest) > claims.FEW
        who = f"{len(longest)} heads" if many else f"heads {listed([str(head) for head in longest])}"
        return f"{cut}: {who} write the longest of {n_heads} vectors at {_token(found)}, equally long."
    return f"{cut}: head {longest[0]} writes the longest of {n_heads} vectors at {_token(found)}."
