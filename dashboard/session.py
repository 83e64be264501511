"""The session: where the view is kept, and the only caches of the project, all bounded.

"Model" everywhere means a run and a step of it. PyTorch is imported when a model is first looked into, not before.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from dashboard.settings import Settings, from_query
from transformer.config import ConfigError, ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.masks import Mask
from transformer.training.runs import DEFAULT_ROOT, Run, RunError, State, list_runs

if TYPE_CHECKING:
    from transformer.analysis.accuracy import Accuracy
    from transformer.analysis.heads import Survey
    from transformer.analysis.sample import Sample
    from transformer.model import Transformer
    from transformer.tasks import Question, Task

ROOT = Path(os.environ.get("ATTENTION_LAB_RUNS", DEFAULT_ROOT))
PI = "31415926535897932384626433832795"
"""Every model's own sample."""
COMPILED = "compiled"
FIRST = "reverse"
"""The run that is shown when a link names none."""


# --- the view


def begin(page: str) -> None:
    """Start a rerun: read the URL when the session begins, and when the reader went back or changed it.

    The browser may still send the URL of a moment ago, so a rerun that a widget caused never reads it.
    """
    state, query = st.session_state, st.query_params.to_dict()
    touched, moved = state.pop("touched", False), state.get("page") != page
    state.page = page
    if "settings" not in state or (query and not touched and query != state.get("written")):
        state.settings, state.notices = from_query(query)
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


# --- models


@dataclass(frozen=True)
class Choice:
    """An entry of the model menu."""

    name: str
    config: RunConfig
    state: State
    accuracy: float | None
    """Second half of the answer, as measured when it was trained."""
    snapshots: tuple[int, ...]

    def label(self) -> str:
        """For the menu: the name, the step, and how often it is right."""
        if self.name == COMPILED:
            return "compiled by hand · exact"
        accuracy = "" if self.accuracy is None else f" · {self.accuracy:.3f}"
        return f"{self.name} · step {self.state.step}{accuracy}"

    def description(self) -> str:
        """For the line below: the task, the shape, the encoding, the mask."""
        model, task = self.config.model, self.config.task
        length = f"{task.min_length} to {task.length}" if task.min_length else str(task.length)
        return (
            f"{task.task}, length {length}, {task.symbols} symbols · {model.architecture}, {model.n_layers} × "
            f"{model.n_heads} heads, d_model {model.d_model} · {model.positions} positions · mask {model.mask}"
        )


def choices() -> dict[str, Choice]:
    """The model menu: shipped runs, one's own, newest first, and the one compiled by hand. Read from the disk anew."""
    found = {}
    for run in list_runs(ROOT):
        evaluation = run.evaluation or {}
        steps = tuple(run.snapshots())
        if steps:
            found[run.name] = Choice(run.name, run.config, run.state, evaluation.get("second_half"), steps)
    shipped = {name: found.pop(name) for name in (FIRST,) if name in found}
    mine = dict(sorted(found.items(), key=lambda item: item[1].state.heartbeat, reverse=True))
    return {**shipped, **mine, COMPILED: _compiled_choice()}


@st.cache_resource(show_spinner=False, max_entries=1)
def _compiled_choice() -> Choice:
    width = 2 * 12 + 2 * 8
    model = ModelConfig(n_layers=1, n_heads=1, d_model=width, d_ff=0, norm="none", scale_embeddings=False)
    return Choice(COMPILED, RunConfig(model=model), State("finished"), 1.0, (0,))


@dataclass(frozen=True)
class Chosen:
    """The model of the view: everything a page asks of it, cached."""

    name: str
    step: int
    config: RunConfig
    stamp: float
    """When its weights were written: a file replaced on disk is another model."""

    @property
    def task(self) -> Task:
        return self.config.build_task()

    @property
    def run(self) -> Run | None:
        return None if self.name == COMPILED else Run(ROOT / self.name)

    def model(self) -> Transformer:
        return _model(self.name, self.step, self.stamp)

    def survey(self) -> Survey:
        return _survey(self.name, self.step, self.stamp)

    def said(self, question: Question) -> np.ndarray:
        return _said(self.name, self.step, self.stamp, question.tobytes())

    def sample(
        self, question: Question, *, own_words: bool = True, mask: Mask | None = None, pad: bool = False
    ) -> Sample:
        """One question, reading its own words or the right ones, under its own mask or another."""
        return _sample(self.name, self.step, self.stamp, question.tobytes(), own_words, mask, pad)

    def accuracy(self, sequences: int, mask: Mask | None = None, length: int | None = None) -> Accuracy:
        return _accuracy(self.name, self.step, self.stamp, sequences, mask, length or self.config.task.length)

    def weights(self) -> str:
        from transformer.checkpoints import weights_hash

        return weights_hash(self.model())


def chosen() -> Chosen:
    """The model that the view names; what it names in vain falls back, with a notice."""
    view, menu = settings(), choices()
    name = view.run or next(iter(menu))
    if name not in menu:
        notice(f"There is no run “{name}” here; this is {next(iter(menu))}.")
        name = next(iter(menu))
        update(run="", step=None)
    choice = menu[name]
    step = choice.snapshots[-1] if view.step is None else view.step
    if step not in choice.snapshots:
        notice(f"{name} has no weights of step {step}; this is its last, {choice.snapshots[-1]}.")
        step = choice.snapshots[-1]
        update(step=None)
    stamp = 0.0 if name == COMPILED else Run(ROOT / name).snapshot(step).stat().st_mtime
    return Chosen(name, step, choice.config, stamp)


@st.cache_resource(max_entries=16, show_spinner=False)
def _model(name: str, step: int, stamp: float) -> Transformer:
    if name == COMPILED:
        from transformer.compiled import compiled_reverser

        return compiled_reverser()
    from transformer.checkpoints import load

    model, _ = load(Run(ROOT / name).snapshot(step))
    return model


def _chosen(name: str, step: int, stamp: float) -> Chosen:
    config = _compiled_choice().config if name == COMPILED else Run(ROOT / name).config
    return Chosen(name, step, config, stamp)


@st.cache_resource(max_entries=32, show_spinner=False)
def _survey(name: str, step: int, stamp: float) -> Survey:
    from transformer.analysis.heads import survey

    of = _chosen(name, step, stamp)
    return survey(of.model(), of.task)


@st.cache_resource(max_entries=256, show_spinner=False)
def _said(name: str, step: int, stamp: float, question: bytes) -> np.ndarray:
    from transformer.analysis.sample import say

    of = _chosen(name, step, stamp)
    return say(of.model(), of.task, np.frombuffer(question, dtype=np.int64))


@st.cache_resource(max_entries=64, show_spinner=False)
def _sample(
    name: str, step: int, stamp: float, question: bytes, own_words: bool, mask: Mask | None, pad: bool
) -> Sample:
    from transformer.analysis.sample import sample

    of, symbols = _chosen(name, step, stamp), np.frombuffer(question, dtype=np.int64)
    return sample(
        of.model(),
        of.task,
        symbols,
        said=of.said(symbols) if own_words else None,
        edits=_mask_edit(of, mask, len(symbols), pad),
        pad_to=of.config.task.length if pad else None,
    )


@st.cache_resource(max_entries=64, show_spinner=False)
def _accuracy(name: str, step: int, stamp: float, sequences: int, mask: Mask | None, length: int) -> Accuracy:
    from transformer.analysis.accuracy import accuracy_by_position

    of = _chosen(name, step, stamp)
    edits = _mask_edit(of, mask, length, pad=False)
    seed = of.config.training.seed + 1
    return accuracy_by_position(of.model(), of.task, sequences=sequences, length=length, seed=seed, edits=edits)


def _mask_edit(of: Chosen, mask: Mask | None, length: int, pad: bool) -> tuple[Any, ...]:
    """The edit that puts a mask on the self-attention of the stack that predicts."""
    if mask is None:
        return ()
    from transformer.edits import OverrideMask

    width = len(of.task.target_names(of.config.task.length if pad else length))
    padding = np.arange(width) >= len(of.task.target_names(length))
    stack = "encoder" if of.config.model.architecture == "encoder" else "decoder"
    return (OverrideMask.of(mask.matrix(width, padding=padding), f"{stack}.*.self_attention.mask"),)


# --- the input


def question(model: Chosen) -> Question:
    """The question of the view, or the model's own sample; an unusable one falls back, with a notice."""
    typed = settings().input
    if typed:
        try:
            return model.task.parse(typed)
        except ValueError as error:
            notice(f"The input cannot be read: {error}.")
            update(input="")
    digits = np.array([int(digit) for digit in PI], dtype=np.int64)
    return np.resize(digits, model.config.task.length) % model.config.task.symbols


def draw(model: Chosen) -> Question:
    """A question drawn at random."""
    return np.random.default_rng().integers(0, model.config.task.symbols, model.config.task.length)


# --- training


def training_config() -> RunConfig:
    """What the training panel describes. Raises ConfigError with a sentence when it cannot be trained."""
    view = settings()
    if view.task not in task_names():
        raise ConfigError(f"there is no task {view.task!r}")
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
        training=TrainingConfig(seed=view.seed, device=view.device, max_steps=view.max_steps),
    )


def task_names() -> tuple[str, ...]:
    from transformer.tasks import TASKS

    return TASKS.names()


def start_training() -> None:
    """Make a run folder and hand it to the warm process; the page then watches the folder."""
    touch()
    from dashboard import warm
    from transformer.training.runs import new_folder

    try:
        config = training_config()
        run = Run.create(new_folder(ROOT, config), config)
        warm.train(run)
    except (ConfigError, RunError, OSError) as error:
        notice(f"Training did not start: {error}.")
        return
    st.session_state.watched = run.name


def watched() -> Run | None:
    """The run that this session started and watches, if any."""
    name = st.session_state.get("watched")
    return Run(ROOT / name) if name and (ROOT / name / "run.json").is_file() else None
