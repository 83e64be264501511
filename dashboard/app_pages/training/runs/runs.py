"""Up to four runs on one chart, races between variants of a setting, and the table of all runs."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from dashboard.app_pages.training.runs import population, table
from dashboard.app_pages.training.runs.comparison import Course, Standing, comparable, labels, part_of, standing
from dashboard.app_pages.training.runs.figures.curves import MOST_RUNS, Clock, Curve, Measure, learning_curves
from dashboard.app_pages.training.runs.figures.standings import Row, standings_list
from dashboard.app_pages.training.runs.races import Race, headline, meaning, outcome, races
from dashboard.app_pages.training.runs.settings import RunsSettings
from dashboard.components.plot import coloured, plot
from dashboard.frame import live
from dashboard.frame.health import damaged
from dashboard.models import menu as model_menu
from dashboard.models.damage import faults
from dashboard.models.menu import Choice
from dashboard.models.model import Model, maker_of
from dashboard.models.progress import Training
from dashboard.parts import waiting
from dashboard.parts.film import COUNTS
from dashboard.parts.prose import plain, sentence
from dashboard.parts.widgets import barred, bound_choice
from dashboard.view import clicks, permission, session, training
from dashboard.view.pages import PAGES
from dashboard.view.settings import BY_KEY
from transformer.analysis.accuracy import ceilings
from transformer.config import TEXT, ConfigError
from transformer.foundation.checks import UserError, reason
from transformer.foundation.foreign import shortened
from transformer.training.listing import Entry, listing
from transformer.training.runs import Run, State

REFRESH = 0.5  # seconds between two looks at the runs, while one of them is trained
HEIGHT = 360
NAMES: dict[str, str] = {
    "accuracy": "accuracy of the {part}",
    "loss": "loss",
    "steps": "steps",
    "seconds": "seconds",
}


# --- which runs


def compared(runs: dict[str, Entry]) -> list[Entry]:
    """The runs that the view names; what it names in vain is left out, with a notice. Unnamed, those that suit the
    model of the menu."""
    names = list(dict.fromkeys(filter(None, map(unquoted, session.settings().compare.split(",")))))
    known = [name for name in names if name in runs]
    for name in names:
        if name not in runs:
            session.notice(f"There is no run “{shortened(name, 80)}” to compare.")
    if len(known) > MOST_RUNS:
        session.notice(f"At most {MOST_RUNS} runs can be compared. These are the first {MOST_RUNS}.")
    if known != names or len(known) > MOST_RUNS:
        choose(known[:MOST_RUNS])
    return [runs[name] for name in known[:MOST_RUNS]] or suggestion(list(runs.values()), session.chosen())


def suggestion(runs: Sequence[Entry], model: Model) -> list[Entry]:
    """The run of a model and the newest others of its task, the oldest of them first; else the newest run alone."""
    alike = [run for run in reversed(runs) if comparable(run.config.task, model.config.task)]
    first = sorted(alike, key=lambda run: run.name != model.name)[:MOST_RUNS]
    return [run for run in runs if run in first] or list(runs[-1:])


def choose(names: Sequence[str]) -> None:
    """Compare these from now on, the first four."""
    session.update(compare=",".join(quoted(name) for name in names[:MOST_RUNS]))


def quoted(name: str) -> str:
    """A name among commas: somebody may have put one into a folder's name."""
    return name.replace("%", "%25").replace(",", "%2C")


def unquoted(text: str) -> str:
    return text.replace("%2C", ",").replace("%25", "%")


def everybody() -> list[Entry]:
    """The runs that are listed: a guest's own beside those of the server, and to its owner those of all guests."""
    someone, here = permission.visitor(), listing(model_menu.ROOT).readable
    if someone.role == "owner":
        return [*here, *model_menu.of_guests()]
    return [*here, *(listing(model_menu.folder_of(someone.name)).readable if someone.name else ())]


# --- together


def together(names: list[str]) -> None:
    """Title, curves and standings; drawn again and again while one of the runs is trained."""
    kept: dict[str, Course] = st.session_state.setdefault("courses", {})
    runs = present(names)
    courses = {run.name: kept.get(run.name, Course(run)).update() for run in runs}
    st.session_state.courses = courses
    found = labels(runs)
    standings = [standing(course, label) for course, label in zip(courses.values(), found, strict=True)]
    clock = session.mine(RunsSettings).clock if session.mine(RunsSettings).clock == "seconds" else "steps"
    st.title(plain(headline(standings, clock)), anchor=False)
    if not runs:
        st.info("Press Train in the sidebar, or start a race. The curves appear here.", icon=":material/flag:")
        race()
        return
    controls(standings)
    if len(runs) == 1 and not session.settings().compare:
        st.caption(f"{nothing_beside(runs[0])} Tick others in the table below, or start a race.")
    curves(courses, standings)
    race()
    st.html(coloured(standings_list, [row(each) for each in standings]))


def present(names: list[str]) -> list[Run]:
    """The runs of these names that are still there."""
    return [run for run in (model_menu.run_called(name) for name in names) if (run.folder / "run.json").is_file()]


def is_news(names: list[str], were_live: bool) -> bool:
    """Did a click or the end of the last training change what the rest of the page shows as well?"""
    touched: bool = st.session_state.get("touched", False)
    return touched or (were_live and not any(run.state.live for run in present(names)))


def nothing_beside(run: Run) -> str:
    """Why a run is shown alone."""
    task = run.config.task
    same = "reads this text, split in the same way" if task.task == TEXT else f"learns {task.task} of this length"
    return f"No other run here {same}, so {plain(run.name)} is compared with nothing."


def controls(standings: Sequence[Standing]) -> None:
    """What is drawn by what; and the end of the race."""
    left, middle, right = st.columns([2.2, 1.4, 1], vertical_alignment="bottom")
    part = part_of(each.config.task for each in standings)
    for place, label, field, menu in (
        (left, "Measure", "measure", measures(standings)),
        (middle, "Clock", "clock", ["steps", "seconds"]),
    ):
        with place:
            bound_choice(
                st.segmented_control,
                label,
                field,
                menu,
                menu[0],
                format_func=lambda name: NAMES[name].format(part=part),
            )
    racing = [model_menu.run_called(each.name) for each in standings if each.state.live]
    if racing:
        right.button(
            "Stop all" if len(racing) > 1 else "Stop",
            icon=":material/stop:",
            on_click=stop_all,
            args=(racing,),
            **barred(next(filter(None, map(permission.to_change, racing)), "")),
            width="stretch",
            key="stop-all",
        )


def measures(standings: Sequence[Standing]) -> list[str]:
    """What can be compared, the page's choice first: the loss where a text is read, which nobody says right."""
    reads = [each.reads for each in standings]
    if all(reads):
        return ["loss"]
    return ["loss", "accuracy"] if any(reads) else ["accuracy", "loss"]


def stop_all(runs: Sequence[Run]) -> None:
    for run in runs:
        training.stop(run)


def curves(courses: dict[str, Course], standings: Sequence[Standing]) -> None:
    """The chart."""
    mine = session.mine(RunsSettings)
    measure: Measure = "loss" if (mine.measure or measures(standings)[0]) == "loss" else "accuracy"
    clock: Clock = "seconds" if mine.clock == "seconds" else "steps"
    drawn, chance, floors = [], [], []
    for place, (course, each) in enumerate(zip(courses.values(), standings, strict=True)):
        task = each.config.build_task()
        chance.append(task.chance if measure == "accuracy" else task.chance_loss)
        floors += [ceilings.loss_floor(each.config)] if task.lawful else []
        steps, seconds = np.array(course.steps, dtype=np.int64), np.array(course.seconds, dtype=np.float64)
        values = np.array(course.losses if measure == "loss" else course.shares, dtype=np.float64)
        if measure == "accuracy":
            measured = np.array(course.measured, dtype=np.int64)
            steps, seconds = steps[measured], seconds[measured]
        elif not task.lawful:
            read, values = np.array(course.read, dtype=np.int64), np.array(course.nats, dtype=np.float64)
            steps, seconds = steps[read], seconds[read]
        drawn.append(Curve(each.label.text, steps, seconds, values, each.solved, place, each.part))
    part = part_of(each.config.task for each in standings)
    figure = coloured(
        learning_curves,
        drawn,
        measure=measure,
        clock=clock,
        chance=chance,
        floors=floors,
        guess=COUNTS if standings and all(each.reads for each in standings) else "guessing",
        part=part,
        height=HEIGHT,
    )
    makers = [maker_of(model_menu.run_called(each.name), each.step) for each in standings]
    told = "; ".join(f"{each.label.text}: {outcome(each)}" for each in standings)
    what = "Loss" if measure == "loss" else f"Accuracy of the {part}"
    plot(figure, key="compare", alt=f"{what} by {clock}. {told}.", height=HEIGHT, makers=makers)
    most = max(course.probed for course in courses.values())
    source = f"measured on at most {most:,} fresh sequences" if most else "not measured yet"
    if measure == "loss":
        source = "of each training step, in nats"
        if any(each.reads for each in standings):
            source = (
                "in nats. Of a text the curve is the loss on a part of what was held out; the list below "
                "has the perplexity on all of it once a run has ended"
            )
    st.caption(f"{what}, {source}. Each run is counted from its own start.")


def row(each: Standing) -> Row:
    """What the list says of one run."""
    folder = "" if each.label.text == each.name else each.name
    return Row(each.label.text, outcome(each), meaning(each), folder)


# --- races


def race() -> None:
    """Variants of what the training panel describes, a click each."""
    try:
        config = training.training_config()
    except ConfigError as error:
        st.caption(f":material/flag: Nothing to race: {plain(str(error))}.")
        return
    described = Choice("", config, State("queued"), None, ()).description()
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="races"):
        st.markdown("**Race**", width="content", help=f"Variants of what the training panel describes: {described}")
        for place, each in enumerate(races(config)):
            why = each.problem or permission.to_train(each.configs)
            st.button(
                each.name,
                icon=":material/flag:",
                on_click=begin,
                args=(each,),
                disabled=bool(why),
                help=plain(sentence(why)) if why else each.sentence,
                key=f"race-{place}",
            )
    for each in races(config):
        if each.problem:
            st.caption(f":material/info: {each.name}: {plain(each.problem)}.")
    population.panel(config)


@clicks.once
def begin(each: Race) -> None:
    """Train the variants, and compare them; nobody steps through a race by key."""
    try:
        runs = training.start(each.configs)
        if session.settings().pace == BY_KEY:
            for run in runs:
                training.ask(run, pause_at=None)
    except (UserError, OSError) as error:
        session.notice(f"The race did not start: {reason(error)}.")
        return
    choose([run.name for run in runs])


everyone = {entry.name: entry for entry in everybody()}
shown = compared(everyone)
names = [entry.name for entry in shown]
if session.started() and session.started() not in names:
    live.panel(PAGES["runs"])  # what was begun here, and does not stand in the chart
racing = any(entry.state.live for entry in shown)
waiting.until(
    lambda: is_news(names, racing),
    lambda: together(names),
    news=lambda: [Training(entry.run)() for entry in shown],
    every=REFRESH if racing else None,
)
st.header("All runs", anchor=False)
if everyone:
    table.table(list(everyone.values()), names, choose)
table.actions(list(everyone.values()), names, choose)
for fault in listing(model_menu.ROOT).faults:
    st.caption(f":material/warning: Left out: {plain(fault)}.")
for entry in everyone.values():
    if not entry.state.live and (wrong := faults(entry.run)):
        st.caption(f":material/broken_image: {damaged(entry.name, wrong)}")
