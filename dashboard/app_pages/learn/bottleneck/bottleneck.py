"""The bottleneck: one vector against attention against a transformer, by length and place by place."""

import numpy as np
import streamlit as st

from dashboard.app_pages.learn.bottleneck.figures import exact_by_length_curves, right_by_place_curves
from dashboard.app_pages.learn.bottleneck.measurement import (
    FILES,
    at_length,
    attending,
    burden,
    exact_lines,
    forgotten,
    headline,
    is_due,
    is_measured,
    load,
    made,
    mean_alignment,
    measuring,
    place_lines,
    progress,
    reach,
    table,
    trio,
)
from dashboard.app_pages.learn.bottleneck.settings import BottleneckSettings
from dashboard.components.origin import Maker
from dashboard.components.plot import coloured, plot
from dashboard.figures.patterns import pattern_heatmap
from dashboard.frame.sidebar import question_field
from dashboard.models.model import Model
from dashboard.models.progress import Training
from dashboard.parts import waiting
from dashboard.parts.heads import alignment_sentence
from dashboard.parts.prose import plain, show_code
from dashboard.parts.widgets import barred, bound_choice, bound_number, late_title
from dashboard.view import clicks, permission, session, training
from transformer.config import ConfigError
from transformer.experiments.bottleneck import Bottleneck, BottleneckError
from transformer.experiments.bottleneck_runs import plan
from transformer.foundation.checks import reason
from transformer.foundation.program import program
from transformer.training.runs import Run, RunError

AGAIN = 1.0
"""Seconds between two looks at what is under way."""
TOLD = {"shipped": "as shipped", "own": "trained here"}
LOOK = "decoder.0.cross_attention"


def measurement() -> Bottleneck | None:
    """The measurement that the view names, or the shipped one; where neither can be read, a sentence that says so."""
    menu = list(FILES) if FILES["own"].is_file() else ["shipped"]
    which = "shipped"
    if len(menu) > 1 or session.mine(BottleneckSettings).trio:
        which = bound_choice(st.segmented_control, "Measurement", "trio", menu, which, format_func=TOLD.__getitem__)
    try:
        return load(FILES[which], FILES[which].stat().st_mtime if FILES[which].is_file() else 0.0)
    except BottleneckError as error:
        text = f"This measurement cannot be shown: {plain(str(error))}. “Train again” makes a new one."
        st.error(text, icon=":material/error:")
        return None


def makers(found: Bottleneck) -> list[Maker]:
    """Whose numbers they are."""
    return [Maker(each.run, each.config.training.max_steps) for each in found.contestants]


# --- what was measured


def by_length(found: Bottleneck) -> None:
    """Whole answers right against the length."""
    figure = coloured(
        exact_by_length_curves, exact_lines(found), chance=found.contestants[0].config.build_task().chance
    )
    said = reach(found)
    st.markdown("**Whole answers right, by length**: three models of one size, each with its own learning rate")
    plot(figure, key="by-length", alt=f"{headline(found)} {said}", height=380, makers=makers(found))
    st.caption(f"{said} {made(found)}")
    st.markdown(table(found))


def by_place(found: Bottleneck) -> int:
    """One length, place by place. Returns the length."""
    st.markdown("**Position by position, at one length**: which end is forgotten")
    length = bound_number("Length of the sequence", "spoken", found.lengths[-1], found.lengths[0], found.lengths[-1])
    figure = coloured(
        right_by_place_curves, place_lines(found, length), chance=found.contestants[0].config.build_task().chance
    )
    said = f"{forgotten(found, length)} {at_length(found, length)}"
    plot(figure, key="by-place", alt=said, height=300, makers=makers(found))
    st.caption(said)
    st.caption(burden(found, length))
    return length


# --- what attention does about it


def alignment(found: Bottleneck, length: int) -> None:
    """Where the GRU with attention looks: on one question, and on average."""
    st.markdown("**How attention helps**: each output (row) looks at the tokens that were read (columns)")
    if session.first_look():
        waiting.hourglass("Its attention will now be measured …")
        return
    each = found.of("gru-attention")
    model = attending(each, session.choices())
    if model is None:
        st.caption(f"The measured weights of {plain(each.run)} are gone.")
        return
    left, right = st.container(key="stacked-alignment").columns(2, gap="large")
    with left:
        one(model, length)
    with right:
        average(model, length)


def one(model: Model, length: int) -> None:
    """One question: the view's own where this model can read it, else the beginning of pi."""
    task, typed = model.task, session.settings().input
    try:
        question = task.parse(typed) if typed else task.example[:length]
    except ValueError:
        question = task.example[:length]
    question_field(model, question)
    sample = model.sample(question)
    attention = sample.attentions[LOOK]
    expected = task.expected_keys(question)
    figure = coloured(
        pattern_heatmap,
        attention.pattern[0],
        attention.mask,
        sample.predicted,
        attention.keys,
        marks=expected,
        predicts=sample.predicted,
    )
    right, total = sample.answers_right()
    said = f"{right} of {total} right. {alignment_sentence(attention.pattern[0], expected)}"
    alt = f"{model.name} reads {''.join(sample.question)}: {said}"
    plot(figure, key="alignment", alt=alt, height=440, makers=[model.maker()])
    st.caption(
        f"Length {len(question)}: {said} Outlined: the position of the right token. Later states can hold it as well."
    )


def average(model: Model, length: int) -> None:
    """Many questions of the length: the mean pattern."""
    survey = mean_alignment(model, length)
    pattern = survey.patterns[LOOK][0]
    places = [str(place) for place in range(1, length + 1)]
    expected = np.eye(length, dtype=bool)[::-1]
    figure = coloured(pattern_heatmap, pattern, None, places, places, marks=expected)
    looks = alignment_sentence(pattern, expected)
    said = f"On average over {survey.sequences} fresh sequences of length {length} {looks[0].lower()}{looks[1:]}"
    plot(figure, key="mean-alignment", alt=said, height=440, makers=[model.maker()])
    st.caption(
        f"{said} It reads the right answers so far (teacher forcing). It has no positional encoding: the states "
        "must carry the position."
    )


# --- anew


def anew(found: Bottleneck | None) -> None:
    """The button, and how far three trainings are; when they are done, they are measured."""
    runs = trio()
    if is_due(runs) and not measuring.running and not measuring.failed:
        measure(runs)
    live = [run for run in runs if run.state.live]
    left, right = st.columns([1, 3], vertical_alignment="center")
    options = barred(permission.for_the_owner("train and measure the three anew"))
    if live or measuring.running:
        left.button(
            "Stop all three",
            icon=":material/stop:",
            on_click=stop,
            args=(live,),
            key="stop-trio",
            width="stretch",
            **options,
        )
        with right:
            waiting.until(
                lambda: _is_news(runs, bool(live)),
                lambda: _progress(runs),
                news=lambda: ([Training(run)() for run in runs], measuring.progress()),
                then=lambda: _take_up(runs, bool(live)),
                every=AGAIN,
            )
        return
    if is_due(runs):
        left.button(
            "Measure them", icon=":material/refresh:", on_click=measure, args=(runs,), width="stretch", **options
        )
    left.button("Train again", icon=":material/refresh:", on_click=begin, width="stretch", **options)
    right.caption(words_beside(found, runs))


def words_beside(found: Bottleneck | None, runs: list[Run]) -> str:
    """What became of the last training, or what another would be."""
    cut = next((run for run in runs if run.state.status != "finished"), None)
    if cut is not None:
        first = f"The last training ended early: {plain(cut.name)}, {plain(cut.state.reason or cut.state.status)}."
    elif is_due(runs):
        first = f"The last three are trained, but their measurement was interrupted{plain(measuring.why)}."
    else:
        first = "Trains all three in the background, then measures them. Watch them on “Runs and races”."
    seconds = 0.0 if found is None else sum(each.seconds for each in found.contestants)
    long = f" The three models shown took {max(1, round(seconds / 60))} minutes of training." if seconds else ""
    return f"{first}{long} On a command line: {program()} bottleneck"


def _is_news(runs: list[Run], were_live: bool) -> bool:
    """Are the three trained since, or measured?"""
    live = any(run.state.live for run in runs)
    return live != were_live or not (live or measuring.running)


def _take_up(runs: list[Run], were_live: bool) -> None:
    """Measure what is trained, and show what is measured."""
    if were_live and is_due(runs):
        measure(runs)
    elif is_measured(runs):
        session.update(trio="own")


def _progress(runs: list[Run]) -> None:
    """How far the three are."""
    if any(run.state.live for run in runs):
        share, words = progress(runs)
        st.progress(share, text=words)
    else:
        st.progress(1.0, text="Trained. Measuring at every length …")


@clicks.once
@permission.owners
def begin() -> None:
    """Put three runs into the queue; what is shown stays until they are measured."""
    try:
        runs = training.start(list(plan().values()))
    except (ConfigError, RunError, OSError) as error:
        session.notice(f"The training could not start: {reason(error)}.")
        return
    session.update(compare=",".join(run.name for run in runs))


@permission.owners
def measure(runs: list[Run]) -> None:
    """Measure three trained runs in a process of its own."""
    try:
        measuring.start(FILES["own"], *(f"--runs={run.folder}" for run in runs))
    except OSError as error:
        session.notice(f"The measurement could not start: {reason(error)}.")


@permission.owners
def stop(live: list[Run]) -> None:
    """End what is under way."""
    clicks.touch()
    for run in live:
        training.stop(run)
    measuring.stop()


title = late_title()
shown = measurement()
title.title("The bottleneck." if shown is None else headline(shown), anchor=False)
if shown is not None:
    by_length(shown)
anew(shown)
if shown is not None:
    alignment(shown, by_place(shown))
show_code(
    "transformer.recurrent.sequence.EncoderDecoder.decode",
    "transformer.recurrent.scoring.scaled_dot",
    "transformer.experiments.bottleneck_measure.measure",
)
