"""Attention rolled out through the layers, beside one layer's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import streamlit as st

from dashboard.app_pages.whole_model.layers.figures import block_of, coarse_heatmap
from dashboard.components.plot import coloured, plot
from dashboard.figures.patterns import pattern_heatmap
from dashboard.models import heads
from dashboard.models.model import Model
from dashboard.parts.heads import LINK
from dashboard.parts.widgets import bound_choice
from dashboard.view import session
from transformer.analysis.findings import Attention
from transformer.analysis.heads.rollout import stack_of
from transformer.foundation.claims import claim


@dataclass(frozen=True)
class Rolled:
    """Rollout through a layer beside that layer's own attention, both over the keys where the answer stands."""

    attention: Attention
    """The attention that carries the task: cross-attention where there is a source."""
    rolled: np.ndarray
    even: np.ndarray
    expected: np.ndarray
    """Where the answer stands, and can arrive: bool [query, key]."""
    points: bool = True
    """Does the task have such places at all?"""

    @classmethod
    def of(cls, model: Model, question: np.ndarray, attentions: Mapping[str, Attention], through: int) -> Rolled:
        kind = "cross_attention" if model.task.has_source else "self_attention"
        attention = attentions[f"{stack_of(attentions)}.{through}.{kind}"]
        keys = slice(0, len(attention.keys))  # with a source, its slots come first
        rolled, even = (slots[:, keys] for slots in heads.rolled(model, question, through))
        expected = model.task.expected_keys(question) & (even > 0)
        return cls(attention, rolled, even, expected, model.task.points)

    @property
    def mean(self) -> np.ndarray:
        return self.attention.pattern.mean(axis=0)

    def share(self, values: np.ndarray) -> float:
        """How much of a row lies where its answer stands, over the rows whose answer can arrive; nan without any."""
        rows = self.expected.any(axis=1)
        return float((values * self.expected).sum(axis=1)[rows].mean()) if rows.any() else float("nan")

    def _sentence_of_neighbours(self) -> str:
        """Where no place holds the answer: how much comes from the token itself and from the one before."""
        layer = self.attention.site.split(".")[1]
        if len(self.rolled) < 2:
            return "There is only one token, so everything comes from it."
        rolled, even, mean = ([part(share) for share in _near(each)] for each in (self.rolled, self.even, self.mean))
        return (
            f"In the rollout through layer {layer}, {rolled[0]} of a position comes from its own token and "
            f"{rolled[1]} from the one before. Looking evenly would give {even[0]} and {even[1]}. "
            f"Layer {layer} alone puts {mean[0]} and {mean[1]} of its attention there (mean of its heads)."
        )

    @claim
    def sentence(self) -> str:
        layer = self.attention.site.split(".")[1]
        if not self.points and self.attention.site.endswith("cross_attention"):
            return "In this task no token of the input is the one to look at."
        if not self.points:
            return self._sentence_of_neighbours()
        if not self.expected.any():
            return f"Through layer {layer} no path leads from an answer to the place that must output it."
        rolled, even, mean = (self.share(values) for values in (self.rolled, self.even, self.mean))
        return (
            f"In the rollout through layer {layer}, {part(rolled)} of an answer comes from the token it should be. "
            f"Looking evenly would give {part(even)}. Layer {layer} alone puts {part(mean)} of its attention there "
            "(mean of its heads)."
        )


def _near(values: np.ndarray) -> list[float]:
    """How much of a row lies on its own place and on the one before: means over the rows that have both."""
    return [float(np.diagonal(values)[1:].mean()), float(np.diagonal(values, -1).mean())]


def pick_layer(layers: int) -> int:
    """Through which layer attention is rolled out: the one that the view names, or the last."""

    def missing(layer: int) -> str:
        return f"There is no layer {layer} here; attention is rolled out through all {layers}."

    menu, last = range(layers), layers - 1
    if not last:
        return int(session.named("through", menu, last, missing))
    widget, told = st.segmented_control, "Layers count from 0"
    return int(bound_choice(widget, "Through layer", "through", menu, last, missing=missing, help=told))


def part(share: float) -> str:
    """A share with two digits, or with four where two would say nothing: 0.16, 0.0021."""
    return f"{share:.2f}" if share >= 0.01 else f"{share:.4f}"


def pictures(found: Rolled, source: bool) -> None:
    """Rollout and the mean of heads, side by side, sharing the hovered cell."""
    layer = found.attention.site.split(".")[1]
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown(f"**Rollout** through layer {layer}" + (", the source's part" if source else ""))
        _matrix(found, found.rolled, found.even > 0, key="rollout")
    with right:
        st.markdown(f"**Mean of heads** of layer {layer} alone")
        _matrix(found, found.mean, found.attention.mask, key="rollout-mean")


def is_long(found: Rolled) -> bool:
    """Are there too many tokens for a cell each?"""
    return block_of(*found.rolled.shape) > 1


def _matrix(found: Rolled, values: np.ndarray, mask: np.ndarray, *, key: str) -> None:
    queries, keys = found.attention.queries, found.attention.keys
    block = block_of(*values.shape)
    if block > 1:
        figure = coloured(coarse_heatmap, values, mask, block, queries, keys, link=LINK)
        note = f" {max(values.shape)} tokens: each cell drawn is the largest of {block} × {block}."
    else:
        figure = coloured(pattern_heatmap, values, mask, queries, keys, marks=found.expected, link=LINK)
        note = ""
    what = "Attention rollout" if key == "rollout" else "Mean of heads"
    share = found.share(values)
    said = "no answer can arrive" if np.isnan(share) else f"{part(share)} of an answer's row is on the token to be said"
    if not found.points:
        said = found.sentence()
    plot(figure, key=key, alt=f"{what}: {said.removesuffix('.')}.{note}", height=380)
    if note:
        st.caption(note.strip())
