"""Which block, which of its sub-layers and which token is looked at: the menus that the parts share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from dashboard.models.model import Model
from dashboard.parts.widgets import bound_choice, bound_token
from dashboard.view import session
from transformer.analysis.findings import Sample
from transformer.analysis.machine import plan
from transformer.config import ModelConfig
from transformer.foundation.foreign import shortened

MOST_BUTTONS = 20
"""More tokens than this, and they are a menu."""
MOST_BLOCKS = 6
"""More blocks than this, and they are a menu."""
SUBLAYERS = {
    "self_attention": "Self-attention",
    "cross_attention": "Cross-attention",
    "feed_forward": "Feed-forward",
}


@dataclass(frozen=True)
class Place:
    """A token in front of a block."""

    block: str
    """ "decoder.1"."""
    place: int
    """Where the token stands, counted from 0."""
    tokens: tuple[str, ...]
    sublayer: str = ""
    """ "self_attention"; empty where the part asks for none."""

    @property
    def path(self) -> str:
        """The sub-layer's site, "decoder.1.self_attention"."""
        return f"{self.block}.{self.sublayer}"

    @property
    def token(self) -> str:
        """ "'3' at 9"."""
        return f"'{self.tokens[self.place]}' at {self.place + 1}"


def block_name(config: ModelConfig, block: str) -> str:
    """ "block 1", or "decoder block 1" where there are two stacks."""
    stack, _, layer = block.partition(".")
    return f"{stack} block {layer}" if config.architecture == "encoder-decoder" else f"block {layer}"


def sublayers_of(config: ModelConfig, block: str) -> list[str]:
    """Which sub-layers a block has, in the order of the data's way."""
    crossed = config.architecture == "encoder-decoder" and block.startswith("decoder")
    return ["self_attention", *(["cross_attention"] if crossed else []), *(["feed_forward"] if config.d_ff else [])]


def pick_place(model: Model, *, label: str = "", ending: str = "", first: tuple[str, int] | None = None) -> Place:
    """The menus of blocks and of tokens, beside each other; with a `label` also one of sub-layers of that `ending`.

    `first` is the sub-layer and the token, its place counted from 0, that are shown unless the view names others;
    without it the first ones of the model and of the answer.
    """
    config, sample = model.config.model, model.sample(session.question(model))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="compact-place"):
        with st.container(width="content"):
            block = pick_block(config, first[0].rpartition(".")[0] if first else None)
        in_encoder, tokens = _in_encoder(config, block), tokens_before(config, sample, block)
        answers = np.flatnonzero(sample.is_answer)
        begins = model.task.lawful and len(answers) and not in_encoder
        own = int(answers[0]) if begins else len(tokens) - 1
        if first and in_encoder == _in_encoder(config, first[0]):
            own = first[1]
        with st.container(width="content"):
            place = pick_among(tokens, own)
        names = [name for name in sublayers_of(config, block) if name.endswith(ending)]
        with st.container(width="content"):
            sublayer = pick_sublayer(names, label, first[0].rpartition(".")[2] if first else None) if label else ""
    return Place(block, place, tokens, sublayer)


def tokens_before(config: ModelConfig, sample: Sample, block: str) -> tuple[str, ...]:
    """The tokens that come to a block: in an encoder those of the question."""
    return sample.question if _in_encoder(config, block) else sample.read


def _in_encoder(config: ModelConfig, block: str) -> bool:
    return config.architecture == "encoder-decoder" and block.startswith("encoder")


def pick_block(config: ModelConfig, first: str | None = None) -> str:
    """Which block; where there is but one, no menu. `first` is shown unless the view names another."""
    blocks = plan.blocks(config)
    if len(blocks) == 1:
        return str(session.named("block", blocks, blocks[0], _no_block))
    widget: Any = st.segmented_control if len(blocks) <= MOST_BLOCKS else st.selectbox
    named: str = bound_choice(
        widget,
        "Block",
        "block",
        blocks,
        blocks[0] if first is None else first,
        missing=_no_block,
        format_func=lambda each: block_name(config, each),
    )
    return named


def _no_block(name: str) -> str:
    return f"This model has no block “{shortened(name, 30)}”; the page shows another."


def pick_among(tokens: tuple[str, ...], first: int, field: str = "query") -> int:
    """Which token, its place counted from 0; unless the view's `field` names another, the one at `first`."""
    return bound_token(
        "Token",
        tokens,
        first,
        lambda place: f"There is no token at {place}: there are {len(tokens)}. The page shows the one at {first + 1}.",
        most=MOST_BUTTONS,
        field=field,
    )


def pick_sublayer(names: list[str], label: str, first: str | None = None) -> str:
    """Which of some sub-layers; where there is but one, no menu. One that another part shows falls back silently."""
    if session.settings().sublayer in SUBLAYERS and session.settings().sublayer not in names:
        session.update(sublayer="")
    if len(names) == 1:
        return str(
            session.named("sublayer", names, names[0], lambda name: f"There is no sub-layer “{shortened(name, 30)}”.")
        )
    name: str = bound_choice(
        st.segmented_control,
        label,
        "sublayer",
        names,
        first if first in names else names[0],
        format_func=SUBLAYERS.__getitem__,
    )
    return name
