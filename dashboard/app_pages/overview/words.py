"""The title of the overview."""

from __future__ import annotations

import numpy as np

from transformer.analysis.intervals import wilson
from transformer.foundation.claims import claim
from transformer.tasks import Task


@claim
def headline(task: Task, length: int, right: np.ndarray, knowable: np.ndarray) -> str:
    """How much of one answer, to a question of this length, that can be known is right: bool [answer].

    A model is said to do its task where all is right. "Not well yet" is said where more is right than guessing would
    have, beyond a 95 % interval; else that it does not yet.
    """
    count, of = int((right & knowable).sum()), int(knowable.sum())
    if not of:
        return "No answer can be known here: the mask hides what it depends on."
    as_far = "" if of == len(right) else " as far as its mask lets it see"
    guessed = float(task.blind(length)[task.answers(length)].mean())
    if count == of:
        return f"It {task.verb}{as_far}: {count} of {of} right."
    if wilson(count, of)[0] > guessed:
        return f"It {task.verb}{as_far}, but not well yet: {count} of {of} right."
    return f"It {task.verb}{as_far}? Not yet: {count} of {of} right."
