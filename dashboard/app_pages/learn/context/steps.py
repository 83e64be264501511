"""The steps to a context vector in words: each one's name, formula, numbers and line of code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dashboard.figures.kit.numbers import written
from dashboard.parts import steps
from transformer.foundation.claims import claim
from transformer.foundation.words import listed

if TYPE_CHECKING:
    from transformer.recurrent.look_back import Weighing


DIGITS = 3
"""After the point, of every number on the page."""
CALLED = {
    "uniform": "uniform",
    "cosine": "cosine",
    "dot": "dot product",
    "scaled-dot": "scaled dot product",
    "additive": "additive",
}
MAKES = {
    "uniform": "the mean of all values",
    "cosine": "the angle alone",
    "dot": "the angle and the lengths",
    "scaled-dot": "the dot product, divided by √d",
    "additive": "a learned score, through tanh",
}
"""What each kind of scores takes into account, in the order of the menu: each goes on from the one before."""
FORWARD = "transformer.recurrent.scoring:Alignment.forward"
SOFTMAX = "transformer.attention:masked_softmax"
SCORE_FORMULA = {
    "uniform": r"e_i = 0",
    "cosine": r"e_i = \cos\theta_i = \frac{q \cdot k_i}{\lVert q\rVert\,\lVert k_i\rVert}",
    "dot": r"e_i = q \cdot k_i",
    "scaled-dot": r"e_i = \frac{q \cdot k_i}{\sqrt{d}},\quad d = 2",
    "additive": r"e_i = w \cdot \tanh(q + k_i)",
}
SCORE_CODE = {
    "uniform": ("transformer.recurrent.scoring:uniform", "new_zeros"),
    "cosine": ("transformer.recurrent.scoring:cosine", "functional.normalize"),
    "dot": ("transformer.recurrent.scoring:dot", "return query"),
    "scaled-dot": ("transformer.recurrent.scoring:scaled_dot", "math.sqrt"),
    "additive": ("transformer.recurrent.scoring:Alignment.scores", "torch.tanh"),
}


@dataclass(frozen=True)
class Stage(steps.Stage):
    """A step. `worked` is the formula with the numbers of the key that is looked at most; `says` what it is for."""

    worked: Callable[[Weighing, int], str]
    says: str


def number(value: float) -> str:
    return written(float(value), DIGITS)


def point(vector: np.ndarray) -> str:
    """A vector on one line."""
    return f"({', '.join(number(value) for value in vector)})"


@claim
def headline(work: Weighing) -> str:
    """Which value has the largest share in the context vector; two decimals that are alike are no order."""
    if np.ptp(work.pattern) < 1e-6:
        return f"The context vector is the mean of all {len(work.pattern)} values."
    most = f"{work.pattern.max():.2f}"
    first = [str(i + 1) for i, share in enumerate(work.pattern) if f"{share:.2f}" == most]
    if len(first) > 1:
        return f"Values {listed(first)} have the largest shares in the context: {most} each."
    return f"Value {first[0]} has the largest share in the context vector: {most}."


def formula(work: Weighing, stage: str) -> str:
    """LaTeX; without an affine map of its own a vector is the state itself."""
    if stage == "scores":
        return SCORE_FORMULA[work.scoring]
    if stage in ("keys", "query") and not work.look.maps.get(_MAPPED[stage]):
        return {"keys": "k_i = h_i", "query": "q = s"}[stage]
    return STAGES[stage].formula


def code(work: Weighing, stage: str) -> tuple[str, str]:
    """The function that takes a step, and what marks the line in it."""
    return SCORE_CODE[work.scoring] if stage == "scores" else STAGES[stage].code


def worked(work: Weighing, stage: str) -> str:
    """LaTeX: the step with its real numbers, for the key that is looked at most."""
    return STAGES[stage].worked(work, work.strongest)


# --- LaTeX


def _n(value: float) -> str:
    """A number, in brackets where a minus would stand after another sign."""
    text = f"{float(value):.{DIGITS}f}"
    return f"({text})" if text.startswith("-") and text.strip("-0.") else text.lstrip("-")


def _plain(value: float) -> str:
    text = f"{float(value):.{DIGITS}f}"
    return text if text.strip("-0.") else text.lstrip("-")


def _column(values: np.ndarray) -> str:
    return _matrix(values[:, None])


def _matrix(rows: np.ndarray) -> str:
    lines = r"\\".join(" & ".join(_plain(v) for v in row) for row in rows)
    return rf"\begin{{pmatrix}}{lines}\end{{pmatrix}}"


def _lines(*lines: str) -> str:
    """Lines of one calculation, each with an & before its equals sign."""
    return r"\begin{aligned}" + r"\\".join(lines) + r"\end{aligned}"


_MAPPED = {"values": "value", "keys": "key", "query": "query"}


def _affine(stage: str, name: str, before: np.ndarray, after: np.ndarray, work: Weighing) -> str:
    """A vector through its affine map, or the state itself."""
    if _MAPPED[stage] not in work.look.maps:
        return f"{name} = {_column(after)}"
    weight, bias = work.look.maps[_MAPPED[stage]]
    return _lines(f"{name} &= {_matrix(weight)}{_column(before)} + {_column(bias)}", f"&= {_column(after)}")


def _values(work: Weighing, i: int) -> str:
    return _affine("values", f"v_{i + 1}", work.look.states[i], work.look.value[i], work)


def _keys(work: Weighing, i: int) -> str:
    return _affine("keys", f"k_{i + 1}", work.look.states[i], work.look.key[i], work)


def _query(work: Weighing, i: int) -> str:
    own = _affine("query", "q", work.look.state, work.look.query, work)
    if np.array_equal(work.query, work.look.query):
        return own
    return rf"{own} \;\longrightarrow\; {_column(work.query)}"


def _scores(work: Weighing, i: int) -> str:
    q, k, e = work.query, work.look.key[i], f"e_{i + 1}"
    if work.scoring == "uniform":
        return f"{e} = 0"
    if work.scoring == "additive":
        assert work.look.energy is not None
        inner = _column(np.tanh(q + k))
        return _lines(
            rf"{e} &= {_column(work.look.energy)} \cdot \tanh\left({_column(q)} + {_column(k)}\right)",
            rf"&= {_column(work.look.energy)} \cdot {inner} = {_plain(work.scores[i])}",
        )
    products = rf"{_plain(q[0])} \cdot {_n(k[0])} + {_n(q[1])} \cdot {_n(k[1])}"
    if work.scoring == "dot":
        return _lines(f"{e} &= {products}", f"&= {_plain(work.scores[i])}")
    dotted = _lines(rf"q \cdot k_{i + 1} &= {products}", f"&= {_plain(work.dots[i])}")
    if work.scoring == "scaled-dot":
        return dotted.replace(
            r"\end{aligned}",
            rf"\\ {e} &= {_plain(work.dots[i])} / \sqrt{{2}} = {_plain(work.scores[i])}\end{{aligned}}",
        )
    lengths = rf"{_plain(float(np.linalg.norm(q)))} \cdot {_plain(float(np.linalg.norm(k)))}"
    return dotted.replace(
        r"\end{aligned}",
        rf"\\ {e} &= \frac{{{_plain(work.dots[i])}}}{{{lengths}}} = {_plain(work.scores[i])}\end{{aligned}}",
    )


def _exp(work: Weighing, i: int) -> str:
    largest = work.scores.max()
    return _lines(
        rf"\exp(e_{i + 1} - \max e) &= \exp({_plain(work.scores[i])} - {_n(largest)})",
        f"&= {_plain(work.exponentials[i])}",
    )


def _sum(work: Weighing, i: int) -> str:
    terms = [_plain(value) for value in work.exponentials]
    rows = [" + ".join(terms[at : at + 3]) for at in range(0, len(terms), 3)]
    return _lines(r"\Sigma &= " + r"\\&\quad + ".join(rows), f"&= {_plain(work.total)}")


def _divide(work: Weighing, i: int) -> str:
    return (
        rf"\alpha_{i + 1} = \frac{{{_plain(work.exponentials[i])}}}{{{_plain(work.total)}}} = {_plain(work.pattern[i])}"
    )


def _context(work: Weighing, i: int) -> str:
    terms = [
        f"{_plain(share)}\\,({_plain(value[0])},\\;{_plain(value[1])})"
        for share, value in zip(work.pattern, work.look.value, strict=True)
    ]
    first, *others = terms
    c = f"({_plain(work.context[0])},\\;{_plain(work.context[1])})"
    return _lines(f"c &= {first}", *(rf"&\quad + {term}" for term in others), rf"&= \mathbf{{{c}}}")


def _join(work: Weighing, i: int) -> str:
    return rf"\left[\,{_column(work.context)}\,;\,{_column(work.look.state)}\,\right] = {_column(work.features)}"


def _out(work: Weighing, i: int) -> str:
    weight, bias = work.look.out
    product, rest = f"{_matrix(weight)}{_column(work.features)}", f"{_column(bias)} = {_column(work.said)}"
    return r"\small " + _lines(f"y &= {product}", rf"&\quad + {rest}")


STAGES = {
    "values": Stage(
        "Values",
        "v",
        r"v_i = W_V\,h_i + b_V",
        (FORWARD, 'trace("value"'),
        _values,
        "What is averaged. Each value is the encoder's state after a given corner, through an affine map.",
    ),
    "keys": Stage(
        "Keys",
        "k",
        r"k_i = W_K\,h_i + b_K",
        (FORWARD, 'trace("key"'),
        _keys,
        "What the query is compared with. Each key is the same state, through another affine map.",
    ),
    "query": Stage(
        "Query",
        "q",
        r"q = W_Q\,s + b_Q",
        (FORWARD, 'trace("query"'),
        _query,
        "What the decoder looks for. It is the decoder's state after the corner that it read last.",
    ),
    "scores": Stage(
        "Scores", "e", "", ("", ""), _scores, "How well the query fits each key. There is one number for each key."
    ),
    "exp": Stage(
        "Exp",
        "exp",
        r"\exp(e_i - \max e)",
        (SOFTMAX, "lowest).softmax"),
        _exp,
        "Makes every score positive. The largest is subtracted first: that changes no weight and avoids overflow.",
    ),
    "sum": Stage(
        "Sum",
        "Σ",
        r"\Sigma = \sum_i \exp(e_i - \max e)",
        (SOFTMAX, "lowest).softmax"),
        _sum,
        "The sum of the exponentials.",
    ),
    "divide": Stage(
        "Divide",
        "α",
        r"\alpha_i = \frac{\exp(e_i - \max e)}{\Sigma}",
        (SOFTMAX, "lowest).softmax"),
        _divide,
        "Weights that add up to 1. They are this target's row of the attention pattern.",
    ),
    "context": Stage(
        "Context",
        "c",
        r"c = \sum_i \alpha_i\,v_i",
        (FORWARD, "pattern @ value"),
        _context,
        "The weighted sum of the values. The weights are at least 0 and add up to 1, so it lies in their convex hull.",
    ),
    "join": Stage(
        "Join",
        "[c ; s]",
        r"[\,c\,;\,s\,]",
        ("transformer.recurrent.sequence:EncoderDecoder.decode", "torch.cat([context, query]"),
        _join,
        "The context vector and the decoder's state, joined into one vector of four numbers.",
    ),
    "output": Stage(
        "Output",
        "y",
        r"y = W_{\text{out}}\,[\,c\,;\,s\,] + b_{\text{out}}",
        ("transformer.recurrent.corners:Walker.forward", "self.out(features)"),
        _out,
        "The prediction: two coordinates.",
    ),
}
"""In the order in which they are taken."""
