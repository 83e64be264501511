"""The bottleneck: which measurement is shown, its words, and the three runs that make another."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from dashboard.app_pages.learn.bottleneck.figures import Line
from dashboard.figures.kit.numbers import share_text
from dashboard.models import menu
from dashboard.models.background import Measuring
from dashboard.models.cache import cached
from dashboard.models.menu import Choice
from dashboard.models.model import Model
from transformer.analysis.findings import Survey
from transformer.analysis.intervals import wilson
from transformer.config import RunConfig
from transformer.experiments.bottleneck import KINDS, Bottleneck, Contestant, kind_of
from transformer.experiments.bottleneck_runs import FOLDERS, plan
from transformer.foundation.claims import claim
from transformer.training.listing import listing
from transformer.training.runs import DEFAULT_ROOT, Run

FILES = {"shipped": DEFAULT_ROOT / "bottleneck.json", "own": menu.ROOT / "bottleneck-own.json"}
NAMES = {"gru": "GRU, one vector", "gru-attention": "GRU with attention", "transformer": "transformer"}
measuring = Measuring("bottleneck", grows=False)


# --- what was measured


@cached(8)
def load(path: Path, stamp: float) -> Bottleneck:
    """A measurement, read once for each time (`stamp`) it was written. Raises BottleneckError with one sentence."""
    return Bottleneck.load(path)


def exact_lines(found: Bottleneck) -> list[Line]:
    """Whole answers right at every length, a model a line."""
    lengths = np.array(found.lengths)
    return [_line(kind, lengths, found.exact(kind), found.sequences) for kind in KINDS]


def place_lines(found: Bottleneck, length: int) -> list[Line]:
    """Right at each place of the answer, at one length, a model a line."""
    places = np.arange(1, length + 1)
    return [_line(kind, places, found.right(kind, length), found.sequences) for kind in KINDS]


def _line(kind: str, x: np.ndarray, counts: np.ndarray, sequences: int) -> Line:
    low, high = wilson(counts, sequences)
    return Line(NAMES[kind], x, counts / sequences, low, high, KINDS.index(kind))


# --- in words


@claim
def headline(found: Bottleneck) -> str:
    """How much of the longest answers each says right, and whether the one vector is what fails."""
    length, counts = found.lengths[-1], np.array([found.exact(kind)[-1] for kind in KINDS])
    shares = [share_text(share) for share in counts / found.sequences]
    low, high = wilson(counts, found.sequences)
    lost = high[0] < low[1:].min()
    words = f"Right at length {length}: GRU {shares[0]}, with attention {shares[1]}, transformer {shares[2]}."
    return f"One vector forgets. {words}" if lost else f"One vector or attention? {words}"


def reach(found: Bottleneck) -> str:
    """Up to which length each says at least half of the answers right."""
    words = []
    for kind in KINDS:
        below = np.flatnonzero(2 * found.exact(kind) < found.sequences)
        last = len(found.lengths) if not len(below) else int(below[0])
        upto = "never" if last == 0 else f"up to length {found.lengths[last - 1]}"
        words.append(f"{NAMES[kind]} {upto}")
    return f"At least half of the whole answers right: {'; '.join(words)}."


def forgotten(found: Bottleneck, length: int) -> str:
    """Which end of the answer the one vector loses, the first said or the last; thirds are compared."""
    counts, third = found.right("gru", length), max(1, length // 3)
    first, last = counts[:third], counts[-third:]
    shares = [float(part.mean()) / found.sequences for part in (first, last)]
    intervals = [wilson(int(part.sum()), found.sequences * third) for part in (first, last)]
    numbers = (
        f"{share_text(shares[0])} of what it read last is right, and {share_text(shares[1])} of what it read first "
        f"({third} position{'s' * (third > 1)} each)"
    )
    if intervals[0][0] > intervals[1][1]:
        return f"One vector forgets what it read first: {numbers}."
    if intervals[1][0] > intervals[0][1]:
        return f"One vector forgets what it read last: {numbers}."
    return f"One vector forgets neither end more than the other: {numbers}."


def at_length(found: Bottleneck, length: int) -> str:
    """How right each is at one length, its places taken together."""
    shares = [f"{NAMES[kind]} {share_text(found.right(kind, length).mean() / found.sequences)}" for kind in KINDS]
    return f"Share of right tokens at length {length}: {', '.join(shares)}."


def burden(found: Bottleneck, length: int) -> str:
    """What the vector has to carry, in bits, and what it is made of."""
    bits, width = length * math.log2(found.task.symbols), found.of("gru").config.model.d_model
    return (
        f"To reverse {length} symbols, each one of {found.task.symbols}, the vector must carry {length} · "
        f"log₂ {found.task.symbols} = {bits:.0f} bits in its {width} numbers, {bits / width:.1f} bits a number. A "
        "32-bit number has room for that. So the curves show what training finds in "
        f"{found.of('gru').config.training.max_steps:,} steps, not what is possible."
    )


def made(found: Bottleneck) -> str:
    """What the three have in common."""
    training = found.of("gru").config.training
    return (
        f"Each trained for {training.max_steps:,} steps on the same sequences ({training.batch_size} a step, length "
        f"{found.lengths[0]} to {found.lengths[-1]}), with its own learning rate. Measured on {found.sequences:,} "
        "fresh "
        "sequences a length, with 95 % intervals. Each model reads its own output (free-running)."
    )


def table(found: Bottleneck) -> str:
    """The three beside each other, as Markdown."""
    rows = ["| model | parameters | shape | learning rate | training |", "|---|---:|---|---|---:|"]
    for each in found.contestants:
        rows.append(
            f"| **{NAMES[each.kind]}** | {each.parameters:,} | {_shape(each.config)} | {_rate(each.config)} | "
            f"{each.seconds:,.0f} s |"
        )
    return "\n".join(rows)


def _shape(config: RunConfig) -> str:
    model = config.model
    if model.recurrent:
        return f"d_model {model.d_model}" + (f", {model.attention} attention" if model.attends else "")
    layers = f"{model.n_layers} layer{'s' if model.n_layers > 1 else ''}"
    return f"{layers} in each stack, {model.n_heads} heads, d_model {model.d_model}, d_ff {model.d_ff}"


def _rate(config: RunConfig) -> str:
    training = config.training
    warm = f"after {training.warmup_steps} warm-up steps, " if training.warmup_steps else ""
    fall = f"falling as 1/step from step {training.decay_after}" if training.decay_after else "constant"
    return f"{training.learning_rate:g}, {warm}{fall}"


# --- the attention of the one that has it


def attending(each: Contestant, choices: Mapping[str, Choice]) -> Model | None:
    """The measured model itself, if its run and its weights are still here."""
    choice = choices.get(each.run)
    if choice is None or menu.run_called(each.run).digest() != each.snapshot:
        return None
    return Model.of(choice, choice.snapshots[-1])


@cached(32, "Averaging over many sequences …")
def mean_alignment(model: Model, length: int) -> Survey:
    """Its attention averaged over fresh sequences of one length, the right answers read."""
    if length == model.task.length:
        return model.survey()
    from transformer.analysis.heads.survey import survey

    return survey(model.network(), model.task, length=length)


# --- three runs anew


def trio() -> list[Run]:
    """The newest run of each of the three, of those that were trained here; nothing where one is missing."""
    wanted, newest = plan(), {}
    for entry in listing(menu.ROOT).readable:  # oldest first
        kind = kind_of(entry.config)
        if entry.name != FOLDERS[kind] and entry.config == wanted[kind]:
            newest[kind] = entry.run
    return [newest[kind] for kind in KINDS] if len(newest) == len(KINDS) else []


def is_due(runs: Sequence[Run]) -> bool:
    """Are three runs finished, and younger than what was last measured here?"""
    return _finished(runs) and not is_measured(runs)


def is_measured(runs: Sequence[Run]) -> bool:
    """Are three runs finished, and no younger than what was last measured here?"""
    file, ended = FILES["own"], max((run.state.heartbeat for run in runs), default=0.0)
    return _finished(runs) and file.is_file() and file.stat().st_mtime >= ended


def _finished(runs: Sequence[Run]) -> bool:
    return bool(runs) and all(run.state.status == "finished" for run in runs)


def progress(runs: Sequence[Run]) -> tuple[float, str]:
    """How far three trainings are, from 0 to 1, and in words."""
    words, taken, planned = [], 0, 0
    for run in runs:
        state, steps = run.state, run.config.training.max_steps
        taken, planned = taken + min(state.step, steps), planned + steps
        where = {"queued": "waits", "measuring": "is measured", "finished": "done"}
        words.append(f"{NAMES[kind_of(run.config)]} {where.get(state.status, f'step {state.step}')}")
    return taken / planned, ", ".join(words)
