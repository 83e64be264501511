"""A population of what the training panel describes: every combination of what varies, from many seeds."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import streamlit as st

from dashboard.app_pages.training.runs.settings import RunsSettings
from dashboard.models import menu
from dashboard.models.background import Measuring
from dashboard.parts import waiting
from dashboard.parts.prose import encoding_name, plain, sentence
from dashboard.parts.widgets import barred, bound, controlled
from dashboard.view import clicks, permission, session
from dashboard.view.pages import PAGES
from transformer.config import ConfigError, RunConfig
from transformer.experiments.populations.plan import FIELDS, Sweep, Value, default_of, shown
from transformer.experiments.populations.table import Population
from transformer.foundation.checks import UserError, reason
from transformer.foundation.words import counted
from transformer.positions import ENCODINGS

AGAIN = 1.0
"""Seconds between two looks at a population that is trained."""
sweeping = Measuring("sweep", grows=False)
OVER: dict[str, tuple[str, tuple[Any, ...]]] = {
    "positions": ("positions", ENCODINGS.names()),
    "n_heads": ("heads", (1, 2, 4)),
    "n_layers": ("layers", (1, 2, 3)),
    "mask": ("mask", ("causal", "full")),
}
"""What may vary: its name on the screen, and its values."""
OVER_RECURRENT: dict[str, tuple[str, tuple[Any, ...]]] = {
    "attention": ("attention", ("none", "dot", "scaled-dot", "additive")),
    "teacher_forcing": ("teacher forcing", (1.0, 0.5, 0.0)),
}
"""The same of a recurrent network."""
RESOLVED = ("decay_after",)
"""Settings that follow from others, and are decided for each combination anew."""


def planned(config: RunConfig, over: tuple[str, ...], seeds: int) -> Sweep:
    """The sweep of a run's settings, from its seed on. Raises ConfigError when it is too large."""
    menu_of = OVER_RECURRENT if config.model.recurrent else OVER
    varied = {name: menu_of[name][1] for name in over}
    own: dict[str, Any] = {}
    for part in (config.task, config.model, config.training):
        own |= asdict(part)
    fixed = {
        name: value
        for name, value in own.items()
        if name in FIELDS and name not in (*varied, *RESOLVED) and value != default_of(name)
    }
    first = config.training.seed
    return Sweep(varied, tuple(range(first, first + seeds)), fixed)


def options(sweep: Sweep) -> list[str]:
    """The words of the command that trains it."""
    words = ["--seeds", f"{sweep.seeds[0]}-{sweep.seeds[-1]}"]
    for name, values in {**{name: (value,) for name, value in sweep.fixed.items()}, **sweep.varied}.items():
        words += [f"--{name.replace('_', '-')}", ",".join(map(shown, values))]
    return words


def panel(config: RunConfig) -> None:
    """What varies, from how many seeds, and the button; while one is trained, how far it is."""
    with st.expander("A population: many seeds, and settings that vary", icon=":material/groups:"):
        if sweeping.running:
            _under_way()
            return
        over = _over(config)
        bound(st.number_input, "Seeds", "sweep_seeds", step=1)
        try:
            plan = planned(config, over, session.mine(RunsSettings).sweep_seeds)
        except ConfigError as error:
            st.caption(f":material/info: {sentence(plain(str(error)))}")
            return
        left, right = st.columns([1, 2.4], vertical_alignment="center")
        left.button(
            "Train all of these",
            icon=":material/groups:",
            on_click=begin,
            args=(plan,),
            width="stretch",
            key="train-population",
            **barred(permission.for_the_owner("train a population")),
        )
        right.caption(_told(plan))
        for problem in plan.problems():
            st.caption(f":material/info: Left out: {plain(problem)}.")
        if _cut_off():
            cut = f":material/warning: The last population was cut off{plain(sweeping.why)}."
            st.caption(f"{cut} Its members that have ended are kept.")


def _over(config: RunConfig) -> tuple[str, ...]:
    """What varies, as the view says or the reader picks."""
    known = OVER_RECURRENT if config.model.recurrent else OVER
    named = tuple(name for name in session.mine(RunsSettings).sweep_over.split(",") if name in known)
    controlled(
        st.pills,
        "What varies",
        list(known),
        key="control-sweep-over",
        value=list(named),
        picked=lambda wanted: session.update(sweep_over=",".join(wanted or ())),
        selection_mode="multi",
        required=False,
        format_func=lambda name: f"{known[name][0]}: {', '.join(map(_named, known[name][1]))}",
    )
    return named


def _named(value: Value) -> str:
    """A value where people read."""
    return encoding_name(value) if isinstance(value, str) and value in ENCODINGS else shown(value)


def _told(plan: Sweep) -> str:
    """What will be trained, in a sentence or two."""
    count = plan.combinations * len(plan.seeds)
    each = "" if plan.combinations == 1 else f", {plan.combinations} combinations of settings"
    return (
        f"{counted(count, 'training')}: {counted(len(plan.seeds), 'seed')}{each}. A process of its own trains "
        "them, and the page *Populations* shows them as they end."
    )


@clicks.once
@permission.owners
def begin(plan: Sweep) -> None:
    """Train it into a folder of its own, and look at the page that shows it."""
    folder = fresh(menu.ROOT)
    try:
        folder.mkdir(parents=True)
        plan.save(folder)
        sweeping.start(folder, *options(plan))
    except OSError as error:
        session.notice(f"The population was not begun: {reason(error)}.")
        return
    session.update(population=folder.name, combination="")


def fresh(root: Path) -> Path:
    """A folder's name for a new population."""
    return next(folder for number in range(1, 1_000_000) if not (folder := root / f"population-{number}").exists())


def _under_way() -> None:
    """How far it is, where it is shown, and the way to end it."""
    left, right = st.columns([1, 2.4], vertical_alignment="center")
    left.button(
        "Stop",
        icon=":material/stop:",
        on_click=permission.owners(sweeping.stop),
        width="stretch",
        key="stop-population",
        **barred(permission.for_the_owner("stop it")),
    )
    with right:
        waiting.until(lambda: not sweeping.running, _progress, news=sweeping.progress, every=AGAIN)
    st.page_link(PAGES["populations"].script, label="Look at it on the page Populations", icon=":material/groups:")


def _progress() -> None:
    """How many of them have ended."""
    found = _last()
    if found is None:
        st.progress(0.0, text="Starting …")
        return
    done, planned = len(found.rows), found.planned
    st.progress(done / planned, text=f"{done} of {planned} trainings have ended")


def _cut_off() -> bool:
    """Did the last one end before its time, and not by the button? One with members that failed has ended well."""
    found = _last()
    return sweeping.failed and not sweeping.stopped and (found is None or len(found.rows) < found.planned)


def _last() -> Population | None:
    """The population that was begun last, as it stands; None where there is none."""
    try:
        return None if sweeping.path is None else Population.load(sweeping.path)
    except UserError:
        return None
