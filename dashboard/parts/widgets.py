"""The sidebar and the widgets: Settings in, Settings out.

Every widget shows a field of the view and writes it back when it is touched; before it is drawn its state is set from
the view, so a link, a click in a figure and a widget can never disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import streamlit as st

from dashboard.parts.prose import sentence
from dashboard.view import clicks, session
from dashboard.view.settings import Settings
from transformer.config import ConfigError


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


@contextmanager
def told() -> Iterator[None]:
    """Say in a section's place why there is none: the model is not of the kind that it opens."""
    try:
        yield
    except ConfigError as error:
        st.info(sentence(str(error)), icon=":material/block:")


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
