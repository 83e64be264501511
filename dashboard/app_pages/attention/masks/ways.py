"""Which tokens can reach an output through the mask: drawn for one output, and a sentence about all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from dashboard.app_pages.attention.masks.figures.flow import Nodes, Steps, is_merged, path_flow
from dashboard.components.plot import coloured, plot
from dashboard.figures.kit.token_axis import elided
from dashboard.models.model import Model
from dashboard.parts.widgets import controlled
from dashboard.view import session
from transformer.analysis.accuracy import ceilings
from transformer.analysis.accuracy.reachability import Flow, flow, flow_of_mask, least_layers, needed_by
from transformer.analysis.findings import Sample
from transformer.foundation.claims import claim
from transformer.foundation.words import counted
from transformer.masks import Mask
from transformer.tasks import Task

ROW, MOST_HEIGHT = 27, 620
"""Pixels that a token has, and that the picture may be high."""
LETTERS = 6
"""Of a token of a text beside the picture."""
FEW = 3
"""More ways than this through one layer are counted, not named."""


def chosen_target(task: Task, length: int) -> int:
    """The output that the view names, counted from 0: the first of the answer unless said."""
    names = task.target_names(length)
    own = names.index("y1") if task.lawful else len(names) - 1  # a text's last output has most to be told by
    target: int = session.named(
        "target",
        range(1, len(names) + 1),
        own + 1,
        lambda target: f"There is no output {target} here: there are {len(names)}. The page shows another.",
    )
    return target - 1


def choose_clicked(key: str) -> None:
    """Answer a click in the figure `key`: show the ways to that output."""
    click = st.session_state[key]["click"]
    if click is not None and isinstance(click.get("customdata"), int):
        session.update(target=click["customdata"] + 1)


def pick_output(names: Sequence[str], target: int) -> None:
    """The menu of outputs; `names` are what they say, or what they are called."""
    controlled(
        st.selectbox,
        "Output",
        range(len(names)),
        key="control-target",
        value=target,
        picked=lambda found: session.update(target=found + 1),
        format_func=lambda i: f"{names[i]}, said at position {i + 1}",
    )


def ways(model: Model, mask: Mask, length: int, target: int, sample: Sample) -> None:
    """The flow to one output, the words that say what it shows, and the menu of outputs."""
    task, n_layers = model.task, model.config.model.n_layers
    if task.lawful:
        names = outputs = task.target_names(length)
        slots, needed = slot_names(task, length), "the token that the output needs"
        found, said = flow_of_mask(task, mask, n_layers, length, target), sentence(task, mask, n_layers, length, target)
    else:
        names, needed = tuple(f"'{token}'" for token in sample.targets), "the tokens before the output"
        slots, outputs = ((), elided_all(sample.read)), elided_all(sample.targets)
        found = flow(mask.matrix(length), n_layers, target, np.arange(length) <= target)
        said = told(found.columns[0].leads, target, n_layers)
    place = st.container(key="stacked-ways")
    wide = task.has_source  # two stacks need the whole width
    picture, words = (place.container(), place.container()) if wide else place.columns([3, 2], gap="large")
    with words:
        pick_output(names, target)
        st.markdown(f"**{said}**")
        st.caption(
            f"Green: {needed}, and every way to the output. Grey: what else can arrive. A thin level line is the "
            "residual path, where a position keeps its own vector. A bent line is attention, where a query "
            "reads a key. "
            "Click an output on the right to choose it."
        )
    columns, steps = drawn(found, *slots)
    rows = max(len(column.labels) for column in columns)
    with picture:
        height = min(MOST_HEIGHT, 60 + ROW * max(rows, 6))
        figure = coloured(path_flow, columns, steps, target, outputs=outputs, height=height)
        plot(figure, key="flow", alt=said, height=height, on_click=_choose_output)
    if is_merged(columns):
        words.caption(f"{rows} tokens are too many for a line each. A band reaches from the first way to the last.")


def _choose_output() -> None:
    """Only the last column chooses: the others are no outputs."""
    click = st.session_state["flow"]["click"]
    if click is not None and click.get("meta") == "output":
        choose_clicked("flow")


def elided_all(tokens: Sequence[str]) -> tuple[str, ...]:
    return tuple(elided(token, LETTERS) for token in tokens)


def drawn(found: Flow, source: Sequence[str], tokens: Sequence[str]) -> tuple[list[Nodes], list[Steps]]:
    """A flow as the figure takes it: its columns named by what has happened so far."""
    layers = max(column.layer for column in found.columns)
    columns = []
    for column in found.columns:
        stack = "encoder" if column.stack == "source" else "decoder" if source else "layer"
        title = f"{stack} {column.layer - 1}" if column.layer else "source" if stack == "encoder" else "tokens"
        if column.stack == "tokens" and column.layer == layers:
            title += " = out"
        columns.append(Nodes(title, source if column.stack == "source" else tokens, column.leads, column.carries))
    return columns, [Steps(link.start, link.end, link.attention, link.straight) for link in found.links]


def slot_names(task: Task, length: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the slots are called: of the source, and of the tokens."""
    names, question = task.target_names(length), tuple(f"x{i + 1}" for i in range(length))
    if task.has_source:
        return question, ("SEP", *names[:-1])
    return (), question if len(names) == length else ("x1", *names[:-1])


@claim
def sentence(task: Task, mask: Mask, n_layers: int, length: int, target: int) -> str:
    """What one output needs, and whether and how it can arrive."""
    name, symbol = task.target_names(length)[target], task.symbols_of_targets(length)[target]
    output = f"Output {name}, said at position {target + 1},"
    ceiling = ceilings.ceiling_of_mask(task, mask, n_layers, length)
    best, most = float(ceiling.accuracy[target]), float(ceiling.greatest[target])
    untold = (
        f" The model is not told the length, so the best guess is right {best:.2f} of the time." if best < most else ""
    )
    if symbol < 0:
        if ceiling.nats[target] > 0:
            return f"{output} ends the question, and no token that may be seen shows for certain where that is.{untold}"
        return f"{output} needs no token: its position alone decides it."
    if symbol >= length:
        return f"{_whole_question(task, mask, n_layers, length, target, most)}{untold}"
    source, tokens = slot_names(task, length)
    carriers = np.flatnonzero(needed_by(task, length)[target])
    first, *others = (int(slot) for slot in carriers)
    kind = "source token" if source else "token"
    own = name.startswith("x")
    needs = (
        f"{output} is the next token of the question itself"
        if own
        else f"{output} needs the {kind} {(*source, *tokens)[first]}"
    )
    least = least_layers(task, mask, length, target)
    if least < 0:
        return f"{needs}. It can never arrive, so at most {most:.2f} can be right.{untold}"
    layers = f"{least} layer{'s' if least != 1 else ''}"
    if least > n_layers:
        return f"{needs}. That takes {layers}, and this model has {n_layers}: at most {most:.2f} can be right.{untold}"
    if least == 0:
        return f"{needs}, which stands at its own position.{untold}"
    if others and not ceilings.reach(task, mask, least, length)[target, first]:
        shown = tokens[others[0] - len(source)]
        return f"{output} can copy its own answer from the token {shown}, in {layers}: this mask leaks."
    if source:
        return f"{needs}. It can arrive in {layers}, through the encoder and cross-attention."
    return f"{needs}. It can arrive in {layers}{_through(mask.matrix(len(tokens)), least, target, first)}.{untold}"


def _through(mask: np.ndarray, least: int, target: int, start: int) -> str:
    """The tokens on the shortest ways, from the needed one on."""
    if least == 1:
        return ", directly"
    found = flow(mask, least, target, np.arange(len(mask)) == start)
    hops = []
    for column in found.columns[1:-1]:
        places = [str(place + 1) for place in np.flatnonzero(column.leads & column.carries)]
        hops.append(" or ".join(places) if len(places) <= FEW else f"any of {len(places)} tokens")
    return " through position " + ", then ".join(hops)


def _whole_question(task: Task, mask: Mask, n_layers: int, length: int, target: int, most: float) -> str:
    """Of an output that no one place of the question decides: how much of it arrives."""
    arrived = int(ceilings.reach(task, mask, n_layers, length)[target, :length].sum())
    output = (
        f"Output {task.target_names(length)[target]}, said at position {target + 1}, may depend on all {length} "
        "tokens of the question"
    )
    if arrived == length:
        least = next(
            layers
            for layers in range(n_layers + 1)
            if ceilings.reach(task, mask, layers, length)[target, :length].all()
        )
        return f"{output}. They can arrive in {counted(least, 'layer')}."
    if most == 1:
        return f"{output}. What decides it can arrive in this model’s {counted(n_layers, 'layer')}."
    about = "about " if float(ceilings.ceiling_of_mask(task, mask, n_layers, length).error[target]) else ""
    return f"{output}. {arrived} of them can arrive, so at most {about}{most:.2f} can be right."


def told(arrives: np.ndarray, target: int, n_layers: int) -> str:
    """By how many tokens an output of a text can be told: bool [slot], which of them reach it."""
    before, after = int(arrives[: target + 1].sum()), int(arrives[target + 1 :].sum())
    layers = f"{n_layers} layer{'s' if n_layers != 1 else ''}"
    read = f"the {target + 1} tokens before it" if target else "the one token before it"
    words = f"The output at position {target + 1} can depend on {before} of {read}, in {layers}"
    if not after:
        return f"{words}. No later token reaches it: the mask holds."
    own = ", its own among them" if arrives[target + 1] else ""
    return f"{words}. It can also depend on {after} later token{'s' * (after > 1)}{own}: this mask leaks."
