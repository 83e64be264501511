"""A text read under another mask: the cost of a token with and without it.

What a mask lets be known of a text, nobody can say: no ceiling is drawn, all is measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from dashboard.parts.yardstick import Yardstick
from dashboard.view import session, training
from transformer.masks import Mask

if TYPE_CHECKING:
    from transformer.analysis.accuracy.reading import Reading


def pictures(yard: Yardstick, mask: Mask, before: Reading, after: Reading) -> None:
    """Nats a token by place, before and after; and what takes the place of a small model trained on the spot."""
    words = (
        f"A token costs {before.nats.mean():.2f} nats under the model's own mask and {after.nats.mean():.2f} under "
        f"the {mask.name} mask. The model guesses {before.right.mean():.2f} and {after.right.mean():.2f} of the tokens."
    )
    st.markdown(f"**{words}**")
    words = "Open: under the model’s own mask. Filled: under this mask."
    yard.by_position(after, before, key="three", height=330, words=words)
    left, right = st.columns([3, 1], vertical_alignment="center")
    left.caption(
        "No ceiling is drawn: nobody knows how well a text can be guessed. Learning a text takes minutes, so no small "
        "model is retrained here. “Train in full” writes this mask into the panel on the left; then press Train."
    )
    right.button(
        "Train in full",
        on_click=lambda: session.update(**{**training.fields_of(yard.model.config), "train_mask": str(mask)}),
        help="Writes the model and this mask into the panel on the left. The button Train there starts the training.",
        icon=":material/tune:",
        width="stretch",
    )
