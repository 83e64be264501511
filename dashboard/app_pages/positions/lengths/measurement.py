"""Beyond the trained length: which measurement is shown, its words, and the process that makes another."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np

from dashboard.app_pages.positions.lengths.figures import Line
from dashboard.figures.kit.numbers import interval
from dashboard.models import menu
from dashboard.models.background import Measuring
from dashboard.parts.prose import encoding_name, with_positions
from transformer.analysis.accuracy.result import spans
from transformer.analysis.intervals import mean_interval
from transformer.config import ModelConfig
from transformer.experiments.lengths import TRACE, Lengths, LengthsError, in_order
from transformer.foundation.claims import claim
from transformer.foundation.words import listed
from transformer.positions import described
from transformer.training.runs import DEFAULT_ROOT

FEW = 3
"""Encodings that are named one by one in the title; more are counted."""
FILES = {"shipped": DEFAULT_ROOT / "lengths.json.xz", "own": menu.ROOT / "lengths-own.json"}


def called(encoding: str) -> str:
    """An encoding where people read."""
    return "no positions" if described(encoding).told == "nowhere" else encoding_name(encoding)


def place_of(encoding: str) -> int:
    """Which colour, dash and mark it has."""
    return in_order().index(encoding)


# --- what was measured


def load(path: Path) -> Lengths:
    """A measurement with something in it. Raises LengthsError with one sentence."""
    found = Lengths.load(path)
    if not found.trials:
        raise LengthsError(f"{path.name} holds no finished training yet")
    return found


def exact_lines(found: Lengths) -> list[Line]:
    """Whole answers right at every length, an encoding a line."""
    lengths = np.arange(1, found.longest + 1)
    return [
        Line(called(name), lengths, values := found.exact(name), place_of(name), _ending(found, name, values))
        for name in found.measured
    ]


def place_lines(found: Lengths, length: int) -> list[Line]:
    """Right at each place of the answer, at one length, an encoding a line."""
    places = np.arange(1, length + 1)
    return [
        Line(called(name), places, values := found.accuracy(name, length), place_of(name), _ending(found, name, values))
        for name in found.measured
    ]


def _ending(found: Lengths, name: str, values: np.ndarray) -> str:
    """Why there are no values, where there are none."""
    if np.isfinite(values).all():
        return ""
    what = "vector" if described(name).told == "vectors" else "number"
    return f"no {what} for position {found.config.build_task().n_ctx + 1}"


# --- in words


@claim
def headline(found: Lengths) -> str:
    """How far beyond its training the best encoding comes, failure included; several where none is the best.

    Beside one, how much of the trained length it reverses: what it does not know there it cannot carry on.
    """
    trained = found.trained
    near, far = min(found.longest, trained + max(1, trained // 4)), min(found.longest, 2 * trained)
    begin = f"Trained up to length {trained}"
    if near <= trained:
        return f"{begin}: no longer ones were measured."
    best, share = _leaders(found, near)
    if share == 0:
        return f"{begin}, no encoding reverses length {near}."
    said = f"{begin}, {_names(best)} reverse about as much of length {near}, up to {_share(share)}"
    if len(best) == 1:
        own = float(found.exact(best[0])[:, trained - 1].mean())
        said = f"{begin}, {_names(best)} reverses {own:.2f} of length {trained} and {_share(share)} of length {near}"
    if far == near:
        return f"{said}."
    best, share = _leaders(found, far)
    if not share:
        return f"{said}; none reverses length {far}."
    return f"{said}; {_names(best)} {'up to ' if len(best) > 1 else ''}{_share(share)} of length {far}."


def _names(encodings: Sequence[str]) -> str:
    """Who reverses: a few by name."""
    return listed([_named(each) for each in encodings]) if len(encodings) <= FEW else f"{len(encodings)} encodings"


def _named(encoding: str) -> str:
    """Who reverses."""
    return "a model without positions" if described(encoding).told == "nowhere" else called(encoding)


def _share(share: float) -> str:
    """A share; one that two digits would hide gets four."""
    return f"{share:.{2 if share >= 0.005 else 4}f}"


def _leaders(found: Lengths, length: int) -> tuple[list[str], float]:
    """Who reverses most of a length, on the mean over its seeds, and how much that is.

    They are several where the intervals over seeds overlap; of one seed each, where the share is written alike.
    """
    known = {name: found.exact(name)[:, length - 1] for name in found.measured}
    known = {name: shares for name, shares in known.items() if np.isfinite(shares).all()}
    if not known:
        return [], 0.0
    best = max(known, key=lambda name: float(known[name].mean()))
    most = float(known[best].mean())
    return [name for name, shares in known.items() if name == best or _reaches(shares, known[best])], most


def _reaches(shares: np.ndarray, most: np.ndarray) -> bool:
    """Is the mean of float [seed] not told from the greatest one?"""
    if min(len(shares), len(most)) < 2:
        return _share(float(shares.mean())) == _share(float(most.mean()))
    return mean_interval(shares)[2] >= mean_interval(most)[1]


def within(found: Lengths) -> str:
    """How well each encoding learned what it was trained on, at its greatest length."""
    shares = [f"{called(name)} {over_seeds(found.exact(name)[:, found.trained - 1])}" for name in found.measured]
    return f"Whole answers right at length {found.trained}, the longest in training{basis(found)}: {', '.join(shares)}."


def at_length(found: Lengths, length: int) -> str:
    """How right each encoding is at one length, place by place taken together."""
    words = []
    for name in found.measured:
        values = found.accuracy(name, length)
        words.append(f"{called(name)} {_ending(found, name, values) or over_seeds(values.mean(axis=1))}")
    return f"The share of the answer that is right at length {length}{basis(found)}: {', '.join(words)}."


def over_seeds(shares: np.ndarray) -> str:
    """The mean of float [seed] and half of its 95 % interval: "0.943 ± 0.012"; of one seed the share alone."""
    mean, low, _ = mean_interval(shares) if len(shares) > 1 else (float(shares.mean()), math.nan, math.nan)
    return interval(mean, mean - low)


def basis(found: Lengths) -> str:
    """Over how many seeds the means are, and what their ± is."""
    counts = sorted({len(found.exact(name)) for name in found.measured})
    if counts == [1]:
        return " (one seed)"
    return f" (mean over {' or '.join(map(str, counts))} seeds ± half its 95 % interval)"


def made(found: Lengths) -> str:
    """What stands behind the numbers."""
    training, spent = found.config.training, sum(trial.seconds for trial in found.trials)
    missing = "" if found.complete else f" Only {len(found.trials)} of {found.planned} trainings were made."
    return (
        f"{found.config.model.n_layers} layers of {found.config.model.n_heads} heads, {training.max_steps} steps of "
        f"{training.batch_size} sequences for each encoding, {_seeds(found.seeds)}; {found.sequences} fresh "
        f"sequences of each length; {spent:,.0f} s of training on {found.device}, torch "
        f"{found.versions.get('torch', '?')}.{missing}"
    )


@claim
def unfinished(found: Lengths) -> str:
    """Which encodings were still learning when the steps were over, that all have in the same number."""
    falls = [found.fall(name) for name in found.measured]
    steps = found.config.training.max_steps
    given = f"Each encoding got {steps:,} steps."
    if any(fall is None for fall in falls):
        return f"{given} One that learns slowly may need more."
    still = [called(name) for name, fall in zip(found.measured, falls, strict=True) if fall and fall.falling]
    return f"{given} {still_falling(still, steps)}"


def missing(measured: Collection[str], model: str, config: ModelConfig) -> str:
    """Whose encoding has no line among those `measured`: the chosen model's; nothing where it has one."""
    if config.recurrent or config.positions in measured:
        return ""
    return f"{model} is a model {with_positions(config.positions)}. This picture has no line for such models."


def still_falling(names: Sequence[str], steps: int) -> str:
    """Whose loss was still falling after so many steps, and by what rule (`Fall.falling`)."""
    tenth = steps // 10
    rule = (
        f"mean of the last {tenth} steps below that of the {tenth} before, by more than {TRACE:g} nats and two "
        "standard errors"
    )
    if not names:
        return f"At the end no loss was still falling ({rule})."
    return f"At the end the loss was still falling for {listed(names)}: more steps may help there ({rule})."


def _seeds(seeds: Sequence[int]) -> str:
    """ "seeds 0 to 63", "seed 4"."""
    numbers = np.arange(max(seeds) + 1)
    return f"seed{'s' if len(seeds) > 1 else ''} {spans([str(number) for number in numbers], np.isin(numbers, seeds))}"


# --- measuring anew

measuring = Measuring("lengths")
