"""What the head in focus is compared with: another head of the model, or the same head on another input."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from dashboard.models import imported
from dashboard.models.imported import Imported, Look
from dashboard.parts.prose import labels_of
from dashboard.parts.widgets import controlled
from dashboard.view import imported as view
from dashboard.view import session
from dashboard.view.link import longest
from transformer.analysis.findings import Head
from transformer.foundation.checks import UserError
from transformer.foundation.foreign import shortened

KINDS = {"": "nothing", "head": "another head", "input": "another input"}


@dataclass(frozen=True)
class Reference:
    """What a head's pattern is compared with."""

    words: str
    """ "head 0.1", "other input" """
    pattern: np.ndarray


def pick_reference(seen: Look, head: Head) -> None:
    """The menus that say what the head in focus is compared with."""
    kind, _, value = session.settings().against.partition(":")
    heads = [each for each in seen.heads if each != head and each.kind == head.kind]
    kinds = [name for name in KINDS if name != "head" or heads]

    def chosen(kind: str) -> None:
        first = str(heads[0]) if kind == "head" else session.settings().imported_input or view.TEXT
        session.update(against=f"{kind}:{first}" if kind else "")

    left, right = st.columns([1, 1.2], vertical_alignment="bottom")
    controlled(
        left.selectbox,
        "Compare the pattern with",
        kinds,
        key="control-against",
        value=kind if kind in kinds else "",
        picked=chosen,
        format_func=KINDS.__getitem__,
    )

    def picked(value: object) -> None:
        session.update(against=f"{kind}:{value}")

    if kind == "head" and heads:
        names = dict(zip(map(str, seen.heads), labels_of(seen.heads), strict=True))
        menu = [str(each) for each in heads]
        controlled(
            right.selectbox,
            "Another head",
            menu,
            key="control-against-head",
            value=value if value in menu else menu[0],
            picked=picked,
            format_func=lambda name: f"head {names[name]}",
        )
    elif kind == "input":
        most = longest("against") - len("input:")
        controlled(
            right.text_input, "Other input", key="control-against-input", value=value, max_chars=most, picked=picked
        )


def reference(model: Imported, seen: Look, head: Head, says: str) -> Reference | None:
    """What the view names for comparison. What cannot be compared is dropped, with a notice that says why."""
    kind, _, value = session.settings().against.partition(":")
    if not kind:
        return None
    try:
        if kind == "head":
            found = _head(seen, value)
        elif kind == "input":
            other = imported.look(model, replace(view.asked(says), text=value))
            found = Reference("other input", other.attentions[head.site].pattern[head.index])
        else:
            raise UserError(f"“{shortened(kind, 20)}” is none of {', '.join(filter(None, KINDS))}")
        shape = seen.attentions[head.site].pattern.shape[1:]
        if found.pattern.shape != shape:
            sizes = [" × ".join(map(str, sides)) for sides in (found.pattern.shape, shape)]
            raise UserError(f"{found.words} has a pattern of {sizes[0]}, this head one of {sizes[1]}")
    except (UserError, KeyError, IndexError) as error:
        why = str(error).rstrip(".") if isinstance(error, UserError) else "there is no such thing"
        session.notice(f"Nothing to compare with: {why}.")
        session.update(against="")
        return None
    return found


def _head(seen: Look, name: str) -> Reference:
    names = {str(each): each for each in seen.heads}
    if name not in names:
        raise UserError(f"there is no head {name[:40]}")
    other = names[name]
    label = labels_of(seen.heads)[seen.heads.index(other)]
    return Reference(f"head {label}", seen.attentions[other.site].pattern[other.index])
