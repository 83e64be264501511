"""What is chosen on the page: the population, and the combination of settings that is looked at closely."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import streamlit as st

from dashboard.app_pages.training.populations.measured import Combination, Counted
from dashboard.app_pages.training.populations.words import setting_title, value_name
from dashboard.parts.widgets import bound_choice, controlled
from dashboard.view import session
from transformer.experiments.populations.plan import Value, shown
from transformer.foundation.foreign import shortened

MOST_BUTTONS = 6
"""More values of a setting than this are a menu."""


def population(folders: list[Path]) -> Path:
    """The population that the view names, or the first."""
    named = {folder.name: folder for folder in folders}
    first = folders[0].name
    if len(named) == 1 and not session.settings().population:
        return folders[0]
    name = bound_choice(
        st.selectbox,
        "Population",
        "population",
        list(named),
        first,
        also={"combination": "", "phase_across": "", "phase_up": ""},
        width=220,
    )
    return named[name]


def combination(found: Counted) -> Combination:
    """The combination that the view names, or the first: a control for each setting that varies."""
    texts = {each.text: each for each in found.combinations}
    first = found.combinations[0]
    name = session.named(
        "combination",
        texts,
        first.text,
        lambda text: f"No training here has the settings “{shortened(text, 60)}”. These are the first.",
    )
    chosen = texts[name]
    for setting, values in found.varied.items():
        _control(found, chosen, setting, values)
    return chosen


def _control(found: Counted, chosen: Combination, setting: str, values: tuple[Value, ...]) -> None:
    """The values of one setting."""
    by_text = {shown(value): value for value in values}
    few = len(values) <= MOST_BUTTONS
    widget: Any = st.segmented_control if few else st.selectbox
    controlled(
        widget,
        setting_title(setting),
        list(by_text),
        key=f"control-combination-{setting}",
        value=shown(chosen.settings[setting]),
        picked=lambda text: choose(found, {**chosen.settings, setting: by_text[text]}),
        format_func=lambda text: value_name(setting, by_text[text]),
        **({} if few else {"width": 220}),
    )


def choose(found: Counted, settings: Mapping[str, Value]) -> None:
    """Look at another combination."""
    wanted = found.of(settings)
    session.update(combination="" if wanted is found.combinations[0] else wanted.text)
