"""What would be trained, as a run config, and starting, stopping and watching trainings."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from dashboard.models import menu as model_menu
from dashboard.server import background
from dashboard.server.deadlines import deadlines
from dashboard.view import permission
from dashboard.view.clicks import once, touch
from dashboard.view.link import FIELDS
from dashboard.view.session import chosen, notice, settings, started
from dashboard.view.settings import BY_KEY, FAST, OF_TRAINING, Settings
from transformer import masks
from transformer.config import TEXT, ConfigError, ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.foundation.checks import UserError, reason
from transformer.presets import DROPOUT, MANY_TIMES, READERS, READING, Reader
from transformer.text import download, shelf
from transformer.training.runs import Run, new_folder

MOST_SYMBOLS, MOST_TOKENS = 64, 512
"""The longest question, and the longest window of a text, that the panel trains on."""
REVERSAL = TaskConfig().task
NO_TEXT = "there is no text to read yet: fetch the works of Shakespeare, or upload a text of your own"


def config_of(view: Settings) -> RunConfig:
    """What the training panel describes. Raises ConfigError with a sentence when it cannot be trained."""
    reads = view.task == TEXT
    text = text_of(view.text) if reads else ""
    if reads and not text:
        raise ConfigError(NO_TEXT)
    task = TaskConfig(task=view.task or REVERSAL, length=view.length, min_length=view.min_length, symbols=view.symbols)
    training = TrainingConfig(
        seed=view.seed,
        device=view.device,
        max_steps=view.max_steps,
        learning_rate=view.learning_rate,
        batch_size=view.batch,
        teacher_forcing=view.teacher_forcing,
    )
    recipe = MANY_TIMES if view.many_times else READING
    return RunConfig(
        task=replace(task, text=text, split=view.split, min_count=view.min_count) if reads else task,
        model=ModelConfig(
            architecture=view.architecture or "auto",
            positions=view.positions,
            norm_kind=view.norm_kind,
            mask=view.train_mask or "auto",
            n_layers=view.layers,
            n_heads=view.heads,
            d_model=view.width,
            d_ff=4 * view.width if view.feed_forward else 0,
            query_key_gain=view.gain,
            attention=view.attention,
            affine=view.affine,
            tied=reads,
            dropout=DROPOUT if reads and view.many_times else 0.0,
        ),
        training=replace(training, precision=view.precision, **recipe) if reads else training,
    )


def text_of(named: str) -> str:
    """The text of this key, or Shakespeare, or else the first that is here; empty where there is none."""
    at_hand = shelf.keys()
    shakespeare = [key for key in at_hand if key.rpartition("-")[0] == download.NAME]
    return named if named in at_hand else next(iter((*shakespeare, *at_hand)), "")


def offer() -> None:
    """Offer for training what suits the model that is looked at, as long as nobody has said what to train."""
    state = st.session_state
    state.offered = {}
    state.offered = suited(settings(), chosen().config)


def suited(view: Settings, shown: RunConfig) -> dict[str, object]:
    """Fields of the training panel beside a model of a text: of a preset that splits that text in the same way.

    None where the view says anything of what to train; seed, device and pace are for a model of any kind.
    """
    named = [name for name in OF_TRAINING if getattr(view, name) != FIELDS[name].default]
    if shown.task.task != TEXT or not {"seed", "device", "pace"}.issuperset(named):
        return {}
    reader = next((each for each in READERS if each.task.split == shown.task.split), READERS[0])
    own = shown.task.text if shelf.at_hand(shown.task.text) else ""
    return fields_of_reader(reader) | {"text": "" if own == text_of(view.text) else own}


def fields_of(config: RunConfig) -> dict[str, object]:
    """The fields of the training panel that describe a run; seed and device stay as they are, the number of steps
    unless a text is read, and so does what means nothing to its architecture."""
    return _fields(config.task, config.model, config.training, RunConfig(task=config.task).model.architecture)


def fields_of_reader(reader: Reader) -> dict[str, object]:
    """The same of a preset that reads Shakespeare, whether he is here or not."""
    return _fields(reader.task, reader.model, reader.training, reader.model.architecture)


def _fields(task: TaskConfig, model: ModelConfig, training: TrainingConfig, own: str) -> dict[str, object]:
    common: dict[str, object] = {
        "task": "" if task.task == REVERSAL else task.task,
        "length": task.length,
        "architecture": "" if model.architecture == own else model.architecture,
        "layers": model.n_layers,
        "width": model.d_model,
        "learning_rate": training.learning_rate,
        "batch": training.batch_size,
        "precision": training.precision,
        "many_times": task.task == TEXT and model.dropout > 0,
    }
    common |= {name: getattr(task, name) for name in ("min_length", "symbols", "text", "split", "min_count")}
    if task.task == TEXT:  # its rate falls to nothing at the last step, so their number belongs to it
        common["max_steps"] = training.max_steps
    if model.recurrent:
        helped = training.teacher_forcing
        return {**common, "attention": model.attention, "affine": model.affine, "teacher_forcing": helped}
    return {
        **common,
        "positions": model.positions,
        "norm_kind": model.norm_kind,
        "train_mask": "" if model.mask == _own_mask(model.architecture) else model.mask,
        "heads": model.n_heads,
        "feed_forward": model.d_ff > 0,
        "gain": model.query_key_gain,
    }


def _own_mask(architecture: str) -> str:
    """The mask that an architecture has unless another is named."""
    return "full" if architecture == "encoder" else "causal"


def is_mask(text: str) -> bool:
    try:
        masks.parse(text)
    except ValueError:
        return False
    return True


FIRST_STEP = 0.3
"""Seconds for which a click on Train waits for the first step."""


# --- training


def training_config() -> RunConfig:
    """What the training panel describes. Raises ConfigError with a sentence when it cannot be trained."""
    view = settings()
    if view.task == TEXT and not text_of(view.text) and permission.for_the_owner("add texts"):
        raise ConfigError("there is no text to read yet, and only the owner of this server can add one")
    return config_of(view)


def start(configs: Sequence[RunConfig]) -> list[Run]:
    """Make a run of each config and put them into the queue, at the view's pace. Raises Refused."""
    permission.require(permission.to_train(configs))
    runs, wishes, who = [], pace_wishes(settings().pace), permission.visitor().name
    for config in configs:
        # Nothing in here asks for the session's state: that is where a click is broken off by the next one.
        run = Run.create(new_folder(model_menu.folder_of(who), config, f"@{who}" if who else ""), config)
        run.ask(**wishes)
        background.pool.submit(run, who)
        runs.append(run)
    return runs


@once
def start_training() -> None:
    """Train what the panel describes; the page then watches the folder."""
    try:
        (run,) = start([training_config()])
    except (UserError, OSError) as error:
        notice(f"Training did not start: {reason(error)}.")
        return
    watch(run)
    deadline = time.monotonic() + FIRST_STEP
    while not run.metrics() and time.monotonic() < deadline:
        time.sleep(0.01)  # so that the first picture has a point to show


def resume(run: Run) -> None:
    """Go on with a training that was paused or cut off: at once if its process still waits, else in another."""
    touch()
    try:
        permission.require(permission.to_resume(run))
        run.ask(stop=False, **pace_wishes(settings().pace, run.state.step))
        if not run.waiting:
            background.pool.submit(run, permission.visitor().name)
    except (UserError, OSError) as error:
        notice(f"{run.name} did not go on: {reason(error)}.")
        return
    watch(run)


def stop(run: Run) -> None:
    """End a training, or take it out of the queue."""
    touch()
    if permission.to_change(run):
        return
    try:
        background.end(run)
    except OSError as error:
        notice(f"{run.name} was not stopped: {reason(error)}.")


def set_pace(run: Run) -> None:
    """Let the view's pace hold for a training that goes on."""
    ask(run, **pace_wishes(settings().pace, run.state.step))


def ask(run: Run, **wishes: Any) -> None:
    """Ask a training for something, if it is one's own to ask."""
    if permission.to_change(run):
        return
    try:
        run.ask(**wishes)
    except OSError as error:
        notice(f"{run.name} cannot be told: {reason(error)}.")


def pace_wishes(pace: str, step: int = 0) -> dict[str, object]:
    """What a pace of the view asks of a training that has taken some steps."""
    if pace == BY_KEY:
        return {"pause_at": step + 1, "pace": None}
    return {"pause_at": None, "pace": None if pace == FAST else float(pace)}


def watch(run: Run) -> None:
    """Show this run's training from now on."""
    st.session_state.watched, st.session_state.watched_since = run.name, time.monotonic()
    st.session_state.watched_on = st.session_state.page
    for key in ("taken_over", "replay"):
        st.session_state.pop(key, None)
    deadlines.begin(run)


def watched() -> Run | None:
    """The run to watch: the one this session started, or any that is training now."""
    if not started() and (found := model_menu.under_way(permission.visitor().name)):
        st.session_state.found = found[0].name
    name = started() or st.session_state.get("found")
    run = model_menu.run_called(name) if name else None
    return run if run is not None and (run.folder / "run.json").is_file() else None
