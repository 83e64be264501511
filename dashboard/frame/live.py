"""Training as it happens, at the lower edge of the window, drawn anew as the files of a run change.

While it goes on its pictures stand over one line. A short one is then replayed once. At last the line stands alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from dashboard.components.film import LENGTH
from dashboard.components.payload import pack
from dashboard.components.presses import counted_button
from dashboard.components.registration import renderer
from dashboard.frame import live_pictures, training_panel
from dashboard.lectures.shelf import lectures
from dashboard.models import menu
from dashboard.models.progress import Training
from dashboard.parts.prose import plain
from dashboard.parts.redrawing import redraw_on_news
from dashboard.parts.text import newest, whole
from dashboard.parts.widgets import barred
from dashboard.server import background
from dashboard.server.deadlines import deadlines
from dashboard.view import clicks, permission, session, training
from dashboard.view.pages import PAGES, Page
from transformer.analysis.accuracy.ceilings import ceiling
from transformer.config import RunConfig
from transformer.training.queue import warm_ups
from transformer.training.runs import Run, State

REFRESH, SELDOM = 0.25, 1.0
"""Seconds between two drawings at least: at first, and of a training that takes long, for drawing costs it steps."""
LONG = 4.0
"""Seconds of training after which one takes long."""
OBEDIENCE = 0.3
"""Seconds for which a click waits to be obeyed, so that it is answered by what it did."""
WORDS, PACE = 450, 200
"""Pixels of the headline and of the pace; what has no room beside them goes to a second line."""
RACES = "runs"
"""The address of the page that shows several trainings at once."""
FILM = LENGTH / 1000
"""Seconds of a replay; a training that took longer was followed while it went on."""
AFTERWARDS = 3.0
"""Seconds after its end for which a run's film is waited for, unless its process still holds it."""


def panel(page: Page) -> None:
    """Show the training that this session started or chose to watch, until it is put away; one line for another's.

    Its place is there before it: what comes and goes in it puts nothing else of the page into another place. On the
    page of races it is a line without pictures, and nothing once it is over.
    """
    place, run = st.container(key="training-dock"), training.watched()
    if run is None:
        return
    with place:
        if run.name not in (session.started(), st.session_state.get("watching")):
            if run.state.live:
                redraw_on_news(partial(_of_another, run.name), every=SELDOM, news=Training(run))
        elif not _is_taken_over(run) or _is_spoken_of(run, page):
            with st.container(key="training"):
                _uncover(f"{run.name} {st.session_state.get('watched_since')}")
                redraw_on_news(partial(_watch, run.name, page), every=partial(_interval, run), news=_News(run))


def _is_taken_over(run: Run) -> bool:
    """Is it over, and has this session seen that?"""
    return not run.state.live and st.session_state.get("taken_over") == run.name


def _is_spoken_of(run: Run, page: Page) -> bool:
    """Does a training that is over concern this page: was it watched here, did it end here, or is its model shown?"""
    shown = bool(page.follows) and not page.imported and session.chosen().name == run.name
    ended_here = st.session_state.get("ended_on") == page.title
    return page.address != RACES and (shown or ended_here or _is_watched_on(page))


def _is_watched_on(page: Page) -> bool:
    """Was the training begun on this page, and has it its pictures there?"""
    return page.address != RACES and st.session_state.get("watched_on") == page.title


def _uncover(what: str) -> None:
    """Close the sidebar where it lies over the page, once for each name of what has come there."""
    mount = renderer("arrival", html='<div class="al-arrival" aria-hidden="true"></div>', isolate_styles=False)
    mount(key="arrival-training", data=pack({"what": what}, b""))


@dataclass(frozen=True)
class _News:
    """How far a training is, and whether the time is over in which its film may still come."""

    run: Run

    def __call__(self) -> tuple[object, ...]:
        late = time.time() - self.run.state.heartbeat >= AFTERWARDS and not self.run.state.live
        return Training(self.run)(), late


def _of_another(name: str) -> None:
    """One quiet line for a training that this session did not start, and the button that shows it as one's own is."""
    run = menu.run_called(name)
    state = run.state
    if not state.live or st.session_state.get("watching") == name:
        clicks.again()  # the line goes: the run's result is in the menus, or its panel comes
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="training-of-another"):
        doing = _what_it_waits_for(run) if state.status == "queued" else f"is in training, at step {state.step}"
        st.caption(f":material/model_training: **{plain(name)}** {doing}.", width="content")
        st.button("Watch", on_click=_watch_another, args=(name,), type="tertiary", key="watch")


@clicks.once
def _watch_another(name: str) -> None:
    st.session_state.watching = name
    st.session_state.watched_on = st.session_state.page


def _watch(name: str, page: Page) -> None:
    began = time.perf_counter()
    run = menu.run_called(name)
    own = session.started() == name
    state, metrics = run.state, run.metrics()
    longest = _longest() if own else None
    if own:
        deadlines.set(run, st.session_state.get("watched_since", time.monotonic()), longest)
    cut = own and deadlines.seconds_of_cut(run)
    lost = bool(cut) or not _has_result(run, state)
    if not state.live and st.session_state.get("taken_over") != name:
        # Its last step is on disk: choose it, and give the sidebar its Train button back.
        if own and _has_result(run, state) and not cut:
            session.look_at_last_step(name)
        if own and (lost if longest is not None and lost else _was_quick(run, metrics)):
            st.session_state.replay = name
        st.session_state.ended_on = page.title
        st.session_state.taken_over = name  # last: the next run does all of it again where this one is broken off
        clicks.again()
    if not state.live and st.session_state.get("awaited") == name and not _film_is_coming(run):
        st.session_state.awaited = None
        clicks.again()  # it is there: nothing is left to wait for
    shown = _is_watched_on(page)
    if not shown and st.session_state.get("replay") == name:
        st.session_state.pop("replay")  # the reader has gone on
    filmed = None if state.live else _filmed(run, page, lost=lost, lectured=longest is not None)
    _line(run, state, metrics, own, page, again=filmed is not None)
    if state.live and shown:
        with st.container(key="training-pictures"):
            live_pictures.training(run, metrics)
            share, words = progress(run.config, state.step, metrics)
            st.progress(share, text=words)
            live_pictures.panel(run, state, metrics, began)
    elif filmed is not None and shown and st.session_state.get("replay") == name:
        with st.container(key="training-pictures-replay"):
            if filmed.name != name:
                st.markdown(f"In its place, the film of **{plain(filmed.name)}**, which was trained before:")
            live_pictures.replay(filmed, _end_replay)


def _was_quick(run: Run, metrics: list[dict[str, Any]]) -> bool:
    """Did a training come to its end before an eye could follow it? Then it is shown once more, as slow as a film."""
    at_full_speed = run.control.pace is None and run.control.pause_at is None
    return run.state.status == "finished" and at_full_speed and bool(metrics) and metrics[-1]["seconds"] < FILM


def _filmed(run: Run, page: Page, *, lost: bool, lectured: bool) -> Run | None:
    """The run whose film can be shown after a training: its own. None without one, where it stands, and beside races.

    Of one that came to nothing in a lecture, that of the model which the pages show.
    """
    if page.address in ("film", RACES) or (lost and not lectured):
        return None
    shown = session.chosen().run if lost else run
    return shown if shown is not None and (shown.folder / "film.npz").exists() else None


@clicks.once
def _play_again(name: str) -> None:
    """Show the film on this page, over its lower part, until a key or a click."""
    st.session_state.replay, st.session_state.watched_on = name, st.session_state.page


def _end_replay() -> None:
    """Let the line alone stand."""
    clicks.touch()
    st.session_state.pop("replay", None)


def _longest() -> int | None:
    """Seconds that a training may take in the lecture that is followed; None outside a lecture and while exploring."""
    view = session.settings()
    lecture = lectures().files.get(view.lecture) if view.lecture and not view.exploring else None
    return None if lecture is None else lecture.training


def _interval(run: Run) -> float | None:
    """Seconds until the next drawing at least; None when there is nothing more to be seen."""
    state, metrics = run.state, run.metrics()
    if not state.live:
        return REFRESH if _film_is_coming(run) else None
    at_full_speed = state.status == "running" and run.control.pace is None
    return SELDOM if at_full_speed and metrics and metrics[-1]["seconds"] > LONG else REFRESH


def _film_is_coming(run: Run) -> bool:
    """Is its process still at work on the film, or about to be?"""
    missing = not run.state.live and not (run.folder / "film.npz").exists()
    coming = missing and (run.waiting or time.time() - run.state.heartbeat < AFTERWARDS)
    if coming:
        st.session_state.awaited = run.name
    return coming


def _line(run: Run, state: State, metrics: list[dict[str, Any]], own: bool, page: Page, *, again: bool) -> None:
    """What is going on, and the buttons that change it; whose training it is not only looks.

    Of a training that is over: how it ended, and the ways to its film, if there is one.
    """
    why = permission.to_resume(run)
    options = barred(why)
    if not state.live:
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key="training-end"):
            st.markdown(_headline(run, state, metrics, own), width="content")
            if own and session.chosen().name == run.name and _has_result(run, state):
                st.container(width="content", key="training-taken").caption("The pages now show it.")
            if again:
                st.button("Again", type="tertiary", on_click=_play_again, args=(run.name,), key="training-again")
            if session.chosen().name == run.name and _has_result(run, state) and page.address != "film":
                st.page_link(PAGES["film"].script, label="Film", width="content")
            if run.resumable:
                st.button("Resume", type="tertiary", on_click=training.resume, args=(run,), key="resume", **options)
            if st.button("", icon=":material/close:", help="Close this line", type="tertiary", key="put-away"):
                _put_away()
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.container(width=WORDS).markdown(_headline(run, state, metrics, own))
        with st.container(width=PACE):
            training_panel.pick_pace(run, why)
        if state.status == "paused":
            st.button(
                "Resume", icon=":material/resume:", on_click=_go_on, args=(run,), shortcut="P", key="go-on", **options
            )
        else:
            st.button(
                "Pause", icon=":material/pause:", on_click=_pause, args=(run,), shortcut="P", key="pause", **options
            )
        if not why:
            counted_button(
                "Step",
                lambda presses: _step(run, presses),
                key="one-step",
                icon="skip_next",
                letter="N",
                help_="Take one step and pause",
                first=True,
                width="content",
            )
        st.button("Stop", icon=":material/stop:", on_click=training.stop, args=(run,), key="stop", **options)


def _pause(run: Run) -> None:
    training.ask(run, pause_at=0)
    _obeyed(lambda: run.state.status != "running")


def _step(run: Run, presses: int) -> None:
    """A step more for each press, however far it is: the count of the control file, not of this page."""
    clicks.touch()
    step = max(run.state.step, run.control.pause_at or 0) + presses
    training.ask(run, pause_at=step)
    _obeyed(lambda: run.state.step >= step)


def _obeyed(done: Callable[[], bool]) -> None:
    """Wait a little until it is done."""
    deadline = time.monotonic() + OBEDIENCE
    while not done() and time.monotonic() < deadline:
        time.sleep(0.01)


def _go_on(run: Run) -> None:
    """Without end, at the view's pace; by key, that is as fast as it can."""
    if not run.waiting:
        training.resume(run)
        return
    training.ask(run, pause_at=None)


def progress(config: RunConfig, step: int, metrics: list[dict[str, Any]]) -> tuple[float, str]:
    """How far a training is, 0 to 1, and what that measures: what is known of what can be; of a text, the steps.

    A training with a law ends when all is known, mostly long before its last step.
    """
    task = config.build_task()
    if not task.lawful:
        return step / config.training.max_steps, f"Step {step} of {config.training.max_steps}"
    measured = next((m["accuracy"] for m in reversed(metrics) if "accuracy" in m), None)
    if measured is None:
        return 0.0, "Accuracy: not measured yet"
    room = np.maximum(ceiling(config).accuracy - task.chance, 0)
    if not room.any():
        return 0.0, "Accuracy: nothing better than guessing is possible"
    share = float(np.clip(np.array(measured) - task.chance, 0, room).sum() / room.sum())
    return share, f"Accuracy: {share:.0%} of the way from guessing to the best possible".replace("%", " %")


def _has_result(run: Run, state: State) -> bool:
    """Is there something trained to look at?"""
    return state.status in ("finished", "stopped") and bool(run.snapshots())


def _headline(run: Run, state: State, metrics: list[dict[str, Any]], own: bool) -> str:
    most = run.config.training.max_steps
    last = metrics[-1] if metrics else {"step": 0, "seconds": 0.0}
    name, reason, cut = plain(run.name), plain(state.reason or state.status), deadlines.seconds_of_cut(run)
    if cut:
        reason = f"stopped at step {state.step}, because {'this' if own else 'its'} lecture gives a training {cut} s"
    if state.status == "queued":
        return f"**{name}** {_what_it_waits_for(run)} …"
    if state.status == "measuring":
        return f"**{name}**: {reason}. Measuring it …"
    if state.status == "paused" and run.waiting and run.control.pause_at is None and not run.control.stop:
        return f"**{name}** goes on at step {state.step} as soon as another training makes room …"
    if state.status == "paused":
        return f"**{name}** is paused at step {state.step} of at most {most}."
    read = newest(metrics)
    if state.status == "running":
        said = f"step {last['step']} of {'' if read else 'at most '}{most}, {last['seconds']:.1f} s"
        return f"**{name}** is training: {said}{f': {read}' if read else ''}"
    mark = ":green[:material/check_circle:]" if state.status == "finished" else ":orange[:material/info:]"
    if read and run.evaluation:
        reason = f"{reason}, {whole(run.evaluation)}"
    return f"{mark} **{name}:** {reason}."


def _what_it_waits_for(run: Run) -> str:
    """A turn in the queue, or a process that is being made ready, and how long that usually takes on this machine."""
    if background.pool.preparing(run):
        usual = warm_ups.usual()
        told = "" if usual is None else f" (usually {_in_seconds(usual)} on this machine)"
        return f"is waiting until its training process is ready{told}"
    place, waiting = background.pool.place(run)
    where = f", number {place} of {waiting} in the queue" if place else ""
    return f"is waiting for its turn{where}"


def _in_seconds(seconds: float) -> str:
    """A time in words, to the second: "6 s", "less than 1 s"."""
    return f"{seconds:.0f} s" if seconds >= 1 else "less than 1 s"


def _put_away() -> None:
    """Forget the run; the whole page is drawn again, for the panel is not only this fragment."""
    for key in ("watched", "watching", "found", "replay"):
        st.session_state.pop(key, None)
    clicks.again()
