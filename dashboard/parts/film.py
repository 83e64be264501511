"""From a run's snapshots to the film: the finished film, or the part there is of a training under way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dashboard.components.film import Moment, Reel, Track
from dashboard.parts.heads import alignment_sentence
from dashboard.parts.text import course
from transformer.analysis.accuracy import ceilings, windows
from transformer.analysis.film.film import LEARNED, Film, learned_at, quantise, sharpening
from transformer.analysis.findings import Attention, Head
from transformer.config import PROBE_SEQUENCES, RunConfig

COUNTS = "counts alone"
"""The loss of who knows how common each token of a text is, and reads nothing."""
FOUND = {"reverse": "the mirror image", "copy": "the token to copy", "sort": "the token that is next in order"}
"""What a head of a task looks at once it looks at the token to be said."""


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
        accuracy=_drawn_together(film.accuracy, config),
        sequences=[film.sequences] * len(film.steps),
        moment=None if moment is None else Moment(moment.step, f"head {moment.head.short} sharpens"),
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
        accuracy=_drawn_together(np.array([m["accuracy"] for m in measured]).reshape(-1, targets), config),
        sequences=[m.get("probed", PROBE_SEQUENCES) for m in measured],
        **_course(config, metrics),
    )


def moment_sentence(film: Film, config: RunConfig) -> str:
    """When the heads sharpen, and how long their rise takes; of a model without heads, what it has learned.

    Of a text, where no token is the one to look at, what it came to guess.
    """
    if not config.build_task().lawful:
        first, last = film.accuracy[0].mean(), film.accuracy[-1].mean()
        if len(film.steps) == 1:
            return f"It guesses {last:.2f} of the tokens at step {film.steps[-1]}"
        return f"It guesses {last:.2f} of the tokens at step {film.steps[-1]}, {first:.2f} at step {film.steps[0]}"
    if not film.readings:
        right = learned_at(film)
        known, when_all = np.isfinite(right), f" at step {film.steps[-1]}"
        return f"No heads to watch: {known.sum()} of {len(known)} places are right nine times in ten{when_all}"
    moment = sharpening(film)
    if moment is None and config.model.recurrent:
        task, (reading,) = config.build_task(), film.readings.values()
        said = alignment_sentence(reading.pattern(-1)[0], task.expected_keys(task.example))
        return f"At step {film.steps[-1]} {said[0].lower()}{said[1:-1]}"
    if moment is None:
        ends = {head: float(share[-1]) for head, share in film.shares.items() if np.isfinite(share[-1])}
        if not ends:
            return "This task has no token that a head would have to look at"
        best = max(ends, key=lambda head: (ends[head], head))
        return (
            f"No head has turned to {found_by(config)}: nearest, head {best.short} has {ends[best]:.2f} of its "
            "attention there"
        )
    return (
        f"Head {moment.head.short} turns to {found_by(config)} between steps {moment.began} and {moment.ended}: "
        f"{moment.before:.2f} of its attention at step {film.steps[0]}, {moment.middle:.2f} at step {moment.step}, "
        f"{moment.after:.2f} at step {film.steps[-1]}"
    )


def order_sentence(film: Film, config: RunConfig) -> str:
    """In which order the positions were learned, and which were not, in words; of a text, where it guesses most."""
    if not config.build_task().lawful:
        last, names = windows.drawn_together(film.accuracy[-1]), windows.named(len(film.names))
        best = int(last.argmax())
        first = "" if best == 0 else f", and at the first {last[0]:.2f}"
        return (
            f"At step {film.steps[-1]} {film.accuracy[-1].mean():.2f} of the tokens are guessed: most at place "
            f"{names[best]}, {last[best]:.2f}{first}."
        )
    learned, ceiling = learned_at(film), ceilings.ceiling(config).accuracy
    steps = sorted({int(step) for step in learned if np.isfinite(step)})
    parts = [f"{_named(film.names, learned == step)} from step {step}" for step in steps]
    said = f"Right at least nine times in ten, and for good: {', '.join(parts)}." if parts else ""
    never = np.isnan(learned)
    for which, why in (
        (never & (ceiling < LEARNED), "cannot be: nothing that may be seen there tells"),
        (never & (ceiling >= LEARNED), "could be, and not yet"),
    ):
        if which.any():
            said += f" {_named(film.names, which)} {why}."
    return said.strip()


def dots(config: RunConfig) -> str:
    """What a dot means in the picture of positions and steps; a text is never right nine times in ten."""
    return " The dot: from there on right nine times in ten." if config.build_task().lawful else ""


def _drawn_together(accuracy: np.ndarray, config: RunConfig) -> np.ndarray:
    """Accuracy by target, float [measurement, target]; of a text, whose windows are long, by stretch."""
    return accuracy if config.build_task().lawful else windows.drawn_together(accuracy)


def _named(names: Sequence[str], which: np.ndarray) -> str:
    """Positions in words, neighbours drawn together: "x2 to x8 and SEP"."""
    parts: list[str] = []
    chosen = np.flatnonzero(which).tolist()
    for run in np.split(chosen, np.flatnonzero(np.diff(chosen) > 1) + 1):
        first, last = names[int(run[0])], names[int(run[-1])]
        parts += [first] if len(run) == 1 else [first, last] if len(run) == 2 else [f"{first} to {last}"]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def even_look(film: Film, config: RunConfig) -> float | None:
    """The share on the token to be said of a head that looks evenly at all it may, on the example; None without one."""
    if not film.shares:
        return None
    task = config.build_task()
    mask = film.readings[next(iter(film.shares)).site].mask
    visible = task.expected_keys(task.example) & mask
    asked = visible.any(axis=1)
    return float((visible[asked].sum(axis=1) / mask[asked].sum(axis=1)).mean()) if asked.any() else None


def found_by(config: RunConfig) -> str:
    return FOUND.get(config.task.task.split("-")[0], "the token to be said")


def _track(
    head: Head, one_kind: bool, levels: np.ndarray, mask: np.ndarray, queries: tuple[str, ...], keys: tuple[str, ...]
) -> Track:
    group = "" if one_kind else head.kind
    return Track(head.short, group, head.layer, head.index, levels, mask, queries, keys)


def _course(config: RunConfig, metrics: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The loss, and what loss and accuracy are to be read against."""
    task = config.build_task()
    last = metrics[-1] if metrics else {}
    names, groups = task.target_names(task.length), task.groups(task.length)
    ceiling = ceilings.ceiling(config).accuracy
    called: tuple[str, ...] = ()
    if not task.lawful:
        names, ceiling = windows.named(task.length), windows.drawn_together(ceiling)
        groups, called = ("",) * len(names), tuple(f"Place {name}" for name in names)
    return {
        "loss_steps": np.array([m["step"] for m in metrics], dtype=np.int64),
        "loss": np.array([m["loss"] for m in metrics], dtype=np.float64),
        "floor": ceilings.loss_floor(config) if task.lawful else None,
        "chance_loss": task.chance_loss,
        "guess": "guessing" if task.lawful else COUNTS,
        "held_out": None if task.lawful else course(metrics),
        "solved_at": last["step"] if last.get("solved") else None,
        "names": names,
        "groups": groups,
        "chance": task.chance,
        "hit": "chance" if task.lawful else "commonest",
        "ceiling": ceiling,
        "called": called,
    }
