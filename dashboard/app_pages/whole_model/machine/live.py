"""A training under way, drawn as a machine: how far each box moved between its two latest snapshots."""

from __future__ import annotations

from functools import partial

import streamlit as st

from dashboard.app_pages.whole_model.machine import words
from dashboard.app_pages.whole_model.machine.figures import height_of, machine_figure
from dashboard.components.plot import coloured, plot
from dashboard.models import menu
from dashboard.models.model import maker_of
from dashboard.parts.prose import plain
from dashboard.parts.redrawing import redraw_on_news
from dashboard.view import training
from transformer.analysis.machine.plan import plan_model, size_of
from transformer.training.runs import Run, RunError

REFRESH = 1.0
"""Seconds between two drawings at least."""


def pointer() -> None:
    """Say at the top of the page that the panel stands below, while it does."""
    run = _under_way()
    if run is not None:
        st.caption(f"{plain(run.name)} is in training. Below, its boxes show how much each still changes.")


def panel() -> None:
    """Draw the training that this session watches, as long as it goes on."""
    run = _under_way()
    if run is not None:
        st.header("In training now", anchor=False)
        redraw_on_news(partial(_moving, run.name), every=REFRESH, news=lambda: _latest(run))


def _under_way() -> Run | None:
    run = training.watched()
    return run if run is not None and run.state.live else None


def _latest(run: Run) -> list[int]:
    """The two latest steps of which there are snapshots."""
    return list(run.snapshots())[-2:]


def _moving(name: str) -> None:
    from transformer.analysis.machine.movement import moved
    from transformer.checkpoints import CheckpointError

    run = menu.run_called(name)
    steps = _latest(run)
    try:
        states = [run.network(step).state_dict() for step in steps]
    except (CheckpointError, RunError):  # the training has just put others in their place
        states = []
    if len(states) < 2:
        st.caption(f"{plain(name)} has not kept two steps yet.")
        return
    task = run.config.build_task()
    plan = plan_model(run.config.model, size_of(task, task.example))
    shares = moved(plan, *states)
    said = f"{name}. {words.movement(plan, shares, *steps)} {words.a_step(shares, *steps)}".strip()
    stages, links = words.drawn(run.config.model, size_of(task, task.example), plan, {}, shares)
    figure = coloured(machine_figure, stages, links, "")
    plot(figure, key="machine-live", alt=said, height=height_of(stages), makers=[maker_of(run, steps[-1])])
    st.caption(plain(said))
