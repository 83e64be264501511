"""How a run learned, as pages show it: loss, accuracy by position, which position when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from dashboard.components.plot import coloured, plot
from dashboard.figures import learning
from dashboard.figures.accuracy import accuracy_by_position_bars
from dashboard.figures.loss import loss_curve
from dashboard.models.model import Model, maker_of
from dashboard.parts.film import COUNTS
from dashboard.parts.text import course, newest
from dashboard.view import session
from transformer.analysis.accuracy import ceilings, windows
from transformer.analysis.accuracy.result import Accuracy, verdict
from transformer.analysis.film.film import Film, learned_at, sharpening
from transformer.config import RunConfig
from transformer.foundation.words import counted
from transformer.training.runs import Run


def accuracy_bars(
    model: Model,
    measured: Accuracy,
    length: int | None,
    *,
    before: np.ndarray | None = None,
    leaks: np.ndarray | None = None,
) -> go.Figure:
    """What was measured at a length, with its intervals, before the model's ceiling and above chance."""
    low, high = measured.interval()
    return coloured(
        accuracy_by_position_bars,
        measured.mean,
        low,
        high,
        ceilings.ceiling(model.config, length).accuracy,
        measured.chance,
        measured.names,
        groups=measured.groups,
        before=before,
        leaks=leaks,
        sequences=measured.sequences,
    )


def order_heatmap(film: Film, config: RunConfig) -> go.Figure:
    """Which position was learned when, and the moment at which the heads sharpen; of a text, stretch by stretch."""
    if not config.build_task().lawful:
        names = windows.named(len(film.names))
        return coloured(
            learning.accuracy_by_step_heatmap,
            film.steps,
            windows.drawn_together(film.accuracy),
            names,
            ("",) * len(names),
            called=[f"place {name}" for name in names],
        )
    moment = sharpening(film)
    return coloured(
        learning.accuracy_by_step_heatmap,
        film.steps,
        film.accuracy,
        film.names,
        film.groups,
        learned=learned_at(film),
        moment=None if moment is None else moment.step,
    )


def accuracy(model: Model, *, key: str, height: int, length: int | None = None, heading: bool = True) -> None:
    """Accuracy by position with its interval, ceiling, chance line, and the verdict in words."""
    measured = model.accuracy(session.settings().sequences, length=length)
    words = verdict(measured, model.config)
    leaks = measured.beyond(ceilings.honest_ceiling(model.config, length).accuracy)
    figure = accuracy_bars(model, measured, length, leaks=leaks)
    sentence = f"{words[0].upper()}{words[1:]}."
    if heading:
        st.markdown(f"**{sentence}**")
    plot(figure, key=key, alt=f"Accuracy by position. {sentence}", height=height)
    alone = " It answers by itself: each token it reads is the one it said." if model.config.model.recurrent else ""
    st.caption(f"Accuracy by position on {measured.sequences:,} fresh sequences, with 95 % intervals.{alone}")


def loss(model: Model, *, key: str, height: int) -> None:
    """The loss of the run's training, against guessing and the floor."""
    run = model.run
    if run is None:
        st.info("Its weights were written by hand: nothing was trained, so there is no loss to show.")
        return
    metrics = run.metrics()
    steps, losses = np.array([m["step"] for m in metrics]), np.array([m["loss"] for m in metrics], dtype=np.float64)
    sentence, lawful = loss_sentence(model.config, metrics), model.task.lawful
    figure = coloured(
        loss_curve,
        steps,
        losses,
        floor=ceilings.loss_floor(model.config) if lawful else None,
        chance=model.task.chance_loss,
        guess="guessing" if lawful else COUNTS,
        held_out=None if lawful else course(metrics),
        solved_at=solved_at(run),
    )
    last = maker_of(run, int(steps[-1]) if len(steps) else None)
    plot(figure, key=key, alt=sentence, height=height, makers=[last])
    st.caption(sentence)


def solved_at(run: Run) -> int | None:
    """The step at which a run was solved, if it was."""
    last = run.metrics()[-1:]
    return last[0]["step"] if last and last[0].get("solved") else None


def loss_sentence(config: RunConfig, metrics: Sequence[Mapping[str, Any]]) -> str:
    """Where the loss stands between guessing and the least that is possible; of a text, on what was held out."""
    if not metrics:
        return "Loss: waiting for the first step."
    last, task = metrics[-1], config.build_task()
    stands = f"The loss stands at {last['loss']:.2f} nats after {counted(last['step'], 'step')}"
    guess, floor = task.chance_loss, ceilings.loss_floor(config)
    if not task.lawful:
        steps, nats = course(metrics)
        held_out = f"; held out, at {nats[-1]:.2f} at step {steps[-1]}: {newest(metrics)}" if len(nats) else ""
        return f"{stands}{held_out}. Knowing only how common each token is costs {guess:.2f}."
    return (
        f"{stands}; guessing a symbol costs {guess:.2f}, "
        f"and {'none' if config.model.recurrent else 'under this mask none'} gets below {floor:.2f}."
    )
