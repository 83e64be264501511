"""Square corners in words: how far off a GRU is, and where it looks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dashboard.models.walks.corners import STARTS, TURNS, View
from dashboard.parts.claims import foremost
from dashboard.parts.prose import capital
from transformer.corners import CornerConfig, floor
from transformer.foundation.claims import claim
from transformer.foundation.words import counted, listed

if TYPE_CHECKING:
    from transformer.recurrent.corners import CornerStep


QUESTION = "A walk round a square: which corners come next?"
"""The title until something is measured."""


def title(view: View) -> str:
    """How far off the corners are, once that is measured."""
    return QUESTION if view.step is None or view.step.error is None else headline(view.step, floor(view.config.noise))


@claim
def headline(step: CornerStep, least: float) -> str:
    """How far off the corners are at a step, and how much noise alone makes."""
    when = f"After {counted(step.step, 'step')}" if step.step else "Before training"
    return f"{when} the predicted corners are {step.error:.2f} from the true ones; noise alone makes {least:.2f}."


def in_plane(view: View) -> str:
    """What is seen in the plane."""
    first, second = view.given + 1, view.given + 2
    words = (
        f"From the {STARTS[view.walks.start[view.walk]]} {TURNS[view.walks.turn[view.walk]]}, {view.given} corners "
        "given"
    )
    if view.off is None:
        return f"{words}: corners {first} and {second} will be predicted."
    return (
        f"{words}. Predicted corner {first} is {view.off[0]:.2f} from the true one, corner {second} {view.off[1]:.2f}."
    )


def everywhere(view: View) -> str:
    """What is seen of all eight walks."""
    alike = view.alike
    if view.said is None:
        return f"The eight walks with {view.given} given corners. Nothing is predicted yet."
    return range_sentence(view.given, np.sqrt(((view.said[alike] - view.walks.target[alike]) ** 2).sum(axis=-1)))


@claim
def range_sentence(given: int, off: np.ndarray) -> str:
    """From how near to how far the predictions of all walks are: float [walk, corner]."""
    low, high = f"{off.min():.2f}", f"{off.max():.2f}"
    far = low if low == high else f"{low} to {high}"
    return f"The eight walks with {given} given corners. The predictions are {far} from the true corners."


def errors(view: View) -> str:
    """The two errors at this step."""
    step = view.step
    if step is None or step.error is None or step.helped_error is None:
        return "Not trained yet."
    return (
        f"Error {step.error:.3f} when it predicts the second corner from its own first (free-running), "
        f"{step.helped_error:.3f} from the true first (teacher forcing). Noise alone makes "
        f"{floor(view.config.noise):.3f}."
    )


def alignment(view: View) -> str:
    """Where each said corner looks, in this walk and on average."""
    if view.config.attention == "none":
        return without()
    if view.patterns is None:
        return ""
    return looks_back(view.given, *view.patterns)


@claim
def looks_back(given: int, here: np.ndarray, mean: np.ndarray) -> str:
    """Where each predicted corner looks, float [predicted, given], in this walk and on average.

    Corners whose weights are written alike are named together.
    """
    if np.ptp(here) < 1e-6:
        return f"Every given corner has the same weight, 1/{given}, for every query."
    most = [foremost(dict(enumerate(row.tolist()))) for row in here]
    said = [_looks(given + 1 + i, row, mean[i], most[i]) for i, row in enumerate(here)]
    across = all(len(each) == 1 and (given + i - each[0]) % 4 == 2 for i, each in enumerate(most))
    return f"{capital(listed(said))}{': each at the corner opposite to it' if across else ''}."


def _looks(corner: int, row: np.ndarray, mean: np.ndarray, most: Sequence[int]) -> str:
    """ "corner 3 looks most at corner 1 (0.93; on average 0.91)"."""
    if len(most) == len(row):
        return f"corner {corner} looks at every given corner alike ({row.max():.2f} each)"
    if len(most) > 1:
        named = listed([str(place + 1) for place in most])
        return f"corner {corner} looks most, and as much, at corners {named} ({row.max():.2f} each)"
    return f"corner {corner} looks most at corner {most[0] + 1} ({row.max():.2f}; on average {mean[most[0]]:.2f})"


def without() -> str:
    """Why there is no alignment."""
    return "Without attention it cannot look back at the other states: choose another attention below, and it can."


def squeezed(config: CornerConfig, given: int) -> str:
    """What the decoder knows of the corners that were read: the vector, its own first input, and contexts if any."""
    these = "this one number" if config.d_model == 1 else f"these {config.d_model} numbers"
    if config.attention == "none":
        return (
            f"Everything the decoder knows of the {given} corners is {these}: the encoder's last state, the vector. "
            f"It also reads corner {given} itself, as its first input."
        )
    return (
        f"The vector is not the only way here. At each step the decoder also gets a context vector c, made by "
        f"{config.attention} attention from all {given} encoder states."
    )
