"""Pictures of a training under way: its patterns and curves, and what it costs the machine."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import streamlit as st

from dashboard.components.film import film_player
from dashboard.components.plot import coloured, plot
from dashboard.figures import loss
from dashboard.models.model import Model, maker_of
from dashboard.parts.film import moment_sentence, of_film, of_training
from dashboard.parts.learning import loss_sentence
from transformer.analysis.film.film import Film
from transformer.analysis.findings import Attention
from transformer.config import PROBE_SEQUENCES
from transformer.training.runs import Run, RunError, State

KEPT = 20
"""Redraws and steps over which the times are medians."""


def panel(run: Run, state: State, metrics: list[dict[str, Any]], began: float) -> None:
    """Rate and gradient by step, and what a step, a redraw and the process cost; drawn only when asked for.

    `began` is when this redraw began, by time.perf_counter.
    """
    if not st.toggle("Training details", key="bonnet", help="Learning rate, gradient, speed, memory"):
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
        figure = coloured(loss.step_curve, steps, values, name=words)
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
    said.append(f"the server draws this panel in {redraw:.0f} ms")
    if state.memory:
        said.append(f"the training process held at most {state.memory / 2**20:,.0f} MiB")
    card = run.card
    said += [str(card[name]) for name in ("why_there", "stepping", "noise") if card.get(name)]
    return f"{'; '.join(said)}."


def _redrawn(began: float) -> float:
    """Note how long this redraw took, in milliseconds; the median of the latest."""
    times: list[float] = st.session_state.setdefault("redraws", [])
    times.append(1000 * (time.perf_counter() - began))
    del times[:-KEPT]
    return float(np.median(times))


# --- the stage of a training: every head, the loss and the accuracy, while it is trained and as a film afterwards

MOST_CELLS = 300_000
"""Larger patterns than this are not drawn while they are trained: the film shows them afterwards."""
HEIGHT = 300


def training(run: Run, metrics: Sequence[Mapping[str, Any]]) -> None:
    """What there is of a training now."""
    sentence = f"{loss_sentence(run.config, metrics)} {accuracy_sentence(run, metrics)}"
    step, attentions = newest(run)
    reel = of_training(run.config, metrics, attentions, step)
    film_player(reel, key=f"stage-{run.name}", alt=sentence, height=HEIGHT, live=True)
    st.caption(sentence)


def replay(run: Run, on_end: Callable[[], None]) -> None:
    """The film of a training once more, by itself and once; `on_end` is called at its end, or at a key or a click."""
    film = kept_film(run)
    if film is None:
        return
    reel = of_film(film, run.config, run.metrics(), [])
    film_player(reel, key=f"stage-{run.name}", alt=moment_sentence(film, run.config), height=HEIGHT, on_end=on_end)


def kept_film(run: Run) -> Film | None:
    """The film that the training process has made of its last weights, if it has."""
    try:
        film = run.film
        return film if film is not None and film.snapshot == run.digest() else None
    except (RunError, OSError):
        return None


def newest(run: Run) -> tuple[int | None, Mapping[str, Attention]]:
    """The newest kept step of a run and its heads, reading the example; nothing where that would take too long."""
    task, steps = run.config.build_task(), run.snapshots()
    heads = run.config.model.n_layers * run.config.model.n_heads
    tokens = task.n_ctx if task.lawful else len(task.example)
    if not steps or "torch" not in sys.modules or heads * tokens**2 > MOST_CELLS:
        return None, {}
    step = max(steps)
    model = Model(run.name, step, run.config, steps[step].stat().st_mtime)
    return step, model.sample(task.example, own_words=False).attentions


def accuracy_sentence(run: Run, metrics: Sequence[Mapping[str, Any]]) -> str:
    """The newest measurement, in words."""
    last = next((m for m in reversed(metrics) if "accuracy" in m), None)
    if last is None:
        return "Accuracy by position: waiting for the first measurement."
    task = run.config.build_task()
    if not task.lawful:
        share, read = sum(last["accuracy"]) / len(last["accuracy"]), last["probed"] * len(last["accuracy"])
        return (
            f"At step {last['step']} the best guess is right for {share:.3f} of {read:,} held-out tokens. "
            "Always guessing "
            f"the commonest token would be right for {task.chance:.3f} of all."
        )
    groups = task.groups(task.length)
    shares = [share for share, group in zip(last["accuracy"], groups, strict=True) if group == task.part]
    return (
        f"At step {last['step']} the {task.part} is right in {sum(shares) / len(shares):.3f} of the cases, on "
        f"{last.get('probed', PROBE_SEQUENCES)} fresh sequences. Chance is {task.chance:.2f}."
    )
