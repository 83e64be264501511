"""The model that is not ours, and its input, as the view names them."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dashboard.models import imported
from dashboard.models.imported import Imported, Input
from dashboard.view import session
from dashboard.view.link import OF_MODEL
from transformer.analysis.findings import Head
from transformer.foundation.foreign import shortened

TEXT = "The king said to the queen that the king was dead. The queen said to the king that"
"""What a model of texts reads first: words come twice, so that a head can find them again."""
NUMBERS = "3 1 4 1 5 9 2 6 3 1 4 1 5 9 2 6"
"""What one reads that has no tokenizer."""


def chosen() -> Imported:
    """The model that the view names, or the first of the list: the sample, where no other has been brought in.

    What it names in vain falls back, with a notice. Raises UserError where the list cannot be read.
    """
    listed = imported.listed()
    first = next(iter(listed))
    name = session.named(
        "imported",
        listed,
        first,
        lambda name: f"There is no model “{shortened(name, 60)}” on the list; this is {first}.",
    )
    return listed[name]


def choose(name: str) -> None:
    """Look at another model, with the same input. What was chosen inside the one before means nothing in it."""
    session.update(**{**OF_MODEL, "imported": name, "against": ""})


def asked(says: str) -> Input:
    """What the model is given: what was typed or uploaded, or a suggestion. `says` is what it reads."""
    view = session.settings()
    text = view.imported_input or {"tokens": NUMBERS, "token pair": NUMBERS, "picture": ""}.get(says, TEXT)
    return Input(text, view.imported_second, st.session_state.get("imported_picture"))


def head(heads: Sequence[Head], first: Head) -> Head:
    """The head that the view names, or the page's own choice."""
    names = {str(each): each for each in heads}
    missing = "This model has no head of that name; another is shown."
    return names.get(session.named("head", names, "", lambda _: missing), first)
