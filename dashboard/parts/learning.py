"""How a run learned, as pages show it: loss, accuracy by position, which position when."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from dashboard.components.plot import coloured, plot
from dashboard.figures import learning
from dashboard.figures.loss import loss_curve
from dashboard.models.model import Model, maker_of
from dashboard.parts.film import Rows, against
from dashboard.parts.text import course, newest
from dashboard.parts.yardstick import accuracy_bars
from dashboard.view import session
from transformer.analysis.accuracy import ceilings
from transformer.analysis.accuracy.best_guess import TIE
from transformer.analysis.accuracy.result import Accuracy, spans, verdict
from transformer.analysis.film.film import Film, learned_at, sharpening
from transformer.analysis.intervals import CAUTION, Z95
from transformer.config import RunConfig
from transformer.foundation.claims import claim
from transformer.foundation.words import counted
from transformer.training.runs import Run


def order_heatmap(film: Film, config: RunConfig) -> go.Figure:
    """Which position was learned when, and the moment at which the heads sharpen; of a text, stretch by stretch."""
    moment, rows = sharpening(film), Rows.of(config)
    return coloured(
        learning.accuracy_by_step_heatmap,
        film.steps,
        rows.together(film.accuracy),
        rows.names,
        rows.groups,
        learned=None if rows.called else learned_at(film),
        moment=None if moment is None else moment.step,
        called=rows.called,
    )


def accuracy(model: Model, *, key: str, height: int, length: int | None = None, heading: bool = True) -> None:
    """Accuracy by position with its interval, ceiling, chance line, and the verdict in words."""
    measured = model.accuracy(session.settings().sequences, length=length)
    honest = ceilings.honest_ceiling(model.config, length)
    leaks = measured.beyond(honest.greatest + CAUTION * honest.greatest_error)
    ceiling = ceilings.ceiling(model.config, length)
    drawn = measured if len(model.task.parts) > 1 else replace(measured, groups=())  # one part needs no name
    figure = accuracy_bars(drawn, ceiling.greatest, leaks=leaks)
    sentence = verdict_sentence(measured, model.config)
    if heading:
        st.markdown(f"**{sentence}**")
    plot(figure, key=key, alt=f"Accuracy by position. {sentence}", height=height)
    alone = " It answers by itself: it reads the tokens that it has said." if model.config.model.recurrent else ""
    half = Z95 * float(ceiling.greatest_error.max())
    guessed = f" The ceiling is estimated from a sample of all questions, to ± {half:.2f}." if half else ""
    st.caption(f"Accuracy by position on {measured.sequences:,} fresh sequences, with 95 % intervals.{alone}{guessed}")
    if words := untold_sentence(measured, model.config):
        st.markdown(words)


@claim
def verdict_sentence(measured: Accuracy, config: RunConfig) -> str:
    """What the numbers say about the mask and the training."""
    words = verdict(measured, config)
    return f"{words[0].upper()}{words[1:]}."


@claim
def untold_sentence(measured: Accuracy, config: RunConfig) -> str:
    """How far the best guess of a model that is not told the length stays below the ceiling; empty where it does not.

    Of a symbol that is random, it is never right only where it is no symbol: it is SEP.
    """
    task = config.build_task()
    length = task.length_of(len(measured.names))
    found = ceilings.ceiling(config, length)
    below = found.accuracy < found.greatest * (1 - TIE)
    if not below.any():
        return ""
    said = (
        f"The model is not told the length. The ceiling is the most that can be right in sequences of length {length}: "
        f"{found.greatest[below].mean():.2f} at {spans(measured.names, below)}. There the best guess of a model that "
        f"does not know the length is right {found.accuracy[below].mean():.2f} of the time."
    )
    ends = below & ~task.answers(length) & (found.accuracy == 0)
    if not ends.any():
        return said
    return f"{said} At {spans(measured.names, ends)} it guesses that SEP comes: SEP is likelier than any one symbol."


def loss(model: Model, *, key: str, height: int) -> None:
    """The loss of the run's training, against guessing and the floor."""
    run = model.run
    if run is None:
        st.info("Its weights were written by hand: nothing was trained, so there is no loss to show.")
        return
    metrics = run.metrics()
    steps, losses = np.array([m["step"] for m in metrics]), np.array([m["loss"] for m in metrics], dtype=np.float64)
    sentence = loss_sentence(model.config, metrics)
    figure = coloured(
        loss_curve,
        steps,
        losses,
        chance=model.task.chance_loss,
        **against(model.config, metrics),
        solved_at=solved_at(run),
    )
    last = maker_of(run, int(steps[-1]) if len(steps) else None)
    plot(figure, key=key, alt=sentence, height=height, makers=[last])
    st.caption(f"{sentence} {floor_sentence(model.config)}".strip())


def solved_at(run: Run) -> int | None:
    """The step at which a run was solved, if it was."""
    last = run.metrics()[-1:]
    return last[0]["step"] if last and last[0].get("solved") else None


@claim
def loss_sentence(config: RunConfig, metrics: Sequence[Mapping[str, Any]]) -> str:
    """Where the loss stands between guessing and the least that is possible; of a text, on what was held out."""
    if not metrics:
        return "No step has been recorded yet."
    last, task = metrics[-1], config.build_task()
    stands = f"The loss is {last['loss']:.2f} nats after {counted(last['step'], 'step')}"
    guess, floor = task.chance_loss, ceilings.loss_floor(config)
    half = Z95 * ceilings.loss_floor_error(config)
    estimated = f" (estimated, ± {half:.3f})" if half > 0 else ""
    if not task.lawful:
        steps, nats = course(metrics)
        held_out = f", on the held-out text {nats[-1]:.2f} at step {steps[-1]}: {newest(metrics)}" if len(nats) else ""
        return f"{stands}{held_out}. Knowing only how common each token is costs {guess:.2f}."
    return (
        f"{stands}. Guessing a symbol costs {guess:.2f}; "
        f"{'no model' if config.model.recurrent else 'under this mask no model'} gets below {floor:.2f}{estimated}."
    )


@claim
def floor_sentence(config: RunConfig) -> str:
    """Where the loss floor comes from, worked out; empty where it is 0 or cannot be written in one line."""
    found = ceilings.floor_terms(config)
    if found is None or found.floor == 0:
        return ""
    (asked, answered), (of_question, of_answer) = found.guessed, found.targets
    times = f" × {found.weight:g}" if found.weight != 1 else ""
    above = [*([f"{asked}{times}"] if asked and found.weight else []), *([f"{answered}"] if answered else [])]
    below = [*([f"{of_question}{times}"] if of_question and found.weight else []), f"{of_answer}"]
    weighed = f" A token of the question weighs {found.weight:g}, one of the answer 1." if of_question and times else ""
    guessed = asked * bool(found.weight) + answered
    under = f"({' + '.join(below)})" if len(below) > 1 else below[0]
    top = f"({' + '.join(above)})" if len(above) > 1 else above[0]
    return (
        f"The floor: {guessed} of {of_question + of_answer} tokens can only be guessed, which costs ln "
        f"{found.symbols} = {math.log(found.symbols):.2f} each.{weighed} So it is {top} × "
        f"{math.log(found.symbols):.2f} / {under} = {found.floor:.2f}."
    )
