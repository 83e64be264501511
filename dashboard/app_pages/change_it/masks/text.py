"""A text read under another mask: the cost of each token with and without it, and which tokens reach an output.

What a mask lets be known of a text, nobody can say: no ceiling is drawn, all is measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from dashboard.app_pages.change_it.masks.figures.flow import Nodes, Steps, is_merged, path_flow
from dashboard.app_pages.change_it.masks.ways import MOST_HEIGHT, ROW, choose_clicked, pick_output
from dashboard.components.plot import coloured, plot
from dashboard.figures.kit.token_axis import elided
from dashboard.models import edits
from dashboard.models.model import Model, mask_edits
from dashboard.parts import text
from dashboard.view import session, training
from transformer.analysis.accuracy.reachability import flow
from transformer.analysis.findings import Sample
from transformer.masks import Mask

if TYPE_CHECKING:
    from transformer.analysis.accuracy.reading import Reading


LETTERS = 6
"""Of a token beside the picture of the ways."""


def readings(model: Model, mask: Mask, length: int) -> tuple[Reading, Reading]:
    """What it costs to read held-out windows of this length, as it was trained and under a mask."""
    return edits.reading(model, (), length), edits.reading(model, mask_edits(model, mask, length), length)


def headline(model: Model, mask: Mask, length: int) -> str:
    """What the mask does to the reading, in a sentence."""
    return text.change(f"Under the {mask.name} mask", *readings(model, mask, length))


def pictures(model: Model, mask: Mask, length: int) -> None:
    """Nats a token by place, before and after; and what takes the place of a small model trained on the spot."""
    before, after = readings(model, mask, length)
    words = (
        f"A token costs {before.nats.mean():.2f} nats as it was trained and {after.nats.mean():.2f} under the "
        f"{mask.name} mask; guessed are {before.right.mean():.2f} and {after.right.mean():.2f}."
    )
    st.markdown(f"**{words}**")
    text.by_place(model, after, before, key="three", height=330, words="Open: as trained. Filled: under the mask.")
    left, right = st.columns([3, 1], vertical_alignment="center")
    left.caption(
        "Of a text nobody knows what can be known, so no ceiling is drawn. Learning to read takes minutes, and no "
        "small model is trained anew on the spot: write the mask into the panel and press Train."
    )
    right.button(
        "Train in full",
        on_click=lambda: session.update(**{**training.fields_of(model.config), "train_mask": str(mask)}),
        help="Writes the model and this mask into the panel on the left; Train starts it",
        icon=":material/tune:",
        width="stretch",
    )


def said(model: Model, question: np.ndarray, mask: Mask) -> None:
    """The passage, each token tinted by how much more or less it costs under the mask."""
    made = mask_edits(model, mask, len(question))
    text.passage(edits.said(model, question, ()), edits.said(model, question, made), key="mask-tokens")


# --- the ways to one output


def ways(model: Model, mask: Mask, sample: Sample, target: int) -> None:
    """The ways to one output from the tokens it may be told by, and the words that say how many they are."""
    n, n_layers = len(sample.read), model.config.model.n_layers
    matrix, before = mask.matrix(n), np.arange(n) <= target
    found = flow(matrix, n_layers, target, before)
    words = sentence(found.columns[0].leads, target, n_layers)
    picture, beside = st.container(key="stacked-ways").columns([3, 2], gap="large")
    with beside:
        pick_output([f"'{token}'" for token in sample.targets], target)
        st.markdown(f"**{words}**")
        st.caption(
            "Green: what stands before the token to be said, and every way it can take. Grey: what else arrives. Thin "
            "and level: the residual path; bent: a query reads a key. Click an output on the right."
        )
    labels = [elided(token, LETTERS) for token in sample.read]
    columns = [
        Nodes(f"layer {column.layer - 1}" if column.layer else "tokens", labels, column.leads, column.carries)
        for column in found.columns
    ]
    steps = [Steps(link.start, link.end, link.attention, link.straight) for link in found.links]
    outputs = [elided(token, LETTERS) for token in sample.targets]
    with picture:
        height = min(MOST_HEIGHT, 60 + ROW * max(n, 6))
        figure = coloured(path_flow, columns, steps, target, outputs=outputs, height=height)
        plot(figure, key="flow", alt=words, height=height, on_click=_choose_output)
    if is_merged(columns):
        beside.caption(f"{n} tokens are too many for a line each: a band spans from the first way to the last.")


def sentence(arrives: np.ndarray, target: int, n_layers: int) -> str:
    """Of how many tokens an output can be told: bool [slot], which of them reach it."""
    before, after = int(arrives[: target + 1].sum()), int(arrives[target + 1 :].sum())
    layers = f"{n_layers} layer{'s' if n_layers != 1 else ''}"
    read = f"the {target + 1} tokens before it" if target else "the one token before it"
    words = f"Output {target + 1} can be told by {before} of {read}, in {layers}"
    if not after:
        return f"{words}; by none that comes later: the mask holds."
    own = ", its own among them" if arrives[target + 1] else ""
    return f"{words}; and by {after} that come{'s' if after == 1 else ''} later{own}: this mask leaks."


def _choose_output() -> None:
    """Only the last column chooses: the others are no outputs."""
    click = st.session_state["flow"]["click"]
    if click is not None and click.get("meta") == "output":
        choose_clicked("flow")
