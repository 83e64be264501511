"""From a run's snapshots to the film: the finished film, or the part there is of a training under way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dashboard.components.film import Moment, Reel, Track
from dashboard.figures.loss import loss_axes
from dashboard.parts.claims import foremost, heads_in_words
from dashboard.parts.heads import alignment_sentence
from dashboard.parts.prose import head_label
from dashboard.parts.text import course
from transformer.analysis.accuracy import ceilings, windows
from transformer.analysis.accuracy.best_guess import TIE
from transformer.analysis.accuracy.result import spans
from transformer.analysis.film.film import LEARNED, RISE, Film, learned_at, quantise, sharpening
from transformer.analysis.findings import Attention, Head
from transformer.config import PROBE_SEQUENCES, RunConfig
from transformer.foundation.claims import claim

COUNTS = "counts alone"
"""The loss of who knows how common each token of a text is, and reads nothing."""
FOUND = "the token to say next"
"""What a head looks at once it has learned to."""


@dataclass(frozen=True)
class Rows:
    """What is measured while a model learns, row by row: of a law each target, of a text each stretch of a window."""

    names: Sequence[str]
    groups: Sequence[str]
    ceiling: np.ndarray
    together: Callable[[np.ndarray], np.ndarray]
    """Accuracy by row, from accuracy by target: float [..., target]."""
    called: Sequence[str] = ()
    """What the pointer says of a row that is more than a position."""

    @classmethod
    def of(cls, config: RunConfig) -> Rows:
        task, ceiling = config.build_task(), ceilings.ceiling(config).greatest
        if task.lawful:
            return cls(task.target_names(task.length), task.groups(task.length), ceiling, np.asarray)
        names, together = windows.named(task.length), windows.drawn_together
        called = [f"place {name}" for name in names]
        return cls(names, ("",) * len(names), together(ceiling), together, called)


def against(config: RunConfig, metrics: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What a loss is to be read against; the floor of a text nobody knows, but it is read on what was held out."""
    if config.build_task().lawful:
        return {"floor": ceilings.loss_floor(config), "guess": "guessing", "held_out": None}
    return {"floor": None, "guess": COUNTS, "held_out": course(metrics)}


def heads_of(film: Film) -> list[Head]:
    """All heads, in the order of the data's way: that of the reel's tracks."""
    return [Head(site, i) for site, reading in film.readings.items() for i in range(reading.levels.shape[1])]


def of_film(
    film: Film,
    config: RunConfig,
    metrics: Sequence[Mapping[str, Any]],
    kept: Sequence[int],
    focus: Head | None = None,
) -> Reel:
    """The reel of a film, and of the losses of its training. `kept` are the steps whose weights can be looked at.

    The head that sharpens is outlined unless `focus` names another.
    """
    moment, heads = sharpening(film), heads_of(film)
    one_kind = len({head.kind for head in heads}) == 1
    tracks = []
    for head in heads:
        reading = film.readings[head.site]
        tracks.append(
            _track(head, one_kind, reading.levels[:, head.index], reading.mask, reading.queries, reading.keys)
        )
    return Reel(
        pattern_steps=film.steps[film.pictured].tolist() if tracks else [],
        tracks=tracks,
        accuracy_steps=film.steps.tolist(),
        accuracy=Rows.of(config).together(film.accuracy),
        sequences=[film.sequences] * len(film.steps),
        moment=None if moment is None else Moment(moment.step, f"{of(config, moment.head)} sharpens"),
        focus=next((heads.index(head) for head in (focus, moment and moment.head) if head in heads), None),
        kept=kept,
        **_course(config, metrics),
    )


def of_training(
    config: RunConfig, metrics: Sequence[Mapping[str, Any]], attentions: Mapping[str, Attention], step: int | None
) -> Reel:
    """What there is so far of a training: its losses and measurements, and the patterns of its newest weights.

    `attentions` are those of one look at these weights, at `step`; empty and None as long as there are none.
    """
    heads = [Head(site, i) for site, attention in attentions.items() for i in range(len(attention.pattern))]
    one_kind = len({head.kind for head in heads}) == 1
    tracks = []
    for head in heads:
        seen = attentions[head.site]
        tracks.append(
            _track(head, one_kind, quantise(seen.pattern[head.index])[None], seen.mask, seen.queries, seen.keys)
        )
    measured = [m for m in metrics if "accuracy" in m]
    targets = len(config.build_task().target_names(config.task.length))
    return Reel(
        pattern_steps=[] if step is None or not tracks else [step],
        tracks=tracks if step is not None else [],
        accuracy_steps=[m["step"] for m in measured],
        accuracy=Rows.of(config).together(np.array([m["accuracy"] for m in measured]).reshape(-1, targets)),
        sequences=[m.get("probed", PROBE_SEQUENCES) for m in measured],
        **_course(config, metrics),
    )


def of(config: RunConfig, head: Head) -> str:
    """What a head is called within its model."""
    return head_label(head, config.model)


def _capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


@claim
def moment_sentence(film: Film, config: RunConfig) -> str:
    """When the heads sharpen, and how long their rise takes; of a model without heads, what it has learned.

    Of a text, where no token is the one to look at, what it came to guess.
    """
    if not config.build_task().lawful:
        first, last = film.accuracy[0].mean(), film.accuracy[-1].mean()
        if len(film.steps) == 1:
            return f"It guesses {last:.2f} of the tokens at step {film.steps[-1]}."
        return f"It guesses {last:.2f} of the tokens at step {film.steps[-1]}, and {first:.2f} at step {film.steps[0]}."
    if not film.readings:
        right = learned_at(film)
        known, when_all = np.isfinite(right), f" at step {film.steps[-1]}"
        return f"This model has no heads: {known.sum()} of {len(known)} places are right nine times in ten{when_all}."
    moment = sharpening(film)
    if moment is None and config.model.recurrent and config.build_task().points:
        task, (reading,) = config.build_task(), film.readings.values()
        said = alignment_sentence(reading.pattern(-1)[0], task.expected_keys(task.example))
        return f"At step {film.steps[-1]} {said[0].lower()}{said[1:]}"
    if moment is None:
        ends = {head: float(share[-1]) for head, share in film.shares.items() if np.isfinite(share[-1])}
        if not config.build_task().points:
            return "This task has no token that a head would have to look at."
        if not ends:
            return f"Under this mask no head ever sees {FOUND}."
        best = foremost(ends)
        first, last = sorted(f"{film.shares[head][0]:.2f}" for head in best), ends[best[0]]
        who, several = heads_in_words([of(config, head).removeprefix("head ") for head in best])
        if len(film.steps) == 1:
            looks, whose = ("look", "their") if several else ("looks", "its")
            return f"{who} {looks} most at {FOUND}: {last:.2f} of {whose} attention is there."
        had = first[0] if first[0] == first[-1] else f"{first[0]} to {first[-1]}"
        return (
            f"No head’s attention on {FOUND} has risen by {RISE:.2f}. {who} {'have' if several else 'has'} most there, "
            f"{last:.2f}, and had {had} at step {film.steps[0]}."
        )
    return (
        f"{_capital(of(config, moment.head))} learns to look at {FOUND} in steps {moment.began} to {moment.ended}: "
        f"from {moment.before:.2f} to {moment.after:.2f}."
    )


@claim
def order_sentence(film: Film, config: RunConfig) -> str:
    """In which order the positions were learned, and which were not, in words; of a text, where it guesses most."""
    if not config.build_task().lawful:
        last, names = windows.drawn_together(film.accuracy[-1]), windows.named(len(film.names))
        best = int(last.argmax())
        first = "" if best == 0 else f", and at the first place {last[0]:.2f}"
        return (
            f"At step {film.steps[-1]} it guesses {film.accuracy[-1].mean():.2f} of the tokens. It is best at place "
            f"{names[best]}, with {last[best]:.2f}{first}."
        )
    learned, ceiling = learned_at(film), ceilings.ceiling(config).accuracy
    steps = sorted({int(step) for step in learned if np.isfinite(step)})
    parts = [f"{spans(film.names, learned == step)} from step {step}" for step in steps]
    said = f"Right at least nine times in ten from then on: {', '.join(parts)}." if parts else ""
    never = np.isnan(learned)
    task = config.build_task()
    told = config.model.recurrent or config.model.encoding.told != "nowhere"
    could = "could be, but not yet" if told else "could be with positions, and this model has none"
    partly = (ceiling > task.blind(task.length) * (1 + TIE)) | (ceiling >= LEARNED)
    for which, why in (
        (never & ~partly, "cannot be: nothing in sight there tells the answer"),
        (never & partly & (ceiling < LEARNED), "cannot be: what is in sight there tells the answer only in part"),
        (never & (ceiling >= LEARNED), could),
    ):
        if which.any():
            said += f" {spans(film.names, which)} {why}."
    return said.strip()


def dots(config: RunConfig) -> str:
    """What a dot means in the picture of positions and steps; a text is never right nine times in ten."""
    return " From the dot on, a position is right nine times in ten." if config.build_task().lawful else ""


def even_look(film: Film, config: RunConfig) -> float | None:
    """The share on the token to be said of a head that looks evenly at all it may, on the example; None without one."""
    if not film.shares:
        return None
    task = config.build_task()
    mask = film.readings[next(iter(film.shares)).site].mask
    visible = task.expected_keys(task.example) & mask
    asked = visible.any(axis=1)
    return float((visible[asked].sum(axis=1) / mask[asked].sum(axis=1)).mean()) if asked.any() else None


def _track(
    head: Head, one_kind: bool, levels: np.ndarray, mask: np.ndarray, queries: tuple[str, ...], keys: tuple[str, ...]
) -> Track:
    group = "" if one_kind else head.kind
    return Track(head.short, group, head.layer, head.index, levels, mask, queries, keys)


def _course(config: RunConfig, metrics: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The loss, and what loss and accuracy are to be read against."""
    task, rows = config.build_task(), Rows.of(config)
    last, read = metrics[-1] if metrics else {}, against(config, metrics)
    steps = np.array([m["step"] for m in metrics], dtype=np.int64)
    loss = np.array([m["loss"] for m in metrics], dtype=np.float64)
    return {
        "loss_steps": steps,
        "loss": loss,
        **read,
        "loss_axes": loss_axes(steps, loss, floor=read["floor"], chance=task.chance_loss, held_out=read["held_out"]),
        "chance_loss": task.chance_loss,
        "solved_at": last["step"] if last.get("solved") else None,
        "names": rows.names,
        "groups": rows.groups,
        "chance": task.chance,
        "hit": "chance" if task.lawful else "commonest",
        "ceiling": rows.ceiling,
        "called": [name.capitalize() for name in rows.called],
    }
