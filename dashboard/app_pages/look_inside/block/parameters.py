"""Buffer or parameter: every tensor of a model, and how far training has moved each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from dashboard.components.plot import coloured
from dashboard.figures.html.step_strip import code_excerpt
from dashboard.figures.kit.numbers import tiny
from dashboard.models.cache import cached
from dashboard.models.model import Model
from dashboard.parts import waiting
from dashboard.parts.prose import code_around, encoding_name, plain
from dashboard.parts.tables import height_of
from dashboard.view import training
from transformer.foundation.claims import claim
from transformer.foundation.words import counted
from transformer.training.runs import Run

if TYPE_CHECKING:
    from transformer.analysis.weights import Entry, Movement


CODE = {
    "learned": ("transformer.positions.learned:Learned.__init__", "nn.Parameter"),
    "sinusoidal": ("transformer.positions.sinusoidal:Sinusoidal.__init__", "register_buffer"),
    "rotary": ("transformer.positions.rotary:Rotary.__init__", 'register_buffer("cos"'),
    "alibi": ("transformer.positions.alibi:ALiBi.__init__", "register_buffer"),
}
"""Where an encoding's table becomes a parameter or a buffer: the function, and what marks the line in it."""
MASK = ("transformer.model:Transformer.__init__", "register_buffer")
"""The same of the mask, for a model without an encoding."""
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
    words = _movement(model, {entry.name: moved[entry.name] for entry in found if moved and not entry.same_as})
    st.dataframe(frame, hide_index=True, height=height_of(len(frame), MOST_ROWS), column_config=config, alt=words)
    st.caption(words)


def _movement(model: Model, moved: dict[str, Movement]) -> str:
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
        f"{len(moved)} tensors have moved, {plain(most)} the furthest, by {began[most]:.3f} of its initial length. "
        "A bar stands empty where the tensor began at 0, as biases do."
    )


def _kinds(model: Model, found: tuple[Entry, ...]) -> None:
    """What is a parameter, what a buffer, what neither; and which of them the positions are."""
    numbers, _ = total(found)
    size = sum(entry.size for entry in found if entry.kind == "parameter" and not entry.same_as)
    buffers = [entry for entry in found if entry.kind == "buffer"]
    stored = [entry for entry in buffers if entry.stored]
    held = ", ".join(f"`{entry.name}`" for entry in buffers) + f", {sum(entry.numbers for entry in buffers):,} numbers"
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
            name, mark = CODE.get(model.config.model.positions, MASK)
            st.html(coloured(code_excerpt, name.partition(":")[2], *code_around(name, mark)))


def _positions(model: Model, found: tuple[Entry, ...]) -> str:
    """Whether the positions are learned, and how far they have moved."""
    name = model.config.model.positions
    tables = [entry for entry in found if entry.name.startswith("positions.")]
    if not tables:
        return "This model has no positional encoding, so there is nothing of it to learn."
    named = " and ".join(f"`{entry.name}`" for entry in tables)
    several = len(tables) > 1
    moved = None if model.run is None else movements(model)
    if tables[0].kind == "parameter":
        far = " Here they were written by hand."
        if moved is not None:
            by = moved[tables[0].name].relative
            far = f" At step {model.step} they have moved by {by:.3f} of their initial length."
        return f"The {encoding_name(name)} positions are a parameter, {named}: training can move them.{far}"
    far = ""
    if moved is not None:
        most = max(moved[entry.name].distance for entry in tables)
        far = " They have moved by exactly 0." if most == 0 else f" They have moved by {tiny(most)}."
    return (
        f"The {encoding_name(name)} positions are {'buffers' if several else 'a buffer'}, {named}: no "
        f"training moves them.{far}"
    )


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
