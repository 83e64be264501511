"""Widgets: the view in, the view out.

Before a widget is drawn its state is set from the view, and what is picked in it is written back: so a link, a click in
a figure and a widget can never disagree. `controlled` is the one way to do it; the others say which field it is about.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import streamlit as st

from dashboard.components.presses import counted_button, unanswered
from dashboard.parts.prose import plain, sentence
from dashboard.server.streamlit_private import DeltaGenerator
from dashboard.view import clicks, session
from dashboard.view.link import FIELDS, limits
from transformer.analysis.findings import Head
from transformer.config import ConfigError
from transformer.foundation.foreign import shortened
from transformer.foundation.words import listed

Also = Mapping[str, object]
"""Fields of the view that change with another, and what they become."""
TYPED = ("number_input", "text_input", "text_area")
"""Widgets into which something is typed."""
FEW = 80
"""Letters of the choices of a menu that a notice names at most."""
LATE = 1.0
"""Seconds after a press within which the step before it may be reported once more."""
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def barred(why: str) -> dict[str, Any]:
    """Options of a control that cannot be used, and says why; none where nothing stands against it."""
    return {"disabled": True, "help": why} if why else {}


def controlled(
    widget: Callable[..., Any], label: str, *args: Any, key: str, value: Any, picked: Callable[[Any], None], **rest: Any
) -> Any:
    """A widget that shows `value`, whatever was picked in it before; what the reader picks goes to `picked`.

    Only what comes in time: what a live view's request says of a widget was picked before. A click on the choice that
    is shown already changes nothing. Nor does the report of an entry that the menu no longer has: its words may change
    while a training goes on, and the browser may not have heard of it.

    A field into which something is typed is told its value only where it has another. Told the same again, the browser
    takes back what was typed while the page was drawn, and the next request takes it back on the way to Python.
    Such a field and a slider of steps have the value as their default, too. A browser that has lost the field draws it
    with its default, and reports that as picked; and of a step that is gone Streamlit makes the default.
    """
    typed = getattr(widget, "__name__", "") in TYPED
    if not typed or key not in st.session_state or st.session_state[key] != value:
        st.session_state[key] = value
    if typed or widget is st.select_slider:
        rest = {"value": value, **rest}
    if widget in (st.segmented_control, st.pills):
        rest = {"required": True, **rest}
    menu = args[0] if args and isinstance(args[0], Sequence) and not rest.get("accept_new_options") else None
    several = rest.get("selection_mode") == "multi"

    @clicks.in_time
    def changed() -> None:
        found = st.session_state[key]
        if menu is None or found is None or all(each in menu for each in (found if several else [found])):
            picked(found)

    return widget(label, *args, key=key, on_change=changed, **rest)


def bound(widget: Callable[..., Any], label: str, field: str, *, also: Also | None = None, **options: Any) -> Any:
    """A widget that is a field of the view. `also` change with it; a number has the field's limits."""
    if widget in (st.slider, st.number_input):
        low, high = limits(field)
        options = {"min_value": low, "max_value": high, **options}
    return controlled(
        widget,
        label,
        key=f"control-{field}",
        value=getattr(session.settings(), field),
        picked=lambda value: session.update(**{field: value, **(also or {})}),
        **options,
    )


def bound_choice(
    widget: Callable[..., Any],
    label: str,
    field: str,
    menu: Sequence[Any],
    default: Any,
    *,
    also: Also | Callable[[Any], Also] | None = None,
    missing: Callable[[Any], str] | None = None,
    late: Callable[[Any], bool] = lambda found: False,
    drawn: bool = True,
    **options: Any,
) -> Any:
    """A menu that is a field of the view, whose own default stands for `default`.

    `also` change with it, or are said of what is picked. What a link names in vain falls back, and is said in the
    menu's own words unless `missing` has better ones. What is `late` was not picked: see `stepped`. That holds for a
    menu that is folded away, too: it is not `drawn`.
    """
    shown = options.get("format_func", str)(default)
    every = listed([str(each) for each in menu if str(each)], "or")
    may = f" The link may say {every}." if len(every) <= FEW else ""
    missing = missing or (
        lambda value: f"There is no {label.lower()} “{shortened(value, 30)}” here; this is {shown}.{may}"
    )
    value = session.named(field, menu, default, missing)

    def picked(found: Any) -> None:
        found = default if found is None else found
        if not late(found):
            _write(field, found, default, also(found) if callable(also) else also)

    if drawn:
        controlled(widget, label, menu, key=f"control-{field}", value=value, picked=picked, **options)
    return value


def bound_number(
    label: str, field: str, own: int, low: int, high: int, *, also: Also | None = None, **options: Any
) -> int:
    """A slider that is a whole number of the view, whose default stands for `own`; where there is no choice, none.

    `also` change with it. What a link names beyond the ends, or between the steps, falls back.
    """
    step = options.get("step", 1)
    value: int = session.named(
        field,
        range(low, high + 1, step),
        own,
        lambda value: f"{label} must be {low} to {high} here, in steps of {step}, not {value}; this is {own}.",
    )
    if low == high:
        return low
    controlled(
        st.slider,
        label,
        low,
        high,
        key=f"control-{field}",
        value=value,
        picked=lambda found: _write(field, found, own, also),
        **options,
    )
    return value


def _write(field: str, value: object, default: object, also: Also | None) -> None:
    session.update(**{field: FIELDS[field].default if value == default else value, **(also or {})})


def stepped(field: str, titles: Mapping[str, str], *, label: str = "Step") -> str:
    """Which of some steps is shown: by name, by button, by key, each press of which counts. Returns its name.

    Letters: arrow keys belong to the menu that was clicked last. A press may come before the browser has heard of the
    one before: its request then still reports a step that the menu showed, and that is no choice. So is what comes
    shortly after a press with the request of another control.
    """
    steps, left = list(titles), f"{field}-left"
    back_key, on_key = f"{field}-back", f"{field}-on"

    def late(found: str) -> bool:
        passed, when = st.session_state.get(left, ([], 0.0))
        if unanswered(back_key) or unanswered(on_key):
            return found in passed
        return found in passed[-1:] and time.monotonic() - when < LATE

    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        back, on, names = (st.container(width="content") for _ in range(3))
    with names:
        step: str = bound_choice(
            st.segmented_control,
            label,
            field,
            steps,
            steps[0],
            format_func=titles.__getitem__,
            label_visibility="collapsed",
            late=late,
        )
    at = steps.index(step)

    def go(by: int) -> None:
        """So many steps on from where the view is by then: presses may come faster than pages are drawn."""
        now = getattr(session.settings(), field)
        now = steps.index(now) if now in steps else 0
        to = min(max(now + by, 0), len(steps) - 1)
        passed, _ = st.session_state.get(left, ([], 0.0))
        st.session_state[left] = [*passed, steps[now]][-len(steps) :], time.monotonic()
        session.update(**{field: "" if to == 0 else steps[to]})

    with back:
        counted_button("Back", lambda n: go(-n), key=back_key, letter="B", disabled=at == 0, width="content")
    with on:
        last = at == len(steps) - 1
        counted_button("Forward", go, key=on_key, letter="F", disabled=last, primary=True, width="content")
    return step


def pick_head(
    heads: Sequence[Head], head: Head, *, also: Also | Callable[[Head], Also] | None = None, **options: Any
) -> None:
    """A menu of heads, of which `head` is shown; with their kinds where there are several.

    `also` change with it, or are said of what is picked.
    """
    several = len({each.kind for each in heads}) > 1
    controlled(
        st.selectbox,
        "Head",
        heads,
        key="control-head",
        value=head,
        picked=lambda found: session.update(head=str(found), **((also(found) if callable(also) else also) or {})),
        format_func=lambda each: f"{each.short} · {each.kind}" if several else f"head {each.short}",
        **{"width": 260 if several else 130, **options},
    )


def pick_token(
    label: str,
    tokens: Sequence[str],
    number: int,
    picked: Callable[[int | None], None],
    *,
    key: str,
    most: int,
    before: int = 0,
) -> None:
    """A row of tokens to click, or with more than `most` a menu. They are numbered from 1, after those `before`."""
    numbers = range(before + 1, before + len(tokens) + 1)
    options: dict[str, Any] = {"key": key, "value": number if number in numbers else None, "picked": picked}

    def button(number: int) -> str:
        place = number - before
        return f"{plain(tokens[place - 1])}{str(place).translate(SUBSCRIPTS)}"

    def entry(number: int) -> str:
        place = number - before
        return f"'{tokens[place - 1]}' at {place}"

    if len(tokens) <= most:
        controlled(st.segmented_control, label, numbers, **options, format_func=button)
    else:
        controlled(st.selectbox, label, numbers, **options, format_func=entry, width=260)


def bound_token(
    label: str,
    tokens: Sequence[str],
    first: int,
    missing: Callable[[int], str],
    *,
    most: int,
    field: str = "query",
) -> int:
    """Which of these tokens is looked at, its place counted from 0: the one at `first`, unless the view names another.

    The field of the view counts from 1. A place that is named in vain falls back, and is said in the words of
    `missing`.
    """
    value: int = session.named(field, range(1, len(tokens) + 1), first + 1, missing)

    def picked(place: int | None) -> None:
        _write(field, first + 1 if place is None else place, first + 1, None)

    pick_token(label, tokens, value, picked, key=f"control-{field}", most=most)
    return value - 1


def late_title() -> DeltaGenerator:
    """A place for a page's title that waits for a measurement: what follows does not move when it comes.

    Not st.empty(): the title of before stays until the new one is written.
    """
    place = st.container(key="title")
    place.html("<span></span>")  # Streamlit draws no container that is empty; style.css keeps the room of one line
    return place


@contextmanager
def told() -> Iterator[None]:
    """Say in a section's place why there is none: the model is not of the kind that it opens."""
    try:
        yield
    except ConfigError as error:
        st.info(sentence(plain(str(error))), icon=":material/block:")
