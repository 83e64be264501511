"""Training as it happens: the panel that watches a run folder, four times a second, only while something runs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import streamlit as st

from dashboard import session, views
from dashboard.attention import palette
from dashboard.components.plot import plot
from dashboard.figures import accuracy as accuracy_figures
from dashboard.figures import training as training_figures
from dashboard.models import ROOT
from transformer.analysis.ceilings import ceiling, loss_floor
from transformer.analysis.intervals import wilson
from transformer.config import PROBE_SEQUENCES
from transformer.training.runs import Run, State

REFRESH = 0.25
"""Seconds between two looks at the folder."""


def panel() -> None:
    """Show the watched training, if there is one: while it runs, and afterwards until it is put away."""
    run = session.watched()
    if run is None:
        return
    fragment = st.fragment(_watch, run_every=REFRESH if run.state.live else None)
    with st.container(border=True, key="training"):
        fragment(run.name)


def _watch(name: str) -> None:
    run = Run(ROOT / name)
    own = session.started() == name
    state, metrics = run.state, run.metrics()
    if not state.live and st.session_state.get("taken_over") != name:
        # Its last step is on disk: choose it, let the timer go, and give the sidebar its Train button back.
        st.session_state.taken_over = name
        if own and _has_result(run, state):
            session.update(run=name, step=None, head="", mask="", encoding="", dimensions="")
        st.rerun()

    head, button = st.columns([12, 1], vertical_alignment="center")
    head.markdown(_headline(run, metrics, own))
    if not state.live:
        if button.button("", icon=":material/close:", help="Put this panel away", type="tertiary"):
            _put_away()
    elif not own:
        button.button("", icon=":material/stop:", help="Stop this training", on_click=run.request_stop, type="tertiary")
    last = next((m["accuracy"] for m in reversed(metrics) if "accuracy" in m), None)
    measured = None if last is None else np.array(last)
    st.progress(_progress(run, measured) if state.live else 1.0)

    left, right = st.columns(2)
    with left:
        _loss(run, metrics)
    with right:
        _accuracy(run, measured)


def _loss(run: Run, metrics: list[dict[str, Any]]) -> None:
    task, losses = run.config.build_task(), np.array([m["loss"] for m in metrics], dtype=np.float64)
    figure = training_figures.loss_curve(
        np.array([m["step"] for m in metrics]),
        losses,
        floor=loss_floor(run.config),
        chance=task.chance_loss,
        solved_at=views.solved_at(run),
        palette=palette(),
    )
    sentence = views.loss_sentence(run.config, losses)
    plot(figure, key="live-loss", alt=sentence, height=240)
    st.caption(sentence)


def _accuracy(run: Run, measured: np.ndarray | None) -> None:
    task = run.config.build_task()
    names = task.target_names(task.length)
    shares = np.full(len(names), math.nan) if measured is None else measured
    low, high = wilson(np.rint(shares * PROBE_SEQUENCES), PROBE_SEQUENCES)
    figure = accuracy_figures.accuracy_by_position_bars(
        shares,
        low,
        high,
        ceiling(run.config).accuracy,
        task.chance,
        names,
        groups=task.groups(task.length),
        sequences=PROBE_SEQUENCES,
        palette=palette(),
    )
    sentence = (
        "Accuracy by position: waiting for the first measurement."
        if measured is None
        else f"Accuracy by position on {PROBE_SEQUENCES} fresh sequences; second half "
        f"{measured[len(measured) // 2 :].mean():.3f}, chance {task.chance:.2f}."
    )
    plot(figure, key="live-accuracy", alt=sentence, height=240)
    st.caption(sentence)


def _progress(run: Run, measured: np.ndarray | None) -> float:
    """How much of what can be known is known: what ends the training when it reaches 1."""
    if measured is None:
        return 0.0
    most, chance = ceiling(run.config).accuracy, run.config.build_task().chance
    room = np.maximum(most - chance, 0)
    gained = np.clip(measured - chance, 0, room)
    return float(gained.sum() / room.sum()) if room.any() else 0.0


def _has_result(run: Run, state: State) -> bool:
    """Is there something trained to look at?"""
    return state.status in ("finished", "stopped") and bool(run.snapshots())


def _headline(run: Run, metrics: list[dict[str, Any]], own: bool) -> str:
    state, config = run.state, run.config
    most = config.training.max_steps
    if state.status == "queued":
        return f"**{run.name}** is about to start …"
    if state.status == "running":
        last = metrics[-1] if metrics else {"step": 0, "seconds": 0.0}
        if last.get("solved"):
            return f"**{run.name}**: solved at step {last['step']}, after {last['seconds']:.1f} s. Measuring it …"
        return f"**{run.name}** is training: step {last['step']} of at most {most}, {last['seconds']:.1f} s"
    mark = ":green[:material/check_circle:]" if state.status == "finished" else ":orange[:material/info:]"
    reason = state.reason or state.status
    taken = " It is selected below." if own and _has_result(run, state) else ""
    return f"{mark} **{run.name}**: {reason}.{taken}"


def _put_away() -> None:
    """Forget the run; the whole page is drawn again, for the panel is not only this fragment."""
    session.touch()
    st.session_state.pop("watched", None)
    st.session_state.pop("found", None)
    st.rerun()
