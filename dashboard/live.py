"""Training as it happens: the panel that watches a run folder, four times a second, only while something runs."""

from __future__ import annotations

import math

import numpy as np
import streamlit as st

from dashboard import session
from dashboard.attention import palette
from dashboard.components.plot import plot
from dashboard.figures import accuracy as accuracy_figures
from dashboard.figures import training as training_figures
from transformer.analysis.ceilings import ceiling, loss_floor
from transformer.training.runs import Run

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
    run = Run(session.ROOT / name)
    state, metrics, config = run.state, run.metrics(), run.config
    if not state.live and not st.session_state.get("taken_over") == name:
        # Its last step is on disk: choose it, let the timer go, and give the sidebar its Train button back.
        st.session_state.taken_over = name
        if run.snapshots() and state.status in ("finished", "stopped"):
            session.update(run=name, step=None, head="", mask="", encoding="", dimensions="", input="")
        st.rerun()

    head, close = st.columns([12, 1], vertical_alignment="center")
    head.markdown(_headline(run, metrics))
    if not state.live:
        close.button("", icon=":material/close:", help="Put this panel away", on_click=_put_away, type="tertiary")
    step = metrics[-1]["step"] if metrics else 0
    st.progress(min(1.0, step / config.training.max_steps) if state.live else 1.0)

    task, colours = config.build_task(), palette()
    left, right = st.columns(2)
    losses = np.array([m["loss"] for m in metrics], dtype=np.float64)
    floor = loss_floor(config)
    with left:
        loss_sentence = (
            f"Loss {losses[-1]:.2f} nats after {step} steps; guessing costs {task.chance_loss:.2f}, "
            f"and no model gets below {floor:.2f}."
            if len(losses)
            else "Loss: waiting for the first step."
        )
        solved = step if state.status == "finished" and state.reason.startswith("solved") else None
        figure = training_figures.loss_curve(
            np.array([m["step"] for m in metrics]),
            losses,
            floor=floor,
            chance=task.chance_loss,
            solved_at=solved,
            palette=colours,
        )
        plot(figure, key="live-loss", alt=loss_sentence, height=240)
        st.caption(loss_sentence)
    with right:
        measured = next((m["accuracy"] for m in reversed(metrics) if "accuracy" in m), None)
        names, groups = task.target_names(task.length), task.groups(task.length)
        values = np.full(len(names), math.nan) if measured is None else np.array(measured)
        figure = accuracy_figures.accuracy_by_position_bars(
            values, values, values, ceiling(config).accuracy, task.chance, names, groups=groups, palette=colours
        )
        half = values[len(values) // 2 :].mean()
        accuracy_sentence = (
            "Accuracy by position: waiting for the first measurement."
            if measured is None
            else f"Accuracy on 512 fresh sequences: second half {half:.3f}, chance {task.chance:.2f}."
        )
        plot(figure, key="live-accuracy", alt=accuracy_sentence, height=240)
        st.caption(accuracy_sentence)


def _headline(run: Run, metrics: list[dict[str, object]]) -> str:
    state, config = run.state, run.config
    most = config.training.max_steps
    if state.status == "queued":
        return f"**{run.name}** is about to start …"
    if state.status == "running":
        seconds = metrics[-1]["seconds"] if metrics else 0.0
        return f"**{run.name}** is training: step {state.step if not metrics else metrics[-1]['step']} of at most {most}, {seconds:.1f} s"
    mark = ":green[:material/check_circle:]" if state.status == "finished" else ":orange[:material/info:]"
    reason = state.reason or state.status
    taken = " It is selected below." if run.snapshots() and state.status in ("finished", "stopped") else ""
    return f"{mark} **{run.name}**: {reason}.{taken}"


def _put_away() -> None:
    session.touch()
    st.session_state.pop("watched", None)
