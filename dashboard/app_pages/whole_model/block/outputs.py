"""Which output of the model is looked at."""

from __future__ import annotations

import numpy as np

from dashboard.models.model import Model
from dashboard.parts.widgets import bound_token
from transformer.analysis.findings import Sample

MOST_BUTTONS = 20
"""Outputs that fit into a row as wide as the page."""


def pick_output(model: Model, sample: Sample, most: int = MOST_BUTTONS) -> int:
    """Its place, counted from 0: unless the view names another, the first of the answer; of a text the last.

    More than `most` outputs are a menu.
    """
    answers = np.flatnonzero(sample.is_answer)
    own = int(answers[0]) + 1 if model.task.lawful and len(answers) else len(sample.read)
    return bound_token(
        "Output, by the token read there",
        sample.read,
        own - 1,
        lambda query: f"There is no output {query} here: the input has {len(sample.read)}. This is output {own}.",
        most=most,
    )
