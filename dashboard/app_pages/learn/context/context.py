"""The context vector by hand: a weighted sum of two-number values, every number of it, under scores of one's choice."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from dashboard.app_pages.learn.context.figures import planes, scores
from dashboard.app_pages.learn.context.settings import ContextSettings
from dashboard.app_pages.learn.context.steps import (
    CALLED,
    MAKES,
    STAGES,
    code,
    formula,
    headline,
    number,
    point,
    worked,
)
from dashboard.app_pages.learn.context.tables import (
    hand_series,
    hand_shapes,
    hand_table,
    hand_thumbs,
    scores_table,
)
from dashboard.components.origin import Maker
from dashboard.components.plot import coloured, plot
from dashboard.components.sheet import sheet
from dashboard.figures.html.step_strip import step_strip
from dashboard.models.walks import by_hand as model
from dashboard.models.walks.by_hand import START, TRAINED, TURNS, weighed
from dashboard.parts import waiting
from dashboard.parts.prose import show_code
from dashboard.parts.steps import draw_code, why_divided
from dashboard.parts.widgets import bound, bound_choice, bound_number, late_title, stepped
from dashboard.view import session

if TYPE_CHECKING:
    from transformer.recurrent.look_back import LookBack, Weighing


PLACES = {"1": "bottom left", "2": "top left", "3": "top right", "4": "bottom right"}
TARGETS = {"1": "the next corner", "2": "the one after"}
STILL: dict[str, object] = {"stretch": 1.0, "turned": 0}


def pick_walk() -> LookBack:
    """Which model, which walk, which target: what the decoder has before it there."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        trained = pick("Model trained with", "scores_trained", CALLED, TRAINED, width=190)
        start = pick("Start", "walk_start", PLACES, tuple(PLACES), width=140, first=START)
        turn = pick("Direction", "walk_turn", {name: name for name in TURNS}, tuple(TURNS), width=150)
        target = pick("Target", "walk_target", TARGETS, tuple(TARGETS), width=160)
        menu = tuple(range(2, model.MOST + 1))
        given = bound_choice(st.segmented_control, "Given corners", "walk_given", menu, menu[0], width="content")
    error = model.walker(trained).error
    st.caption(
        f"This is not the sidebar's model. It is a GRU with two numbers of memory, trained here for {model.STEPS} "
        "steps "
        f"on walks around a square. On fresh walks its error is {error:.2f}; noise alone makes 0.14."
    )
    return model.looked(trained, int(start) - 1, TURNS[turn], given, int(target) - 1)


def pick(
    label: str, field: str, names: dict[str, str], menu: tuple[str, ...], width: int, first: str | None = None
) -> str:
    """A menu. Another walk keeps how the query is moved; another model has a query and scores of its own."""
    also = STILL | {"scores": ""} if field == "scores_trained" else None
    return bound_choice(
        st.selectbox, label, field, list(menu), first or menu[0], also=also, format_func=names.__getitem__, width=width
    )


def pick_scores(look: LookBack) -> str:
    menu = list(model.scorings(look.trained))
    picked = bound_choice(
        st.segmented_control,
        "Score",
        "scores",
        menu,
        look.trained,
        format_func=CALLED.__getitem__,
    )
    with st.container(key="control-scores-kinds"):  # hidden with the control that it explains
        st.caption(f"From left to right: {'; '.join(MAKES[scoring] for scoring in menu)}.")
    return picked


def maker(look: LookBack) -> list[Maker]:
    return [Maker(f"a GRU two numbers wide, trained on the spot, scores: {CALLED[look.trained]}", model.STEPS)]


def is_still() -> bool:
    """Is the query the run's own?"""
    return all(getattr(session.settings(), field) == value for field, value in STILL.items())


def steps(work: Weighing) -> None:
    """One step at a time, in small, as a table, in words, and as the line of code."""
    stage = stepped("hand", {name: each.title for name, each in STAGES.items()})
    whose, said = maker(work.look), STAGES[stage].says
    place = list(STAGES).index(stage)
    strip = coloured(step_strip, hand_thumbs(work), place)
    sheet(strip, hand_series(work), key="hand-steps", alt=headline(work), makers=whose)
    left, right = st.container(key="stacked-hand").columns([1.5, 1], gap="medium")
    table = hand_table(work, stage)
    with left:
        table.draw(key="hand-numbers", says=said, makers=whose)
        draw_code(hand_shapes(work, stage), code(work, stage))
    with right:
        st.markdown(f"{said}\n\n$\\displaystyle {formula(work, stage)}$\n\n$\\displaystyle {worked(work, stage)}$")


def fit(work: Weighing) -> None:
    """The query among the keys, and what the scores make of it; the query can be moved."""
    st.markdown(
        "**The query and the keys**: make the query longer or turn it, and watch weights, context and output change"
    )
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        with st.container(width=260):
            bound(st.slider, "Stretch the query by a factor", "stretch", step=0.1)
        with st.container(width=320):
            bound_number("Turn the query by degrees", "turned", 0, -180, 180, step=5)
        st.button("Reset", on_click=lambda: session.update(**STILL), disabled=is_still(), icon=":material/undo:")
    look, angles = work.look, angles_of(work)
    whose, said = maker(look), angle_sentence(work)
    left, right = st.columns([1, 1.4], gap="medium")
    with left:
        plane = coloured(planes.angle_plane, work.query, look.key, angles)
        plot(plane, key="angles", alt=spoken(said), height=330, makers=whose)
        st.caption(said)
    with right:
        bars = coloured(scores.fit_bars, angles, work.cosines, work.scores, work.pattern)
        plot(bars, key="fit", alt=share_sentence(work), height=330, makers=whose)
        st.caption(share_sentence(work))


def among(work: Weighing) -> None:
    """The context among the values, and what is said of it."""
    look, whose = work.look, maker(work.look)
    left, right = st.columns(2, gap="medium")
    with left:
        said = f"The context {point(work.context)} lies in the convex hull of the {len(work.pattern)} values."
        st.markdown("**The context and the values**")
        plane = coloured(planes.values_plane, look.value, work.pattern, work.context)
        plot(plane, key="values", alt=said, height=330, makers=whose)
        st.caption(
            f"{said} It always does, because the weights are at least 0 and add up to 1. A larger point has a "
            "larger weight."
        )
    with right:
        said = f"Predicted: {point(work.said)}. True: {point(look.true)}, {work.missed:.2f} away."
        st.markdown("**The prediction**")
        plane = coloured(planes.said_plane, look.given, look.true, work.said)
        plot(plane, key="outcome", alt=said, height=330, makers=whose)
        st.caption(f"{said} Noise alone makes about 0.14.")


def others(work: Weighing) -> None:
    """The same weights under every kind of scores."""
    mine, look = session.mine(ContextSettings), work.look
    works = [weighed(look, scoring, mine.stretch, mine.turned) for scoring in model.scorings(look.trained)]
    st.markdown("**The same model with other scores**")
    table = scores_table(works)
    said = (
        "; ".join(
            f"{CALLED[each.scoring]}: {point(each.said)}, {each.missed:.2f} from the true corner" for each in works
        )
        + "."
    )
    table.draw(key="hand-scores", says=said, makers=maker(look))
    moved = "" if is_still() else " You have moved the query, so no row is the unchanged model."
    st.caption(
        f"Framed: the {CALLED[look.trained]} scores that the model was trained with. The other rows compute other "
        f"scores from the same vectors. A model trained with those scores would have other vectors.{moved}"
    )


def angles_of(work: Weighing) -> list[float | None]:
    """From the query to each key in degrees, anticlockwise; None where either has no length."""
    q, length = work.query, np.linalg.norm(work.query)
    turns = [np.degrees(np.arctan2(q[0] * k[1] - q[1] * k[0], q @ k)) for k in work.look.key]
    return [
        float(turn) if length * np.linalg.norm(k) > 1e-9 else None for turn, k in zip(turns, work.look.key, strict=True)
    ]


def angle_sentence(work: Weighing) -> str:
    """The dot product as lengths and an angle, and when it is the cosine."""
    i, q = work.strongest, float(np.linalg.norm(work.query))
    k, cos = float(np.linalg.norm(work.look.key[i])), float(work.cosines[i])
    if q * k <= 1e-9:
        return "A query of length 0 has no angle with any key: every dot product is 0."
    return (
        rf"$q \cdot k_{i + 1} = \lVert q\rVert\,\lVert k_{i + 1}\rVert\cos\theta$ = {number(q)} × {number(k)} × "
        f"{number(cos)} = {number(work.dots[i])}. "
        "If both had length 1 (the dotted circle), the dot product would be the cosine."
    )


def spoken(said: str) -> str:
    """That sentence without LaTeX, for who hears it."""
    return re.sub(r"\$.*? k_(\d+) .*?\$", r"The dot product of q and k\1", said)


def share_sentence(work: Weighing) -> str:
    """What the lengths do under these scores."""
    least, most = number(work.pattern.min()), number(work.pattern.max())
    product = work.scoring in ("cosine", "dot", "scaled-dot")
    if product and not work.query.any():
        return (
            f"Weights from {least} to {most}. A query of length 0 has score 0 with every key, so all weights are equal."
        )
    said = {
        "uniform": "Uniform scores ignore query and keys: all weights are equal.",
        "cosine": "The cosine divides by both lengths. A longer query changes no weight, and no score is above 1.",
        "dot": "A query twice as long doubles every score, and the weights differ more.",
        "scaled-dot": "A query twice as long doubles every score. √2 divides every score by 1.414.",
        "additive": "Because of tanh, no score is above the sum of |w|, however long the query is.",
    }[work.scoring]
    return f"Weights from {least} to {most}. {said}"


title = late_title()
if session.first_look():
    title.title("A context vector, number by number.", anchor=False)
    waiting.hourglass("A GRU with two numbers of memory will now be trained …")
else:
    look = pick_walk()
    mine, scoring = session.mine(ContextSettings), pick_scores(look)
    work = weighed(look, scoring, mine.stretch, mine.turned)
    title.title(headline(work), anchor=False)
    steps(work)
    fit(work)
    among(work)
    others(work)
why_divided()
show_code(
    "transformer.recurrent.scoring.Alignment",
    "transformer.recurrent.scoring.cosine",
    "transformer.recurrent.look_back.weigh",
    "transformer.analysis.dot_products.growth",
)
