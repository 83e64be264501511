"""One setting trained from many seeds, counted together: when it is solved, what forms, and how sure that is."""

import math

import numpy as np
import streamlit as st

from dashboard.app_pages.training.populations import choice, measured, members, words
from dashboard.app_pages.training.populations.figures.band import accuracy_band as accuracy_band_figure
from dashboard.app_pages.training.populations.figures.kinds import kinds_heatmap, kinds_height
from dashboard.app_pages.training.populations.figures.steps import Seeds, steps_dots, steps_height
from dashboard.app_pages.training.populations.film import film
from dashboard.app_pages.training.populations.measured import Combination, Counted
from dashboard.app_pages.training.populations.phase import phase
from dashboard.components.origin import Maker
from dashboard.components.plot import coloured, plot
from dashboard.models import menu
from dashboard.parts import waiting
from dashboard.parts.heads import DOES
from dashboard.parts.prose import plain, sentence, show_code
from dashboard.parts.widgets import late_title
from dashboard.server.streamlit_private import DeltaGenerator
from dashboard.view import session
from transformer.analysis.accuracy import ceilings
from transformer.analysis.findings import Head
from transformer.analysis.heads.metrics import MIXED, NAMES
from transformer.analysis.intervals import wilson
from transformer.experiments.populations.plan import SweepError
from transformer.experiments.populations.statistics import accuracy_band, frequencies, steps_until_solved
from transformer.experiments.populations.table import populations
from transformer.experiments.populations.words import budget
from transformer.foundation.program import program
from transformer.foundation.words import counted

AGAIN = 2.0
"""Seconds between two looks at a population that grows."""
MOST_ROWS = 16
"""Combinations in the picture of steps; of more, those that differ from the chosen one in a single setting."""
MEANS = {name: does for name, (does, _) in DOES.items()} | {MIXED: "does no single thing that stands out"}
"""What each name of a head means."""
COMMAND = "sweep --seeds 0-63 --positions learned,sinusoidal,none"


def page() -> None:
    """Everything; drawn again and again while the population grows."""
    title, controls = late_title(), st.container(horizontal=True, vertical_alignment="bottom", gap="medium")
    folders = populations(menu.ROOT)
    if not folders:
        nothing(title)
        return
    try:
        with controls:
            folder = choice.population(folders)
        found = measured.load(folder, measured.stamp(folder))
    except SweepError as error:
        title.title("This population cannot be shown.", anchor=False)
        st.error(sentence(plain(str(error))), icon=":material/error:")
        return
    with controls:
        chosen = choice.combination(found)
    title.title(plain(words.headline(chosen)), anchor=False)
    if said := words.share_sentence(chosen):
        st.caption(plain(said))
    if not found.complete:
        st.progress(len(found.found.rows) / found.found.planned, text=words.progress(found))
    film(found, chosen)
    steps(found, chosen)
    left, right = st.columns(2, gap="large")
    with left:
        accuracy(found, chosen)
    with right:
        kinds(found, chosen)
    phase(found, chosen, makers(found))
    members.table(found)
    show_code(
        "transformer.experiments.populations.statistics.steps_until_solved",
        "transformer.experiments.populations.statistics.median_interval",
        "transformer.experiments.populations.statistics.frequencies",
    )


def nothing(title: DeltaGenerator) -> None:
    """What a population is, and how one is made."""
    title.title("No population has been trained here yet.", anchor=False)
    st.info(
        "A population is one setting trained from many seeds, and counted together: from how many seeds it is solved, "
        "after how many steps, and which heads form. Begin one on *Runs and races*, or by this command: it trains 64 "
        "seeds with each of three positional encodings. The page shows them as they end.",
        icon=":material/groups:",
    )
    st.code(f"{program()} {COMMAND}", language=None)


def makers(found: Counted) -> list[Maker]:
    """Whose numbers they are."""
    most = max((row.step for row in found.found.rows.values()), default=0)
    return [Maker(f"{len(found.found.rows)} trainings of the population {found.name}", most)]


def steps(found: Counted, chosen: Combination) -> None:
    """Steps until solved, a row a combination."""
    shown = beside(found, chosen)
    rows = [seeds_of(each) for each in shown if each.finished]
    st.markdown(
        "**After how many steps is it solved?** Each dot is a seed; the diamond is the median, on its 95 % interval"
    )
    said = words.steps_sentence(shown)
    if not rows:
        st.caption(said)
        return
    drawn = [each for each in shown if each.finished]
    most = budget([row for each in drawn for row in each.rows])
    figure = coloured(
        steps_dots,
        rows,
        unsolved=f"not solved in {most}",
        chosen=drawn.index(chosen) if chosen in drawn and len(drawn) > 1 else None,
    )
    key = "populations-steps"

    def clicked() -> None:
        place = (st.session_state[key]["click"] or {}).get("customdata")
        if isinstance(place, int) and 0 <= place < len(drawn):
            choice.choose(found, drawn[place].settings)

    plot(figure, key=key, alt=said, height=steps_height(rows), on_click=clicked, makers=makers(found))
    less = (
        f" Shown are {len(shown)} of {len(found.combinations)} combinations: those that differ from the chosen one "
        "in at most one setting."
        if len(shown) < len(found.combinations)
        else ""
    )
    st.caption(plain(f"{said}{less}"))


def beside(found: Counted, chosen: Combination) -> list[Combination]:
    """The combinations that are shown together: all, or of many those next to the chosen one."""
    if len(found.combinations) <= MOST_ROWS:
        return list(found.combinations)

    def apart(each: Combination) -> int:
        return sum(each.settings[name] != value for name, value in chosen.settings.items())

    return [each for each in found.combinations if apart(each) <= 1]


def seeds_of(each: Combination) -> Seeds:
    """A combination, for the picture of steps."""
    rows, over = each.finished, steps_until_solved(each.rows)
    return Seeds(
        words.called(each.settings),
        [each.seeds[row.member] for row in rows],
        np.array([row.step if row.solved else math.inf for row in rows]),
        over.median,
        over.low,
        over.high,
        words.pointed(each),
    )


def accuracy(found: Counted, chosen: Combination) -> None:
    """Accuracy by position, over the seeds of a combination."""
    st.markdown("**Does every seed learn the same positions?**")
    rows, config = [row for row in chosen.finished if row.correct], chosen.config
    if not rows or config is None:
        st.caption("No training of this combination has been measured.")
        return
    task, count = config.build_task(), len(rows)
    names, groups = task.target_names(task.length), task.groups(task.length)
    figure = coloured(
        accuracy_band_figure,
        accuracy_band(rows, *words.band_ends(count)),
        ceilings.ceiling(config).greatest,
        task.chance,
        names,
        groups,
        seeds=count,
        within=words.band_words(count),
        hit="chance" if task.lawful else "commonest",
    )
    said = words.band_sentence(rows, groups)
    plot(figure, key="populations-accuracy", alt=f"Accuracy by position. {said}", height=340, makers=makers(found))
    sequences = f"{rows[0].sequences:,} fresh sequences of each seed"
    st.caption(f"{said} Line: the median; band: {words.band_words(count)}. {sequences}.")


def kinds(found: Counted, chosen: Combination) -> None:
    """Which kinds of heads form in which layer, over the seeds of a combination."""
    st.markdown("**Which kinds of heads form, and in how many seeds?**")
    rows = [row for row in chosen.finished if row.kinds]
    counts = frequencies(rows)
    said = words.kinds_sentence(counts)
    if not counts:
        st.caption(said)
        return
    sites = list(dict.fromkeys(Head.parse(head).site for head in rows[0].kinds or {}))
    names = [name for name in (*NAMES, MIXED) if any(each.kind == name for each in counts)]
    have = {(each.layer, each.kind): each.members for each in counts}
    with_it = np.array([[have.get((site, name), 0) for name in names] for site in sites])
    low, high = wilson(with_it, len(rows))
    layers = [words.layer_name(site, sites) for site in sites]
    figure = coloured(
        kinds_heatmap,
        with_it / len(rows),
        low,
        high,
        layers,
        names,
        [
            [
                words.kind_words(layers[i], name, int(with_it[i, j]), len(rows), low[i, j], high[i, j])
                for j, name in enumerate(names)
            ]
            for i in range(len(sites))
        ],
    )
    plot(
        figure,
        key="populations-kinds",
        alt=f"Kinds of heads by layer. {said}",
        height=kinds_height(len(sites)),
        makers=makers(found),
    )
    meanings = ", ".join(f"“{name}” {MEANS[name]}" for name in names)
    st.caption(
        f"{said} Each cell: the share of {counted(len(rows), 'seed')} in which at least one head of the layer is of "
        f"this kind, and its 95 % interval. A head called {meanings}."
    )


def growing() -> bool:
    """Is the population that is shown being trained? Where there is none, one may be about to begin."""
    folders = populations(menu.ROOT)
    if not folders:
        return True
    folder = next((each for each in folders if each.name == session.settings().population), folders[0])
    try:
        return measured.grows(measured.load(folder, measured.stamp(folder)))
    except SweepError:
        return False


def is_news() -> bool:
    """Did a click, or the end of the last training, change what the rest of the page shows as well?"""
    touched: bool = st.session_state.get("touched", False)
    return touched or not growing()


if growing():
    waiting.until(is_news, page, every=AGAIN)
else:
    page()
