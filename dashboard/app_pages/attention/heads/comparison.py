"""What the head in focus is compared with: the menus for it, and its pattern."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

from dashboard.components.origin import Maker
from dashboard.models.heads import detail
from dashboard.models.model import Model
from dashboard.models.passages import in_a_line, parsed
from dashboard.parts.heads import heads_of
from dashboard.parts.widgets import controlled
from dashboard.view import session
from dashboard.view.link import longest
from transformer.analysis.findings import Head
from transformer.foundation.foreign import shortened

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
    maker: Maker


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

    def chosen(kind: str) -> None:
        first = str(menus[kind][0]) if kind in menus else _drawn(model) if kind else ""
        session.update(against=f"{kind}:{first}" if kind else "")

    left, right = st.columns([1, 1.2], vertical_alignment="bottom")
    controlled(
        left.selectbox,
        "Compare the pattern with",
        kinds,
        key="control-against",
        value=kind if kind in kinds else "",
        picked=chosen,
        format_func=REFERENCES.__getitem__,
    )
    if kind not in kinds or not kind:
        return
    rest: dict[str, Any] = {
        "key": f"control-against-{kind}",
        "picked": lambda value: session.update(against=f"{kind}:{value}"),
    }
    if kind == "input":
        most = longest("against") - len("input:")
        controlled(right.text_input, "Other input", value=value, max_chars=most, **rest)
        return
    menu = [str(each) for each in menus[kind]]
    controlled(
        right.selectbox,
        REFERENCES[kind].capitalize(),
        menu,
        value=value if value in menu else menu[0],
        format_func=lambda name: f"head {Head.parse(name).short}" if kind == "head" else name,
        **rest,
    )


def _drawn(model: Model) -> str:
    """An input of the present length, drawn at random."""
    length = len(session.question(model))
    (drawn,) = model.task.draw(np.random.default_rng(), 1, length)
    return in_a_line(model.task.typed(drawn))


def reference(model: Model, question: np.ndarray, head: Head, shape: tuple[int, ...]) -> Reference | None:
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
        return Reference(f"head {other.short}", detail(model, question, other.site).pattern[other.index], model.maker())
    if kind == "step":
        step = int(value) if value.isdecimal() else -1
        if step not in session.choices()[model.name].snapshots:
            raise ValueError(f"no weights were kept of step {value[:12]}")
        other_model = Model.of(session.choices()[model.name], step)
        return Reference(
            f"step {step}", detail(other_model, question, head.site).pattern[head.index], other_model.maker()
        )
    if kind == "run":
        if value not in session.choices():
            raise ValueError(f"there is no run “{shortened(value, 40)}”")
        choice = session.choices()[value]
        other_model = Model.of(choice, choice.snapshots[-1])
        own = other_model.task.parse(model.task.typed(question))
        sites = heads_of(other_model.sample(own).attentions)
        if head not in sites:
            raise ValueError(f"{value} has no head {head.short} ({head.kind})")
        return Reference(value, detail(other_model, own, head.site).pattern[head.index], other_model.maker())
    if kind == "input":
        other_question = parsed(model.task, value)
        return Reference("other input", detail(model, other_question, head.site).pattern[head.index], model.maker())
    raise ValueError(f"“{shortened(kind, 20)}” is none of {', '.join(filter(None, REFERENCES))}")
