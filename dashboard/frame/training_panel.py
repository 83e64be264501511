"""The training panel of the sidebar: what would be trained next, on what, and how fast."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import streamlit as st

from dashboard.frame import text_source
from dashboard.parts import waiting
from dashboard.parts.prose import encoding_name, plain, sentence
from dashboard.parts.widgets import bound, bound_choice, controlled
from dashboard.server import background
from dashboard.view import permission, session, training
from dashboard.view.settings import BY_KEY, FAST, PACES, Settings
from dashboard.view.training import MOST_SYMBOLS, REVERSAL, fields_of, fields_of_reader, is_mask
from transformer import masks
from transformer.config import (
    ARCHITECTURES,
    ATTENTIONS,
    PRECISIONS,
    TEXT,
    ConfigError,
    ModelConfig,
    RunConfig,
)
from transformer.norms import NORMS
from transformer.positions import ENCODINGS
from transformer.presets import GPU_READERS, PRESETS, READERS, Preset, Reader
from transformer.tasks import TASKS, Task
from transformer.text.task import Text
from transformer.training.devices.found import Devices
from transformer.training.library import changes
from transformer.training.runs import Run

OWN = "your own settings"
GPU = re.compile(r"cuda(:\d{1,2})?|mps", re.ASCII)
"""What a link may call a GPU."""
AGAIN = 2.0
"""Seconds between two looks whether trainings can begin again."""
FOLD = "training-settings"
"""Key of the fold that holds them. It is open at first where a link brings settings of its own."""


def panel() -> None:
    """The Train button, what to start from, and the settings, which are drawn only where they are unfolded."""
    st.subheader("Train another", divider="gray")
    button = st.container()
    own = _presets()
    above = st.container()
    st.session_state.setdefault(FOLD, own and not st.session_state.offered)
    fold = st.expander("Settings", on_change="rerun", key=FOLD)
    with fold:
        kind = _settings(bool(fold.open))
    if not kind.lawful:
        with above:
            text_source.choose_text()
    _tell_device()
    with button:  # last: by now the menus have put right what a link named in vain
        _train_button()


def _settings(drawn: bool) -> type[Task]:
    """All that a training can be told; what a link names in vain is put right though nothing is drawn."""
    task = bound_choice(st.selectbox, "Task", "task", [*TASKS.names(), TEXT], REVERSAL, also=_with_task, drawn=drawn)
    kind = Text if task == TEXT else TASKS[task]
    view = session.settings()
    if view.architecture in ARCHITECTURES and view.architecture not in kind.architectures:
        session.update(architecture="")
    if kind.lawful and view.length > MOST_SYMBOLS:
        session.notice(f"A question has at most {MOST_SYMBOLS} symbols, not {view.length}; this is {MOST_SYMBOLS}.")
        session.update(length=MOST_SYMBOLS)
    menu = list(kind.architectures)
    recurrent = bound_choice(st.selectbox, "Architecture", "architecture", menu, menu[0], drawn=drawn) == "gru"
    if recurrent:
        _looking_back(drawn)
    else:
        bound_choice(
            st.selectbox,
            "Positional encoding",
            "positions",
            list(ENCODINGS.names()),
            "learned",
            format_func=encoding_name,
            drawn=drawn,
        )
        _mask_menu(kind, drawn)
        bound_choice(
            st.selectbox,
            "Norm",
            "norm_kind",
            list(NORMS.names()),
            ModelConfig.norm_kind,
            format_func=lambda name: NORMS[name].title,
            help="\n\n".join(f"{norm.title} {norm.description}." for norm in map(NORMS.__getitem__, NORMS.names())),
            drawn=drawn,
        )
    auto = "auto uses a GPU if there is one that can be used, unless the CPU was measured to be quicker"
    if drawn:
        _numbers(kind.lawful, recurrent)
    bound_choice(st.selectbox, "Device", "device", _devices(), "auto", help=auto, drawn=drawn)
    half = "bfloat16 takes matrix products in 16 bits: quicker on a GPU that has them, slower on most processors"
    choices, reads = list(PRECISIONS), drawn and not kind.lawful
    bound_choice(st.selectbox, "Precision", "precision", choices, choices[0], help=half, drawn=reads)
    if drawn:
        _rarer(kind.lawful, recurrent)
    return kind


def _rarer(lawful: bool, recurrent: bool) -> None:
    """What is seldom changed."""
    if not recurrent:
        bound(st.checkbox, "Feed-forward layers", "feed_forward")
    _number("Learning rate", "learning_rate", step=0.001, format="%.4f")
    _number("Batch", "batch", help="Sequences in one step")
    _number("Most steps", "max_steps", step=100)
    if not lawful:
        often = "Dropout 0.1 and weight decay 0.1: a text that is read many times is else learned by heart"
        bound(st.checkbox, "Dropout and weight decay", "many_times", help=often)
    if lawful:
        _number("Shortest length (empty: all equal)", "min_length")
    if not recurrent:
        gain = "Multiplies their initial weights; 0.3 suits one head"
        _number("Gain of queries and keys", "gain", step=0.1, help=gain)
    pick_pace()


def _with_task(task: str) -> dict[str, object]:
    """What changes with the task."""
    return _of_another_kind(task) | _named(task)


def _named(task: str) -> dict[str, object]:
    """A task by its name, even the usual one, beside a model of a text: there it is not what is offered."""
    return {} if session.chosen().task.lawful else {"task": task}


def _of_another_kind(task: str) -> dict[str, object]:
    """What changes with the task: what suits a question does not suit a text, nor the other way round."""
    if (task == TEXT) == (session.settings().task == TEXT):
        return {}
    fields = fields_of_reader(READERS[0]) if task == TEXT else _lawful(PRESETS[0])
    return {name: value for name, value in fields.items() if name != "task"}


def _lawful(preset: Preset) -> dict[str, object]:
    """The fields of a preset; after a text, whose steps belong to it, with as many steps as ever."""
    steps = {"max_steps": Settings().max_steps} if session.settings().task == TEXT else {}
    return {**fields_of(preset.config), **steps}


def _numbers(lawful: bool, recurrent: bool) -> None:
    """The small whole numbers, in three columns."""
    one, two, three = st.columns(3, gap="small")
    with one:
        _number("Layers", "layers")
        if lawful:
            _number("Length", "length", max_value=MOST_SYMBOLS)
        else:
            _number("Length", "length", help="Tokens in a window of the text")
    with two:
        if recurrent:
            _number("d_model", "width", step=8)
        else:
            _number("Heads", "heads")
        if lawful:
            _number("Symbols", "symbols")
        else:
            _number("Rarest", "min_count", help="How often a token must occur in the text to get into the vocabulary")
    with three:
        if not recurrent:
            _number("d_model", "width", step=8)
        _number("Seed", "seed")


def _looking_back(drawn: bool) -> None:
    """What a GRU is given of the source, and how much it is helped while it learns."""
    menu = {"none": "none: one vector", "uniform": "uniform: the mean", "scaled-dot": "scaled dot"}
    chosen = bound_choice(
        st.selectbox,
        "Attention",
        "attention",
        list(ATTENTIONS),
        "scaled-dot",
        format_func=lambda name: menu.get(name, name),
        help="How the decoder looks back at the encoder's states. With none it gets only the last one.",
        drawn=drawn,
    )
    if not drawn:
        return
    if chosen != "none":
        bound(st.checkbox, "Affine maps for query, key and value", "affine")
    bound(
        st.slider,
        "Teacher forcing",
        "teacher_forcing",
        step=0.05,
        help="Probability that the decoder reads the right token during training, in place of the one it said itself",
    )


def _presets() -> bool:
    """Settings to start from; touching a field below makes them one's own. Is what would be trained none of them?"""
    devices = background.pool.devices
    of_a_gpu = GPU_READERS if devices is not None and devices.gpu is not None else ()
    menu = {preset.name: preset for preset in (*PRESETS, *READERS, *of_a_gpu)}
    config, now = None, OWN
    with suppress(ConfigError):
        config = training.training_config()
        now = next((name for name, preset in menu.items() if preset.matches(config)), OWN)

    def picked(name: str) -> None:
        preset = menu.get(name)
        if isinstance(preset, Reader):
            session.update(**fields_of_reader(preset))
        elif preset is not None:
            session.update(**_lawful(preset) | _named(preset.config.task.task))

    shown = [*menu, *([OWN] if now == OWN else [])]
    controlled(st.selectbox, "Start from", shown, key="control-preset", value=now, picked=picked)
    if now in menu:
        st.caption(sentence(menu[now].description))
    if config is not None and (changed := _changed(config, menu.get(now))):
        st.caption(plain(changed))
    return now == OWN


def _changed(config: RunConfig, preset: Preset | Reader | None) -> str:
    """What of a config is not as in its preset, or in the one that is most like it: what the fold may hide."""
    kin: Sequence[Preset | Reader] = (preset,) if preset else READERS if config.task.text else PRESETS
    found = {}
    for each in kin:
        with suppress(ConfigError):  # a text may be too short for what a preset reads
            found[each.name] = changes(config, _config_of(each, config.task.text))
    name = min(found, key=lambda name: len(found[name]), default="")
    return f"Differs from “{name}”: {', '.join(found[name])}." if name and found[name] else ""


def _config_of(preset: Preset | Reader, text: str) -> RunConfig:
    """A preset's config; what reads Shakespeare reads this text. Raises ConfigError."""
    if isinstance(preset, Preset):
        return preset.config
    return RunConfig(task=replace(preset.task, text=text), model=preset.model, training=preset.training)


def _train_button() -> None:
    """Train or Stop; where nothing can be trained, why."""
    run = training.watched() if session.started() else None
    if run is not None and run.state.live:
        st.button(
            "Stop", on_click=training.stop, args=(run,), width="stretch", icon=":material/stop:", shortcut="Escape"
        )
        return
    try:
        problem = permission.to_train([training.training_config()])
    except ConfigError as error:
        problem = sentence(str(error))
    st.button(
        "Train",
        type="primary",
        on_click=training.start_training,
        disabled=bool(problem),
        width="stretch",
        icon=":material/play_arrow:",
        shortcut="T",
    )
    _trouble()
    if problem and (st.session_state.get("offered") or not permission.may_train()):  # nobody has asked for it yet
        st.caption(plain(problem))
    elif problem:
        st.error(plain(problem), icon=":material/error:")


def _trouble() -> None:
    """Why no training can begin on this server, for as long as that is so."""
    trouble = background.pool.trouble
    if trouble and permission.may_train():
        told = f"{sentence(trouble)} It is tried again after a pause, and at once when you press Train."
        waiting.until(
            lambda: not background.pool.trouble,
            lambda: st.error(plain(told), icon=":material/error:"),
            news=lambda: background.pool.trouble,
            every=AGAIN,
        )


def pick_pace(run: Run | None = None, why: str = "") -> None:
    """How fast a training goes; for one that is under way, from now on, unless `why` says why not."""
    names = {FAST: "as fast as possible", BY_KEY: "one by one, with N", "1": "1 a second"}
    pace = session.settings().pace

    def picked(pace: str) -> None:
        session.update(pace=pace)
        if run is not None and run.state.live:
            training.set_pace(run)

    controlled(
        st.selectbox,
        "Pace of the steps",
        PACES,
        key=f"control-pace-{run is None}",
        value=pace if pace in PACES else FAST,
        picked=picked,
        format_func=lambda pace: names.get(pace, f"{pace} a second"),
        label_visibility="visible" if run is None else "collapsed",
        disabled=bool(why),
        help=why or "How fast the steps are taken",
    )


def _mask_menu(kind: type[Task], drawn: bool) -> None:
    architecture = session.settings().architecture or kind.architectures[0]
    own = "full" if architecture == "encoder" else "causal"
    menu = [str(masks.MASKS[name]()) for name in masks.rules()]
    view = session.settings()
    menu += [text for text in dict.fromkeys((view.train_mask, view.mask)) if text not in menu and is_mask(text)]
    bound_choice(
        st.selectbox,
        "Mask",
        "train_mask",
        menu,
        own,
        format_func=lambda text: masks.parse(text).label,
        help="What each query may see during training. A mask that you try on the page Mask effects appears here too.",
        drawn=drawn,
    )


def _number(label: str, field: str, step: float = 1, **options: Any) -> None:
    bound(st.number_input, label, field, step=step, **options)


def _devices() -> list[str]:
    """auto, the CPU, and each GPU that a training process has found; before one has looked, what the view names."""
    devices, named = background.pool.devices, session.settings().device
    if devices is not None:
        return ["auto", *(each.name for each in devices.all)]
    return ["auto", "cpu", *([named] if GPU.fullmatch(named) else [])]


def _tell_device() -> None:
    """Where a training would run, as soon as a training process has found it out."""
    if background.pool.devices is None and not background.pool.trouble and permission.may_train():
        waiting.until(
            lambda: background.pool.devices is not None or bool(background.pool.trouble),
            lambda: st.caption("Looking for a GPU …"),
            news=lambda: (background.pool.devices is not None, background.pool.trouble),
            every=AGAIN,
        )
    elif background.pool.devices is not None:
        st.caption(plain(device_line(background.pool.devices)))


def device_line(devices: Devices) -> str:
    """Where a training would run, and why there, in a sentence or two."""
    named = session.settings().device
    if named == "auto":
        config = None
        with suppress(ConfigError):  # what cannot be trained is said at the button
            config = training.training_config()
        device, why = devices.auto(config)
        return f"Trains on {device.on_it}.{f' {sentence(why)}' if why else ''}"
    device = devices.called(named) or devices.all[0]
    if device.fault:
        return f"{device.title} cannot be used ({device.fault})."
    return f"Trains on {device.on_it}."
