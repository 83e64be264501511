"""Which mistake of the gallery is shown, and with which seed it is trained."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from dashboard.parts.widgets import bound_choice, controlled
from dashboard.view import session
from dashboard.view.link import limits
from transformer.foundation.foreign import shortened

if TYPE_CHECKING:
    from transformer.mistakes import Mistake

FIRST = "heads-merged-without-transpose"
"""The page's choice: its patterns and its accuracy are perfect, and it is wrong."""
KINDS = {
    "attention": "Formula",
    "mask": "Mask",
    "module": "Heads",
    "positions": "Positions",
    "decoder": "Blocks",
    "training": "Training",
}
"""What a mistake may be in: the folders of the gallery, as the menu calls them. A new one is called as it is."""


def gallery() -> dict[str, list[type[Mistake]]]:
    """All mistakes by what they are in, those of one kind by their titles."""
    from transformer.mistakes import MISTAKES

    every = sorted((MISTAKES[name] for name in MISTAKES.names()), key=lambda each: each.title)
    kinds = dict.fromkeys([*KINDS, *(each.kind for each in every)])
    return {kind: [each for each in every if each.kind == kind] for kind in kinds}


def chosen() -> type[Mistake]:
    """The mistake that the view names; what it names in vain falls back, with a notice."""
    from transformer.mistakes import MISTAKES

    def missing(name: str) -> str:
        return f"There is no mistake “{shortened(name, 30)}” in the gallery. This one is “{MISTAKES[FIRST].title}”."

    return MISTAKES[session.named("mistake", MISTAKES.names(), FIRST, missing)]


def choose(mistake: type[Mistake]) -> None:
    """The menus: what it is a mistake in, which one, and the seed of both trainings."""
    kinds = gallery()
    titles = {each.name: each.title for each in kinds[mistake.kind]}
    with st.container(key="compact-mistake", horizontal=True, vertical_alignment="bottom", gap="small"):
        controlled(
            st.segmented_control,
            "A mistake in",
            list(kinds),
            key="control-mistake-kind",
            value=mistake.kind,
            picked=lambda kind: write(kinds[kind][0].name),
            format_func=lambda kind: KINDS.get(kind, kind.replace("_", " ").capitalize()),
        )
        controlled(
            st.selectbox,
            "Mistake",
            list(titles),
            key="control-mistake",
            value=mistake.name,
            picked=write,
            format_func=titles.__getitem__,
            width=380,
        )
        if mistake.trains:
            low, high = map(int, limits("mistake_seed"))
            bound_choice(st.segmented_control, "Seed", "mistake_seed", list(range(low, high + 1)), low)


def write(name: str) -> None:
    """Let the view name a mistake."""
    session.update(mistake="" if name == FIRST else name)
