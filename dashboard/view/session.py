"""The session: where the view is kept, how it gets into the URL and back, and what it means."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import numpy as np
import streamlit as st

from dashboard.components.origin import Maker, origin_element
from dashboard.models import menu as model_menu
from dashboard.models.menu import Choice
from dashboard.models.model import Model
from dashboard.models.passages import parsed
from dashboard.server.streamlit_private import is_visited, went_back
from dashboard.view import permission
from dashboard.view.clicks import touch
from dashboard.view.link import FIELDS, OF_MODEL, View, from_query
from dashboard.view.pages import OVERVIEW
from dashboard.view.settings import AROUND, Own

if TYPE_CHECKING:
    from transformer.tasks import Question


BEHIND = 0.5
"""Seconds after its first look at a model for which a page keeps back what nobody needs at once."""
JUST_WRITTEN, UNHEARD = 1.0, 10.0
"""Seconds after which an address of before is that of a link: once the browser has named the new one, and else."""
AT_MOST_BEHIND = 8
"""Addresses that are remembered after they were written over: a browser is not further behind."""


# --- the view


def begin(page: str, *, imported: bool = False) -> None:
    """Start a rerun: read the URL when the session begins, and when the reader went back or changed it.

    The browser may still send the URL of a moment ago. So unless the reader went back, a rerun that a widget caused
    never reads it, and none reads one that was just written over: the new one is written again. What was chosen inside
    a run means nothing on a page about an `imported` model: it is laid aside there, and taken up again after.
    """
    state, query = st.session_state, st.query_params.to_dict()
    touched, moved = state.pop("touched", False) and not went_back(), state.get("page") != page
    another, opened = imported != state.get("imported", imported), "settings" not in state
    state.page, state.around, state.imported, state.maker = page, None, imported, None
    listen()
    state.heard = state.get("heard", False) or query == state.get("written")
    unheard = not opened and _is_unheard_of(query)
    read = opened or bool(query and not touched and query != state.get("written") and not unheard)
    if read:
        state.settings, found = from_query(query)
        for sentence in found:
            notice(sentence)
        state.written = query  # so that going forward again is read as well
        state.pop("aside", None)
    elif another:
        view, (models, aside) = state.settings, state.get("aside") or (None, {})
        now = view.run, view.imported
        state.aside = now, {name: getattr(view, name) for name in OF_MODEL}
        state.settings = view.with_(**(aside if models == now else OF_MODEL))
    if moved or read:
        state.is_addressed = read
    state.listed = _listed()  # first: of a run that gets its weights just now the menu may know, and the list not
    state.menu = _menu()
    if opened and not query and page == OVERVIEW.title and model_menu.OPENING in state.menu:
        state.settings = state.settings.with_(run=model_menu.OPENING)
    # "write" may be of a rerun that was cut off before its end, or of a part of the page.
    state.write = touched or moved or (not read and (unheard or state.get("write", False)))


def end() -> None:
    """End a rerun: make the URL say what the view is.

    Not after the reader went back to an address without a view: writing there would lock the way back.
    """
    state = st.session_state
    query, found = _query(), st.query_params.to_dict()
    to_write = [state.pop(each, False) for each in ("write", "touched")]
    if any(to_write) and found != query:
        st.query_params.from_dict(query)
        state.written_over = [each for each in state.get("written_over", []) if each != query][1 - AT_MOST_BEHIND :]
        state.written_over += [found]
        state.written, state.written_at, state.heard = query, time.monotonic(), False


def _is_unheard_of(query: dict[str, str]) -> bool:
    """Whether a request names no address, or one that was just written over: the browser may know of no other.

    What a run sends at its end gets lost where another request comes at that moment. A busy browser hears of it late.
    """
    state = st.session_state
    if query == state.get("written") or went_back():
        return False
    patience = JUST_WRITTEN if state.heard else UNHEARD
    just = time.monotonic() - state.get("written_at", -math.inf) < patience
    return not query or (just and query in state.get("written_over", []))


def _menu() -> dict[str, Choice]:
    """The models that this session can look at."""
    return model_menu.menu(permission.visitor().name, st.session_state.settings.run, permission.may_train())


def _query() -> dict[str, str]:
    """What the URL says; what a training panel only offers is no part of it."""
    view: View = st.session_state.settings
    return {"run": chosen().name, **view.to_query()}


def _whole_query() -> dict[str, str]:
    """The same with the step, also where it is the last: a training may go on."""
    return {**_query(), "step": str(chosen().step)}


def query(**changes: object) -> dict[str, str]:
    """This view with some changes, as a link to a page says it: `st.page_link(…, query_params=query(mask="full"))`."""
    return {"run": chosen().name, **settings().with_(**changes).to_query()}


def link(address: str) -> str:
    """This view on a page, as a link below the application's root."""
    return f"{address}?{urlencode(_whole_query())}"


def first_look() -> bool:
    """Does this session see this model for the first time? Then what takes a while to measure or to fetch follows.

    A page that is opened for nobody keeps nothing back: it is opened to be measured.
    """
    return bool(BEHIND) and is_visited() and st.session_state.get("seen") != chosen()


def is_shown_around_otherwise() -> bool:
    """Does what stands around the page show another model, input, setting or list of runs than now holds?

    Only a rerun of the page alone can find that; in a rerun of everything it is about to be drawn.
    """
    return st.session_state.around is not None and st.session_state.around != _around(_listed())


def _listed() -> list[str]:
    """The runs that this session can look at, unread."""
    return model_menu.with_weights(permission.visitor().name)


def _around(listed: list[str]) -> object:
    view = settings()
    asked = (view.head, view.measured_length) if view.predict else None  # another answer is to be predicted
    return [getattr(view, name) for name in AROUND], asked, started(), listed


def finish() -> None:
    """End a rerun of everything."""
    st.session_state.around = _around(st.session_state.listed)


def saw(model: Model) -> None:
    """Note that this session has looked at a model: from now on the page keeps nothing back."""
    st.session_state.seen = model


def origin() -> str:
    """Where the numbers of this page come from, as an element of it: the view's link and its model.

    To be written when the page is drawn: by then every part of the view that could not be had is replaced.
    """
    if st.session_state.imported:
        maker: Maker | None = st.session_state.maker
        return origin_element(_query(), [maker] if maker else [])
    return origin_element(_whole_query(), [chosen().maker()])


def made_by(maker: Maker) -> None:
    """Say whose numbers this page shows, where they are not those of a run."""
    st.session_state.maker = maker


def settings() -> View:
    """The view of this session; over it lies what is offered for training, as long as nothing was said of that."""
    state = st.session_state
    view: View = state.settings
    return view.with_(**state.offered) if state.get("offered") else view


def mine(kind: type[Own]) -> Own:
    """What of the view a page keeps for itself: `mine(CornersSettings)`, of the page's own `settings.py`."""
    return settings().of(kind)


def update(**changes: object) -> None:
    """Change the view. Who changes some of what is offered for training has chosen the rest of it."""
    state = st.session_state
    if not changes.keys().isdisjoint(offered := state.get("offered") or {}):
        state.offered, changes = {}, offered | changes
    state.settings = state.settings.with_(**changes)
    touch()


def show(view: View) -> None:
    """Look at another view, whatever was looked at before."""
    st.session_state.offered = {}
    st.session_state.settings = view
    touch()


def named(field: str, menu: Container[Any], default: Any, missing: Callable[[Any], str]) -> Any:
    """What a field of the view names of a menu; the field's own default, mostly empty, stands for `default`.

    What it names in vain falls back, and is said in the words of `missing`.
    """
    value, unset = getattr(settings(), field), FIELDS[field].default
    if value == unset:
        return default
    if value not in menu:
        notice(missing(value))
        update(**{field: unset})
        return default
    return value


def listen() -> None:
    """Begin to note what is said, in a rerun of everything or of the page alone: `again` says that once more."""
    st.session_state.said = []


def notices(place: str = "") -> list[str]:
    """What is to be said at a place, said once; without one, what the link asked for and could not have."""
    state = st.session_state
    waiting: list[tuple[str, str]] = state.get("notices", [])
    state.notices = [each for each in waiting if each[0] != place]
    state.said += (now := [each for each in waiting if each[0] == place])
    return [sentence for _, sentence in now]


def notice(sentence: str, place: str = "") -> None:
    """Let a sentence be said at a place, at the latest when that is drawn next."""
    st.session_state.setdefault("notices", []).append((place, sentence))


# --- the model


def choices() -> dict[str, Choice]:
    """The model menu, read from the disk once a rerun."""
    found: dict[str, Choice] = st.session_state.menu
    return found


def chosen() -> Model:
    """The model that the view names; what it names in vain falls back, with a notice."""
    view, menu = settings(), choices()
    first = next(iter(menu))
    name = view.run or first
    if name not in menu:
        notice(f"There is no run “{name}” here; this is {first}.")
        update(run="", step=None)
        return chosen()
    steps = menu[name].snapshots
    if view.step is not None and view.step not in steps:
        notice(f"{name} has no weights of step {view.step}; this is its last, {steps[-1]}.")
        update(step=None)
        return chosen()
    return Model.of(menu[name], steps[-1] if view.step is None else view.step)


def is_chosen_here() -> bool:
    """Was the model chosen for this page: by the address that led here, or on it? Else it came along from another."""
    return bool(settings().run) and bool(st.session_state.get("is_addressed"))


def open_run(name: str, **chosen_in_it: object) -> None:
    """Look at another model; what was chosen inside the one before means nothing in it, and is forgotten."""
    st.session_state.is_addressed = True
    update(**{**OF_MODEL, "run": name, **chosen_in_it})


def look_at_last_step(name: str) -> None:
    """Look at the last step of a run; what was chosen inside it stays, if it is the model shown."""
    if name == chosen().name:
        update(step=None)
    else:
        open_run(name)


# --- the input


def question(model: Model) -> Question:
    """The question of the view, or the model's own sample; an unusable one falls back, with a notice."""
    typed = settings().input
    if typed:
        try:
            return parsed(model.task, typed)
        except ValueError as error:
            notice(f"The input cannot be read: {error}.")
            update(input="")
    return model.task.example


def draw(model: Model, length: int | None = None) -> Question:
    """A question drawn at random; of a text, a passage of so many tokens or of as many as the present one has."""
    if model.task.lawful:
        length = model.task.length
    (drawn,) = model.task.draw(np.random.default_rng(), 1, length or len(question(model)))
    return drawn


def started() -> str | None:
    """The name of the run that this session started and still watches."""
    name: str | None = st.session_state.get("watched")
    return name
