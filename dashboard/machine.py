"""What a training costs, and what watching it costs: a small honest panel."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import streamlit as st

from dashboard.attention import palette
from dashboard.components.plot import plot
from dashboard.figures import training as training_figures
from dashboard.models import maker_of
from transformer.training.runs import Run, State

KEPT = 20
"""Redraws and steps over which the times are medians."""


def panel(run: Run, state: State, metrics: list[dict[str, Any]], began: float) -> None:
    """Rate and gradient by step, and what a step, a redraw and the process cost; drawn only when asked for.

    `began` is when this redraw began, by time.perf_counter.
    """
    if not st.toggle("Under the bonnet", key="bonnet", help="Learning rate, gradient, speed, memory"):
        _redrawn(began)
        return
    steps = np.array([m["step"] for m in metrics])
    maker = maker_of(run, int(steps[-1]) if len(steps) else None)
    left, right = st.columns(2)
    for place, name, words in (
        (left, "learning_rate", "learning rate"),
        (right, "gradient_norm", "gradient norm"),
    ):
        values = np.array([m[name] for m in metrics], dtype=np.float64)
        figure = training_figures.step_curve(steps, values, name=words, palette=palette())
        with place:
            now = f"{words} {values[-1]:.3g} at step {steps[-1]}" if len(values) else f"{words}: no step yet"
            plot(figure, key=f"machine-{name}", alt=now, height=190, makers=[maker])
            st.caption(f"{now[0].upper()}{now[1:]}{', before clipping' if name == 'gradient_norm' else ''}.")
    st.caption(costs(run, state, metrics, _redrawn(began)))


def costs(run: Run, state: State, metrics: list[dict[str, Any]], redraw: float) -> str:
    """Steps a second, milliseconds a step and a redraw, and memory, in a sentence each."""
    said = []
    times = [m["milliseconds"] for m in metrics[-KEPT:] if "milliseconds" in m]
    if times:
        said.append(f"A step takes {np.median(times):.1f} ms")
        span = metrics[-1]["seconds"] - (metrics[-KEPT - 1]["seconds"] if len(metrics) > KEPT else 0.0)
        if span > 0:
            said.append(f"{len(metrics[-KEPT:]) / span:.0f} steps a second, measurements included")
    said.append(f"a redraw of this panel takes {redraw:.0f} ms of the server")
    if state.memory:
        said.append(f"the training process held at most {state.memory / 2**20:,.0f} MiB")
    if stepping := run.card.get("stepping"):
        said.append(str(stepping))
    return f"{'; '.join(said)}."


def _redrawn(began: float) -> float:
    """Note how long this redraw took, in milliseconds; the median of the latest."""
    times: list[float] = st.session_state.setdefault("redraws", [])
    times.append(1000 * (time.perf_counter() - began))
    del times[:-KEPT]
    return float(np.median(times))
