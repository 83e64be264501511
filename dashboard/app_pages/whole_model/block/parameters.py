"""Buffer or parameter: every tensor of a model, and how far training has moved each."""

from __future__ import annotations

import inspect
import math
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from dashboard.components.plot import coloured
from dashboard.figures.html.step_strip import code_excerpt
from dashboard.figures.kit.numbers import tiny
from dashboard.models.cache import cached
from dashboard.models.model import Model
from dashboard.parts import waiting
from dashboard.parts.prose import code_around, plain
from dashboard.parts.tables import height_of
from dashboard.view import training
from transformer.foundation.claims import claim
from transformer.foundation.words import counted, listed
from transformer.training.runs import Run

if TYPE_CHECKING:
    from transformer.analysis.weights import Entry, Movement


MASK = ("transformer.model:Transformer.__init__", "register_buffer")
"""Where the mask becomes a buffer: the function, and what marks the line in it."""
MOST_ROWS = 12
"""Tensors that are seen without scrolling."""
EVERY = 1.0
"""Seconds between two drawings of a training at least."""


def answer(model: Model) -> str:
    """The table of the chosen step; while a training is watched, of its newest weights."""
    found = entries(model)
    run = training.watched()
    if run is not None and run.state.live:
        waiting.until(lambda: not run.state.live, lambda: _newest(run), news=lambda: _seen(run), every=EVERY)
    else:
        _draw(model)
    return headline(model.name, found)


@claim
def headline(name: str, found: tuple[Entry, ...]) -> str:
    """How many parameters there are, and how many buffers."""
    numbers, tensors = total(found)
    buffers = sum(entry.kind == "buffer" for entry in found)
    return (
        f"{name} has {numbers:,} parameters in {counted(tensors, 'tensor')}, and {counted(buffers, 'buffer')} that "
        "training never changes."
    )


def total(found: tuple[Entry, ...]) -> tuple[int, int]:
    """How many parameters there are, and in how many tensors: what two names share counts once."""
    own = [entry for entry in found if entry.kind == "parameter" and not entry.same_as]
    return sum(entry.numbers for entry in own), len(own)


def _seen(run: Run) -> object:
    return run.state.live, max(run.snapshots(), default=None)


def _newest(run: Run) -> None:
    """The same of the last weights that a training has stored."""
    snapshots = run.snapshots()
    if not snapshots:
        waiting.hourglass(f"{plain(run.name)} has stored no weights yet …")
        return
    step, path = list(snapshots.items())[-1]
    st.markdown(f"**{plain(run.name)}, in training: its newest weights**")
    _draw(Model(run.name, step, run.config, path.stat().st_mtime))


def _draw(model: Model) -> None:
    """The table of a model, and what its words mean."""
    found = entries(model)
    _table(model, found)
    _kinds(model, found)


def _table(model: Model, found: tuple[Entry, ...]) -> None:
    """A row a tensor: what it is, and how far it is from where it began."""
    moved = {} if model.run is None else movements(model)
    frame = pd.DataFrame(
        {
            "tensor": [entry.name for entry in found],
            "kind": [entry.kind for entry in found],
            **({} if model.run is None else {"moved": [moved[entry.name].relative for entry in found]}),
            "shape": [" × ".join(map(str, entry.shape)) for entry in found],
            "numbers": [entry.numbers for entry in found],
            "bytes": [entry.size for entry in found],
            "in state_dict": [entry.stored for entry in found],
        }
    )
    config = {
        "numbers": st.column_config.NumberColumn(format="localized"),
        "bytes": st.column_config.NumberColumn(format="localized"),
    }
    if moved:
        frame["‖W − W₀‖"] = [moved[entry.name].distance for entry in found]
        config |= {
            "‖W − W₀‖": st.column_config.NumberColumn(format="%.3f"),
            "moved": st.column_config.ProgressColumn(
                "‖W − W₀‖ / ‖W₀‖", format="%.3f", min_value=0.0, max_value=max(frame["moved"].max(), 1e-9)
            ),
        }
    own = [entry.name for entry in found if entry.kind == "parameter" and not entry.same_as]
    words = moved_sentence(model, {name: moved[name] for name in own if moved})
    st.dataframe(frame, hide_index=True, height=height_of(len(frame), MOST_ROWS), column_config=config, alt=words)
    st.caption(words)


@claim
def moved_sentence(model: Model, moved: dict[str, Movement]) -> str:
    """How far the weights have moved, in a sentence or two."""
    name = plain(model.name)
    if not moved:
        return f"The weights of {name} were written by hand: there is no step 0 to compare them with."
    if not any(each.distance for each in moved.values()):
        return f"{name} at step {model.step}: nothing has moved yet. These are the weights that its seed draws."
    began = {tensor: each.relative for tensor, each in moved.items() if each.relative == each.relative}
    most = max(began, key=began.__getitem__)
    changed = sum(1 for each in moved.values() if each.distance)
    return (
        f"{name} at step {model.step}, compared with the weights that its seed draws (step 0): {changed} of "
        f"{len(moved)} tensors of parameters have moved. {plain(most)} has moved the furthest of those that did not "
        f"begin at 0, by {began[most]:.3f} of its initial length. A bar stands empty where the tensor began at 0, as "
        "biases do."
    )


def _kinds(model: Model, found: tuple[Entry, ...]) -> None:
    """What is a parameter, what a buffer, what neither; and which of them the positions are."""
    numbers, _ = total(found)
    size = sum(entry.size for entry in found if entry.kind == "parameter" and not entry.same_as)
    buffers = [entry for entry in found if entry.kind == "buffer"]
    stored = [entry for entry in buffers if entry.stored]
    many = sum(entry.numbers for entry in buffers)
    held = ", ".join(f"`{entry.name}`" for entry in buffers) + f", {many:,} number{'s' * (many != 1)}"
    kept = "None is" if not stored else f"{len(stored)} of {len(buffers)} are"
    parameter, buffer, positions = st.container(key="stacked-parameters").columns(3, gap="large")
    with parameter:
        st.markdown(
            f"**Parameter**: the optimiser changes it. Here: {numbers:,} numbers, {size:,} bytes in memory. "
            r"With AdamW’s step $\hat g$ and the learning rate $\eta$:"
        )
        st.markdown(r"$W \leftarrow W - \eta\,\hat g$")
        for entry in (entry for entry in found if entry.same_as):
            st.markdown(
                f"`{entry.name}` and `{entry.same_as}` are one matrix with two names (tied). The sum counts it once."
            )
    with buffer:
        here = f"{held}. {kept} in `state_dict`: what follows from the config is computed when the model is built."
        st.markdown(
            "**Buffer**: it belongs to the model and moves to the GPU with it, and has no gradient. Here: "
            f"{here if buffers else 'none.'}"
        )
        shape = model.config.model
        rest = (
            " and the number of heads"
            if shape.norm == "none"
            else f", the number of heads and the ε of {shape.kind_of_norm.title}"
        )
        st.markdown(f"**Neither**: plain settings, as the dropout rate{rest}.")
    with positions:
        st.markdown(_positions(model, found))
        if buffers:  # a recurrent network that is watched has none
            name, mark = _code(model)
            st.html(coloured(code_excerpt, name.partition(":")[2], *code_around(name, mark)))


def _code(model: Model) -> tuple[str, str]:
    """The line in which the encoding's first table becomes a parameter or a buffer; without one, that of the mask."""
    if model.config.model.encoding.told == "nowhere":
        return MASK
    kind = type(model.transformer().positions)
    lines = inspect.getsource(kind.__init__).splitlines() if "__init__" in vars(kind) else []
    for line in lines:
        mark = line.strip()
        if ("nn.Parameter(" in mark or "register_buffer(" in mark) and sum(mark in each for each in lines) == 1:
            return f"{kind.__module__}:{kind.__qualname__}.__init__", mark
    return MASK


def _positions(model: Model, found: tuple[Entry, ...]) -> str:
    """Whether the positions are learned, and how far they have moved."""
    encoding = model.config.model.encoding
    if encoding.told == "nowhere":
        return "This model has no positional encoding, so there is nothing of it to learn."
    tables = [entry for entry in found if entry.name.startswith("positions.")]
    if not tables:
        return f"The {plain(encoding.title)} positions keep no tensor: they are computed in each pass."
    moved = None if model.run is None else movements(model)
    kinds = [[entry for entry in tables if entry.kind == kind] for kind in ("parameter", "buffer")]
    return " ".join(_kept(model, each, len(each) == len(tables), moved) for each in kinds if each)


def _kept(model: Model, tables: list[Entry], whole: bool, moved: dict[str, Movement] | None) -> str:
    """Whether training moves these tensors of an encoding, all parameters or all buffers, and how far they are.

    They are the `whole` of what it keeps, or only a part.
    """
    title, several = plain(model.config.model.encoding.title), len(tables) > 1
    kind, named = tables[0].kind, listed([f"`{entry.name}`" for entry in tables])
    noun, they = f"{kind}s" if several else f"a {kind}", "them" if whole or several else "it"
    does = f"training can move {they}" if kind == "parameter" else f"no training moves {they}"
    subject = f"The {title} positions are {noun}, {named}"
    if not whole:
        subject = f"Of the {title} positions {named} {'are' if several else 'is'} {noun}"
    said = f"{subject}: {does}."
    if moved is None:
        return f"{said} Here they were written by hand." if kind == "parameter" else said
    if kind == "buffer":
        most = max(moved[entry.name].distance for entry in tables)
        have = "They have" if whole or several else "It has"
        return f"{said} {have} moved by {'exactly 0' if most == 0 else tiny(most)}."
    if whole and not several:
        return f"{said} At step {model.step} they have moved by {_distance(moved[tables[0].name], 'their', 'they')}."
    ways = listed([f"`{entry.name}` by {_distance(moved[entry.name], 'its', 'it')}" for entry in tables])
    return f"{said} At step {model.step} training has moved {ways}."


def _distance(moved: Movement, whose: str, who: str) -> str:
    """How far a tensor has moved, as a share of its initial length where it had one."""
    if math.isnan(moved.relative):
        return f"{moved.distance:.3f} from 0, where {who} began"
    return f"{moved.relative:.3f} of {whose} initial length"


@cached(64)
def entries(model: Model) -> tuple[Entry, ...]:
    """Every tensor of it."""
    from transformer.analysis.weights import inventory

    return inventory(model.network())


@cached(64)
def movements(model: Model) -> dict[str, Movement]:
    """How far each tensor is from the weights that the run's seed draws."""
    from transformer.analysis import weights
    from transformer.model import build

    return weights.movements(model.network(), build(model.config))
