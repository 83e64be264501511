"""What the pages that show heads share: the grid of all heads, and which of them is enlarged."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import streamlit as st

from dashboard import session, theme
from dashboard.alignment import alignment_sentence
from dashboard.components.head_grid import Panel, head_grid
from dashboard.habits import habit_sentence
from dashboard.models import Model
from transformer.analysis.findings import Attention, Head, Survey

LINK = "pattern"
"""Grids and heatmaps of one attention share the hovered cell."""


def is_dark() -> bool:
    return st.context.theme.type == "dark"


def palette() -> theme.Palette:
    return theme.palette(is_dark())


def heads_of(attentions: Mapping[str, Attention]) -> list[Head]:
    """All heads, in the order of the data's way."""
    return [Head(site, i) for site, attention in attentions.items() for i in range(len(attention.pattern))]


def focused(heads: list[Head], survey: Survey) -> Head:
    """The head that the view names, or the one that does the work."""
    named = session.settings().head
    found = next((head for head in heads if str(head) == named), None)
    if named and found is None:
        session.notice("This model has no head of that name; the one that does the work is shown.")
        session.update(head="")
    return found or survey.worker


def grid(
    attentions: Mapping[str, Attention],
    focus: Head | None,
    *,
    key: str,
    patterns: Mapping[str, np.ndarray] | None = None,
    size: int = 200,
    by_row: bool = False,
) -> None:
    """All layers × heads as small multiples; a click or an arrow key makes another head the focus.

    Without a `focus` the grid outlines the one that the page's large head says, and need not be sent anew for it.
    `patterns` are drawn in place of the sample's own: the mean over many sequences.
    """
    heads = heads_of(attentions)

    def chosen() -> None:
        index = st.session_state[key]["focus"]
        if index is not None and 0 <= index < len(heads):
            session.update(head=str(heads[index]))

    single = len({head.kind for head in heads}) == 1
    panels = []
    for head in heads:
        attention = attentions[head.site]
        pattern = (patterns[head.site] if patterns is not None else attention.pattern)[head.index]
        panels.append(
            Panel(
                name=head.short,
                group="" if single else head.kind,
                row=head.layer,
                column=head.index,
                pattern=pattern,
                mask=attention.mask,
                queries=attention.queries,
                keys=attention.keys,
                factor=attention.factor if patterns is None else 1,
                whole=attention.whole,
            )
        )
    colours = palette()
    head_grid(
        panels,
        key=key,
        focus=None if focus is None else heads.index(focus),
        alt=f"Attention patterns of {len(heads)} heads; one of them is enlarged.",
        dark=is_dark(),
        colours=theme.pattern_colours(is_dark()),
        forbidden=theme.rgb(colours.forbidden),
        link=LINK,
        size=size,
        by_row=by_row,
        on_focus=chosen,
    )


def working_sentence(model: Model, head: Head, survey: Survey) -> str:
    """What a head does about the task, on average: of a GRU, which of the encoder's states its decoder looks at."""
    if not model.task.lawful:
        return habit_sentence(head, survey)
    if not model.config.model.recurrent:
        return share_sentence(head, survey)
    return alignment_sentence(survey.patterns[head.site][head.index], model.task.expected_keys(model.task.example))


def share_sentence(head: Head, survey: Survey) -> str:
    """What a head does about the task, from the numbers."""
    share = survey.expected_share.get(head)
    if share is None:
        return f"Head {head.short} ({head.kind}) is not where this task's answer can be read."
    if math.isnan(share):
        return f"Under this mask head {head.short} never sees the token to be said."
    only = "" if share >= 0.5 else "only "
    return f"Head {head.short} puts {only}{share:.2f} of its attention on the token to be said."
