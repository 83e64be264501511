"""The training panel of the sidebar: what would be trained next, on what, and how fast."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dashboard import session, warm
from dashboard.controls import bound, bound_choice, is_mask, sentence
from dashboard.settings import BY_KEY, FAST, LIMITS, PACES
from transformer import masks
from transformer.config import ARCHITECTURES, ATTENTIONS, POSITIONS, ConfigError
from transformer.presets import PRESETS
from transformer.tasks import TASKS
from transformer.training.runs import Run

OWN = "your own settings"


def panel() -> None:
    """The Train button, and the settings behind it, from a preset or one's own."""
    st.subheader("Train another", divider="gray")
    button = st.container()
    _presets()
    view = session.settings()
    bound_choice(st.selectbox, "Task", "task", list(TASKS.names()), "reverse")
    kind = TASKS[session.settings().task] if session.settings().task in TASKS.names() else TASKS["reverse"]
    if view.architecture in ARCHITECTURES and view.architecture not in kind.architectures:
        session.update(architecture="")
    own = kind.architectures[0]
    recurrent = bound_choice(st.selectbox, "Architecture", "architecture", list(kind.architectures), own) == "gru"
    if recurrent:
        _looking_back()
    else:
        bound_choice(st.selectbox, "Positional encoding", "positions", list(POSITIONS), "learned")
    one, two, three = st.columns(3, gap="small")
    with one:
        _number("Layers", "layers")
        _number("Length", "length")
    with two:
        if recurrent:
            _number("d_model", "width", step=8)
        else:
            _number("Heads", "heads")
        _number("Symbols", "symbols")
    with three:
        if not recurrent:
            _number("d_model", "width", step=8)
        _number("Seed", "seed")
    bound_choice(st.selectbox, "Device", "device", _devices(), "auto", help="auto takes a GPU where there is one")
    with st.expander("More"):
        if not recurrent:
            _mask_menu(kind)
            bound(st.checkbox, "Feed-forward layers", "feed_forward")
        _number("Learning rate", "learning_rate", step=0.001, format="%.4f")
        _number("Batch", "batch", help="Sequences in a step")
        _number("Most steps", "max_steps", step=100)
        _number("Shortest length (empty: all alike)", "min_length")
        if not recurrent:
            gain = "Factor on their first weights; 0.3 suits one head"
            _number("Gain of queries and keys", "gain", step=0.1, help=gain)
        pick_pace()
    st.fragment(_device_caption, run_every=1.0 if warm.torch() is None else None)()
    with button:  # last: by now the menus have put right what a link named in vain
        _train_button()


def _looking_back() -> None:
    """What a GRU is given of the source, and how much it is helped while it learns."""
    menu = {"none": "none: one vector", "uniform": "uniform: the mean", "scaled-dot": "scaled dot"}
    chosen = bound_choice(
        st.selectbox,
        "Attention",
        "attention",
        list(ATTENTIONS),
        "scaled-dot",
        format_func=lambda name: menu.get(name, name),
        help="How the decoder looks back at the encoder's states; with none it gets the last of them alone",
    )
    if chosen != "none":
        bound(st.checkbox, "Affine maps for query, key and value", "affine")
    low, high = LIMITS["teacher_forcing"]
    bound(
        st.slider,
        "Teacher forcing",
        "teacher_forcing",
        min_value=low,
        max_value=high,
        step=0.05,
        help="Probability with which the decoder reads the right token while it learns, and not the one it said itself",
    )


def _presets() -> None:
    """Settings to start from; touching a field below makes them one's own."""
    try:
        config = session.training_config()
        now = next((preset.name for preset in PRESETS if preset.matches(config)), OWN)
    except ConfigError:
        now = OWN
    key, menu = "control-preset", {preset.name: preset for preset in PRESETS}
    st.session_state[key] = now

    def written() -> None:
        if preset := menu.get(st.session_state[key]):
            session.update(**session.fields_of(preset.config))

    def name(option: str) -> str:
        return f"{option}: {menu[option].description}" if option in menu else option

    shown = [*menu, *([OWN] if now == OWN else [])]
    st.selectbox("Start from", shown, key=key, on_change=written, format_func=name)


def _train_button() -> None:
    """Train or Stop; where nothing can be trained, why."""
    run = session.watched() if session.started() else None
    if run is not None and run.state.live:
        st.button(
            "Stop", on_click=session.stop, args=(run,), width="stretch", icon=":material/stop:", shortcut="Escape"
        )
        return
    try:
        session.training_config()
        problem = ""
    except ConfigError as error:
        problem = sentence(str(error))
    st.button(
        "Train",
        type="primary",
        on_click=session.start_training,
        disabled=bool(problem),
        width="stretch",
        icon=":material/play_arrow:",
        shortcut="T",
    )
    if problem:
        st.error(problem, icon=":material/error:")


def pick_pace(run: Run | None = None) -> None:
    """How fast a training goes; for one that is under way, from now on."""
    names = {FAST: "as fast as possible", BY_KEY: "one by one, with N", "1": "1 a second"}
    key, pace = f"control-pace-{run is None}", session.settings().pace
    st.session_state[key] = pace if pace in PACES else FAST

    def written() -> None:
        session.update(pace=st.session_state[key])
        if run is not None and run.state.live:
            session.set_pace(run)

    st.selectbox(
        "Pace of the steps",
        PACES,
        key=key,
        on_change=written,
        format_func=lambda pace: names.get(pace, f"{pace} a second"),
        label_visibility="visible" if run is None else "collapsed",
        help="How fast the steps are taken",
    )


def _mask_menu(kind: type) -> None:
    architecture = session.settings().architecture or kind.architectures[0]  # type: ignore[attr-defined]
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
        help="What each query may see while it is trained; one that is tried on the page of masks stands here as well",
    )


def _number(label: str, field: str, step: float = 1, **options: Any) -> None:
    low, high = LIMITS[field]
    bound(st.number_input, label, field, min_value=low, max_value=high, step=step, **options)


def _devices() -> list[str]:
    """auto, the CPU, and each GPU; before PyTorch is there, whatever the view names."""
    torch = warm.torch()
    found = ["auto", "cpu"]
    if torch is not None:
        found += [f"cuda:{i}" for i in range(torch.cuda.device_count())]
        found += ["mps"] if torch.backends.mps.is_available() else []
    named = session.settings().device
    return found if named in found or torch is not None else [*found, named]


def _device_caption() -> None:
    st.caption(device_line())


def device_line() -> str:
    """Where a training would run, in words."""
    if warm.torch() is None:
        return "Looking for a GPU …"
    from transformer.training.device import describe_device, resolve_device

    try:
        device = resolve_device(session.settings().device)
    except ConfigError as error:
        return str(error)
    name = describe_device(device)
    return f"Trains on the {name}." if device.type == "cpu" else f"Trains on {name}."
