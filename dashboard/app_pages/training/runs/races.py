"""Races: variants of one setting, trained side by side, and what came out of it, in words that the numbers bear out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from dashboard.app_pages.training.runs.comparison import Standing
from dashboard.figures.kit.numbers import share_text
from dashboard.parts import claims
from dashboard.parts.claims import foremost
from dashboard.parts.prose import capital, encoding_name
from transformer import masks
from transformer.analysis.accuracy.bags import bag_ceiling
from transformer.analysis.accuracy.result import as_far, verdict
from transformer.config import ConfigError, ModelConfig, RunConfig
from transformer.foundation.claims import claim
from transformer.foundation.words import counted, listed
from transformer.text.perplexity import said

SEEDS = 3
MOST_IN_A_BAG = 8
"""Symbols of a sequence whose bag's ceiling is counted within a moment."""


# --- what is raced


@dataclass(frozen=True)
class Race:
    """Variants of one setting. Where one of them cannot be trained, `problem` says why, and there are no configs."""

    name: str
    sentence: str
    """What will be trained."""
    configs: tuple[RunConfig, ...] = ()
    problem: str = ""


def races(config: RunConfig) -> list[Race]:
    """What can be raced from a setting."""
    model, seed = config.model, config.training.seed
    own = ModelConfig.positions if model.encoding.told == "nowhere" else model.positions
    called, mask = encoding_name(own), "causal" if model.mask == "full" else model.mask
    seeds = range(seed, seed + SEEDS)
    seeded = _race(
        f"seeds {seeds[0]}, {seeds[1]} and {seeds[2]}",
        f"Trains it from the seeds {seeds[0]}, {seeds[1]} and {seeds[2]}. Each seed draws other weights and sequences.",
        [partial(_seeded, config, each) for each in seeds],
    )
    if model.recurrent:
        return [*_recurrent_races(config), seeded]
    return [
        _race(
            f"{called} positions or none",
            f"Trains it with {called} positions, and without positions.",
            [lambda: _with(config, positions=own), lambda: _with(config, positions="none")],
        ),
        _race(
            "1 head or 4",
            "Trains it with one head in each layer, and with four.",
            [lambda: _with(config, n_heads=1), lambda: _with(config, n_heads=4)],
        ),
        _race(
            f"mask {masks.parse(mask).label} or none",
            f"Trains it under the mask {masks.parse(mask).label}, and without a mask: every query sees every key.",
            [lambda: _with(config, mask=mask), lambda: _with(config, mask="full")],
        ),
        seeded,
    ]


def _recurrent_races(config: RunConfig) -> list[Race]:
    """What can be raced from a setting of a recurrent network."""
    own = "scaled-dot" if config.model.attention == "none" else config.model.attention
    return [
        _race(
            f"{own} attention or none",
            f"Trains it with {own} attention, and without attention: the decoder has the last state only.",
            [lambda: _with(config, attention=own), lambda: _with(config, attention="none")],
        ),
        _race(
            "teacher forcing 1, 0.5 or 0",
            "Trains it on the right tokens, on half right tokens and half its own words, and on its own words only.",
            [partial(_helped, config, probability) for probability in (1.0, 0.5, 0.0)],
        ),
    ]


def _with(config: RunConfig, **model: Any) -> RunConfig:
    """The setting with another model; what the positions decide about the rate's decay is decided anew."""
    positions = model.get("positions", config.model.positions)
    own = config.training if positions == config.model.positions else replace(config.training, decay_after=None)
    return replace(config, model=replace(config.model, **model), training=own)


def _helped(config: RunConfig, probability: float) -> RunConfig:
    return replace(config, training=replace(config.training, teacher_forcing=probability))


def _seeded(config: RunConfig, seed: int) -> RunConfig:
    return replace(config, training=replace(config.training, seed=seed))


def _race(name: str, sentence: str, makers: Sequence[Callable[[], RunConfig]]) -> Race:
    try:
        return Race(name, sentence, tuple(make() for make in makers))
    except ConfigError as error:
        return Race(name, sentence, problem=str(error))


# --- in words


@claim
def headline(standings: Sequence[Standing], clock: str) -> str:
    """What came out, in a sentence."""
    if not standings:
        return "Nothing to compare yet."
    if any(each.state.live for each in standings):
        return _meanwhile(standings, clock)
    leaking = next((each for each in standings if each.leaks), None)
    if leaking is not None and leaking.accuracy is not None:
        return f"{leaking.label.title}: {verdict(leaking.accuracy, leaking.config)}."
    if len(standings) == 1:
        return f"{standings[0].label.title}: {outcome(standings[0])}."
    solved = [each for each in standings if each.solved]
    if any(each.reads for each in standings):
        return _readers(standings)
    if len({each.config.task for each in standings}) > 1:
        return (
            f"{len(solved)} of {len(standings)} runs {'has' if len(solved) == 1 else 'have'} solved {_tasks(solved)}."
        )
    if not solved:
        return _none_solved(standings)
    first = first_of(solved, clock)
    if len(first) == len(standings):
        return f"{_all(standings)} solve it {_when(first[0], clock)}."
    if len(solved) == len(standings):
        return (
            f"{_all(standings)} solve it. The first {'does' if len(first) == 1 else 'do'} so "
            f"{_when(first[0], clock)}, {_phrases(first)}."
        )
    rest = [each for each in standings if not each.solved]
    others = f"{len(rest)} runs do not"
    if len(rest) == 1:
        others = f"{rest[0].label.phrase}, not in {counted(rest[0].step, 'step')}"
    return f"{_first(first, solved)} {_phrases(first)} {_when(first[0], clock)}; {others}."


def _none_solved(standings: Sequence[Standing]) -> str:
    """How far those came of whom none has solved it; all whose share is the greatest as it is written."""
    shares = {at: each.share for at, each in enumerate(standings) if each.share is not None}
    best = [standings[at] for at in foremost(shares, share_text)]
    most = ""
    if best and best[0].share is not None:
        share = f"{share_text(max(shares.values()))} of the {best[0].part} right"
        most = f": the best {'has' if len(best) == 1 else 'have'} {share}, {_phrases(best)}"
        if len(best) == len(standings):
            most = f": {_all(standings).lower()} have {share}"
    if all(each.config.training.solved_at > 1 for each in standings):  # they were to take all their steps
        ended = sum(each.state.status == "finished" for each in standings)
        if ended == len(standings):
            return f"Every run took all its steps{most}."
        return f"{ended} of {len(standings)} runs took all {'its' if ended == 1 else 'their'} steps{most}."
    none = "Neither" if len(standings) == 2 else f"None of the {len(standings)}"
    return f"{none} solves it{most}."


def _meanwhile(standings: Sequence[Standing], clock: str) -> str:
    """What can be said while some of them are still at it; one that is shown the answers has solved nothing."""
    count, solved = len(standings), [each for each in standings if each.solved and not each.cheats]
    rest = _not_ended(standings)
    if any(each.reads for each in standings):
        return f"{_readers(standings)[:-1]}; {rest}."
    if not solved:
        return f"Not solved yet: {rest}."
    if len({each.config.task for each in standings}) > 1:
        return f"{len(solved)} of {count} runs {'has' if len(solved) == 1 else 'have'} solved {_tasks(solved)}; {rest}."
    first = first_of(solved, clock)
    return f"{_first(first, solved)} {_phrases(first)} {_when(first[0], clock)}; {rest}."


def _not_ended(standings: Sequence[Standing]) -> str:
    """How many of them still train; of those that wait or are paused, that they have not ended."""
    still, count = [each for each in standings if each.state.live and each.state.status != "measuring"], len(standings)
    if not still:
        return "the results are being measured"
    many = f"{len(still)} of {count} runs" if count > 1 else "it"
    if all(each.state.status == "running" for each in still):
        return f"{many} still train{'s' * (len(still) == 1)}"
    return f"{many} {'has' if len(still) == 1 else 'have'} not ended"


def _first(first: Sequence[Standing], solved: Sequence[Standing]) -> str:
    return "Solved" if len(first) == len(solved) else "First solved"


def _tasks(solved: Sequence[Standing]) -> str:
    return "its task" if len(solved) == 1 else "their tasks"


def _readers(standings: Sequence[Standing]) -> str:
    """Who reads best; perplexities are compared only where the tokens are the same, and as they are written."""
    if len({each.config.task for each in standings}) > 1:
        return "These runs have different tasks, so their losses cannot be compared."
    known = {
        at: -each.perplexity
        for at, each in enumerate(standings)
        if each.perplexity is not None and not math.isnan(each.perplexity)
    }
    best = [standings[at] for at in foremost(known, lambda value: said(-value))]
    if not best:
        return "No loss was measured yet."
    least, shown = said(-max(known.values())), sum(each.cheats for each in best)
    told = f" The mask of {shown} of them shows the answers." if shown else ""
    if shown and len(best) == 1:
        told = " Its mask shows it the answers."
    if len(standings) == 1:
        return f"Its perplexity is {least}.{told}"
    if len(best) == len(standings):
        return f"{_all(standings)} have perplexity {least}.{told}"
    return f"The lowest perplexity is {least}, {_phrases(best)}.{told}"


@claim
def outcome(each: Standing) -> str:
    """What became of a run, or how far it is, as words that may follow its name."""
    state = each.state
    share = "" if each.share is None else f"{share_text(each.share)} of the {each.part} right"
    if each.reads:
        share = "" if each.perplexity is None else f"held-out perplexity {said(each.perplexity)}"
    if state.status == "queued":
        return "waiting for its turn"
    if state.status == "running":
        return ", ".join(filter(None, [f"at step {each.step}{_seconds(each, ' after')}", share]))
    if state.status == "paused":
        return f"paused at step {each.step}"
    if each.solved:
        won = "right, because its mask shows it the answers," if each.cheats else f"solved{as_far(each.config)}"
        return f"{won} at step {each.step}{_seconds(each, ' after')}"
    if state.status in ("finished", "measuring"):
        taken = "not solved in" if each.config.training.solved_at <= 1 and not each.reads else "took"
        return ": ".join(filter(None, [f"{taken} {counted(each.step, 'step')}{_seconds(each, ' and')}", share]))
    return ": ".join(filter(None, [state.reason or state.status, share]))


def _seconds(each: Standing, word: str) -> str:
    """How long its steps took, after a word; empty where that is not known."""
    return "" if each.seconds is None else f"{word} {each.seconds:.1f} s"


@claim
def meaning(each: Standing) -> str:
    """What its final measurement says, and why, where a mask hides or shows too much; empty before there is one."""
    accuracy = each.accuracy
    if each.reads and each.cheats:
        return (
            f"Under the mask {each.config.model.mask_label} a query sees the very token that it has to say next. So "
            "the model can copy, and need not learn to read."
        )
    if accuracy is None or each.reads:
        return ""
    words = capital(verdict(accuracy, each.config))
    if each.leaks:
        return (
            f"{words}. Under the mask {each.config.model.mask_label} a query sees the very token that it has to say "
            "next. So the model can copy, and need not learn the law."
        )
    if each.reachable < 1:
        return f"{words}. Under its mask at most {each.reachable:.2f} of the {each.part} can be right."
    return f"{words}. {_told_by_the_mask(each)}".strip()


def _told_by_the_mask(each: Standing) -> str:
    """Why a model without positions does better than from a bag; empty where it does not, or the bag is too large."""
    task, model = each.config.task, each.config.model
    causal = model.encoding.told == "nowhere" and model.mask == "causal"
    if not causal or task.task != "reverse" or task.length > MOST_IN_A_BAG or each.share is None:
        return ""
    return claims.second_layer(model.n_layers, each.share, float(bag_ceiling(task.length, task.symbols).mean()))


def first_of(solved: Sequence[Standing], clock: str) -> list[Standing]:
    """Whoever needed the least, by the clock that is shown; several where they are level."""
    least = min(_needed(each, clock) for each in solved)
    return [each for each in solved if _needed(each, clock) == least]


def _needed(each: Standing, clock: str) -> float:
    return each.step if clock == "steps" or each.seconds is None else round(each.seconds, 2)


def _when(each: Standing, clock: str) -> str:
    return f"at step {each.step}" if clock == "steps" else f"after {each.seconds:.2f} s"


def _all(standings: Sequence[Standing]) -> str:
    return "Both" if len(standings) == 2 else f"All {len(standings)}"


def _phrases(standings: Sequence[Standing]) -> str:
    return listed([each.label.phrase for each in standings])
