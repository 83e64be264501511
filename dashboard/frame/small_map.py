"""The small map in the sidebar: which part of the model the page shows, and the way to the large one."""

from __future__ import annotations

import streamlit as st

from dashboard.components.plot import coloured
from dashboard.figures.html.small_map import small_map
from dashboard.view.pages import PAGES, Page
from transformer.analysis.machine.plan import stacks
from transformer.config import ModelConfig

NAMES = {
    "tokens": "the tokens",
    "positions": "the positions",
    "attention": "attention",
    "block": "the blocks",
    "stream": "the residual stream",
    "state": "the states",
    "output": "the output",
}
"""The parts of a model that a page can show."""
RECURRENT = {"attention": "state", "stream": "state", "block": "state", "positions": ""}
"""What stands in their place in a recurrent network."""


def draw(page: Page, config: ModelConfig) -> None:
    """The map of the chosen model, for a page that shows a part of it."""
    shown = RECURRENT.get(page.part, page.part) if config.recurrent else page.part
    if not shown:
        return
    st.html(
        coloured(small_map, rows(config), config.n_heads, shown, f"The model in small. This page shows {NAMES[shown]}.")
    )
    machine = PAGES["machine"]
    st.page_link(
        machine.script,
        label=f"Here: {NAMES[shown]}",
        icon=f":material/{machine.icon}:",
        help="Opens the machine: the whole model, drawn with its numbers.",
    )


def rows(config: ModelConfig) -> list[list[str]]:
    """The boxes of each stack, from what it reads to what it makes."""
    if config.recurrent:
        return [["tokens", *["state"] * config.n_layers], ["tokens", *["state"] * config.n_layers, "output"]]
    added = ["positions"] if config.encoding.told == "vectors" else []
    found = [["tokens", *added, *["block"] * config.n_layers] for _ in stacks(config)]
    found[-1].append("output")
    return found
