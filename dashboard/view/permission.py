"""What somebody may do here, and why not: a sentence, empty where nothing stands against it.

Whatever changes something asks here, not only the control that leads to it: a browser can send what no control offers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import ParamSpec

import streamlit as st

from dashboard.models import menu
from dashboard.server import background, roles
from dashboard.server.roles import OWNER, VIEWER, Visitor
from dashboard.server.streamlit_private import is_served
from transformer.config import RunConfig
from transformer.foundation.checks import UserError
from transformer.training.listing import listing
from transformer.training.runs import Run

P = ParamSpec("P")
LOOKING = "You can only look here: only the owner of this server can change anything."
MOST: dict[str, tuple[str, int]] = {
    "n_layers": ("layers", 4),
    "d_model": ("numbers in d_model", 128),
    "d_ff": ("units in a feed-forward layer", 512),
    "length": ("tokens in a sequence", 128),
    "batch_size": ("sequences in a batch", 128),
    "max_steps": ("steps", 5_000),
}
"""The largest settings of a guest's training: what is counted, and how many."""
MOST_TOKENS = 10_000_000
"""Tokens that a guest's training may read: steps, sequences in a batch and tokens in a sequence, multiplied."""
AT_ONCE, KEPT, OF_ALL = 4, 12, 500
"""Trainings of a guest that wait or are under way, runs that a guest keeps, and runs of all guests together."""


NO_CODE = (
    "This server does not run your code. It would if only this machine could reach it and you were its owner, or if "
    f"its operator had set {roles.RUN_CODE}=1."
)


class Refused(UserError):
    """What somebody may not do here; the message is one sentence."""


def visitor() -> Visitor:
    """Who looks at this session. Where there is no server, as in a test, its owner."""
    known: Visitor | None = st.session_state.get("visitor")
    if known is None:
        known = st.session_state.visitor = _visitor()
    return known


def _visitor() -> Visitor:
    if not is_served():
        return OWNER
    headers = {name.lower(): value for name, value in st.context.headers.items()}
    if not headers:  # its browser has just gone
        return VIEWER
    found = roles.visitor(headers, st.context.cookies)
    if found.role == "guest" and not found.name:  # a browser that keeps no cookies: a name for this session
        return Visitor("guest", roles.new_guest()[0])
    return found


def standing() -> str:
    """Who one is here, in a sentence or two; empty for the owner."""
    someone = visitor()
    if someone.role == "owner":
        return ""
    if someone.role == "viewer":
        return LOOKING
    return (
        "You are a guest here. Only you and the owner of this server can change what you train. Its name ends with "
        f"“@{someone.name}”, and it is deleted a day after its last change."
    )


def for_the_owner(what: str) -> str:
    """Why this is not done: only the owner of the server may."""
    someone = visitor()
    if someone.role == "owner":
        return ""
    return LOOKING if someone.role == "viewer" else f"Only the owner of this server can {what}."


def to_change(run: Run) -> str:
    """Why a run is left as it is: stopped, paused, renamed, deleted."""
    someone = visitor()
    if run.packaged:
        return f"{run.name} comes with the installed package, so it can only be looked at."
    if someone.role == "owner" or (someone.name and menu.guest_of(run) == someone.name):
        return ""
    return LOOKING if someone.role == "viewer" else f"{run.name} is not yours, so you can only look at it."


def may_train() -> bool:
    """Is there anything that this session can train?"""
    return visitor().role != "viewer"


def to_resume(run: Run) -> str:
    """Why a training does not go on."""
    someone = visitor()
    why = to_change(run)
    if why or someone.role == "owner" or run.state.live:
        return why
    return _too_many(someone, 1)


def to_train(configs: Sequence[RunConfig] = ()) -> str:
    """Why nothing is trained, or not these."""
    someone = visitor()
    if someone.role == "owner":
        return ""
    if someone.role == "viewer":
        return LOOKING
    for config in configs:
        if why := _too_large(config):
            return why
    if why := _too_many(someone, max(1, len(configs))):
        return why
    own = len(listing(menu.folder_of(someone.name)).readable)
    if own + max(1, len(configs)) > KEPT:
        return f"A guest keeps at most {KEPT} runs, and you have {own}: delete one on the page Runs and races."
    if configs and len(menu.of_guests()) + len(configs) > OF_ALL:
        return f"This server keeps {OF_ALL} runs of guests at most, and has them already: try again later."
    return ""


def _too_many(someone: Visitor, more: int) -> str:
    """Why a guest cannot have so many trainings more at once, those of other servers on the same folder included."""
    own = listing(menu.folder_of(someone.name)).readable
    under_way = sum(each.run.under_way or each.run.waiting for each in own)
    live = max(under_way, background.pool.live(someone.name))
    if live + more <= AT_ONCE:
        return ""
    return f"A guest has at most {AT_ONCE} trainings at once, and you have {live}: wait until one ends."


def _too_large(config: RunConfig) -> str:
    """Which setting is larger than a guest's may be."""
    parts = (config.model, config.task, config.training)
    for field, (things, most) in MOST.items():
        value = next(getattr(part, field) for part in parts if hasattr(part, field))
        if value > most:
            return f"A guest's training has at most {most:,} {things}, and this one has {value:,}."
    tokens = config.training.max_steps * config.training.batch_size * config.task.length
    if tokens > MOST_TOKENS:
        return f"A guest's training reads at most {MOST_TOKENS:,} tokens, and this one {tokens:,}: take fewer steps."
    return ""


def to_run_code() -> str:
    """Why code that this session hands in is not run.

    It is run for whoever sits at the machine of a server that nobody else reaches, and owns it; where the operator says
    so, for all but viewers.
    """
    someone = visitor()
    if someone.role == "viewer":
        return LOOKING
    here = someone.role == "owner" and roles.is_alone() and _is_from_here()
    return "" if roles.lets_code_run() or here else NO_CODE


def _is_from_here() -> bool:
    if not is_served():
        return True
    headers = {name.lower(): value for name, value in st.context.headers.items()}
    return bool(headers) and roles.is_from_here(headers)


def owners(answer: Callable[P, None]) -> Callable[P, None]:
    """An answer to a click that only the owner's gets; for all others the control is disabled, and says why."""

    @wraps(answer)
    def answer_owner(*args: P.args, **kwargs: P.kwargs) -> None:
        if visitor().role == "owner":
            answer(*args, **kwargs)

    return answer_owner


def require(why: str) -> None:
    """Raises Refused where something stands against it."""
    if why:
        raise Refused(why.rstrip("."))
