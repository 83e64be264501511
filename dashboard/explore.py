"""The head in focus: its pattern, what its attention does, and how it differs from another one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import streamlit as st

from dashboard import session, theme
from dashboard.attention import LINK, heads_of, is_dark, palette
from dashboard.components.focus import Ink, Subject, View, Whole, focus
from dashboard.components.head_grid import downsampled
from dashboard.models import Model
from transformer.analysis.findings import Detail, Head, Survey

WINDOW = 64
"""Tokens a side of the part of a long input that is shown cell by cell."""
LONG = 128
"""Tokens from which only a window is shown cell by cell."""
FINEST = 512
"""Blocks a side of the picture of the whole, at most."""
REFERENCES = {
    "": "nothing",
    "head": "another head",
    "step": "another step of training",
    "run": "another run",
    "input": "another input",
}


@dataclass(frozen=True)
class Reference:
    """What a head's pattern is compared with."""

    words: str
    """"head 0.1", "step 40" …"""
    pattern: np.ndarray


def pattern(model: Model, question: np.ndarray, head: Head, survey: Survey, *, mean: bool) -> None:
    """Draw the pattern of a head large, with its arcs, and how it differs from what the view names."""
    detail = model.detail(question, head.site)
    values = survey.patterns[head.site][head.index] if mean else detail.pattern[head.index]
    views = [View("pattern", "Mean pattern" if mean else "Pattern", values, 0.0, 1.0, theme.pattern_colours(is_dark()))]
    reference = None if mean else _reference(model, question, head, values.shape)
    if reference is not None:
        difference = values - reference.pattern
        most = _most(np.abs(difference), detail)
        colours = theme.signed_colours(is_dark())
        views.append(View("difference", f"Pattern − {reference.words}", difference, -most, most, colours))
    _draw(model, question, head, detail, views, key="head-pattern", says=not mean)


def contribution(model: Model, question: np.ndarray, head: Head) -> None:
    """Draw what a head's readings write into the residual stream: attention is not effect."""
    detail = model.detail(question, head.site)
    values = detail.contribution(head.index)
    colours = theme.pattern_colours(is_dark())
    view = View("contribution", "Contribution ‖pattern · v · W_O‖", values, 0.0, _most(values, detail), colours)
    _draw(model, question, head, detail, [view], key="head-contribution", says=True)


def _most(values: np.ndarray, detail: Detail) -> float:
    """The end of a scale: the greatest value that is allowed; 1 where all are zero."""
    return float(values[detail.mask].max(initial=0.0)) or 1.0


def _draw(
    model: Model, question: np.ndarray, head: Head, detail: Detail, views: list[View], *, key: str, says: bool
) -> None:
    """Draw matrices of a head, or of a long input the window of them that the view names."""
    first = _window(detail, head)
    shown = (slice(first[0], first[0] + WINDOW), slice(first[1], first[1] + WINDOW)) if first else ...
    is_pattern = views[0].name == "pattern"
    alt = f"Head {head.short}, {views[0].name}. {strongest(views[0].values, detail)}"
    whole = None
    if first and is_pattern:
        factor = -(-max(detail.mask.shape) // FINEST)
        whole = Whole(downsampled(views[0].values, factor), downsampled(detail.mask, factor), factor)
    marks, query, colours = _marks(model, question, head, detail), session.settings().query, palette()

    def locked() -> None:
        row = st.session_state[key]["lock"]
        if row is not None:
            session.update(query=row + 1 if 0 <= row < len(detail.queries) else None)

    def moved() -> None:
        if place := st.session_state[key]["window"]:
            session.update(window=f"{int(place['row']) + 1},{int(place['column']) + 1}")

    focus(
        Subject(
            head=str(head),
            name=head.short,
            number=heads_of(model.sample(question).attentions).index(head),
            queries=detail.queries,
            keys=detail.keys,
            mask=detail.mask[shown],
            first=first or (0, 0),
            marks=None if marks is None else marks[shown],
            says=_says(model, question, detail) if says else None,
        ),
        [replace(view, values=view.values[shown]) for view in views],
        key=key,
        alt=alt,
        ink=Ink(
            dark=colours.dark,
            accent=colours.accent,
            mark=colours.chance,
            muted=colours.muted,
            forbidden=theme.rgb(colours.forbidden),
            scale=theme.pattern_colours(is_dark()),
        ),
        whole=whole,
        locked=query - 1 if query is not None and query <= len(detail.queries) else None,
        link=LINK,
        arcs=is_pattern,
        by_row=session.settings().by_row,
        on_lock=locked,
        on_window=moved,
    )


def strongest(values: np.ndarray, detail: Detail) -> str:
    """The greatest value, as a sentence, leaving out rows that have a single key to look at."""
    row, column = _strongest(values, detail)
    who, whom = f"'{detail.queries[row]}' at {row + 1}", f"'{detail.keys[column]}' at {column + 1}"
    return f"Most of all, query {who} reads {whom}: {values[row, column]:.2f}."


def _strongest(values: np.ndarray, detail: Detail) -> tuple[int, int]:
    shown = np.where(detail.mask & (detail.mask.sum(axis=1) > 1)[:, None], values, -1.0)
    row, column = np.unravel_index(int(shown.argmax()), shown.shape)
    return int(row), int(column)


def _window(detail: Detail, head: Head) -> tuple[int, int] | None:
    """Where the window begins: around the place that the view names, or around the strongest cell; None if all fits."""
    shape = detail.mask.shape
    if max(shape) <= LONG:
        return None
    text = session.settings().window
    try:
        row, column = (int(part) - 1 for part in text.split(",")) if text else (-1, -1)
    except ValueError:
        row = shape[0]
    if text and not (0 <= row < shape[0] and 0 <= column < shape[1]):
        session.notice(f"There is no place “{text[:30]}” in this input; the window is on the strongest cell.")
        session.update(window="")
        text = ""
    if not text:
        row, column = _strongest(detail.pattern[head.index], detail)
    return _begin(row, shape[0]), _begin(column, shape[1])


def _begin(place: int, size: int) -> int:
    """Where a window begins that has `place` in its middle, as far as there is room."""
    return min(max(0, place - WINDOW // 2), max(0, size - WINDOW))


def _marks(model: Model, question: np.ndarray, head: Head, detail: Detail) -> np.ndarray | None:
    """The cells where the answer stands, for the heads that can read it."""
    expected = model.task.expected_keys(question)
    alone = model.config.model.architecture == "encoder"
    fits = expected.shape == detail.mask.shape and (alone or not head.site.startswith("encoder."))
    return expected & detail.mask if fits else None


def _says(model: Model, question: np.ndarray, detail: Detail) -> tuple[str, ...] | None:
    sample = model.sample(question)
    return sample.predicted if detail.queries == sample.read else None


# --- the difference


def pick_reference(model: Model, head: Head) -> None:
    """The menus that say what the head in focus is compared with."""
    kind, _, value = session.settings().against.partition(":")
    heads = [str(other) for other in heads_of(model.sample(session.question(model)).attentions) if other != head]
    heads = [other for other in heads if Head.parse(other).kind == head.kind]
    menus: dict[str, list[Any]] = {
        "head": heads,
        "step": [step for step in session.choices()[model.name].snapshots if step != model.step],
        "run": [name for name in session.choices() if name != model.name],
    }
    kinds = [name for name in REFERENCES if menus.get(name, True)]
    st.session_state["control-against"] = kind if kind in kinds else ""

    def chosen() -> None:
        picked = st.session_state["control-against"]
        first = str(menus[picked][0]) if picked in menus else " ".join(_drawn(model)) if picked else ""
        session.update(against=f"{picked}:{first}" if picked else "")

    left, right = st.columns([1, 1.6], vertical_alignment="bottom")
    left.selectbox(
        "Compare the pattern with", kinds, key="control-against", on_change=chosen, format_func=REFERENCES.__getitem__
    )
    if kind not in kinds or not kind:
        return
    key = f"control-against-{kind}"

    def valued() -> None:
        session.update(against=f"{kind}:{st.session_state[key]}")

    if kind == "input":
        st.session_state[key] = value
        right.text_input("Other input", key=key, on_change=valued)
        return
    menu = [str(each) for each in menus[kind]]
    st.session_state[key] = value if value in menu else menu[0]
    right.selectbox(
        REFERENCES[kind].capitalize(),
        menu,
        key=key,
        on_change=valued,
        format_func=lambda name: f"head {Head.parse(name).short}" if kind == "head" else name,
    )


def _drawn(model: Model) -> list[str]:
    """An input of the present length, drawn at random."""
    question = session.question(model)
    drawn = np.random.default_rng().integers(0, model.task.symbols, len(question))
    return [model.task.vocabulary[symbol] for symbol in drawn]


def _reference(model: Model, question: np.ndarray, head: Head, shape: tuple[int, ...]) -> Reference | None:
    """What the view names for comparison. What cannot be compared is dropped, with a notice that says why."""
    text = session.settings().against
    if not text:
        return None
    try:
        found = _find(model, question, head, *text.split(":", 1))
        if found.pattern.shape != shape:
            sizes = [" × ".join(map(str, sides)) for sides in (found.pattern.shape, shape)]
            raise ValueError(f"{found.words} has a pattern of {sizes[0]}, this head one of {sizes[1]}")
    except (ValueError, KeyError, IndexError) as error:
        reason = str(error.args[0]) if error.args else "there is no such thing"
        session.notice(f"Nothing to compare with: {reason}.")
        session.update(against="")
        return None
    return found


def _find(model: Model, question: np.ndarray, head: Head, kind: str, value: str = "") -> Reference:
    """The pattern that a link names. Raises ValueError, KeyError or IndexError with what is wrong."""
    if kind == "head":
        heads = {str(each): each for each in heads_of(model.sample(question).attentions)}
        other = heads.get(value)
        if other is None:
            raise ValueError(f"there is no head {value[:40]}")
        return Reference(f"head {other.short}", model.detail(question, other.site).pattern[other.index])
    if kind == "step":
        step = int(value) if value.isdecimal() else -1
        if step not in session.choices()[model.name].snapshots:
            raise ValueError(f"no weights were kept of step {value[:12]}")
        other_model = Model.of(session.choices()[model.name], step)
        return Reference(f"step {step}", other_model.detail(question, head.site).pattern[head.index])
    if kind == "run":
        if value not in session.choices():
            raise ValueError(f"there is no run “{value[:40]}”")
        choice = session.choices()[value]
        other_model = Model.of(choice, choice.snapshots[-1])
        text = " ".join(model.task.vocabulary[symbol] for symbol in question)
        own = other_model.task.parse(text)
        sites = heads_of(other_model.sample(own).attentions)
        if head not in sites:
            raise ValueError(f"{value} has no head {head.short} ({head.kind})")
        return Reference(value, other_model.detail(own, head.site).pattern[head.index])
    if kind == "input":
        other_question = model.task.parse(value)
        return Reference("other input", model.detail(other_question, head.site).pattern[head.index])
    raise ValueError(f"“{kind[:20]}” is none of {', '.join(filter(None, REFERENCES))}")
