"""The stage of a training: what is shown of a run while it is trained."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import streamlit as st

from dashboard import views
from dashboard.attention import palette
from dashboard.components.plot import plot
from dashboard.figures import accuracy as accuracy_figures
from dashboard.figures import training as training_figures
from transformer.analysis.ceilings import ceiling, loss_floor
from transformer.analysis.intervals import wilson
from transformer.config import PROBE_SEQUENCES
from transformer.training.runs import Run


def training(run: Run, metrics: list[dict[str, Any]], *, live: bool) -> None:
    last = next((m["accuracy"] for m in reversed(metrics) if "accuracy" in m), None)
    measured = None if last is None else np.array(last)
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
