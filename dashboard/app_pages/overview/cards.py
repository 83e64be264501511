"""The four things the lab is for, each as a card with a small picture of this model that leads to its page."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import streamlit as st

from dashboard.app_pages.overview import pictures
from dashboard.components.plot import coloured
from dashboard.models.model import Model
from dashboard.parts.heads import grid
from dashboard.view import session
from dashboard.view.pages import PAGES
from transformer import masks
from transformer.analysis.findings import Head, Sample

WAVES = 64, 32
"""Positions and dimensions of the waves on the card."""
HIDDEN = 3
"""The place whose token is hidden on the card of masks, counted from 1; the last of a shorter question."""
MOST_BARS = 32
"""Bars on a card; of more tokens several share one."""
SEQUENCES = 512
"""Fresh sequences behind the bars on that card."""


def draw(model: Model, sample: Sample, head: Head) -> None:
    """The four cards, two in a row; of a recurrent network the two that it has."""
    mask, line = _other_mask(model)
    cards: list[tuple[str, str, Callable[[], None], dict[str, object]]] = [
        ("positions", _own_positions(model), _waves, {"encoding": "sinusoidal"}),
        ("heads", "Click one to make it the large one", lambda: _heads(sample, head), {}),
        ("masks", line, lambda: _mask(model, mask), {"mask": str(mask)}),
        ("accuracy", "Which tokens come out right", lambda: _accuracy(model), {}),
    ]
    shown = [each for each in cards if not (model.config.model.recurrent and PAGES[each[0]].transformer)]
    for pair in range(0, len(shown), 2):
        for place, card in zip(st.columns(2, gap="small"), shown[pair : pair + 2], strict=True):
            with place:
                _card(*card)


def _card(address: str, line: str, picture: Callable[[], None], shows: dict[str, object]) -> None:
    """A card that leads to a page, which `shows` what the picture does."""
    page = PAGES[address]
    with st.container(border=True, key=f"card-{address}", gap=None, height="stretch"):
        st.page_link(page.script, label=f"**{page.title}** →", query_params=session.query(**shows))
        st.caption(line)
        picture()


def _own_positions(model: Model) -> str:
    """Whose waves are drawn: learned positions look like noise, others are no vectors."""
    own = model.config.model
    known = own.positions == "sinusoidal"
    return "Waves tell first from last" if known else f"Sinusoidal waves. This model's: {own.encoding.title}"


def sinusoids() -> np.ndarray:
    """The sinusoidal encoding of WAVES, float64 [position, dimension]; without PyTorch, which is not yet here."""
    positions, width = WAVES
    angle = np.arange(positions)[:, None] / 10_000 ** (np.arange(0, width, 2) / width)
    return np.stack([np.sin(angle), np.cos(angle)], axis=2).reshape(positions, width)


def _waves() -> None:
    positions, waves = WAVES[0], sinusoids()
    alt = f"The sinusoidal encoding of {positions} positions: fast waves on the left, slow ones on the right."
    st.html(coloured(pictures.cells, waves, -1.0, 1.0, alt))


def _heads(sample: Sample, head: Head) -> None:
    """All heads; of an encoder and a decoder those that look at what the large one looks at."""
    kin = {site: each for site, each in sample.attentions.items() if Head(site, 0).kind == head.kind}
    grid(kin, head, key="overview-heads", size=50)


def _other_mask(model: Model) -> tuple[masks.Mask, str]:
    """A mask worth a look: a causal model's with one token hidden, any other's own. And what is asked of it."""
    own = masks.parse(model.config.model.mask)
    if own.name != "causal" or not model.task.lawful:
        return own, "What each token may see"
    place = min(HIDDEN, model.task.length)
    return masks.parse(f"hide:{place}"), f"Token {place} hidden: what fails?"


def _mask(model: Model, mask: masks.Mask) -> None:
    task = model.task
    visible = mask.matrix(len(task.target_names(task.length)))
    drawn = coloured(pictures.mask_cells, visible, f"The mask {mask.label}: {mask.description}.")
    unknown = session.first_look() or not task.lawful  # of a text it takes too long
    st.html(pictures.beside(drawn, *([] if unknown else [_bars(model, mask)])))


def _accuracy(model: Model) -> None:
    st.html(pictures.beside(*([] if session.first_look() else [_bars(model, None)])))


def _bars(model: Model, mask: masks.Mask | None) -> str:
    measured = model.accuracy(SEQUENCES if mask else session.settings().sequences, mask=mask)
    last = measured.groups[-1] if measured.groups else ""
    wide = -(-len(measured.mean) // MOST_BARS)
    shares = [float(part.mean()) for part in np.split(measured.mean, range(wide, len(measured.mean), wide))]
    alt = "Accuracy of each token, in order: " + ", ".join(f"{share:.2f}" for share in shares)
    return coloured(pictures.bars, np.array(shares), [group == last for group in measured.groups[::wide]], alt)
