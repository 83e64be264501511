"""The second input, from which activations are patched: the same but for one token, or as typed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from dashboard.app_pages.attention.edits.settings import EditsSettings
from dashboard.figures.kit.numbers import signed
from dashboard.figures.kit.token_axis import span
from dashboard.models import edits
from dashboard.models.model import Model
from dashboard.models.passages import as_typed, in_a_line, in_link, parsed
from dashboard.parts.claims import FEW, foremost
from dashboard.parts.prose import plain
from dashboard.parts.widgets import controlled
from dashboard.parts.yardstick import SAME
from dashboard.server.streamlit_private import DeltaGenerator
from dashboard.view import session
from dashboard.view.link import longest
from transformer.analysis.findings import blocks
from transformer.foundation.claims import claim
from transformer.foundation.words import listed

if TYPE_CHECKING:
    from transformer.analysis.interventions.patching import Patching
    from transformer.tasks import Question


MOST_APART = 4
"""Words that differ between two passages and are named."""


def second_input(model: Model, question: Question) -> Question:
    """The input whose run is mended, in a field."""
    task = model.task
    other = edits.one_token_changed(model, question)
    typed = session.mine(EditsSettings).other
    if typed:
        try:
            other = parsed(task, typed)
        except ValueError as error:
            session.notice(f"The second input cannot be read: {error}.")
            session.update(other="")
    controlled(
        st.text_input,
        "Second input",
        key="control-other",
        value=in_a_line(task.typed(other)),
        picked=lambda text: session.update(other=in_link(task, text)),
        max_chars=longest("other"),
    )
    if not task.lawful and (words := apart(model, question, other)):
        st.caption(words)
    return other


def apart(model: Model, question: Question, other: Question) -> str:
    """Which words of two passages differ, where they are few; in a long passage nobody finds them."""
    if len(question) != len(other):
        return ""
    names, places = model.task.vocabulary, np.flatnonzero(question != other).tolist()
    found = [f"'{names[other[place]]}' for '{names[question[place]]}' at {place + 1}" for place in places]
    return plain(f"It has {', '.join(found)}.") if 0 < len(found) <= MOST_APART else ""


def columns(model: Model, other: Question, seen: Patching) -> tuple[list[str], list[str]]:
    """What the second input's run reads at each column of a patching, and where: "brother…" at "9–12".

    Where a source is patched beside the tokens, the columns are called by their places.
    """
    task, n = model.task, seen.recovered.shape[1]
    starts = range(seen.first, seen.first + n * seen.factor, seen.factor)
    read = [task.vocabulary[token] for token in task.encode([other]).tokens[0]]
    total = max(len(read), len(other)) if task.has_source else len(read)
    places = [span(start + 1, min(start + seen.factor, total)) for start in starts]
    beside = task.has_source and any(site.startswith("encoder") for site in seen.sites)
    if beside or (task.lawful and seen.factor > 1):
        return places, places
    return list(blocks(tuple(read[seen.first :]), seen.factor, words=not task.lawful)), places


def together(seen: Patching) -> str:
    """What a column of a patching stands for, where it is more than a place."""
    found = f"Each column patches {seen.factor} neighbouring positions at once. " if seen.factor > 1 else ""
    if seen.first:
        what = "position 1 is" if seen.first == 1 else f"positions 1 to {seen.first} are"
        found += f"Left out: {what} the same in both runs. "
    return found


@claim
def patching_sentence(seen: Patching, places: Sequence[str]) -> str:
    """At which site and place a patch brings back most, past the embeddings, or how many do."""
    found = {
        (site, column): float(seen.recovered[row, column])
        for row, site in enumerate(seen.sites)
        for column in range(len(places))
        if not site.endswith("resid_pre")
    }
    most = foremost(found, signed)
    if not most or found[most[0]] < SAME:
        return "After the embedding, no patch brings back anything of the logit difference."
    back = f"{signed(found[most[0]])} of the logit difference"
    columns = {column for _, column in most}
    if len(columns) > 1 or len(most) > FEW:
        return f"After the embedding, {len(most)} of these patches bring back most: {back} each."
    place = places[columns.pop()]
    at = f"position{'s' * ('–' in place)} {place}"
    sites = listed([site for site, _ in most], "or")
    return f"After the embedding, patching {sites} at {at} brings back most: {back}{' each' * (len(most) > 1)}."


def input_of_patch(model: Model, question: Question, place: DeltaGenerator) -> str:
    """The input that a head is handed on from, in a field, as the edit's text has it."""
    from transformer.edits.heads.patch_input import PatchInput

    # What was typed for another task is no input of this one.
    key = "edit-input" if model.task.lawful else f"edit-input-{model.config.task.text}"
    st.session_state.setdefault(key, in_a_line(model.task.typed(edits.one_token_changed(model, question))))
    typed = place.text_input("as in input", key=key, max_chars=longest("edits"))
    if model.task.lawful:
        return "_".join(c for c in typed.lower() if not c.isspace() and c not in ",;")
    return PatchInput("decoder.0.self_attention.z", 0, as_typed(typed)).more()
