"""LayerNorm by the numbers: one token's vector before and after, where the norm stands, and what that does in depth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from dashboard.app_pages.look_inside.block import measured
from dashboard.app_pages.look_inside.block.figures.norm import norm_panels
from dashboard.app_pages.look_inside.block.measured import DEPTHS, NORMS
from dashboard.app_pages.look_inside.block.picks import (
    SUBLAYERS,
    Place,
    block_name,
    pick_place,
    sublayers_of,
    tokens_before,
)
from dashboard.components.origin import Maker
from dashboard.components.plot import coloured, plot
from dashboard.figures.html.step_strip import Shape
from dashboard.figures.kit.numbers import short, signed
from dashboard.figures.layers import Line, layer_lines
from dashboard.models.model import Model
from dashboard.parts import waiting
from dashboard.parts.prose import plain
from dashboard.parts.steps import draw_code, draw_words
from dashboard.parts.widgets import bound_choice
from dashboard.view import session
from transformer.analysis.machine import plan

if TYPE_CHECKING:
    from transformer.analysis.stream.norms import Normed


BLOCK = "transformer.blocks:Block.forward"
MARKS = {
    ("pre", "self_attention"): "x = norm.before(resid)",
    ("pre", "cross_attention"): "norm.before(resid), memory",
    ("pre", "feed_forward"): "self.feed_forward(norm.before(resid)",
    ("post", "self_attention"): 'trace("resid_mid"',
    ("post", "cross_attention"): 'trace("resid_cross"',
    ("post", "feed_forward"): "resid = norm.after(self.kept(resid) + self.dropout(fed))",
}
"""What marks the line of a block that takes the norm of a sub-layer."""
FORMULAS = {
    "pre": r"x \leftarrow x + f(\mathrm{LN}(x))",
    "post": r"x \leftarrow \mathrm{LN}(x + f(x))",
    "none": r"x \leftarrow x + f(x)",
}
FORMULA = r"\mathrm{LN}(x)_i = g_i\,\frac{x_i - \mu}{\sqrt{\sigma^2 + \varepsilon}} + b_i"
LARGER = 1.5
"""A gradient more than this many times another is called larger."""


def answer(model: Model) -> str:
    """The norm of a sub-layer at one token, if the model has norms; where norms stand; gradients by depth."""
    config = model.config.model
    if config.norm == "none":
        st.info(
            f"{plain(model.name)} was built without norms: each sub-layer reads the residual stream as it is. Choose "
            "another model in the sidebar to see a LayerNorm at work.",
            icon=":material/equalizer:",
        )
        title = f"{model.name} has no LayerNorm: each sub-layer reads the stream as it is."
    else:
        question = session.question(model)
        paths = tuple(f"{block}.{name}" for block in plan.blocks(config) for name in sublayers_of(config, block))
        most = measured.most_normed(model, question, paths)
        place = pick_place(model, label="LayerNorm of", first=most)
        found = measured.normed(model, question, place.path, place.place)
        draw_words(FORMULA, plain(_opens(model, *most)))
        left, right = st.container(key="stacked-norm").columns([1.7, 1], gap="medium")
        with left:
            _panels(found, place)
        with right:
            _steps(found, config.norm, place.sublayer)
        title = (
            f"LayerNorm subtracts the mean {signed(found.mean)} from {place.token} and divides by {found.spread:.2f}."
        )
    _where(config.norm, config.residual)
    _depth(model)
    return title


# --- one token's vector


def _sentence(found: Normed, place: Place) -> str:
    """Mean and spread of one token's numbers, before and after."""
    return (
        f"{place.token}: before, the mean is {signed(found.mean)} and the spread {found.spread:.2f}. Centred and "
        f"divided: {signed(found.standard.mean())} and {found.standard.std():.2f}. After gain and shift: "
        f"{signed(found.after.mean(dtype=np.float64))} and {found.after.std(dtype=np.float64):.2f}."
    )


def _opens(model: Model, path: str, place: int) -> str:
    """Why the page opens at this sub-layer and token, its place counted from 0: LayerNorm changes it most."""
    block, _, sublayer = path.rpartition(".")
    config = model.config.model
    tokens = tokens_before(config, model.sample(session.question(model)), block)
    return (
        f"The page opens where LayerNorm has most to do: {Place(block, place, tokens).token}, "
        f"{SUBLAYERS[sublayer].lower()} of {block_name(config, block)}. Its numbers are farthest from mean 0 and "
        "spread 1."
    )


def _panels(found: Normed, place: Place) -> None:
    figure = coloured(norm_panels, found.before, found.before - found.mean, found.standard, found.after)
    plot(figure, key="norm", alt=_sentence(found, place), height=330)
    st.caption(
        "Dashed: the mean μ. Band: one spread σ to either side. Panels side by side have one scale; from 2 to 3 the "
        "scale changes."
    )


def _farthest(found: Normed) -> int:
    """The dimension that is farthest from the mean."""
    return int(np.abs(found.before - found.mean).argmax())


def _one(found: Normed) -> str:
    """The norm of one number, as a sentence with a formula: what it takes off, and by what it divides."""
    i, spread = _farthest(found), np.sqrt(found.spread**2 + found.epsilon)
    less = f"{found.before[i]:.4f} {'-' if found.mean >= 0 else '+'} {abs(found.mean):.4f}"
    return (
        f"In dimension {i}, the one farthest from the mean: "
        rf"$\displaystyle \frac{{{less}}}{{{spread:.4f}}} = {found.standard[i]:.4f}$"
    )


def _steps(found: Normed, norm: str, name: str) -> None:
    i, d = _farthest(found), len(found.before)
    st.markdown(_one(found))
    rest = rf"$d = {d}$, &emsp; $\varepsilon = {_power(found.epsilon)}$"
    st.markdown(rf"$\mu = \frac1d\sum_i x_i = {found.mean:.4f}$, &emsp; {rest}")
    st.markdown(rf"$\sigma = \sqrt{{\frac1d\sum_i (x_i-\mu)^2}} = {found.spread:.4f}$")
    st.markdown(
        f"In dimension {i}, {signed(found.standard[i], 4)} times the gain {signed(found.gain[i], 4)}, plus the shift "
        f"{signed(found.shift[i], 4)}, is {signed(found.after[i], 4)}."
    )
    read = "the residual stream" if norm == "pre" else "the sum of the stream and what the sub-layer wrote"
    st.caption(
        f"x is {read}. Mean and spread are taken over the {d} numbers of this one token; no other token matters. Gain "
        "and shift are learned, one of each per dimension."
    )
    stream = (("d_model", d),)
    draw_code(
        (Shape("x", stream), Shape("gain", stream), Shape("shift", stream), Shape("LN(x)", stream)),
        (BLOCK, MARKS[norm, name]),
    )


def _power(value: float) -> str:
    """A number as LaTeX, in powers of ten: 10^{-5}."""
    mantissa, exponent = f"{value:.0e}".split("e")
    times = "" if mantissa == "1" else rf"{mantissa} \cdot "
    return f"{times}10^{{{int(exponent)}}}"


# --- where it stands


def _where(own: str, residual: bool) -> None:
    st.subheader("Where the norm stands", anchor=False)
    columns = st.columns(3, gap="medium")
    words = {
        "pre": "The norm stands in front of each sub-layer f. The stream itself is never normalised on its way, so a "
        "final norm follows the last block.",
        "post": "The norm stands after each sum: the stream itself is normalised at every step, as in “Attention Is "
        "All You Need” (2017).",
        "none": "No norm. The stream may grow from layer to layer.",
    }
    for column, norm in zip(columns, NORMS, strict=True):
        with column, st.container(border=True):
            mark = " (this model)" if norm == own else ""
            st.markdown(f"**{NORMS[norm][0].upper()}{NORMS[norm][1:]}{mark}**")
            st.markdown(f"$\\displaystyle {FORMULAS[norm]}$")
            st.caption(words[norm])
    if not residual:
        st.caption("This model has no residual connections: in its blocks the term x + is left out.")


def _depth(model: Model) -> None:
    """The gradient that reaches each layer of untrained models, by norm."""
    st.markdown("**The gradient** that reaches each layer before training")
    depth = bound_choice(st.segmented_control, "Layers", "norm_layers", list(DEPTHS), DEPTHS[-1])
    found = waiting.ready(measured.gradients(DEPTHS), "Untrained models of 2 to 12 layers are measured …")
    if found is None:
        return
    makers = [Maker(f"untrained, {depth} layers, pre-norm, post-norm and no norm", 0)]
    left, right = st.container(key="stacked-depth").columns(2, gap="large")
    ratios = {norm: [float(found[norm, each][0] / found[norm, each][-1]) for each in DEPTHS] for norm in NORMS}
    at = DEPTHS.index(depth)
    with left:
        said = f"At {depth} layers: " + ", ".join(
            f"{name} {short(found[norm, depth][0])} at layer 0 and {short(found[norm, depth][-1])} at layer {depth - 1}"
            for norm, name in NORMS.items()
        )
        lines = [Line(NORMS[norm], found[norm, depth]) for norm in NORMS]
        figure = coloured(layer_lines, lines, across="layer", up="gradient norm", powers=True)
        plot(figure, key="norm-gradients", alt=f"{said}.", height=290, makers=makers)
        much = float(found["post", depth][-1] / found["pre", depth][-1])
        warm = (
            f" The last layer's gradient is {short(much)} times as large with post-norm as with pre-norm. Xiong et al. "
            "(2020) give this as the reason why post-norm needs a warm-up."
        )
        st.caption(f"{said}.{warm if much > LARGER else ''}")
    with right:
        lines = [Line(NORMS[norm], np.array(ratios[norm])) for norm in NORMS]
        figure = coloured(layer_lines, lines, across="layers", up="first / last", powers=True, places=DEPTHS)
        one, two, three = (f"{short(ratios[norm][at])} with {NORMS[norm]}" for norm in NORMS)
        said = f"At {depth} layers, the first layer's gradient divided by the last layer's is {one}, {two}, {three}."
        plot(figure, key="norm-ratios", alt=said, height=290, makers=makers)
        st.caption(
            f"{said} Small models (d_model {measured.small('pre', 2).model.d_model}), weights of one seed, on 64 fresh "
            "sequences."
        )
