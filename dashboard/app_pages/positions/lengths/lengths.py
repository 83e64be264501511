"""What each positional encoding buys: beyond the trained length, in a race, and against having none at all."""

import numpy as np
import streamlit as st

from dashboard.app_pages.positions.lengths import figures
from dashboard.app_pages.positions.lengths import measurement as lengths_measurement
from dashboard.app_pages.positions.lengths import population as lengths_population
from dashboard.app_pages.positions.lengths import race as lengths_race
from dashboard.app_pages.positions.lengths.measurement import FILES, measuring
from dashboard.app_pages.positions.lengths.settings import LengthsSettings
from dashboard.components.origin import Maker
from dashboard.components.plot import coloured, plot
from dashboard.figures.accuracy import accuracy_by_position_bars
from dashboard.models import background, no_positions
from dashboard.models.on_the_spot.quick_training import Lesson
from dashboard.parts import claims, waiting
from dashboard.parts.prose import plain, show_code, with_positions
from dashboard.parts.widgets import barred, bound, bound_choice, controlled, late_title
from dashboard.view import clicks, permission, session
from dashboard.view.pages import PAGES
from transformer.analysis.accuracy.bags import bag_ceiling
from transformer.config import ModelConfig, RunConfig
from transformer.experiments.lengths import SEEDS, Lengths, LengthsError, in_order
from transformer.foundation.checks import reason
from transformer.foundation.program import program
from transformer.foundation.words import counted

AGAIN = 1.0
"""Seconds between two looks at a measurement that is under way."""
TOLD = {"shipped": "as shipped", "own": "measured here"}
QUESTION = (3, 1, 4, 1, 5, 9, 2, 6)
ORDER = (5, 2, 7, 0, 1, 6, 4, 3)  # another order of it, as good as any


def measurement() -> Lengths | None:
    """The measurement that the view names, or the shipped one; where neither can be read, a sentence that says so."""
    menu = list(FILES) if FILES["own"].is_file() else ["shipped"]
    which = "shipped"
    if len(menu) > 1 or session.mine(LengthsSettings).measurement:
        which = bound_choice(
            st.segmented_control, "Measurement", "measurement", menu, which, format_func=TOLD.__getitem__
        )
    try:
        return lengths_measurement.load(FILES[which])
    except LengthsError as error:
        text = f"This measurement cannot be shown: {plain(str(error))}. “Measure again” makes another."
        st.error(text, icon=":material/error:")
        return None


# --- beyond the trained length


def beyond(found: Lengths) -> None:
    """Whole answers right against the length, an encoding a line."""
    makers = [Maker(f"{found.planned} trainings on lengths 1 to {found.trained}", found.config.training.max_steps)]
    chance = found.config.build_task().chance
    figure = coloured(
        figures.exact_match_curves, lengths_measurement.exact_lines(found), trained=found.trained, chance=chance
    )
    said = lengths_measurement.within(found)
    st.markdown("**How many whole answers are right at each length?** Thick: the mean over seeds. Thin: each seed.")
    plot(figure, key="exact-match", alt=f"{lengths_measurement.headline(found)} {said}", height=400, makers=makers)
    st.caption(f"{said} {lengths_measurement.made(found)}")
    st.caption(lengths_measurement.unfinished(found))
    if lacking := lengths_measurement.missing(found.measured, *_chosen()):
        st.caption(plain(f"{lacking} “Measure again” trains with every encoding that there is."))


def _chosen() -> tuple[str, ModelConfig]:
    """The chosen model: its name, and what it is made of."""
    model = session.chosen()
    return model.name, model.config.model


def places(found: Lengths) -> None:
    """One length, place by place."""
    longer = session.mine(LengthsSettings).longer
    length = min(longer or found.trained + max(1, found.trained // 4), found.longest)
    st.markdown("**Which places of the answer are right at one length?**")
    if found.longest > 1:
        controlled(
            st.select_slider,
            "Length of the sequence",
            range(1, found.longest + 1),
            key="control-longer",
            value=length,
            picked=lambda wanted: session.update(longer=wanted),
        )
    task = found.config.build_task()
    reached = task.n_ctx - length
    figure = coloured(
        figures.places_panels,
        lengths_measurement.place_lines(found, length),
        trained=max(0, reached),
        chance=task.chance,
    )
    said = lengths_measurement.at_length(found, length)
    makers = [Maker(f"{found.planned} trainings on lengths 1 to {found.trained}", found.config.training.max_steps)]
    plot(figure, key="places", alt=said, height=230, makers=makers)
    st.caption(
        f"{said} Shaded: answers at positions up to {task.n_ctx}, the last position in training. The model reads the "
        "right tokens before each place (teacher forcing)."
    )


def anew() -> None:
    """The button, and how far the measurement is."""
    left, right = st.columns([1, 3], vertical_alignment="center")
    options = barred(permission.for_the_owner("measure anew"))
    if measuring.running:
        stop = permission.owners(measuring.stop)
        left.button("Stop measuring", icon=":material/stop:", on_click=stop, width="stretch", **options)
        with right:
            waiting.until(
                lambda: not measuring.running, _progress, news=measuring.progress, then=_measured, every=AGAIN
            )
        return
    left.button("Measure again", icon=":material/refresh:", on_click=begin, width="stretch", **options)
    text = (
        f"Trains each encoding again, from {len(SEEDS)} seeds, in a process of its own: a minute or two on two cores. "
        "On a command line: "
    )
    if measuring.failed:
        cut = f"The last measurement was cut off{plain(measuring.why)}."
        text = f"{cut} Its finished trainings are kept. On a command line: "
    right.caption(f"{text}{program()} lengths")


def _measured() -> None:
    """Show what was found, if it was found."""
    if not measuring.failed:
        session.update(measurement="own")


def _progress() -> None:
    """How many trainings are done."""
    try:
        found = Lengths.load(FILES["own"])
        done, planned = len(found.trials), found.planned
    except LengthsError:
        done, planned = 0, 0
    st.progress(done / max(1, planned), text=f"{done} of {planned} trainings are done" if planned else "Starting …")


@clicks.once
@permission.owners
def begin() -> None:
    """Measure in a process of its own; what is shown stays until there is something new."""
    session.update(measurement="")
    try:
        measuring.start(FILES["own"])
    except OSError as error:
        session.notice(f"The measurement did not start: {reason(error)}.")


# --- the bag and the race


def bag() -> None:
    """The permutation test, and the ceiling that follows from it."""
    st.markdown("**Why are positions needed? Without them one layer sees a bag of symbols**")
    if session.first_look():
        waiting.hourglass("A model without positions is about to be trained …")
        return
    small = [waiting.lesson(f"lengths-{i}", each, background.TRAININGS) for i, each in enumerate(no_positions.all_of())]
    left, right = st.columns([1.3, 1], gap="large")
    with left:
        waiting.grown(small, lambda: bars(small))
    if all(each.done and not each.problem for each in small):
        with right:
            permuted()


def bars(small: list[Lesson]) -> None:
    """The one without positions, as far as it is, against what a bag allows."""
    measured, most = no_positions.so_far(small[0]), bag_ceiling(8, 10)
    if not all(each.done for each in small):
        waiting.hourglass("Three small models are being trained, or wait for another training …")
    if measured is None:
        return
    part = measured.groups[-1]
    answer = np.array(measured.groups) == part
    mean = measured.mean[answer].mean()
    said = (
        f"Without positions one layer has {mean:.2f} of the {part} right. It sees a bag: which symbols there are, "
        f"but not their order. From a bag no guess has more than {most.mean():.2f} right on average, and chance is "
        f"{measured.chance:.2f}."
    )
    low, high = measured.interval()
    figure = coloured(
        accuracy_by_position_bars,
        measured.mean[answer],
        low[answer],
        high[answer],
        most,
        measured.chance,
        [name for name, chosen in zip(measured.names, answer, strict=True) if chosen],
        sequences=measured.sequences,
    )
    maker = Maker("one layer without positions, trained on the spot", no_positions.STEPS)
    plot(figure, key="bag", alt=said, height=300, makers=[maker])
    st.caption(f"{said} Open bars: the best guess from a bag. {measured.sequences:,} fresh sequences, 95 % intervals.")


def permuted() -> None:
    """One question in two orders: what each model says first."""
    first, second = ("".join(map(str, question)) for question in (QUESTION, QUESTION[::-1]))
    lines = [
        f"**The permutation test**: what does each model say first when it reverses {first}, and when it "
        f"reverses {second}?\n"
    ]
    for positions in ("none", "learned"):
        found = no_positions.turned(positions, QUESTION, QUESTION[::-1])
        marks = ["✓" if right else "✕" for right in (found.said == QUESTION[-1], found.said_other == QUESTION[0])]
        name = with_positions(positions)
        moved = f"{found.moved:.2f}" if found.moved >= 0.01 else f"{found.moved:.6f}"
        lines.append(
            f"- {name}: {found.said} {marks[0]} and {found.said_other} {marks[1]}. Its logits differ by at most "
            f"{moved}."
        )
    other = "".join(str(QUESTION[i]) for i in ORDER)
    lines.append(
        f"- without positions and without a mask, in place: when {first} is permuted to {other}, all outputs are "
        f"permuted with it. The largest difference is {no_positions.carried(QUESTION, ORDER):.6f}."
    )
    st.markdown("\n".join(lines))
    st.caption(
        "Attention is a weighted sum over a set, so the order of what a query sees does not change it. From a bag one "
        "layer knows which symbols are left to say, but not which of them is next, until only one is left."
    )


def population() -> None:
    """The default reversal with each encoding from many seeds, as shipped."""
    found = lengths_population.encodings()
    if not found:
        return
    seeds, task = max(len(each.rows) for each in found), found[0].scenes
    st.markdown(
        f"**Which encoding learns first, over {seeds} seeds?** 2 layers of 4 heads learn to reverse 8 digits. Thick: "
        "the mean over seeds. Thin: each seed"
    )
    said = lengths_population.sentence(found)
    last = max(int(each.scenes.steps[-1]) for each in found)
    figure = coloured(
        figures.race_curves, [lengths_population.line(each) for each in found], chance=task.chance, last=last
    )
    trainings = sum(len(each.rows) for each in found)
    plot(figure, key="seeds", alt=said, height=340, makers=[Maker(f"{trainings} trainings, shipped", last)])
    st.caption(
        f"{said} Each point is measured on {task.sequences} fresh sequences. The names say from how many seeds it is "
        "solved."
    )
    if lacking := lengths_measurement.missing([each.positions for each in found], *_chosen()):
        st.caption(plain(lacking))
    st.page_link(PAGES["populations"].script, label="All seeds on the page Populations", icon=":material/groups:")


def race() -> None:
    """The same model from the same seed, once with each encoding."""
    st.markdown(
        f"**The race, here and now.** The same model, seed and length, with {len(in_order())} encodings. Each gets "
        f"at most {lengths_race.RACE_STEPS} steps"
    )
    if not bound(
        st.toggle,
        "Race them",
        "raced",
        help=(
            f"Trains 2 layers of 4 heads to reverse 8 digits: at most {lengths_race.RACE_STEPS} steps with "
            "each encoding"
        ),
    ):
        st.caption("Guess first: which encoding learns to reverse 8 digits first, and which does not learn it?")
        return
    if session.first_look():
        waiting.hourglass("The race is about to begin …")
        return
    lessons = lengths_race.race(in_order())
    waiting.grown(lessons, lambda: courses(lessons))


def courses(lessons: list[Lesson]) -> None:
    """The course of each racer, as far as it is."""
    racers = [
        racer
        for positions, each in zip(in_order(), lessons, strict=True)
        if (racer := lengths_race.so_far(positions, each)).steps
    ]
    if not racers:
        waiting.hourglass("The race is about to begin …")
        return
    lines = [
        figures.Line(
            lengths_race.raced_name(each),
            np.array(each.steps),
            np.array([each.shares]),
            lengths_measurement.place_of(each.positions),
        )
        for each in racers
    ]
    last = max(each.steps[-1] for each in racers)
    figure = coloured(figures.race_curves, lines, chance=0.1, last=last)
    over = sum(each.done for each in lessons)
    said = (
        lengths_race.race_sentence(racers) if over == len(lessons) else f"{over} of {len(lessons)} trainings are done."
    )
    makers = [Maker(f"{counted(len(lessons), 'training')}, one with each encoding", last)]
    plot(figure, key="race", alt=said, height=340, makers=makers)
    st.caption(f"{said} Each point is measured on at most 512 fresh sequences.")
    share = next((each.shares[-1] for each in racers if each.positions == "none"), 0.0)
    if words := claims.second_layer(ModelConfig().n_layers, share, float(bag_ceiling(8, 10).mean())):
        st.info(words, icon=":material/lightbulb:")


title = late_title()
shown = measurement()
title.title("What do positional encodings buy?" if shown is None else lengths_measurement.headline(shown), anchor=False)
if session.chosen().task.name != RunConfig().task.task:
    title.caption("This page does not show the chosen model. Its models were trained to reverse digits.")
if shown is not None:
    beyond(shown)
anew()
if shown is not None:
    places(shown)
bag()
population()
race()
show_code(
    "transformer.experiments.lengths_measure.measure",
    "transformer.model.stretched",
    "transformer.analysis.accuracy.bags.bag_ceiling",
)
