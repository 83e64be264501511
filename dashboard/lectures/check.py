"""Proves lectures and exercises: every view opens as it is written, and what the words say of it is true."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest

from dashboard.lectures.exercises.exercise import Exercise, reached
from dashboard.lectures.expressions import Expression
from dashboard.lectures.lecture import SIDEBAR, Lecture, Step
from dashboard.lectures.questions import asked
from dashboard.lectures.reading import Mistake
from dashboard.lectures.values import ViewValues, model_of
from dashboard.models import menu
from dashboard.view.link import FIELDS
from dashboard.view.pages import OVERVIEW, PAGES

MAIN = Path(__file__).parents[1] / "frame" / "main.py"
PATIENCE = 120.0
"""Seconds that a page may take: it may have to load PyTorch first."""
BEHIND = 10.0
"""Seconds within which what is worked out behind a page has come, if it comes."""


def mistakes(lecture: Lecture) -> Iterator[Mistake]:
    """What does not hold, in the order of the file; nothing where all does."""
    for step in lecture.steps:
        yield from _opened(step)
        yield from _said(step)


def faults(exercise: Exercise) -> Iterator[Mistake]:
    """What of an exercise does not hold: its first view, the numbers in its words, the names in its goals.

    A goal need not have a value where the exercise begins. Not all of them may be reached there.
    """
    step = Step(exercise.title, 1, exercise.page, exercise.view, "", "", (), exercise.words, exercise.hint, ())
    yield from _opened(step)
    yield from _said(step)
    try:
        values = ViewValues(exercise.view)
    except ValueError:
        return  # it is said above
    for goal in exercise.goals:
        for name in goal.met.unknown(values):
            yield Mistake(goal.met.line, f"there is no “{name[:40]}” in a view")
    if all(reached(goal, values).met for goal in exercise.goals):
        yield Mistake(1, "it is solved where it begins")


def _opened(step: Step) -> Iterator[Mistake]:
    """Open the step's page as its link does, and look for what is to be marked and what is to stay.

    The page is shown as to somebody who has seen the model before: what a first look leaves out is there at once.
    """
    import torch  # noqa: F401 - pages that train on the spot wait until it is imported

    app = AppTest.from_file(str(MAIN), default_timeout=PATIENCE)
    with suppress(ValueError):  # what is no run is named below
        app.session_state["seen"] = model_of(step.view, menu.menu())
    for name, value in step.view.to_query().items():
        app.query_params[name] = value
    try:
        app = app.run() if PAGES[step.page] is OVERVIEW else app.switch_page(PAGES[step.page].script).run()
    except RuntimeError:  # it is not done in time
        yield Mistake(step.line, f"the page was not drawn within {PATIENCE:.0f} s; is this machine busy?")
        return
    for error in app.exception:
        yield Mistake(step.line, f"the page fails: {error.message}")
    for notice in (*app.error, *app.warning):
        yield Mistake(step.line, notice.value.removesuffix("."))
    wanted = {step.look, step.until, *(f"control-{name}" for name in step.controls if name != SIDEBAR)} - {""}
    deadline = time.monotonic() + BEHIND
    while not wanted <= (keys := {*_keys(app.main), *_keys(app.sidebar)}) and time.monotonic() < deadline:
        time.sleep(0.2)
        app.run()  # what a page keeps back at first follows with the next rerun
    for name, what in ((step.look, "to look at"), (step.until, "to end with")):
        if name and name not in keys:
            shown = ", ".join(sorted(key for key in keys if not key.startswith(("lecture", "control-"))))
            yield Mistake(step.line, f"the page has no element “{name}” {what}; it has {shown}")
    for name in step.controls:
        if name != SIDEBAR and f"control-{name}" not in keys:
            known = "" if name in FIELDS else ", nor has any other"
            yield Mistake(step.line, f"the page has no control of “{name}”{known}")


def _keys(block: Any) -> Iterator[str]:
    """The keys of all elements and containers below a block."""
    for each in block.children.values():
        if key := getattr(each, "key", None):
            yield key
        if hasattr(each, "children"):
            yield from _keys(each)


def _said(step: Step) -> Iterator[Mistake]:
    """Work out every number and every claim."""
    try:
        values = ViewValues(step.view)
    except ValueError as error:
        yield Mistake(step.line, str(error))
        return
    unknown = set()
    for expression in step.expressions:
        try:
            expression.written(values)
        except ValueError as error:
            unknown.add(expression)
            yield Mistake(expression.line, str(error))
    if step.question is not None and unknown.isdisjoint(step.question.expressions):
        try:
            asked(step.question, values, "")
        except ValueError as error:
            yield Mistake(step.question.line, str(error))
    for claim in step.claims:
        try:
            held = claim.value(values)
        except ValueError as error:
            yield Mistake(claim.line, str(error))
            continue
        if held is not True:
            yield _untrue(claim, values)


def _untrue(claim: Expression, values: ViewValues) -> Mistake:
    """A claim that does not hold, and what the left side of its comparison comes to."""
    left = claim.left(values)
    found = "" if left is None else f": the left side is {left}"
    return Mistake(claim.line, f"“{claim.text}” is not true of this view{found}")
