"""The stage of a training: every head, the loss and the accuracy, while it is trained and as a film afterwards."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from dashboard import models, reels, session
from dashboard.components.film import film_player
from dashboard.views import loss_sentence
from transformer.analysis.film import Film
from transformer.analysis.findings import Attention
from transformer.config import PROBE_SEQUENCES
from transformer.training.runs import Run

MOST_CELLS = 300_000
"""Larger patterns than this are not drawn while they are trained: the film shows them afterwards."""
HEIGHT = 300


def training(run: Run, metrics: Sequence[Mapping[str, Any]], *, live: bool) -> None:
    """What there is of a training now; when it has ended, its film."""
    config = run.config
    sentence = f"{loss_sentence(config, metrics)} {accuracy_sentence(run, metrics)}"
    film = None if live else kept_film(run)
    if film is not None:
        sentence = f"{reels.moment_sentence(film, config)}. {sentence}"
        reel = reels.of_film(film, config, metrics, list(run.snapshots()))
    else:
        step, attentions = newest(run)
        reel = reels.of_training(config, metrics, attentions, step)
    key, live = f"stage-{run.name}", film is None
    step = film_player(reel, key=key, alt=sentence, height=HEIGHT, live=live, on_step=_use_step(run))
    st.caption(sentence)
    if step is not None:
        st.rerun()  # the whole page, for every page is at another step now


def kept_film(run: Run) -> Film | None:
    """The film that the training process has made of its last weights, if it has."""
    try:
        film = Film.load(run.folder / "film.npz")
        return film if film.snapshot == run.digest() else None
    except (OSError, ValueError, KeyError):
        return None


def newest(run: Run) -> tuple[int | None, Mapping[str, Attention]]:
    """The newest kept step of a run and its heads, reading the example; nothing where that would take too long."""
    task, steps = run.config.build_task(), run.snapshots()
    heads = run.config.model.n_layers * run.config.model.n_heads
    tokens = task.n_ctx if task.lawful else len(task.example)
    if not steps or "torch" not in sys.modules or heads * tokens**2 > MOST_CELLS:
        return None, {}
    step = max(steps)
    model = models.Model(run.name, step, run.config, steps[step].stat().st_mtime)
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
            f"At step {last['step']} the likeliest token is the right one in {share:.3f} of {read:,} places that were "
            f"held out; the commonest token stands in {task.chance:.3f} of all."
        )
    half = last["accuracy"][len(last["accuracy"]) // 2 :]
    return (
        f"At step {last['step']} the second half is right in {sum(half) / len(half):.3f} of the cases, on "
        f"{last.get('probed', PROBE_SEQUENCES)} fresh sequences; chance {task.chance:.2f}."
    )


def _use_step(run: Run) -> Any:
    """Put every page at the step that was chosen in the film."""

    def used() -> None:
        step = st.session_state[f"stage-{run.name}"]["step"]
        if step is not None:
            session.update(run=run.name, step=int(step))

    return used
