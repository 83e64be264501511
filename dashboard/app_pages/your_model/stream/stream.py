"""Through the layers of a model that is not ours: attention rolled out, and what it would say after each layer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from dashboard.app_pages.your_model.stream import words
from dashboard.components.plot import coloured, plot
from dashboard.figures.kit.token_axis import elided
from dashboard.figures.lens import lens_heatmap
from dashboard.figures.patterns import pattern_heatmap
from dashboard.models import imported
from dashboard.models.imported import Look
from dashboard.models.long_inputs import from_afar, spans
from dashboard.parts import imported as parts
from dashboard.parts.heads import LINK
from dashboard.parts.prose import orientation, show_code
from dashboard.parts.widgets import bound_choice, late_title
from dashboard.view import imported as view
from transformer.analysis.findings import Attention
from transformer.analysis.heads.rollout import depth, evenly, rollout, stack_of

if TYPE_CHECKING:
    from transformer.capturing.lens import Lens

LETTERS = 8
"""Letters of a word in a cell of the lens."""


def rolled(seen: Look, through: int) -> tuple[Attention, Attention]:
    """The rollout through a layer, and that layer's own attention as the mean of its heads, each as one head."""
    own = seen.attentions[f"{stack_of(seen.attentions)}.{through}.self_attention"]
    first = len(seen.given.sources) if "decoder.0.cross_attention" in seen.attentions else 0
    values, even = (rollout(each, through)[:, first:] for each in (seen.attentions, evenly(seen.attentions)))
    unscored = np.full((1, *values.shape), np.nan)
    return (
        replace(own, scores=unscored, pattern=values[None], mask=even > 0),
        replace(own, scores=unscored, pattern=own.pattern.mean(axis=0, keepdims=True)),
    )


def matrices(found: tuple[Attention, Attention], through: int, said: str) -> None:
    """The two side by side; they share the hovered cell."""
    names = (f"**Rollout** through layer {through}", f"**Mean of heads** of layer {through} alone")
    for column, title, each, key in zip(st.columns(2, gap="medium"), names, found, ("rollout", "mean"), strict=True):
        with column:
            st.markdown(title)
            shown = from_afar(each, words=True)
            figure = coloured(
                pattern_heatmap,
                shown.pattern[0],
                shown.mask,
                shown.queries,
                shown.keys,
                spans=spans(shown),
                link=LINK,
            )
            plot(figure, key=f"imported-{key}", alt=f"{title.replace('*', '')}. {said}", height=380)


def layers_of(seen: Look) -> None:
    """The rollout, where each layer's attention was seen."""
    layers = depth(seen.attentions)
    through = layers - 1
    if layers > 1:
        menu = range(layers)
        widget = st.segmented_control if layers <= 16 else st.select_slider
        through = int(bound_choice(widget, "Through layer", "through", menu, layers - 1, help="Layers count from 0"))
    found = rolled(seen, through)
    said = words.rolled(found, through)
    st.markdown(f"**{said}**")
    matrices(found, through, said)
    st.caption(
        f"{orientation()} Grey and hatched: no path through the masks. Rollout multiplies the layers’ maps, each half "
        "what was there and half the mean of its heads. It counts all heads alike, and ignores what the values carry "
        "and what the feed-forward layers do. It supposes that each layer adds to what was there."
    )


def stages(lens: Lens) -> None:
    """What the model would say after each layer; colour is the probability of that word."""
    said = words.lens(lens)
    final = lens.words[-1]
    figure = coloured(
        lens_heatmap,
        lens.probabilities,
        [[elided(word, LETTERS) for word in row] for row in lens.words],
        lens.tokens == lens.tokens[-1],
        lens.layers,
        lens.names,
        final,
        known=np.ones(len(final), dtype=bool),
        top=("it says", "in the end it says"),
    )
    rows = len(lens.layers) + 1
    plot(figure, key="imported-lens", alt=said, height=96 + max(18, min(46, 440 // rows)) * rows)


title = late_title()
if begun := parts.begin(title):
    model, foreign, seen = begun
    try:
        lens = imported.lens(model, view.asked(foreign.says))
    except Exception:  # the model is a stranger's; the rollout stands without its lens
        lens = None
    title.title(words.headline(seen, lens), anchor=False)
    if lens is not None:
        stages(lens)
        st.caption(words.LENS)
        st.header("Where it comes from", anchor=False)
    layers_of(seen)
    if lens is None:
        st.info(words.NO_LENS, icon=":material/block:")
    show_code("transformer.capturing.lens.lens", "transformer.analysis.heads.rollout.rollout")
