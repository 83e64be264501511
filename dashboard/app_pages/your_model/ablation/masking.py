"""Another mask for the self-attention of an imported model: chosen from the rules, or painted."""

from __future__ import annotations

import numpy as np
import streamlit as st

from dashboard.app_pages.your_model.ablation.settings import AblationSettings
from dashboard.components.painter import Painter
from dashboard.components.plot import coloured, plot
from dashboard.figures.patterns import pattern_heatmap
from dashboard.models.imported import Look
from dashboard.models.long_inputs import from_afar, spans, squares, squares_sentence
from dashboard.parts.heads import LINK
from dashboard.parts.prose import labels_of, orientation, share_of_cells
from dashboard.parts.widgets import controlled, pick_head
from dashboard.view import imported as view
from dashboard.view import session
from dashboard.view.link import longest
from dashboard.view.training import is_mask
from transformer import masks
from transformer.analysis.findings import Attention
from transformer.foundation.foreign import shortened
from transformer.masks import MASKS, Mask
from transformer.masks.painted import LARGEST, Painted

OWN = "its own"
HEIGHT = 330


def attention_of(seen: Look) -> Attention | None:
    """The self-attention that a mask is for: the first of the stack that predicts; None where there is none."""
    for stack in ("decoder", "encoder"):
        if (found := seen.attentions.get(f"{stack}.0.self_attention")) is not None:
            return found
    return None


def chosen(seen: Look) -> Mask | None:
    """The mask of the view; None is the model's own. What cannot be used falls back, with a notice."""
    text, attention = session.mine(AblationSettings).seen_mask, attention_of(seen)
    if not text or attention is None:
        return None
    n = len(attention.mask)
    if not is_mask(text):
        session.notice(f"There is no mask “{shortened(text, 30)}”. The model has its own.")
    elif (most := masks.parse(text).longest) is not None and most != n:
        session.notice(f"The mask was painted for {most} positions, and this input has {n}. The model has its own.")
    else:
        return masks.parse(text)
    session.update(seen_mask="")
    return None


def cells(seen: Look, mask: Mask | None) -> np.ndarray | None:
    """Which key each query may see under a mask, bool [query, key]; None is the model's own."""
    attention = attention_of(seen)
    return None if mask is None or attention is None else mask.matrix(len(attention.mask))


def section(before: Look, after: Look, mask: Mask | None) -> None:
    """The rules, the mask to paint on, and what a head does under it."""
    attention = attention_of(before)
    if attention is None or attention.mask.shape[0] != attention.mask.shape[1]:
        st.caption("This model has no self-attention whose mask could be another.")
        return
    n, rules = len(attention.mask), list(masks.rules())

    def picked(name: str) -> None:
        session.update(seen_mask="" if name == OWN else str(MASKS[name]()))

    controlled(
        st.segmented_control,
        "What its self-attention may see",
        [OWN, *rules],
        key="control-seen_mask",
        value=OWN if mask is None else mask.name if mask.name in rules else None,
        picked=picked,
        required=False,
    )
    head = view.head([each for each in before.heads if "self" in each.site], before.heads[0])
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown("**The mask**: drag to paint or wipe")
        _canvas(attention, attention.mask if mask is None else mask.matrix(n))
    with right:
        pick_head([each for each in before.heads if "self" in each.site], head)
        shown = from_afar(after.attentions[head.site], words=True)
        figure = coloured(
            pattern_heatmap,
            shown.pattern[head.index],
            shown.mask,
            shown.queries,
            shown.keys,
            spans=spans(shown),
            link=LINK,
        )
        label = labels_of(before.heads)[before.heads.index(head)]
        plot(figure, key="imported-masked", alt=f"Pattern of head {label} under this mask.", height=HEIGHT)
    st.caption(
        f"{orientation()} Every self-attention of this size gets the mask. The model was trained under its own: what "
        "it does under another says how it uses what it sees, not what it could learn."
    )


def _canvas(attention: Attention, cells: np.ndarray) -> None:
    n = len(cells)
    said = f"{share_of_cells(int(cells.sum()), cells.size)} may be seen."
    if n > LARGEST:
        st.caption(f"{said} Painting is for up to {LARGEST} positions; this input has {n}.")
        return
    seen = from_afar(
        Attention(attention.site, attention.scores[:1], cells, attention.pattern[:1], attention.queries, attention.keys)
    )

    def painted(cells: np.ndarray) -> bool:
        text = str(Painted.of(cells))
        short = len(text) <= longest("seen_mask")
        if short:
            session.update(seen_mask=text)
        else:
            session.notice(
                f"This mask is too irregular for a link: it takes {len(text):,} letters, and a link has room for "
                f"{longest('seen_mask'):,}. The mask stays as it was."
            )
        return short

    Painter(
        cells,
        attention.queries,
        attention.keys,
        key="imported-painter",
        alt=said,
        link=LINK,
        height=HEIGHT,
        squares=squares(seen),
    ).draw(painted)
    if seen.factor > 1:
        st.caption(squares_sentence(seen.factor, "only some of its cells may be seen"))
