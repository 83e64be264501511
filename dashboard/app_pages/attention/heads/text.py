"""What a head reads in a text: the passage, each word on the colour of its share of one query's attention.

The colours go from 0 to 1 as in the grid, or by row to the greatest share.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import streamlit as st

from dashboard import theme
from dashboard.app_pages.attention.heads.words import decided, most_read, share_on, telling
from dashboard.components.appearance import is_dark
from dashboard.components.passage import Ground, Passage, Words
from dashboard.models.model import Model
from dashboard.parts.prose import plain
from dashboard.view import session
from transformer.analysis.findings import Head, Sample
from transformer.analysis.heads.kinds import KINDS, Kinds, cells_of
from transformer.tasks import Task
from transformer.text.task import Text

HEIGHT = 226
"""Pixels of a passage, at most: six lines."""
KEY = "heads-passage"


def together(model: Model, question: np.ndarray, sample: Sample, kinds: Kinds, heads: Mapping[str, Head]) -> None:
    """The same passage under each of these heads, by the kind of token that it prefers, asked by the same word."""
    place = asking(sample, clearest(model.task, question, sample, heads))
    with st.container(gap="xsmall", key="heads-together"):
        for kind, head in heads.items():
            read = f"**Head {head.short} reads {KINDS[kind]}** ({share_on(kinds, head, kind)} on average). "
            passage(model, question, sample, head, place, read, key=f"{KEY}-{kind}")


def of_one(model: Model, question: np.ndarray, sample: Sample, head: Head) -> None:
    """What one query of one head looks at: the one that the view names, else the word that looks most at one token."""
    shown = decided(sample.attentions[head.site].pattern[head.index], sample.read)
    passage(model, question, sample, head, asking(sample, shown), key=KEY)


def asking(sample: Sample, clearest: int | None) -> int:
    """The query that is shown, counted from 0: the one that the view names, else the clearest, else the last."""
    query, count = session.settings().query, len(sample.read)
    if query is not None and query <= count:
        return query - 1
    return count - 1 if clearest is None else clearest


def clearest(task: Task, question: np.ndarray, sample: Sample, heads: Mapping[str, Head]) -> int | None:
    """The word, counted from 0, that shows best on which kind of token each of these heads looks; None if none does."""
    cells = cells_of(np.array([[task.separator, *question[:-1]]]), task.vocabulary, task.separator)
    patterns = {kind: sample.attentions[head.site].pattern[head.index] for kind, head in heads.items()}
    return telling([(pattern, cells[kind][0]) for kind, pattern in patterns.items()], sample.read)


def passage(
    model: Model,
    question: np.ndarray,
    sample: Sample,
    head: Head,
    place: int,
    before: str = "",
    *,
    key: str,
) -> None:
    """Draw what one query looks at, its place counted from 0. `before` stands before the sentence on it.

    A click on a word chooses its query.
    """
    attention, task = sample.attentions[head.site], model.task
    row, visible = attention.pattern[head.index, place], attention.mask[place]
    said = most_read(row, visible, attention.keys, attention.queries[place], place)
    st.markdown(before + plain(said))
    if not isinstance(task, Text) or attention.keys != sample.read:
        return

    def chosen() -> None:
        index = st.session_state[key]["choose"]
        if isinstance(index, int) and 0 <= index < len(sample.read):
            session.update(query=index + 1)

    colours = theme.pattern_colours(is_dark())
    high = float(row[visible].max(initial=0.0)) if session.settings().by_row else 1.0
    pieces = tuple(task.piece(int(token)) or "SEP " for token in (task.separator, *question[:-1]))
    asking = f"'{attention.queries[place]}' at {place + 1}"
    says = [
        f"{asking} " + (f"gives {share:.2f} to" if seen else "may not see") + f" '{name}' at {at + 1}"
        for at, (name, share, seen) in enumerate(zip(attention.keys, row, visible, strict=True))
    ]
    Passage(
        Words(pieces, tuple(says), name="passage"),
        key=key,
        alt=said,
        ground=Ground(np.where(visible, row, np.nan), 0.0, high or 1.0, colours, "attention received"),
        chosen=place,
        height=HEIGHT,
    ).draw(chosen)
