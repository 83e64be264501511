"""What a lecture or an exercise can say of a changed model: under the view's edits or mask, at an earlier step.

Edits count from 1, in the order of the view; one that is switched off does not count. Accuracies are those of the page
of edits: the right answer is read, whatever the model says.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dashboard.models import edits
from dashboard.models.scaling import EARLY, scaling
from dashboard.view.settings import JOINT, OFF
from transformer import masks
from transformer.analysis.accuracy import ceilings

if TYPE_CHECKING:
    from dashboard.lectures.values import ViewValues
    from transformer.analysis.accuracy.result import Accuracy
    from transformer.edits import Edit
    from transformer.experiments.scaling import Scaling


def _edits(values: ViewValues) -> tuple[Edit, ...]:
    """The edits of the view that are switched on. Raises EditError, a ValueError."""
    from transformer.edits import parse_edit

    parts = [part for part in values.view.edits.split(JOINT) if part and not part.startswith(OFF)]
    return tuple(parse_edit(part) for part in parts)


def _edit(values: ViewValues, number: float) -> Edit:
    made = _edits(values)
    if not (float(number).is_integer() and 1 <= number <= len(made)):
        raise IndexError(f"there is no edit {number:g}" if made else "nothing is edited yet")
    return made[int(number) - 1]


def _under(values: ViewValues, made: tuple[Edit, ...], group: str) -> float:
    length = values.view.measured_length or values.model.task.length
    return part(values, edits.accuracy(values.model, made, length), group)


def part(values: ViewValues, measured: Accuracy, name: str) -> float:
    """The accuracy of a part of what is said, by the name that the task gives it.

    "first half" and "second half" are also the first and the last part, whatever the task calls them; where it has one
    part, both are that. Raises KeyError for another name.
    """
    parts = values.model.task.parts
    named = {"first half": parts[0], "second half": parts[-1], **{part: part for part in parts}}
    return measured.of(named[name])


def _right_at(values: ViewValues, length: float, group: str) -> float:
    """The accuracy of a part of sequences of another length, under the view's edits."""
    if not (float(length).is_integer() and 1 <= length <= 64):
        raise ValueError("a length is a whole number from 1 to 64")
    return part(values, edits.accuracy(values.model, _edits(values), int(length)), group)


def _pattern_moved(values: ViewValues) -> float:
    """The largest change of a weight of any head's pattern by the edits, on this input, the right answer being read."""
    return edits.pattern_moved(values.model, values.question, _edits(values))


def _copied(values: ViewValues) -> int:
    """How many tokens of the answer, said under the edits, are the token of the input at the same place."""
    task = values.model.task
    said = edits.said(values.model, values.question, _edits(values))
    spoken = [token for token, answer in zip(said.tokens, said.is_answer, strict=True) if answer]
    asked = [task.vocabulary[token] for token in values.question]
    return sum(one == other for one, other in zip(spoken, asked, strict=True))


def _mistaken(values: ViewValues) -> str:
    """The tokens of the answer that are wrong under the edits, the right ones being read: "y2 y5"."""
    said = edits.said(values.model, values.question, _edits(values))
    return " ".join(f"y{place}" for place in np.flatnonzero(~said.right[said.is_answer]) + 1)


def _no_trace(values: ViewValues) -> int:
    """1 where the view names a mistake of the gallery that leaves no trace in what its model does."""
    from transformer.mistakes import MISTAKES

    name = values.view.mistake
    return int(name in MISTAKES.names() and MISTAKES[name].trains and MISTAKES[name].silent)


def _knowable(values: ViewValues) -> str:
    """The tokens of the answer that can be known under the view's mask, in as many layers as the model has: "y1 y2"."""
    task, model, length = values.model.task, values.model.config.model, len(values.question)
    mask = masks.parse(values.view.mask or model.mask)
    known = ceilings.ceiling_of_mask(task, mask, model.n_layers, length).accuracy[task.answers(length)] == 1
    return " ".join(f"y{place}" for place in np.flatnonzero(known) + 1)


def _earlier(values: ViewValues, name: str) -> Any:
    """A number of the view at the step that was kept before this one."""
    from dashboard.lectures.values import ViewValues

    run = values.model.run
    before = [] if run is None else [step for step in run.snapshots() if step < values.model.step]
    if not before:
        raise ValueError("this is the first step that was kept")
    return ViewValues(values.view.with_(step=max(before)))[name]


def _trained_at(_: ViewValues, width: float, code: str) -> float:
    """The share right after a few steps at a width, "with" the scale or "without": the mean of the shipped seeds."""
    found = scaling()
    return _of_width(found, width, code, partial(found.accuracies, found.rates[0], EARLY))


def _let_through(_: ViewValues, width: float, code: str) -> float:
    """What softmax lets through before the first step at a width, of the gradient of an even look: 0 to 1."""
    found = scaling()
    return _of_width(found, width, code, found.gradients)


def _of_width(found: Scaling, width: float, code: str, table: Callable[..., np.ndarray]) -> float:
    """The mean over seeds of one width, from a table [width, seed] of models "with" the scale or "without"."""
    if width not in found.widths or code not in ("with", "without"):
        raise ValueError(f"the scale was measured at widths {', '.join(map(str, found.widths))}, “with” and “without”")
    return float(table(scaled=code == "with")[found.widths.index(int(width))].mean())


NUMBERS: dict[str, Callable[[ViewValues], Any]] = {
    "task": lambda values: values.model.config.task.task,
    "edits": lambda values: len(_edits(values)),
    "pattern_moved": _pattern_moved,
    "copied": _copied,
    "knowable": _knowable,
    "mistaken": _mistaken,
    "no_trace": _no_trace,
}
"""Numbers that need no argument, and the texts `task`, `knowable` and `mistaken`."""
NAMES: dict[str, Callable[..., Any]] = {
    "edited": lambda values, group: _under(values, _edits(values), group),
    "edited_by": lambda values, number, group: _under(values, (_edit(values, number),), group),
    "kind_of_edit": lambda values, number: _edit(values, number).kind,
    "right_at": _right_at,
    "earlier": _earlier,
    "trained_at": _trained_at,
    "let_through": _let_through,
}
"""Functions of parts of what is said, "second half", of edits and lengths."""
