"""The session: where the view is kept, how it gets into the URL and back, and what it means."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from dashboard import models, warm
from dashboard.models import ROOT, Choice, Model
from dashboard.settings import Settings, from_query
from transformer.config import ConfigError, ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.training.runs import Run, RunError, new_folder

if TYPE_CHECKING:
    from transformer.tasks import Question


# --- the view


def begin(page: str) -> None:
    """Start a rerun: read the URL when the session begins, and when the reader went back or changed it.

    The browser may still send the URL of a moment ago, so a rerun that a widget caused never reads it.
    """
    state, query = st.session_state, st.query_params.to_dict()
    touched, moved = state.pop("touched", False), state.get("page") != page
    state.page, state.menu = page, models.menu()
    if "settings" not in state or (query and not touched and query != state.get("written")):
        state.settings, state.notices = from_query(query)
        state.written = query  # so that going forward again is read as well
    state.write = touched or moved


def end() -> None:
    """End a rerun: make the URL say what the view is.

    Not after the reader went back to an address without a view: writing there would lock the way back.
    """
    state = st.session_state
    query = {"run": chosen().name, **settings().to_query()}
    if (state.pop("write", False) or state.pop("touched", False)) and st.query_params.to_dict() != query:
        st.query_params.from_dict(query)
        state.written = query


def settings() -> Settings:
    """The view of this session."""
    view: Settings = st.session_state.settings
    return view


def touch() -> None:
    """Say that this rerun comes from the page itself, not from the browser's address bar."""
    st.session_state.touched = True


def update(**changes: object) -> None:
    """Change the view."""
    st.session_state.settings = settings().with_(**changes)
    touch()


def notices() -> list[str]:
    """What the link asked for and could not have; said once."""
    said: list[str] = st.session_state.pop("notices", [])
    return said


def notice(sentence: str) -> None:
    st.session_state.setdefault("notices", []).append(sentence)


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
            return model.task.parse(typed)
        except ValueError as error:
            notice(f"The input cannot be read: {error}.")
            update(input="")
    return model.task.example


def draw(model: Model) -> Question:
    """A question drawn at random."""
    return np.random.default_rng().integers(0, model.config.task.symbols, model.config.task.length)


# --- training


def training_config() -> RunConfig:
    """What the training panel describes. Raises ConfigError with a sentence when it cannot be trained."""
    view = settings()
    return RunConfig(
        task=TaskConfig(task=view.task, length=view.length, min_length=view.min_length, symbols=view.symbols),
        model=ModelConfig(
            architecture=view.architecture or "auto",
            positions=view.positions,
            mask=view.train_mask or "auto",
            n_layers=view.layers,
            n_heads=view.heads,
            d_model=view.width,
            d_ff=4 * view.width,
        ),
        training=TrainingConfig(
            seed=view.seed, device=view.device, max_steps=view.max_steps, learning_rate=view.learning_rate
        ),
    )


def start_training() -> None:
    """Make a run folder and hand it to the warm process; the page then watches the folder."""
    touch()
    try:
        config = training_config()
        run = Run.create(new_folder(ROOT, config), config)
        warm.train(run)
    except (ConfigError, RunError, OSError) as error:
        notice(f"Training did not start: {error}.")
        return
    st.session_state.watched = run.name


def watched() -> Run | None:
    """The run to watch: the one this session started, or any that is training now: a reload loses nothing."""
    found = next((choice.name for choice in choices().values() if choice.state.live), None)
    if found and not started():
        st.session_state.found = found
    name = started() or st.session_state.get("found")
    return Run(ROOT / name) if name and (ROOT / name / "run.json").is_file() else None


def started() -> str | None:
    """The name of the run that this session started and still watches."""
    name: str | None = st.session_state.get("watched")
    return name
