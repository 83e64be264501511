"""The session: where the view is kept, how it gets into the URL and back, and what it means."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from dashboard import models, warm
from dashboard.choice import Choice
from dashboard.clicks import again, once, touch
from dashboard.components.origin import origin_element
from dashboard.links import from_query
from dashboard.models import Model
from dashboard.passages import as_typed
from dashboard.settings import AROUND, BY_KEY, FAST, Settings
from dashboard.wanted import config_of
from transformer.config import ConfigError, RunConfig
from transformer.training.runs import Run, RunError, new_folder

if TYPE_CHECKING:
    from transformer.tasks import Question

BEHIND = 0.5
"""Seconds after its first look at a model for which a page keeps back what nobody needs at once."""
FIRST_STEP = 0.3
"""Seconds for which a click on Train waits for the first step."""


# --- the view


def begin(page: str) -> None:
    """Start a rerun: read the URL when the session begins, and when the reader went back or changed it.

    The browser may still send the URL of a moment ago, so a rerun that a widget caused never reads it.
    """
    state, query = st.session_state, st.query_params.to_dict()
    touched, moved = state.pop("touched", False), state.get("page") != page
    state.page, state.menu, state.around = page, models.menu(), None
    listen()
    if "settings" not in state or (query and not touched and query != state.get("written")):
        state.settings, found = from_query(query)
        for sentence in found:
            notice(sentence)
        state.written = query  # so that going forward again is read as well
    state.write = touched or moved or state.get("write", False)  # of a rerun that was cut off before its end


def end() -> None:
    """End a rerun: make the URL say what the view is.

    Not after the reader went back to an address without a view: writing there would lock the way back.
    """
    state = st.session_state
    query = {"run": chosen().name, **settings().to_query()}
    if (state.pop("write", False) or state.pop("touched", False)) and st.query_params.to_dict() != query:
        st.query_params.from_dict(query)
        state.written = query


def first_look() -> bool:
    """Does this session see this model for the first time? Then what takes a while to measure or to fetch follows."""
    return bool(BEHIND) and st.session_state.get("seen") != chosen()


def is_shown_around_otherwise() -> bool:
    """Does what stands around the page show another model, input, setting or list of runs than now holds?

    Only a rerun of the page alone can find that; in a rerun of everything it is about to be drawn.
    """
    return st.session_state.around is not None and st.session_state.around != _around()


def _around() -> object:
    view = settings()
    return [getattr(view, name) for name in AROUND], started(), list(models.menu())


def finish() -> None:
    """End a rerun of everything, and ask for another after a first look: once it is painted and PyTorch is there."""
    st.session_state.around = _around()
    if first_look():
        st.fragment(_look_again, run_every=BEHIND)(chosen(), count())


def _look_again(model: Model, looks: Iterator[int]) -> None:
    if next(looks) and warm.torch() is not None:
        st.session_state.seen = model
        again()


def origin() -> str:
    """Where the numbers of this page come from, as an element of it: the view's link and its model.

    To be written when the page is drawn: by then every part of the view that could not be had is replaced. The link
    names the step even where it is the last: a training may go on.
    """
    model = chosen()
    query = {"run": model.name, **settings().to_query(), "step": str(model.step)}
    return origin_element(query, [model.maker()])


def settings() -> Settings:
    """The view of this session."""
    view: Settings = st.session_state.settings
    return view


def update(**changes: object) -> None:
    """Change the view."""
    st.session_state.settings = settings().with_(**changes)
    touch()


def listen() -> None:
    """Begin to note what is said, in a rerun of everything or of the page alone: `again` says that once more."""
    st.session_state.said = []


def notices(place: str = "") -> list[str]:
    """What is to be said at a place, said once; without one, what the link asked for and could not have."""
    state = st.session_state
    waiting: list[tuple[str, str]] = state.get("notices", [])
    state.notices = [each for each in waiting if each[0] != place]
    state.said += (now := [each for each in waiting if each[0] == place])
    return [sentence for _, sentence in now]


def notice(sentence: str, place: str = "") -> None:
    """Let a sentence be said at a place, at the latest when that is drawn next."""
    st.session_state.setdefault("notices", []).append((place, sentence))


# --- the model


def choices() -> dict[str, Choice]:
    """The model menu, read from the disk once a rerun."""
    found: dict[str, Choice] = st.session_state.menu
    return found


def chosen() -> Model:
    """The model that the view names; what it names in vain falls back, with a notice."""
    view, menu = settings(), choices()
    first = next(iter(menu))
    name = view.run or first
    if name not in menu:
        notice(f"There is no run “{name}” here; this is {first}.")
        update(run="", step=None)
        return chosen()
    steps = menu[name].snapshots
    if view.step is not None and view.step not in steps:
        notice(f"{name} has no weights of step {view.step}; this is its last, {steps[-1]}.")
        update(step=None)
        return chosen()
    return Model.of(menu[name], steps[-1] if view.step is None else view.step)


# --- the input


def question(model: Model) -> Question:
    """The question of the view, or the model's own sample; an unusable one falls back, with a notice."""
    typed = settings().input
    if typed:
        try:
            return model.task.parse(typed if model.task.lawful else as_typed(typed))
        except ValueError as error:
            notice(f"The input cannot be read: {error}.")
            update(input="")
    return model.task.example


def draw(model: Model, length: int | None = None) -> Question:
    """A question drawn at random; of a text, a passage of so many tokens or of as many as the present one has."""
    if model.task.lawful:
        length = model.task.length
    (drawn,) = model.task.draw(np.random.default_rng(), 1, length or len(question(model)))
    return drawn


# --- training


def training_config() -> RunConfig:
    """What the training panel describes. Raises ConfigError with a sentence when it cannot be trained."""
    return config_of(settings())


def start(configs: Sequence[RunConfig]) -> list[Run]:
    """Make a run of each config and put them into the queue, at the view's pace."""
    runs, wishes = [], pace_wishes(settings().pace)
    for config in configs:
        # Nothing in here asks for the session's state: that is where a click is broken off by the next one.
        run = Run.create(new_folder(models.ROOT, config), config)
        run.ask(**wishes)
        warm.pool.submit(run)
        runs.append(run)
    return runs


@once
def start_training() -> None:
    """Train what the panel describes; the page then watches the folder."""
    try:
        (run,) = start([training_config()])
    except (ConfigError, RunError, OSError) as error:
        notice(f"Training did not start: {error}.")
        return
    watch(run)
    deadline = time.monotonic() + FIRST_STEP
    while not run.metrics() and time.monotonic() < deadline:
        time.sleep(0.01)  # so that the first picture has a point to show


def resume(run: Run) -> None:
    """Go on with a training that was paused or cut off: at once if its process still waits, else in another."""
    touch()
    try:
        run.ask(stop=False, **pace_wishes(settings().pace, run.state.step))
        if not run.waiting:
            warm.pool.submit(run)
    except (RunError, OSError) as error:
        notice(f"{run.name} did not go on: {error}.")
        return
    watch(run)


def stop(run: Run) -> None:
    """End a training, or take it out of the queue."""
    touch()
    if not warm.pool.withdraw(run):
        run.request_stop()
        if run.state.status == "paused" and not run.waiting:
            run.set_state("stopped", run.state.step, f"stopped by hand at step {run.state.step}")


def set_pace(run: Run) -> None:
    """Let the view's pace hold for a training that goes on."""
    run.ask(**pace_wishes(settings().pace, run.state.step))


def pace_wishes(pace: str, step: int = 0) -> dict[str, object]:
    """What a pace of the view asks of a training that has taken some steps."""
    if pace == BY_KEY:
        return {"pause_at": step + 1, "pace": None}
    return {"pause_at": None, "pace": None if pace == FAST else float(pace)}


def watch(run: Run) -> None:
    """Show this run's training from now on."""
    st.session_state.watched = run.name
    st.session_state.pop("taken_over", None)


def watched() -> Run | None:
    """The run to watch: the one this session started, or any that is training now: a reload loses nothing."""
    live = (choice.name for choice in choices().values() if choice.state.live)
    found = next((name for name in live if Run(models.ROOT / name).waiting), None)
    if found and not started():
        st.session_state.found = found
    name = started() or st.session_state.get("found")
    return Run(models.ROOT / name) if name and (models.ROOT / name / "run.json").is_file() else None


def started() -> str | None:
    """The name of the run that this session started and still watches."""
    name: str | None = st.session_state.get("watched")
    return name
