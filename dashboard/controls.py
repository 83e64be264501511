"""The sidebar and the widgets: Settings in, Settings out.

Every widget shows a field of the view and writes it back when it is touched; before it is drawn its state is set from
the view, so a link, a click in a figure and a widget can never disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import streamlit as st

from dashboard import clicks, passage_field, session
from dashboard.models import Model
from dashboard.passages import as_typed, in_a_line
from dashboard.settings import LONGER, Settings
from transformer import masks
from transformer.config import ConfigError
from transformer.tasks import ALPHABET

MOST_WAVES = 8
"""More dimensions than this, and their waves cannot be told apart."""


def bound(
    widget: Callable[..., Any], label: str, field: str, *, also: dict[str, object] | None = None, **options: Any
) -> Any:
    """A widget that is a field of the view. `also` are fields that change with it."""
    key = f"control-{field}"
    st.session_state[key] = getattr(session.settings(), field)

    @clicks.in_time
    def written() -> None:
        session.update(**{field: st.session_state[key]}, **(also or {}))

    return widget(label, key=key, on_change=written, **options)


def bound_choice(
    widget: Callable[..., Any],
    label: str,
    field: str,
    menu: list[str],
    default: str,
    *,
    also: dict[str, object] | Callable[[str], dict[str, object]] | None = None,
    **options: Any,
) -> str:
    """A menu that is a text field of the view, whose own default, mostly empty, stands for `default`.

    `also` are fields that change with it, or says them of what is picked. What a link names in vain falls back, and is
    said in the menu's own words.
    """
    key = f"control-{field}"
    value, unset = getattr(session.settings(), field), getattr(Settings(), field)
    if value == unset:
        value = default
    elif value not in menu:
        shown = options.get("format_func", str)(default)
        session.notice(f"There is no {label.lower()} “{value[:30]}” here; this is {shown}.")
        session.update(**{field: unset})
        value = default
    st.session_state[key] = value

    @clicks.in_time
    def written() -> None:
        picked = st.session_state[key] or default
        others = also(picked) if callable(also) else also or {}
        session.update(**{field: unset if picked == default else picked}, **others)

    widget(label, menu, key=key, on_change=written, **options)
    return value


def stepped(field: str, titles: Mapping[str, str]) -> str:
    """Which of some steps is shown: by name, by button, by key. Returns its name.

    Letters: arrow keys belong to the menu that was clicked last.
    """
    steps = list(titles)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        back, on, names = (st.container(width="content") for _ in range(3))
    with names:
        step = bound_choice(
            st.segmented_control,
            "Step",
            field,
            steps,
            steps[0],
            format_func=titles.__getitem__,
            label_visibility="collapsed",
        )
    at = steps.index(step)

    def go(to: int) -> None:
        session.update(**{field: "" if to == 0 else steps[to]})

    back.button("Back", on_click=go, args=(at - 1,), disabled=at == 0, shortcut="B")
    on.button("Forward", on_click=go, args=(at + 1,), disabled=at == len(steps) - 1, shortcut="F", type="primary")
    return step


def sentence(text: str) -> str:
    """Words, as a sentence: a capital first, unless it is a setting's own name, and a full stop."""
    first = text if "_" in text.split()[0] else f"{text[0].upper()}{text[1:]}"
    return f"{first}."


@contextmanager
def told() -> Iterator[None]:
    """Say in a section's place why there is none: the model is not of the kind that it opens."""
    try:
        yield
    except ConfigError as error:
        st.info(sentence(str(error)), icon=":material/block:")


def sidebar(*, asks: bool = True) -> Model:
    """Which model, and which input, where the page `asks` for one here. Returns the model."""
    with st.sidebar:
        model = _model_menu()
        if asks:
            _input(model)
    return model


def choose(run: str) -> None:
    """Look at another model; what was chosen inside the one before means nothing in it."""
    session.update(
        run=run,
        step=None,
        head="",
        stage="",
        operation="",
        query=None,
        through=None,
        poked=None,
        replacement="",
        mask="",
        target=None,
        retrain="",
        edits="",
        other="",
        encoding="",
        dimensions="",
        pe_width=None,
        pe_length=None,
        pe_heads=None,
        slope=0,
        cursor=None,
        shift=1,
        scaled=None,
        word=None,
        read_work="",
        read_place=1,
        read_word=None,
    )


def _model_menu() -> Model:
    menu = session.choices()
    model = session.chosen()
    key = "control-run"
    st.session_state[key] = model.name

    @clicks.in_time
    def picked() -> None:
        if st.session_state[key] != session.chosen().name:
            choose(st.session_state[key])

    st.selectbox(
        "Model",
        list(menu),
        key=key,
        on_change=picked,
        format_func=lambda name: menu[name].label(),
    )
    choice = menu[model.name]
    st.caption(choice.description())
    if choice.state.status not in ("finished",) and choice.state.reason:
        st.caption(f":material/info: {sentence(choice.state.reason)}")
    run = model.run
    if run is not None and run.resumable and session.started() != run.name:
        st.button(
            "Resume its training", on_click=session.resume, args=(run,), icon=":material/resume:", width="stretch"
        )
    steps = list(choice.snapshots)
    if len(steps) > 1:
        st.session_state["control-step"] = model.step

        @clicks.in_time
        def moved() -> None:
            step = st.session_state["control-step"]
            session.update(step=None if step == steps[-1] else step)

        st.select_slider(
            "Step of training",
            steps,
            key="control-step",
            on_change=moved,
            help="Every page shows the model as it was at this step.",
        )
    return model


def _input(model: Model) -> None:
    task, lawful = model.task, model.task.lawful
    shown = task.typed(session.question(model))
    error = st.session_state.pop("input_error", "")
    # What was typed stays in the field as long as the error about it does.
    st.session_state["control-input"] = st.session_state.pop("input_typed", shown) if error else shown

    @clicks.in_time
    def written() -> None:
        typed = st.session_state["control-input"]
        text = typed.strip() if lawful else as_typed(typed)
        try:
            task.parse(text)
        except ValueError as error:
            st.session_state.input_error, st.session_state.input_typed = sentence(str(error)), typed
            clicks.touch()
            return
        session.update(input=" ".join(text.lower().split()) if lawful else in_a_line(text))

    def drawn() -> None:
        session.update(input=in_a_line(task.typed(session.draw(model))))

    widget = st.text_input if lawful else st.text_area
    widget("Input", key="control-input", on_change=written, max_chars=LONGER["input"])
    st.button("Draw another", on_click=drawn, width="stretch", shortcut="D", icon=":material/casino:")
    if not lawful:
        passage_field.length(model)
    if error:
        st.error(error, icon=":material/error:")
    elif lawful:
        symbols = ALPHABET[0] + " to " + task.vocabulary[task.symbols - 1]
        st.caption(f"1 to {task.length} symbols, {symbols}. {_length_note(model)}")
    else:
        st.caption(passage_field.note(model))


def _length_note(model: Model) -> str:
    length = len(session.question(model))
    if length not in model.task.lengths:
        lengths = model.task.lengths
        seen = str(lengths.stop - 1) if len(lengths) == 1 else f"{lengths.start} to {lengths.stop - 1}"
        return f":orange[It was trained on length {seen} only: {length} is new to it.]"
    return ""


def is_mask(text: str) -> bool:
    try:
        masks.parse(text)
    except ValueError:
        return False
    return True


def pick_dimensions(width: int) -> list[int]:
    """Which dimensions are drawn as waves."""
    first = sorted({0, 1, width // 4, width // 2, width - 1} & set(range(width)))
    text = session.settings().dimensions
    named = {int(part) for part in text.split(",") if part.strip().isdecimal() and int(part) < width}
    kept = sorted(named)[:MOST_WAVES] or first
    st.session_state["control-dimensions"] = kept

    @clicks.in_time
    def written() -> None:
        picked = st.session_state["control-dimensions"]
        if all(isinstance(i, int) for i in picked):  # else the browser still speaks of the model before, as text
            session.update(dimensions=",".join(str(i) for i in sorted(picked)))

    st.multiselect(
        "Dimensions", list(range(width)), key="control-dimensions", on_change=written, max_selections=MOST_WAVES
    )
    return kept


def bound_number(
    label: str, field: str, own: int, low: int, high: int, *, also: dict[str, object] | None = None, **options: Any
) -> int:
    """A slider that is a whole number of the view, whose default stands for `own`; where there is no choice, none.

    `also` are fields that change with it. What a link names beyond the ends, or between the steps, falls back.
    """
    key, unset, step = f"control-{field}", getattr(Settings(), field), options.get("step", 1)
    value = getattr(session.settings(), field)
    if value == unset:
        value = own
    elif not low <= value <= high or (value - low) % step:
        session.notice(f"{label} must be {low} to {high} here, in steps of {step}, not {value}; this is {own}.")
        session.update(**{field: unset})
        value = own
    if low == high:
        return low
    st.session_state[key] = value

    @clicks.in_time
    def written() -> None:
        picked = st.session_state[key]
        session.update(**{field: unset if picked == own else picked}, **(also or {}))

    st.slider(label, low, high, key=key, on_change=written, **options)
    return int(value)
