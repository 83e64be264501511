"""The health strip: a small mark for each check at the sidebar's foot, quiet while all is well, and its evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from dashboard.models.cache import cached
from dashboard.models.damage import faults
from dashboard.models.model import Model
from dashboard.parts.prose import plain
from dashboard.parts.tables import height_of
from dashboard.parts.widgets import bound_choice, controlled
from dashboard.view import session
from transformer.foundation.checks import reason
from transformer.foundation.foreign import shortened

if TYPE_CHECKING:
    from transformer.analysis.health.case import Checkup, Finding
    from transformer.tasks import Question


MARKS = {
    True: ":green[:material/check_circle:]",
    False: ":red[:material/cancel:]",
    None: ":gray[:material/do_not_disturb_on:]",
}
"""Kept, broken, and where the law says nothing about this model."""
MOST_ROWS = 5
"""Rows of the table that are seen without scrolling."""


def strip(model: Model, alarm: Any) -> None:
    """Check the model that the view names, and draw the marks; to be called last, when the page stands.

    What is wrong is also said in the container `alarm`. A model is checked when the page has been painted with it.
    """
    with st.sidebar.container(key="health"):
        if session.first_look():
            st.caption(":material/hourglass_empty: Health: waiting for its check …")
            return
        if model.run is not None and (wrong := faults(model.run)):
            alarm.warning(damaged(model.name, wrong), icon=":material/broken_image:")
        try:
            found = checkup(model, session.question(model))
        except Exception as error:  # whatever it is, the page stands without it
            st.caption(f":material/help: Health not checked: {plain(reason(error))}.")
            return
        st.fragment(_marks)(model, found)
    if found.broken:
        alarm.error(trouble(found), icon=":material/health_and_safety:")


def damaged(name: str, wrong: Sequence[str]) -> str:
    """Which files of a run cannot be used."""
    parts = ". ".join(f"{each[0].upper()}{each[1:]}" for each in map(plain, wrong))
    rest = "What cannot be used is left out, or measured anew; all else is shown."
    return f"The run **{plain(name)}** is damaged. {parts}. {rest}"


def _marks(model: Model, checkup: Checkup) -> None:
    """The marks, and behind them the evidence: it is sent when it is asked for."""
    names = [check.name for check, _ in checkup.findings]
    first = next((check.name for check, _ in checkup.broken), names[0])
    named = session.named(
        "health",
        names,
        "",
        lambda name: f"There is no health law “{shortened(name, 30)}”. The list below shows all laws.",
    )
    popover = controlled(
        st.popover,
        label(checkup),
        key="health-open",
        value=bool(named),  # open means: the view names a law
        picked=lambda opened: session.update(health=first if opened else ""),
        width="stretch",
    )
    if popover.open:
        with popover:
            _explain(model, checkup, first)
    session.end()
    st.html(session.origin())


def label(checkup: Checkup) -> str:
    """The strip itself: a mark for each law, and how many are broken if any is."""
    marks = "".join(MARKS[finding.holds] for _, finding in checkup.findings)
    broken = len(checkup.broken)
    return f"{f':red[**{broken} of {len(checkup.findings)} broken**]' if broken else 'Health'} {marks}"


def summary(checkup: Checkup) -> str:
    """How many laws hold, in a sentence."""
    laws, broken = len(checkup.findings), checkup.broken
    silent = laws - checkup.kept - len(broken)
    about = f"; {silent} {'does' if silent == 1 else 'do'} not apply to this model" if silent else ""
    if broken:
        return f"Health: {len(broken)} of {laws} laws {'is' if len(broken) == 1 else 'are'} broken{about}."
    return f"Health: all {checkup.kept} laws hold{about}." if silent else f"Health: all {laws} laws hold."


def trouble(checkup: Checkup) -> str:
    """What is wrong, the likeliest cause first, in a sentence or two."""
    (check, finding), *others = checkup.broken
    also = f" Also broken: {', '.join(other.label for other, _ in others)}." if others else ""
    return f"**{check.label}** is broken. {plain(finding.sentence)}{also}"


def _explain(model: Model, checkup: Checkup, first: str) -> None:
    """One law: what it says, the evidence, and what was looked at."""
    st.markdown(f"**{summary(checkup)}**")
    found = {check.name: (check, finding) for check, finding in checkup.findings}
    name = bound_choice(
        st.pills,
        "Law",
        "health",
        list(found),
        first,
        format_func=lambda each: f"{MARKS[found[each][1].holds]} {found[each][0].label}",
        label_visibility="collapsed",
    )
    check, finding = found[name]
    st.markdown(f"{check.law} ${check.formula}$")
    st.markdown(f"{MARKS[finding.holds]} {plain(finding.sentence)} {deviation(finding)}")
    if finding.table:
        _table(finding)
    st.caption(basis(model, checkup))


def _table(finding: Finding) -> None:
    """The evidence, cell by cell."""
    frame = pd.DataFrame(dict(finding.table))
    numbers = [column for column in frame if frame[column].dtype.kind == "f"]
    st.dataframe(
        frame,
        hide_index=True,
        height=height_of(len(frame), MOST_ROWS),
        column_config={column: st.column_config.NumberColumn(format="%.3g") for column in numbers},
        alt=finding.sentence,
    )


def deviation(finding: Finding) -> str:
    """How far the model is from the law, and how far it may be."""
    if finding.holds is None:
        return ""
    allowed = f"at most {finding.tolerance:.2g}" if finding.tolerance else "none"
    return f"**Worst deviation {finding.deviation}**, allowed {allowed}."


def basis(model: Model, checkup: Checkup) -> str:
    """What was looked at."""
    shorter = ", shorter than its task's" if checkup.short else ""
    drawn = "drawn" if is_large(model) else "the first begins with this input, the others are drawn at random"
    mask = "" if model.config.model.recurrent else f" and under its own mask ({model.config.model.mask})"
    return (
        f"Checked: {plain(model.name)} at step {model.step}, without any edits{mask}. The checks ran on "
        f"{checkup.sequences} sequences of up to {checkup.tokens} tokens{shorter}: {drawn} with its seed. "
        "Heads count from 0, positions from 1."
    )


LARGE = 2**17
"""Layers times squared width from which a model is checked once: half a second, where the shipped ones take 0.05."""
IN_A_LAYER = 12
"""About so many times its squared width are a layer's weights: a vocabulary of thousands counts as several layers."""


def checkup(model: Model, question: Question) -> Checkup:
    """Whether it keeps the laws of health, on a few sequences of its task and, unless it is large, this question."""
    return _checkup(model, question[:0] if is_large(model) else question)


def is_large(model: Model) -> bool:
    """Does a check take so long that it is made once, and not again for each question?"""
    shape = model.config.model
    words = shape.d_model * model.task.d_vocab / IN_A_LAYER
    return shape.n_layers * shape.d_model**2 + words > LARGE


@cached(256)
def _checkup(model: Model, question: Question) -> Checkup:
    from transformer.analysis.health.examine import examine

    return examine(model.network(), model.task, question, model.config.training.seed)
