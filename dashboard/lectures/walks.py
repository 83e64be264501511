"""What a lecture can say of recurrent networks: of three that reverse, of corners, of a context vector by hand.

Corners, their coordinates and the numbers of a state count from 1; the targets of a walk are 1 and 2. The small GRUs
are those of the pages, trained on the spot.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dashboard.app_pages.learn.context.settings import ContextSettings
from dashboard.app_pages.learn.corners.settings import CornersSettings
from dashboard.models.cache import cached
from dashboard.models.walks import by_hand, corners
from transformer.corners import every_walk, floor
from transformer.experiments.bottleneck import KINDS, Bottleneck
from transformer.training.runs import DEFAULT_ROOT

if TYPE_CHECKING:
    from dashboard.lectures.values import ViewValues
    from transformer.recurrent.corners import CornerStep
    from transformer.recurrent.look_back import Weighing
    from transformer.recurrent.roll_out import RollOut


def cell(array: np.ndarray, *places: float) -> Any:
    """A number of an array, its places counted from 1. Raises IndexError."""
    for place, size in zip(places, array.shape, strict=True):
        if not (float(place).is_integer() and 1 <= place <= size):
            raise IndexError(f"there is no place {place}, there are {size}")
    return array[tuple(int(place) - 1 for place in places)].item()


# --- three models of one size


@cached(1)
def _three() -> Bottleneck:
    """The shipped measurement."""
    return Bottleneck.load(DEFAULT_ROOT / "bottleneck.json")


def _kind(kind: str) -> str:
    if kind not in KINDS:
        raise ValueError(f"there is no “{kind[:40]}” among the three; there are {', '.join(KINDS)}")
    return kind


def _at(length: float) -> int:
    """The place of a length among those that were measured."""
    if length not in _three().lengths:
        raise IndexError(f"there is no length {length}, there are {_three().lengths[0]} to {_three().lengths[-1]}")
    return _three().lengths.index(int(length))


def _said_whole(_: ViewValues, kind: str, length: float) -> float:
    """The share of whole answers right at a length, nobody helping."""
    return float(_three().exact(_kind(kind))[_at(length)]) / _three().sequences


def _said_right(_: ViewValues, kind: str, length: float, place: float) -> float:
    """The share right at a place of the answer."""
    _at(length)
    return float(cell(_three().right(_kind(kind), int(length)), place)) / _three().sequences


def _said_half(_: ViewValues, kind: str) -> int:
    """Up to which length at least half of the whole answers are right; 0 where not even the first are."""
    below = np.flatnonzero(2 * _three().exact(_kind(kind)) < _three().sequences)
    last = int(below[0]) if len(below) else len(_three().lengths)
    return _three().lengths[last - 1] if last else 0


# --- square corners


def _step(values: ViewValues) -> CornerStep:
    """The step of the view's training; it is waited for."""
    view = values.view.of(CornersSettings)
    lesson = corners.taught(view.corner_config())
    lesson.wait()
    found = [each for each in lesson.steps if view.corner_step is None or each.step == view.corner_step]
    if not found:
        raise ValueError(f"step {view.corner_step} of this training was not recorded")
    return found[-1]


def _walk(values: ViewValues) -> tuple[CornerStep, int]:
    """The step, and which of all walks the view looks at."""
    view = values.view.of(CornersSettings)
    config = view.corner_config()
    start, turn = corners.kinds().get(view.corner_walk, (0, 1))
    given = min(view.corner_given or config.most, config.most)
    return _step(values), every_walk(config.most, config.noise).which(start, turn, given)


def _rolled(values: ViewValues) -> RollOut:
    """The view's walk, state by state."""
    from transformer.recurrent.corners import build_walker
    from transformer.recurrent.roll_out import roll_out

    (step, walk), config = _walk(values), values.view.of(CornersSettings).corner_config()
    if not step.weights:
        raise ValueError(f"states of more than {corners.ROLLED} numbers are not kept")
    model = build_walker(config)
    model.load_state_dict(step.weights)
    return roll_out(model.eval(), every_walk(config.most, config.noise), walk)


def _corner_looks(values: ViewValues) -> np.ndarray:
    """How much each predicted corner looks at each given one, float [2, corner]."""
    step, walk = _walk(values)
    if step.pattern is None:
        raise ValueError("this GRU has no attention")
    return step.pattern[walk]


def _cells(values: ViewValues, name: str) -> np.ndarray:
    """A number of each step of the walk, the encoder's first: float [step, d_model]."""
    rolled = _rolled(values)
    return np.stack([getattr(each, name) for each in (*rolled.encoder, *rolled.decoder)])


def _corner_said(values: ViewValues, target: float, coordinate: float) -> float:
    return float(cell(np.array([each.said for each in _rolled(values).decoder]), target, coordinate))


# --- the context vector by hand


def _weighing(values: ViewValues, scores: str = "") -> Weighing:
    """As the page has it, under the view's scores or others."""
    view = values.view.of(ContextSettings)
    trained = view.scores_trained or by_hand.TRAINED[0]
    start, turn = int(view.walk_start or by_hand.START) - 1, by_hand.TURNS[view.walk_turn or "clockwise"]
    look = by_hand.looked(trained, start, turn, view.walk_given, int(view.walk_target) - 1)
    scoring = scores or view.scores or trained
    if scoring not in by_hand.scorings(trained):
        raise ValueError(f"there are no scores “{scoring[:40]}” here; there are {', '.join(by_hand.scorings(trained))}")
    return by_hand.weighed(look, scoring, view.stretch, view.turned)


NUMBERS: dict[str, Callable[[ViewValues], Any]] = {
    "said_sequences": lambda _: _three().sequences,
    "corner_error": lambda values: _step(values).error,
    "corner_helped_error": lambda values: _step(values).helped_error,
    "corner_noise": lambda values: floor(values.view.of(CornersSettings).corner_noise),
    "hand_looks": lambda values: _weighing(values).strongest + 1,
}
"""Numbers that need no argument."""
NAMES: dict[str, Callable[..., Any]] = {
    "said_whole": _said_whole,
    "said_right": _said_right,
    "said_half": _said_half,
    "corner_said": _corner_said,
    "corner_missed": lambda values, target: cell(_rolled(values).missed, target),
    "corner_handed": lambda values, number: cell(_rolled(values).handed_over, number),
    "corner_state": lambda values, step, number: cell(_cells(values, "state"), step, number),
    "corner_update": lambda values, step, number: cell(_cells(values, "update"), step, number),
    "corner_weight": lambda values, target, corner: cell(_corner_looks(values), target, corner),
    "hand_score": lambda values, corner: cell(_weighing(values).scores, corner),
    "hand_weight": lambda values, corner: cell(_weighing(values).pattern, corner),
    "hand_value": lambda values, corner, coordinate: cell(_weighing(values).look.value, corner, coordinate),
    "hand_context": lambda values, coordinate: cell(_weighing(values).context, coordinate),
    "hand_missed": lambda values, scores: _weighing(values, scores).missed,
}
"""Functions of lengths, corners and scores; no scores, "", are those of the view."""
