"""A norm by the numbers: one token's vector before and after, where the norm stands, and what that does in depth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from dashboard.app_pages.whole_model.block import measured
from dashboard.app_pages.whole_model.block.figures.norm import norm_panels, panels_without_reach
from dashboard.app_pages.whole_model.block.measured import DEPTHS, NORMS
from dashboard.app_pages.whole_model.block.picks import (
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
from dashboard.parts.prose import learned_by_norm, plain
from dashboard.parts.steps import draw_code, draw_words
from dashboard.parts.widgets import bound_choice
from dashboard.view import session
from transformer.analysis.machine import plan
from transformer.foundation.claims import claim
from transformer.foundation.words import listed

if TYPE_CHECKING:
    from transformer.analysis.stream.norms import Normed
    from transformer.config import ModelConfig
    from transformer.norms import Norm


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
    "pre": r"x \leftarrow x + f(\mathrm{NORM}(x))",
    "post": r"x \leftarrow \mathrm{NORM}(x + f(x))",
    "none": r"x \leftarrow x + f(x)",
}
"""By where the norm stands; NORM is its sign."""
LARGER = 1.5
"""A gradient more than this many times another is called larger."""


def answer(model: Model) -> str:
    """The norm of a sub-layer at one token, if the model has norms; where norms stand; gradients by depth."""
    config = model.config.model
    if config.norm == "none":
        st.info(
            f"{plain(model.name)} was built without norms: each sub-layer reads the residual stream as it is. Choose "
            "another model in the sidebar to see a norm at work.",
            icon=":material/equalizer:",
        )
        title = without(model.name)
    else:
        question = session.question(model)
        paths = tuple(f"{block}.{name}" for block in plan.blocks(config) for name in sublayers_of(config, block))
        most = measured.most_normed(model, question, paths)
        place = pick_place(model, label=f"{config.kind_of_norm.title} of", first=most)
        found = measured.normed(model, question, place.path, place.place)
        draw_words(config.kind_of_norm.formula, plain(_opens(model, *most)))
        left, right = st.container(key="stacked-norm").columns([1.7, 1], gap="medium")
        with left:
            _panels(found, place, config.kind_of_norm)
        with right:
            _steps(found, config, place.sublayer)
        title = headline(found, place.token, config.kind_of_norm)
    _where(config)
    _depth(model)
    return title


# --- one token's vector


@claim
def without(name: str) -> str:
    """What is said of a model that has none."""
    return f"{name} has no norm: each sub-layer reads the stream as it is."


@claim
def headline(found: Normed, token: str, kind: Norm) -> str:
    """What the norm takes off a token's numbers, and by what it divides them."""
    if kind.centres:
        return f"{kind.title} subtracts the mean {signed(found.mean)} from {token} and divides by {found.divisor:.2f}."
    return f"{kind.title} divides the numbers of {token} by {found.divisor:.2f}, their {kind.size_name}."


def _sentence(found: Normed, place: Place, kind: Norm) -> str:
    """Mean and size of one token's numbers, before and after."""
    before, _, divided, after = found.sizes
    last = " and ".join(learned_parts(kind))
    if not kind.centres:
        said = f"{place.token}: before, the {kind.size_name} is {before:.2f}. Divided: {divided:.2f}."
        return f"{said} After {last}: {after:.2f}." if last else said
    said = (
        f"{place.token}: before, the mean is {signed(found.mean)} and the {kind.size_name} {before:.2f}. Centred "
        f"and divided: {signed(found.standard.mean())} and {divided:.2f}."
    )
    mean = signed(found.after.mean(dtype=np.float64))
    return f"{said} After {last}: {mean} and {after:.2f}." if last else said


def learned_parts(kind: Norm) -> list[str]:
    """What it has learned, in the order in which it is used."""
    return ["gain"] * (kind.gains != "none") + ["shift"] * kind.shifts


def _opens(model: Model, path: str, place: int) -> str:
    """Why the page opens at this sub-layer and token, its place counted from 0: the norm changes it most."""
    block, _, sublayer = path.rpartition(".")
    config = model.config.model
    tokens = tokens_before(config, model.sample(session.question(model)), block)
    kind = config.kind_of_norm
    why = (
        f"Its numbers are farthest from mean 0 and {kind.size_name} 1."
        if kind.centres
        else f"Its {kind.size_name} is farthest from 1."
    )
    return (
        f"The page opens where {kind.title} has most to do: {Place(block, place, tokens).token}, "
        f"{SUBLAYERS[sublayer].lower()} of {block_name(config, block)}. {why}"
    )


def steps_of(found: Normed, kind: Norm) -> dict[str, np.ndarray]:
    """The numbers after each step of the norm, by what was done."""
    centred = {"− mean": found.centred} if kind.centres else {}
    divided = {f"÷ {kind.size_short}": found.standard}
    signs = {"gain": "× gain", "shift": "+ shift"}
    last = " ".join(signs[part] for part in learned_parts(kind))
    return {"before": found.before} | centred | divided | ({last: found.after} if last else {})


def sizes_of(found: Normed, kind: Norm) -> list[float]:
    """What the norm measures after each of these steps."""
    before, centred, divided, after = found.sizes
    return [before, *[centred] * kind.centres, divided, *[after] * bool(learned_parts(kind))]


def _panels(found: Normed, place: Place, kind: Norm) -> None:
    steps = steps_of(found, kind)
    figure = coloured(norm_panels, steps, sizes_of(found, kind), kind.size_sign, centres=kind.centres)
    plot(figure, key="norm", alt=_sentence(found, place, kind), height=330)
    line = "the mean μ" if kind.centres else "0"
    beyond = panels_without_reach(steps, sizes_of(found, kind), centres=kind.centres)
    if beyond:
        panels = f"panel{'s' if len(beyond) > 1 else ''} {listed([str(each) for each in beyond])}"
        band = f"No band: in {panels} the {kind.size_name} is larger than the distance of any number from that line."
    else:
        band = f"Band: one {kind.size_name} ({kind.size_sign}) to either side."
    above = 1 + kind.centres
    st.caption(
        f"Dashed: {line}. {band} Panels side by side have one scale; from {above} to {above + 1} the scale changes."
    )


def _farthest(found: Normed) -> int:
    """The dimension that is farthest from the mean, or from 0 where no mean is taken off."""
    return int(np.abs(found.centred).argmax())


def _one(found: Normed, kind: Norm) -> str:
    """The norm of one number, as a sentence with a formula: what it takes off, and by what it divides."""
    i = _farthest(found)
    mean = f" {'-' if found.mean >= 0 else '+'} {abs(found.mean):.4f}" if kind.centres else ""
    return (
        f"In dimension {i}, the one farthest from {'the mean' if kind.centres else '0'}: "
        rf"$\displaystyle \frac{{{found.before[i]:.4f}{mean}}}{{{found.divisor:.4f}}} = {found.standard[i]:.4f}$"
    )


def _steps(found: Normed, config: ModelConfig, name: str) -> None:
    i, d, kind, norm = _farthest(found), len(found.before), config.kind_of_norm, config.norm
    st.markdown(_one(found, kind))
    rest = rf"$d = {d}$, &emsp; $\varepsilon = {_power(found.epsilon)}$"
    st.markdown(rf"$\mu = \frac1d\sum_i x_i = {found.mean:.4f}$, &emsp; {rest}" if kind.centres else rest)
    st.markdown(rf"${kind.size_formula} = {found.size:.4f}$")
    gain = None if found.gain is None else found.gain[i if len(found.gain) > 1 else 0]
    scaled = "" if gain is None else f" times the gain {signed(gain, 4)}"
    shifted = "" if found.shift is None else f"{',' if scaled else ''} plus the shift {signed(found.shift[i], 4)}"
    comma = "," if scaled and shifted else ""
    if scaled or shifted:
        st.markdown(
            f"In dimension {i}, {signed(found.standard[i], 4)}{scaled}{shifted}{comma} is {signed(found.after[i], 4)}."
        )
    read = "the residual stream" if norm == "pre" else "the sum of the stream and what the sub-layer wrote"
    measured_on = f"Mean and {kind.size_name} are" if kind.centres else f"The {kind.size_name} is"
    st.caption(
        f"x is {read}. {measured_on} taken over the {d} numbers of this one token; no other token matters. "
        f"{learned_by_norm(kind, d)}"
    )
    stream = (("d_model", d),)
    gained = () if found.gain is None else (Shape("gain", stream if kind.gains == "each" else ()),)
    shift = (Shape("shift", stream),) if kind.shifts else ()
    draw_code(
        (Shape("x", stream), *gained, *shift, Shape(f"{kind.sign}(x)", stream)),
        (BLOCK, MARKS[norm, name]),
    )


def _power(value: float) -> str:
    """A number as LaTeX, in powers of ten: 10^{-5}."""
    mantissa, exponent = f"{value:.0e}".split("e")
    times = "" if mantissa == "1" else rf"{mantissa} \cdot "
    return f"{times}10^{{{int(exponent)}}}"


# --- where it stands


def _where(config: ModelConfig) -> None:
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
            mark = " (this model)" if norm == config.norm else ""
            st.markdown(f"**{NORMS[norm][0].upper()}{NORMS[norm][1:]}{mark}**")
            st.markdown(f"$\\displaystyle {FORMULAS[norm].replace('NORM', config.kind_of_norm.sign)}$")
            st.caption(words[norm])
    if not config.residual:
        st.caption("This model has no residual connections: in its blocks the term x + is left out.")


def _depth(model: Model) -> None:
    """The gradient that reaches each layer of untrained models, by norm."""
    st.markdown("**The gradient** that reaches each layer before training")
    depth = bound_choice(st.segmented_control, "Layers", "norm_layers", list(DEPTHS), DEPTHS[-1])
    kind = model.config.model.kind_of_norm.title
    found = waiting.ready(
        measured.gradients(DEPTHS, model.config.model.norm_kind), "Untrained models of 2 to 12 layers are measured …"
    )
    if found is None:
        return
    makers = [Maker(f"untrained, {depth} layers, pre-norm, post-norm ({kind}) and no norm", 0)]
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
        warm = f" The last layer's gradient is {short(much)} times as large with post-norm as with pre-norm."
        if not model.config.model.other_norm:
            warm += " Xiong et al. (2020) give this as the reason why post-norm needs a warm-up."
        st.caption(f"{said}.{warm if much > LARGER else ''}")
    with right:
        lines = [Line(NORMS[norm], np.array(ratios[norm])) for norm in NORMS]
        figure = coloured(layer_lines, lines, across="layers", up="first / last", powers=True, places=DEPTHS)
        one, two, three = (f"{short(ratios[norm][at])} with {NORMS[norm]}" for norm in NORMS)
        said = f"At {depth} layers, the first layer's gradient divided by the last layer's is {one}, {two}, {three}."
        plot(figure, key="norm-ratios", alt=said, height=290, makers=makers)
        st.caption(
            f"{said} Small models (d_model {measured.small('pre', 'layer', 2).model.d_model}) with {kind}, weights of "
            "one seed, on 64 fresh sequences."
        )
