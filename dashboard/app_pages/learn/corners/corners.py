"""Square corners: a GRU says how a walk goes on, in the plane, while it trains; its errors and where it looks."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from dashboard.app_pages.learn.corners import feeding, figures, roll_out, teacher_forcing, words
from dashboard.app_pages.learn.corners.settings import CornersSettings
from dashboard.components.origin import Maker
from dashboard.components.plot import coloured, plot
from dashboard.models.walks import corners as corners_lesson
from dashboard.models.walks.corners import Lesson, Replay, View
from dashboard.parts import waiting
from dashboard.parts.prose import plain, show_code
from dashboard.parts.widgets import bound, bound_choice, bound_number
from dashboard.server import background
from dashboard.view import clicks, session
from dashboard.view.link import limits
from transformer.config import ATTENTIONS
from transformer.corners import CornerConfig, every_walk, floor

if TYPE_CHECKING:
    from transformer.recurrent.corners import CornerStep


REFRESH = 0.3  # seconds between two looks at a training, a little more than the crosses fly
WIDE = 196  # pixels of a slider
AFRESH: dict[str, object] = {"corner_step": None}
WALKS, FORCING = "walks", "forcing"
PARTS = {WALKS: "The walks", FORCING: "Teacher forcing"}
"""What the page shows, by its name in a link."""

Moving = Lesson | Replay


# --- what is under way


def moving(config: CornerConfig) -> Moving | None:
    """The session's own training or replay of these settings, else everybody's; None until PyTorch is there."""
    if background.torch() is None:
        return None  # the rerun that follows the first look finds it
    own: Moving | None = st.session_state.get("corner_own")
    if own is not None and own.config == config:
        return own
    drop()
    return corners_lesson.taught(config)


def runs_on(shown: Moving | None) -> bool:
    """Is more to come?"""
    return shown is not None and shown.running


def drop() -> None:
    """Forget the session's own; a training that nobody watches ends."""
    own = st.session_state.pop("corner_own", None)
    if isinstance(own, Lesson):
        own.stop()


@clicks.once
def train() -> None:
    """Train anew, so slowly that one can watch."""
    drop()
    config = session.mine(CornersSettings).corner_config()
    st.session_state.corner_own = Lesson(config, corners_lesson.WATCHED)
    session.update(**AFRESH)


@clicks.once
def replay() -> None:
    """Show once more what was recorded."""
    shown = moving(session.mine(CornersSettings).corner_config())
    if shown is not None:
        lesson = shown if isinstance(shown, Lesson) else shown.lesson
        st.session_state.corner_own = Replay(lesson, time.monotonic(), corners_lesson.WATCHED)
        session.update(**AFRESH)


@clicks.once
def stop() -> None:
    """Stay at the step that is reached."""
    own: Moving | None = st.session_state.get("corner_own")
    if isinstance(own, Replay):
        reached = own.steps[-1].step
        st.session_state.corner_own = own.lesson
        session.update(corner_step=reached)
    elif own is not None:
        own.stop()


# --- what is shown


def part() -> str:
    """Of PARTS, the one that is shown: the walks, but for a link that names a measurement of teacher forcing."""
    named = session.mine(CornersSettings).corner_part
    return named if named in PARTS else first_part()


def first_part() -> str:
    return FORCING if session.mine(CornersSettings).corner_case else WALKS


def choose_part() -> None:
    """The choice of what is shown, under the title."""
    bound_choice(
        st.segmented_control,
        "Part",
        "corner_part",
        list(PARTS),
        first_part(),
        format_func=PARTS.__getitem__,
        label_visibility="collapsed",
    )


def drawn_as() -> tuple[str, str]:
    """What decides which parts of the page there are."""
    return part(), session.mine(CornersSettings).corner_case


# --- the pictures


def seen(config: CornerConfig, steps: Sequence[CornerStep], live: bool) -> View:
    """The walk and the step in view, of all that are recorded: while it is `live` the last."""
    mine, drawn = session.mine(CornersSettings), every_walk(config.most, config.noise)
    start, turn = corners_lesson.kinds().get(mine.corner_walk, (0, 1))
    place = drawn.which(start, turn, min(mine.corner_given or config.most, config.most))
    chosen = None if live else mine.corner_step
    step = next((each for each in steps if each.step == chosen), steps[-1] if steps else None)
    return View(config, drawn, place, step)


def pictures(config: CornerConfig, shown: Moving | None) -> None:
    """Everything that moves while it trains: the plane, the eight walks, the errors, the alignment."""
    live = runs_on(shown)
    steps = [] if shown is None else list(shown.steps)  # more may come at any moment
    view = seen(config, steps, live)
    makers = makers_of(view)
    st.title(words.title(view), anchor=False)
    choose_part()
    failure(shown)
    left, right = st.columns(2, gap="medium")
    with left:
        plane(view, live, makers)
    with right:
        looked_at(view, makers)
    left, right = st.columns(2, gap="medium")
    with left:
        panels(view, live, makers)
    with right:
        curves(view, steps, makers)
    st.caption(words.errors(view))


def failure(shown: Moving | None) -> None:
    """Why a training broke off, if it did."""
    if isinstance(shown, Lesson) and shown.failure:
        st.error(f"The training failed: {plain(shown.failure)}.", icon=":material/error:")


def feedings(config: CornerConfig, shown: Lesson | None) -> None:
    """What teacher forcing feeds, in the model that was trained with it alone."""
    view = seen(config, [] if shown is None else list(shown.steps), live=True)
    found = feeding.fed(view)
    st.title(feeding.QUESTION if found is None else feeding.headline(found), anchor=False)
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        choose_part()
        teacher_forcing.choose(session.mine(CornersSettings).corner_config())
    failure(shown)
    feeding.pictures(view, found, makers_of(view))


def looked_at(view: View, makers: list[Maker]) -> None:
    """What the decoder gets of the corners: the one vector, or all of them by attention."""
    if view.config.attention != "none":
        alignments(view, makers)
    elif view.step is not None and view.step.weights:
        states = roll_out.states(roll_out.opened(view.config, view.step, view.walk))
        said = words.squeezed(view.config, view.given)
        st.markdown("**All that is handed over**: the encoder's last state")
        plot(coloured(figures.handed_over_heatmap, states), key="corners-handed", alt=said, height=300, makers=makers)
        st.caption(f"{said} {words.without()}")
    elif view.step is not None:
        st.caption(f"{words.squeezed(view.config, view.given)} {words.without()}")


def makers_of(view: View) -> list[Maker]:
    """Whose numbers these are."""
    return [Maker("a GRU on square corners, trained on the spot", 0 if view.step is None else view.step.step)]


def reach(config: CornerConfig) -> float:
    """Half the side of the plane: with room for the noise and the numbers."""
    return 1.55 + 2 * config.noise


def plane(view: View, live: bool, makers: list[Maker]) -> None:
    """The walk in view, large."""
    figure = coloured(
        figures.walk_plane,
        view.walks.source[view.walk, : view.given],
        view.walks.target[view.walk],
        None if view.said is None else view.said[view.walk],
        view.walks.visited(view.walk),
        reach=reach(view.config),
        flying=live,
    )
    said = words.in_plane(view)
    plot(figure, key="corners-plane", alt=said, height=340, makers=makers)
    st.caption(f"{said} One GRU reads the given corners. Another predicts the next two, the second from its own first.")


def panels(view: View, live: bool, makers: list[Maker]) -> None:
    """All eight walks with as many given corners; a click chooses one."""
    alike, kinds = view.alike, list(corners_lesson.kinds())

    def clicked() -> None:
        click = st.session_state["corners-walks"]["click"]
        place = click.get("customdata") if click else None
        if isinstance(place, int) and 0 <= place < len(kinds):
            session.update(corner_walk="" if place == 0 else kinds[place])

    st.markdown("**Every walk**: clockwise, and anticlockwise")
    figure = coloured(
        figures.walk_panels,
        view.walks.source[alike, : view.given],
        view.walks.target[alike],
        None if view.said is None else view.said[alike],
        names=kinds,
        columns=len(corners_lesson.STARTS),
        chosen=int(np.flatnonzero(alike == view.walk)[0]),
        reach=reach(view.config),
        flying=live,
    )
    plot(figure, key="corners-walks", alt=words.everywhere(view), height=190, on_click=clicked, makers=makers)


def curves(view: View, recorded: Sequence[CornerStep], makers: list[Maker]) -> None:
    """Both errors up to the step in view."""
    st.markdown("**Distance to the true corners**, on 512 fresh walks")
    steps = [each for each in recorded if view.step and each.step <= view.step.step]
    figure = coloured(
        figures.error_curves,
        np.array([each.step for each in steps]),
        np.array([each.error for each in steps], dtype=np.float64),
        np.array([each.helped_error for each in steps], dtype=np.float64),
        floor=floor(view.config.noise),
        last=view.config.steps,
    )
    plot(figure, key="corners-errors", alt=words.errors(view), height=190, makers=makers)


def alignments(view: View, makers: list[Maker]) -> None:
    """Where each said corner looks, in this walk and on average."""
    if view.patterns is None:
        return
    said = words.alignment(view)
    titles = ("**Attention weights α**, in this walk", f"**On average**, {view.given} given corners")
    keys = ("corners-alignment", "corners-mean")
    for title, key, pattern in zip(titles, keys, view.patterns, strict=True):
        st.markdown(title)
        plot(coloured(figures.alignment_heatmap, pattern), key=key, alt=said, height=130, makers=makers)
    st.caption(said)


# --- the controls


def controls(shown: Moving | None, live: bool) -> None:
    """Train, play, and the step."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        if live and "corner_own" in st.session_state:
            st.button("Stop", icon=":material/stop:", on_click=stop, key="corners-stop", width=180)
        else:
            none, icon = shown is None, ":material/model_training:"
            st.button("Train and watch", icon=icon, on_click=train, key="corners-train", disabled=none, width=180)
        idle = shown is not None and not live and len(shown.steps) > 0
        icon = ":material/replay:"
        st.button("Replay", icon=icon, on_click=replay, key="corners-replay", disabled=not idle, width=130)
        steps = [] if shown is None or live else [each.step for each in shown.steps]
        if len(steps) > 1:
            step(steps)
        elif shown is not None:
            later(shown.config)
        if shown is None:
            waiting.hourglass("A GRU will now be trained …")


def step(steps: list[int]) -> None:
    """Any recorded step; what a link names in vain falls back."""
    bound_choice(
        st.select_slider,
        "Training step",
        "corner_step",
        steps,
        steps[-1],
        missing=lambda step: f"Step {step} of this training was not recorded. You see its last step, {steps[-1]}.",
    )


def later(config: CornerConfig) -> None:
    """The place of the steps, until one can be chosen."""
    steps = range(0, config.steps + corners_lesson.EVERY, corners_lesson.EVERY)
    st.select_slider("Training step", steps, format_func=lambda _: "…", disabled=True)


def choices(*, forcing: bool = False) -> None:
    """What is trained, and which walk is looked at. Where it is about teacher `forcing`, p is 1."""
    afresh, names = dict(AFRESH), list(corners_lesson.kinds())
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        attention = bound_choice(
            st.segmented_control,
            "Attention",
            "corner_attention",
            list(ATTENTIONS),
            corners_lesson.ATTENTION,
            also=afresh,
        )
        bound(st.toggle, "Affine maps", "corner_affine", also=afresh, disabled=attention == "none")
        bound_choice(st.selectbox, "Walk", "corner_walk", names, names[0], width=235)
        given = st.container(width="content")
    with st.container(horizontal=True, gap="medium"):
        number(r"State width, $d_{\text{model}}$", "corner_width", afresh)
        most = number("Most given corners", "corner_most", afresh | {"corner_given": None, "corner_roll": ""})
        share("Noise", "corner_noise", "Standard deviation added to each coordinate. The square's sides are 2 long")
        if not forcing:
            share(
                "Teacher forcing p",
                "corner_forcing",
                "In training, the probability that it reads the true corner and not its own prediction",
            )
        bound(st.number_input, "Seed", "corner_seed", also=afresh, step=1, width=130)
    with given:
        also = {"corner_roll": ""}
        bound_number("Given corners", "corner_given", most, 2, most, also=also, width=150)


def number(label: str, field: str, also: dict[str, object]) -> int:
    """A slider of a whole number between its limits; another one is another training."""
    low, high = limits(field)
    return bound_number(label, field, getattr(CornersSettings(), field), int(low), int(high), also=also, width=WIDE)


def share(label: str, field: str, told: str) -> None:
    """A slider of a number between its limits; another one is another training."""
    bound(st.slider, label, field, also=AFRESH, step=0.05, help=told, width=WIDE)


def walks_page() -> None:
    """The walks, their training, and one of them hidden state by hidden state."""
    top, buttons = st.container(), st.container()
    choices()
    config = session.mine(CornersSettings).corner_config()
    under_way = moving(config)
    going = runs_on(under_way)
    with buttons:
        controls(under_way, going)
    with top:  # one fragment whether it trains or not: elsewhere in the page its figures would be others, first empty
        followed(under_way, lambda: pictures(config, under_way))
    if under_way is not None and not going:
        now = seen(config, list(under_way.steps), live=False)
        roll_out.section(now, makers_of(now))


def forcing_page() -> None:
    """What teacher forcing feeds, and what it does: with the settings of a measurement, or of the page."""
    top, below = st.container(), st.container()
    choices(forcing=True)
    config = teacher_forcing.chosen(session.mine(CornersSettings).corner_config())
    taught = None if background.torch() is None else corners_lesson.taught(config)
    with top:
        followed(taught, lambda: feedings(config, taught))
    with below:
        teacher_forcing.section(config)


def followed(shown: Moving | None, draw: Callable[[], object]) -> None:
    """Draw what grows, until it is over or another part of the page is chosen."""
    drawn = drawn_as()
    waiting.until(
        lambda: not runs_on(shown) or drawn_as() != drawn,
        draw,
        news=lambda: (runs_on(shown), len(shown.steps) if shown else 0),
        every=REFRESH if runs_on(shown) else None,
    )


{WALKS: walks_page, FORCING: forcing_page}[part()]()
show_code(
    "transformer.corners.walks",
    "transformer.recurrent.corners.Walker.forward",
    "transformer.recurrent.corners.train_corners",
    "transformer.recurrent.corners.look_back",
    "transformer.recurrent.roll_out.gates",
)
