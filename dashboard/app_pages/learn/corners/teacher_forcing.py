"""Teacher forcing on square corners: the measurement, its picture, and measuring anew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import streamlit as st

from dashboard.app_pages.learn.corners.figures import forcing_curves
from dashboard.app_pages.learn.corners.settings import CornersSettings
from dashboard.components.origin import Maker
from dashboard.components.plot import coloured, plot
from dashboard.figures.kit.numbers import signed
from dashboard.models import menu
from dashboard.models.background import Measuring
from dashboard.models.cache import cached
from dashboard.parts import waiting
from dashboard.parts.prose import plain
from dashboard.parts.widgets import barred, bound_choice
from dashboard.view import clicks, permission, session
from transformer.analysis.intervals import mean_interval
from transformer.corners import CornerConfig, floor
from transformer.experiments.teacher_forcing import Forcing, ForcingError, file_name, shared
from transformer.foundation.checks import reason
from transformer.foundation.claims import claim
from transformer.foundation.program import program
from transformer.training.runs import DEFAULT_ROOT

SHIPPED = tuple(DEFAULT_ROOT / f"{name}.json" for name in ("corners-narrow", "corners-none", "corners"))
"""States too narrow for what is to be remembered, the page's own settings, and these with attention."""
OWN = "above"
"""The settings of the page, as a case in a link."""
AGAIN = 1.0
"""Seconds between two looks at a measurement that is under way."""
ANOTHER = "Another measurement is running. This one can start after it."
measuring = Measuring("corners")


def section(config: CornerConfig) -> None:
    """What the probability does to the errors after training."""
    st.markdown("**What teacher forcing does**: five trainings with each p, then measured with and without help")
    found = forced(config)
    if found is None:
        st.caption("Not measured yet for this attention, width, number of corners and noise.")
    else:
        figure = coloured(
            forcing_curves,
            np.array(found.chances),
            found.errors(),
            found.errors(helped=True),
            floor=floor(config.noise),
            chosen=config.teacher_forcing,
        )
        said = sentence(found)
        makers = [Maker(f"{found.planned} GRUs on square corners", config.steps)]
        plot(figure, key="corners-forcing", alt=said, height=320, makers=makers)
        st.caption(f"{said} {made(found)}")
    anew(config, found)


def cases(config: CornerConfig) -> tuple[dict[str, Forcing], str]:
    """The measurements that are shipped, by name; and which of them, or OWN, is shown first.

    A page as it opens shows the first of the shipped; once its settings are others, it shows theirs.
    """
    measured = {path.stem: found for path in SHIPPED if (found := forced_in(path)) is not None and found.complete}
    untouched = shared(config) == shared(CornersSettings().corner_config())
    return measured, next(iter(measured), OWN) if untouched else OWN


def choose(config: CornerConfig) -> None:
    """The choice of the settings that are shown."""
    measured, first = cases(config)
    names = {OWN: "the settings below"} | {stem: case(found) for stem, found in measured.items()}
    bound_choice(
        st.selectbox,
        "Measured with",
        "corner_case",
        [*measured, OWN],
        first,
        format_func=names.__getitem__,
        label_visibility="collapsed",
        width=410,
    )


def chosen(config: CornerConfig) -> CornerConfig:
    """The settings that are shown, of the page or of a shipped measurement, with teacher forcing alone (p = 1)."""
    measured, first = cases(config)
    asked = session.mine(CornersSettings).corner_case
    stem = asked if asked in {*measured, OWN} else first
    return replace(config if stem == OWN else measured[stem].config, teacher_forcing=1.0, seed=config.seed)


def anew(config: CornerConfig, found: Forcing | None) -> None:
    """The button, and how far the measurement is."""
    path = own(config)
    if measuring.running and measuring.path != path:
        waiting.until(
            lambda: not measuring.running or measuring.path == path,
            lambda: st.caption(ANOTHER),
            news=lambda: (measuring.running, measuring.path),
            every=AGAIN,
        )
        return
    left, right = st.columns([1, 3], vertical_alignment="center")
    closed = barred(permission.for_the_owner("measure anew"))
    if measuring.running:
        left.button("Stop measuring", icon=":material/stop:", on_click=stop, args=(path,), width="stretch", **closed)
        with right:
            waiting.until(
                lambda: not (measuring.running and measuring.path == path),
                lambda: progress(path),
                news=measuring.progress,
                every=AGAIN,
            )
        return
    label = "Measure" if found is None else "Measure again"
    left.button(label, icon=":material/refresh:", on_click=begin, args=(config,), width="stretch", **closed)
    command = " ".join([program(), "corners", *options(config)])
    broken = measuring.failed and not measuring.stopped and measuring.path == path
    cut = f"The last measurement was interrupted{plain(measuring.why)}. " if broken else ""
    right.caption(f"{cut}Trains 25 GRUs in the background. On a command line: {command}")


def progress(path: Path) -> None:
    """How many trainings are done."""
    try:
        found = Forcing.load(path)
        done, planned = len(found.trials), found.planned
    except ForcingError:
        done, planned = 0, 0
    st.progress(done / max(1, planned), text=f"{done} of {planned} trainings" if planned else "starting …")


@clicks.once
@permission.owners
def begin(config: CornerConfig) -> None:
    """Measure in a process of its own."""
    if measuring.running and measuring.path != own(config):
        session.notice(ANOTHER)
        return
    try:
        measuring.start(own(config), *options(config))
    except OSError as error:
        session.notice(f"The measurement could not start: {reason(error)}.")


@permission.owners
def stop(path: Path) -> None:
    """End this measurement, and no other that has begun since."""
    if measuring.path == path:
        measuring.stop()


# --- what was measured, and its words


def own(config: CornerConfig) -> Path:
    """Where a measurement of these settings is kept."""
    return menu.ROOT / file_name(config)


def forced_in(path: Path) -> Forcing | None:
    """The measurement in a file, if it holds one."""
    try:
        return load(path, path.stat().st_mtime)
    except (OSError, ForcingError):
        return None


@cached(32)
def load(path: Path, stamp: float) -> Forcing:
    """A measurement, read once for each time (`stamp`) it was written. Raises ForcingError with one sentence."""
    return Forcing.load(path)


def forced(config: CornerConfig) -> Forcing | None:
    """What teacher forcing does with these settings, measured here or shipped; None where nobody has measured.

    A measurement that is not complete is taken only where there is none that is.
    """
    partial: Forcing | None = None
    for path in (own(config), *SHIPPED):
        found = forced_in(path)
        if found is None or found.config != shared(config):
            continue
        if found.complete:
            return found
        if found.trials:
            partial = partial or found
    return partial


def options(config: CornerConfig) -> list[str]:
    """The settings as the command line takes them."""
    return [
        *("--d-model", str(config.d_model), "--attention", config.attention),
        "--affine" if config.affine else "--no-affine",
        *("--most", str(config.most), "--noise", str(config.noise)),
    ]


def measured_seeds(found: Forcing) -> np.ndarray:
    """bool [seed]: was it trained with the first and with the last of the probabilities?"""
    seeds: np.ndarray = np.isfinite(found.errors()[[0, -1]]).all(axis=0)
    return seeds


def sign(interval: tuple[float, float, float]) -> int:
    """1 where a mean is above 0, -1 where it is below, 0 where its interval holds 0, or is not known."""
    _, low, high = interval
    return 1 if low > 0 else -1 if high < 0 else 0


@claim
def case(found: Forcing) -> str:
    """Settings in a few words, and what teacher forcing does with them."""
    config, free, whole = found.config, found.errors(), measured_seeds(found)
    does = {0: "no difference", 1: "costs error", -1: "saves error"}[sign(mean_interval((free[-1] - free[0])[whole]))]
    attention = "no attention" if config.attention == "none" else f"{config.attention} attention"
    return f"{attention}, width {config.d_model}, up to {config.most} corners: {does}"


@claim
def sentence(found: Forcing) -> str:
    """What the probability does to the free-running error, from the numbers."""
    free, helped = found.errors(), found.errors(helped=True)
    whole = measured_seeds(found)
    if whole.sum() < 2:
        return f"{len(found.trials)} of {found.planned} trainings are done."
    never, always = free[0, whole], free[-1, whole]
    difference = mean_interval(always - never)
    verdict = {
        0: "these seeds show no difference",
        1: "teacher forcing costs free-running error",
        -1: "teacher forcing saves free-running error",
    }[sign(difference)]
    change, least, most = (signed(value, 3, plus=True) for value in difference)
    told, used = helped[0, whole].mean(), helped[-1, whole].mean()
    return (
        f"Free-running, the error is {never.mean():.3f} after training without true corners (p = "
        f"{found.chances[0]:g}) and {always.mean():.3f} after training with them (p = {found.chances[-1]:g}). The "
        f"difference is {change} (95 % interval {least} to {most}, {int(whole.sum())} seeds): {verdict}. "
        f"With the true first corner, the errors are {told:.3f} and {used:.3f}."
    )


def made(found: Forcing) -> str:
    """What stands behind the numbers."""
    spent = sum(trial.seconds for trial in found.trials)
    missing = "" if found.complete else f" Only {len(found.trials)} of {found.planned} trainings ran."
    return (
        f"{len(found.chances)} probabilities × {len(found.seeds)} seeds, {found.config.steps} steps of "
        f"{found.config.batch_size} walks each. Each point: {found.sequences:,} fresh walks. {spent:.0f} s of "
        "training, "
        f"torch {found.versions.get('torch', '?')}.{missing}"
    )
