"""The chosen model drawn as it is: boxes, arrows with shapes, and one token's real vector at each of them."""

from __future__ import annotations

import numpy as np
import streamlit as st

from dashboard.app_pages.whole_model.machine import live, measured, words
from dashboard.app_pages.whole_model.machine.figures import height_of, machine_figure
from dashboard.app_pages.whole_model.machine.settings import MachineSettings
from dashboard.components.plot import coloured, plot
from dashboard.components.presses import counted_button
from dashboard.parts.heads import focused, heads_of
from dashboard.parts.prose import capital, plain, show_code
from dashboard.parts.widgets import bound, bound_choice, bound_token, late_title, pick_head
from dashboard.server.streamlit_private import DeltaGenerator
from dashboard.view import clicks, session
from dashboard.view.pages import PAGES
from transformer.analysis.machine.plan import Plan, blocks, size_of
from transformer.foundation.foreign import shortened

MOST_BUTTONS = 20
LEVELS = {"": "The whole", "block": "A block", "head": "A head"}
CODE = {
    "": ("transformer.model.Transformer.forward", "transformer.model.Transformer._stack"),
    "block": ("transformer.blocks.Block.forward",),
    "head": ("transformer.attention.MultiHeadAttention.forward", "transformer.attention.scaled_dot_product_attention"),
}
RECURRENT = ("transformer.recurrent.sequence.Recurrent.forward", "transformer.recurrent.sequence.EncoderDecoder.decode")


def pick_block(names: list[str]) -> str:
    block: str = bound_choice(
        st.selectbox,
        "Block",
        "block",
        names,
        names[0],
        also={"box": ""},
        format_func=lambda name: name.replace(".", " block "),
        width=220,
    )
    return block


def pick_box(plan: Plan, back: DeltaGenerator, on: DeltaGenerator) -> str:
    """Which box is spoken of; N and B go to the next and the last one before."""
    names = plan.names
    box: str = session.named(
        "box", names, names[0], lambda name: f"There is no box “{shortened(name, 40)}” here; this is the first."
    )
    at = names.index(box)

    def go(by: int) -> None:
        now = session.mine(MachineSettings).box
        to = min(max((names.index(now) if now in names else 0) + by, 0), len(names) - 1)
        session.update(box="" if to == 0 else names[to])

    with back:
        counted_button("Back", lambda n: go(-n), key="box-back", letter="B", disabled=at == 0, width="content")
    with on:
        last = at == len(names) - 1
        counted_button("Next", go, key="box-on", letter="N", disabled=last, primary=True, width="content")
    return box


@clicks.once
def clicked() -> None:
    """A box was clicked: the page that looks into it is opened by the script, since an answer cannot."""
    click = st.session_state["machine"]["click"] or {}
    name = click.get("customdata") or click.get("meta")
    if isinstance(name, str):
        st.session_state.machine_box = name


model = session.chosen()
config, task, question = model.config.model, model.task, session.question(model)
sample = model.sample(question)
title = late_title()
with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="compact-machine"):
    levels = [""] if config.recurrent else list(LEVELS)
    level = bound_choice(
        st.segmented_control,
        "Level",
        "zoom",
        levels,
        "",
        also={"box": ""},
        format_func=LEVELS.__getitem__,
    )
    block, head = "", None
    if level == "block":
        block = pick_block(blocks(config))
    if level == "head":
        heads = heads_of(sample.attentions)
        head = focused(heads, model.survey())
        pick_head(heads, head, also={"box": ""})
    answers = np.flatnonzero(sample.is_answer)
    begins = task.lawful and len(answers) > 0
    first = int(answers[0]) if begins else len(sample.read) - 1
    place = bound_token(
        "Token",
        sample.read,
        first,
        lambda place: (
            f"There is no token at {place}: {len(sample.read)} are read. The page shows the one at {first + 1}."
        ),
        most=MOST_BUTTONS,
    )
plan = measured.plan_of(model, question, level, block, head)
vectors = measured.vectors(model, question, level, block, head, place)
size = size_of(task, question)
total = sum(weights.numel() for weights in model.network().parameters())
said_of_all = words.headline(config, plan, size, total)
title.title(plain(said_of_all), anchor=False)
with title:
    live.pointer()

pending = st.session_state.pop("machine_box", None)
if pending in plan.names:
    address, fields = words.opens(config, plan[pending])
    session.update(**fields)
    if address == "machine":
        clicks.again()
    st.switch_page(PAGES[address].script)

with st.container(horizontal=True, vertical_alignment="center", gap="small"):
    back, on, said = st.container(width="content"), st.container(width="content"), st.container()
chosen = plan[pick_box(plan, back, on)]
spoken = words.sentence_of(config, size, chosen)
if chosen.name in vectors:
    vector, whose = vectors[chosen.name], words.of_token(size, chosen, sample, place)
    names = sample.attentions[head.site].keys if head and chosen.kind in ("scores", "pattern") else task.vocabulary
    spoken += f" {words.vector_words(vector, chosen, names, whose)}"
said.markdown(f"**{plain(capital(words.name_of(chosen)))}.** {plain(spoken)}")
before = measured.step_before(model)
shares = {}
if before is not None:
    switch = bound(st.toggle, f"Tint what training moved since step {before}", "tinted")
    if switch:
        shares = measured.moved(model, before, question, level, block, head)
stages, links = words.drawn(config, size, plan, vectors, shares, sample)
plot(
    coloured(machine_figure, stages, links, chosen.name),
    key="machine",
    alt=f"{said_of_all} From bottom to top: {', '.join(box.title for box in plan.boxes)}.",
    height=height_of(stages),
    on_click=clicked,
)
road = "The blue line is the residual stream. " if any(arrow.road for arrow in plan.arrows) else ""
if shares and before is not None:
    st.caption(words.movement(plan, shares, before, model.step))
opening = f"; the page opens on '{plain(sample.read[first])}' at {first + 1}, where the answer begins" if begins else ""
st.caption(
    f"Read from bottom to top. {road}A grey arrow carries the shape beside it. In each box stands the vector of the "
    f"chosen token, coloured by its own largest number{opening}. "
    "Click a box to open the page that looks into it; N steps through the boxes."
)
live.panel()
show_code(*(RECURRENT if config.recurrent else CODE[level]))
