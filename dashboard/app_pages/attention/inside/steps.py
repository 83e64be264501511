"""The steps inside a head in words: what each is called, its formula, the line of our code that takes it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dashboard.figures.kit.numbers import share_text, written
from dashboard.parts import claims, steps
from transformer.foundation.claims import claim
from transformer.foundation.words import counted

if TYPE_CHECKING:
    from transformer.analysis.heads.inside import Inside


NUMBERS, VECTORS = 4, 2
"""Digits after the point: of a number, and of one among the many of a vector."""
NAMED, MIXED = 0.005, 0.1
"""Shares of attention: from here on a key is named in the sum that is z, and a query mixes the key's value in."""
FORWARD = "transformer.attention:MultiHeadAttention.forward"
FORMULA = "transformer.attention:scaled_dot_product_attention"
BLOCK = "transformer.blocks:Block.forward"
SOFTMAX = "transformer.attention:masked_softmax"
OF_A_KEY = ("keys", "dot", "scale", "bias", "exp", "divide", "values", "weigh")
"""The steps whose sentence says the numbers of one key."""
WRITTEN_OUT = 3
"""Products of a dot product that the sentence writes out; the others stand in the table."""


@dataclass(frozen=True)
class Stage(steps.Stage):
    """A step. `says` may speak of one key; `blind` of a query that may see nothing."""

    says: Callable[[Inside, int], str]
    blind: str = ""


@claim
def headline(inside: Inside) -> str:
    """What this query does, from its numbers."""
    best = inside.strongest
    if best is None:
        return f"{asking(inside)} may see nothing: it attends to nothing, and its head writes nothing."
    if inside.visible.sum() == 1:
        return f"{asking(inside)} can only read {asked(inside, best)}: it may see nothing else."
    return f"{asking(inside)} reads {asked(inside, best)} with {inside.pattern[best]:.2f}: here is why."


def sentence(inside: Inside, stage: str, key: int | None = None) -> str:
    """What a step does, with the actual numbers of this key, counted from 0: without one, of that looked at most."""
    best = inside.strongest
    if best is None and STAGES[stage].blind:
        return STAGES[stage].blind
    return STAGES[stage].says(inside, best or 0 if key is None else key)


def code(inside: Inside, stage: str) -> tuple[str, str]:
    """The function that takes a step, and what marks the line in it."""
    name, mark = STAGES[stage].code
    return name, mark.replace("resid_mid", "resid_cross") if inside.head.site.endswith("cross_attention") else mark


def formula(inside: Inside, stage: str) -> str:
    """LaTeX; an encoding may turn what is projected, and without residual connections nothing is added to x."""
    plain = STAGES[stage].formula
    if stage == "bias" and inside.bias_formula:
        return inside.bias_formula
    if stage == "add" and not inside.residual:
        return plain.replace("x + ", "")
    if inside.rotated and stage in ("query", "keys"):
        left, right = plain.split(" = ")
        return rf"{left} = R\,({right})"
    return plain


def asking(inside: Inside) -> str:
    return f"Query '{inside.queries[inside.place]}' at {inside.place + 1}"


def asked(inside: Inside, key: int) -> str:
    return f"'{inside.keys[key]}' at {key + 1}"


def number(value: float) -> str:
    return written(float(value), NUMBERS)


def _component(value: float) -> str:
    return written(float(value), VECTORS)


def _factor(value: float) -> str:
    return f"({_component(value)})" if value < 0 else _component(value)


def _query(inside: Inside, key: int) -> str:
    turned = ", changed by its position" if inside.rotated else ""
    asks = f"{asking(inside)} asks with {counted(len(inside.query), 'number')}{turned}: the framed row."
    return claims.largest_in_size(asks, inside.query)


def _keys(inside: Inside, key: int) -> str:
    n, turned = len(inside.keys), ", changed by its position" if inside.rotated else ""
    who = f"{asked(inside, key)}, {f'one of {n} keys' if n > 1 else 'the only key'},"
    return claims.largest_in_size(
        f"{who} answers with {counted(len(inside.query), 'number')}{turned}.", inside.key[key]
    )


def _dot(inside: Inside, key: int) -> str:
    products = inside.query.astype(np.float64) * inside.key[key]
    largest = np.argsort(-np.abs(products), kind="stable")[:WRITTEN_OUT]
    terms = [f"{_factor(inside.query[i])} × {_factor(inside.key[key, i])}" for i in np.sort(largest)]
    others = len(products) - len(terms)
    rest = f" + {others} smaller products" if others else ""
    return (
        f"{asked(inside, key)}: {' + '.join(terms)}{rest} = {number(inside.dots[key])}, its factors rounded here. In "
        "the table, each number of the query in the first row, times that of this key in the second, stands in the "
        f"third; below it the same for the other keys.{_forbidden(inside, key)}"
    )


def _forbidden(inside: Inside, key: int) -> str:
    """What is to come of a key that may not be seen."""
    return "" if inside.visible[key] else " This query may not see that key: the step Mask takes it out."


def _scale(inside: Inside, key: int) -> str:
    d, seen = len(inside.query), int(inside.visible.sum())
    said = (
        f"{asked(inside, key)}: {number(inside.dots[key])} / √{d} = {number(inside.scaled[key])}."
        f"{_forbidden(inside, key)} A sum of {d} independent products of mean 0 and variance 1 has the standard "
        f"deviation √{d} = {math.sqrt(d):.2f}; divided by √{d}, it has 1."
    )
    if seen < 2:
        return said if not seen else f"{said} This query sees one key only: its weight is 1, whatever is divided."
    return f"{said} {division(inside)}"


@claim
def division(inside: Inside) -> str:
    """What the division by √d does to a query that has a choice: how far its sums spread, and its largest weight."""
    seen = inside.visible
    return (
        f"The sums of the {int(seen.sum())} keys that this query may see have {inside.dots[seen].std():.2f}; divided, "
        f"{inside.scaled[seen].std():.2f}. This query's largest weight is {inside.pattern.max():.2f}; without the "
        f"division it would be {undivided(inside).max():.2f}."
    )


def undivided(inside: Inside) -> np.ndarray:
    """The weights that this query would give if nothing were divided by √d, float64 [key]; 0 where nothing is seen."""
    bias = np.zeros(len(inside.keys)) if inside.bias is None else inside.bias
    return softmax_of(inside.dots.astype(np.float64) + bias, inside.visible)


def softmax_of(scores: np.ndarray, visible: np.ndarray) -> np.ndarray:
    """Rows of weights, float64 [..., key], 0 on keys that may not be seen; a row without any is all 0."""
    largest = np.where(visible, scores, -np.inf).max(axis=-1, keepdims=True)
    powers = np.where(visible, np.exp(np.where(visible, scores - np.where(np.isfinite(largest), largest, 0), 0)), 0.0)
    return powers / np.where(visible.any(axis=-1, keepdims=True), powers.sum(axis=-1, keepdims=True), 1.0)


def most_changed(scores: np.ndarray, mask: np.ndarray, d_head: int) -> tuple[int, int, float, float]:
    """The head and query whose largest weight the division by √d_head lowers most, and that weight with and without it.

    Of one attention module: scores after the division, without a bias, float [head, query, key], mask [query, key].
    """
    divided = softmax_of(scores.astype(np.float64), mask[None]).max(axis=-1)
    bare = softmax_of(scores.astype(np.float64) * math.sqrt(d_head), mask[None]).max(axis=-1)
    head, query = np.unravel_index(int((bare - divided).argmax()), bare.shape)
    return int(head), int(query), float(divided[head, query]), float(bare[head, query])


def _bias(inside: Inside, key: int) -> str:
    assert inside.bias is not None
    sign = "−" if inside.bias[key] <= 0 else "+"
    price = f"{number(inside.scaled[key])} {sign} {number(abs(inside.bias[key]))} = {number(inside.scores[key])}"
    away = abs(key - inside.place)
    return f"{asked(inside, key)} is {away} away: {price}. The bias is the same whatever the tokens are."


def _mask(inside: Inside, key: int) -> str:
    n, seen = len(inside.keys), int(inside.visible.sum())
    if seen == n:
        return f"All {n} keys may be seen: nothing is masked."
    return (
        f"{seen} of {n} keys may be seen; {n - seen} may not. A forbidden score becomes the lowest number there is, so "
        "that its exponential is 0. The columns before keep the scores as they were."
    )


def _exp(inside: Inside, key: int) -> str:
    difference = f"exp({number(inside.scores[key])} − {_bracketed(inside.largest)})"
    if inside.visible[key]:
        said = f"{asked(inside, key)}: {difference} {_result(inside.exponentials[key])}."
    else:
        said = f"{asked(inside, key)} may not be seen, so its exponential is 0."
    return f"{said} The largest score that is seen is subtracted first: no share changes, and no exponential overflows."


def _result(value: float) -> str:
    """ "= 0.0123", and "< 0.0001" of what is more than nothing and would read as nothing."""
    return "< 0.0001" if 0 < value < 0.5 * 10**-NUMBERS else f"= {number(value)}"


def _bracketed(value: float) -> str:
    return f"({number(value)})" if value < 0 else number(value)


def _sum(inside: Inside, key: int) -> str:
    seen = int(inside.visible.sum())
    keys = "the one key" if seen == 1 else f"the {seen} keys"
    return f"Over {keys} that may be seen, the exponentials add up to {number(inside.total)}."


def _divide(inside: Inside, key: int) -> str:
    if not inside.visible[key]:
        return f"{asked(inside, key)} may not be seen: its share of this query's attention is 0."
    exponential, share = inside.exponentials[key], inside.pattern[key]
    if _result(exponential).startswith("<"):
        return f"{asked(inside, key)}: its exponential is next to nothing, and so is its share, {_result(share)}."
    quotient = f"{number(exponential)} / {number(inside.total)} {_result(share)}"
    return f"{asked(inside, key)}: {quotient}, its share of this query's attention. Both numbers are rounded here."


def _values(inside: Inside, key: int) -> str:
    gives = f"{asked(inside, key)} has {counted(len(inside.z), 'number')} to give."
    return claims.largest_in_size(gives, inside.value[key])


def _weigh(inside: Inside, key: int) -> str:
    i = int(np.abs(inside.z).argmax())
    return (
        f"z = {blend(inside)}. In dimension {i} that is {_component(inside.z[i])}, "
        f"{_component(inside.weighted[key, i])} of it from {asked(inside, key)}."
    )


def blend(inside: Inside) -> str:
    """z as a sum of values: those of the three keys that are looked at most, and what is left of the attention."""
    most = np.argsort(-inside.pattern, kind="stable")[:3]
    most = most[inside.pattern[most] >= NAMED]
    terms = [f"{share_text(float(inside.pattern[each]))} · v({asked(inside, int(each))})" for each in most]
    rest = np.delete(inside.pattern.astype(np.float64), most).sum()
    return " + ".join([*terms, f"{rest:.2f} for the others"] if rest >= NAMED else terms)


def most_mixed(pattern: np.ndarray) -> int:
    """The query, of float [query, key], that looks most at the keys it looks at second and third most: its z mixes."""
    ranked = -np.sort(-pattern, axis=1)
    return int(ranked[:, 1:3].sum(axis=1).argmax())


def mixture(row: np.ndarray, token: str, place: int) -> str:
    """What is to be seen at the query at `place`, counted from 0, whose attention is `row`, float [key]; empty if it
    looks at one key alone."""
    shares = [share for share in -np.sort(-row)[:3] if share >= MIXED]
    if len(shares) < 2:
        return ""
    numbers = " + ".join(share_text(float(share)) for share in shares)
    return f"Show '{token}' at {place + 1}: it mixes {len(shares)} values, {numbers}"


def _project(inside: Inside, key: int) -> str:
    becomes = (
        f"Through this head's {counted(len(inside.z), 'row')} of W_O, z becomes "
        f"{counted(len(inside.written), 'number')} for the residual stream."
    )
    return claims.largest_in_size(becomes, inside.written)


def _add(inside: Inside, key: int) -> str:
    i = int(np.abs(inside.written).argmax())
    parts = (inside.before, inside.written, inside.others, inside.output_bias, inside.after)
    before, head, others, bias, after = (_component(part[i]) for part in parts)
    follows = f" {inside.norm_behind} follows." if inside.norm_behind else ""
    if not inside.residual:
        return (
            f"In dimension {i} this head writes {head}, the other heads {others}, and the bias b_O, which is no "
            f"head's, {bias}: {after}.{follows} This model has no residual connections: what was there is gone."
        )
    return (
        f"In dimension {i} the stream held {before}; this head adds {head}, the other heads {others}, and the bias "
        f"b_O, which is no head's, {bias}: {after}.{follows}"
    )


STAGES = {
    "query": Stage("Query", "q", r"q = x\,W_Q + b_Q", (FORWARD, 'trace("query"'), _query),
    "keys": Stage("Keys", "K", r"k_j = x_j\,W_K + b_K", (FORWARD, 'trace("key"'), _keys),
    "dot": Stage("Dot", "q · K", r"q \cdot k_j = \sum_i q_i\,k_{ji}", (FORMULA, "query @ key"), _dot),
    "scale": Stage(
        "Scale", "÷ √d", r"s_j = \frac{q \cdot k_j}{\sqrt{d_{\text{head}}}}", (FORMULA, "math.sqrt("), _scale
    ),
    "bias": Stage("Bias", "+ bias", r"s_j \leftarrow s_j + b_j", (FORMULA, "scores + trace"), _bias),
    "mask": Stage(
        "Mask",
        "mask",
        r"s_j \leftarrow -\infty\ \text{ unless } j \text{ may be seen}",
        (SOFTMAX, "scores.masked_fill"),
        _mask,
        "None of the keys may be seen.",
    ),
    "exp": Stage(
        "Exp",
        "exp",
        r"e_j = e^{\,s_j - \max s}",
        (SOFTMAX, "lowest).softmax"),
        _exp,
        "Nothing may be seen, so there is no score to take an exponential of.",
    ),
    "sum": Stage(
        "Sum",
        "Σ",
        r"\Sigma = \sum_j e_j",
        (SOFTMAX, "lowest).softmax"),
        _sum,
        "Nothing may be seen, so there is nothing to add up.",
    ),
    "divide": Stage(
        "Divide",
        "÷ Σ",
        r"p_j = \frac{e_j}{\Sigma}",
        (SOFTMAX, "lowest).softmax"),
        _divide,
        "A softmax over nothing would be 0 / 0: the whole row is set to 0.",
    ),
    "values": Stage("Values", "V", r"v_j = x_j\,W_V + b_V", (FORWARD, 'trace("value"'), _values),
    "weigh": Stage(
        "Weigh",
        "z",
        r"z = \sum_j p_j\,v_j",
        (FORMULA, "pattern @ value"),
        _weigh,
        "Every value is weighed with 0, so z is 0.",
    ),
    "project": Stage(
        "Project",
        "z W_O",
        r"z\,W_O^{(h)} = \sum_i z_i\,W_{O,i}^{(h)}",
        (FORWARD, "self.out("),
        _project,
        "z is 0, so this head writes nothing.",
    ),
    "add": Stage("Add", "+ x", r"x \leftarrow x + \sum_h z^{(h)} W_O^{(h)} + b_O", (BLOCK, 'trace("resid_mid"'), _add),
}
"""In the order in which they are taken."""


def stages_of(inside: Inside) -> list[str]:
    """The steps of this query: without a bias on its scores it has no step of that name."""
    return [name for name in STAGES if name != "bias" or inside.bias is not None]
