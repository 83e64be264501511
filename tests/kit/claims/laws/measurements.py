"""Laws of pages that show a shipped measurement: they are judged by its file alone.

No model of the grid meets them: `test_what_every_other_page_says…` does.
"""

from __future__ import annotations

import json
import lzma
import math
import re
import statistics
from dataclasses import dataclass

import numpy as np

from tests.kit.claims import Shown, law
from tests.kit.claims.world import World
from tests.kit.pages import ROOT
from transformer.experiments.teacher_forcing import Forcing

LENGTHS, BOTTLENECK = ROOT / "checkpoints" / "lengths.json.xz", ROOT / "checkpoints" / "bottleneck.json"


@dataclass(frozen=True)
class Measured:
    """What encodings reverse of each length, seed by seed, and how their loss fell at the end."""

    steps: int
    trained: int
    shares: dict[str, list[list[float | None]]]
    """[seed][length], the shortest first; None where the model has no vector."""
    falls: dict[str, list[tuple[float, float] | None]]
    """By how many nats the loss still fell, and twice the standard error of that, seed by seed."""

    def means(self, length: int) -> dict[str, tuple[float, float]]:
        """The mean of a length over the seeds, and half of its 95 % interval; of one seed half a digit."""
        found = {}
        for name, seeds in self.shares.items():
            values = [seed[length - 1] for seed in seeds]
            known = [value for value in values if value is not None]
            if len(known) == len(values):
                half = 0.0
                if len(known) > 1:
                    half = t95(len(known) - 1) * statistics.stdev(known) / len(known) ** 0.5
                found[name] = sum(known) / len(known), half
        return found

    def best(self, length: int) -> tuple[set[str], float]:
        """Who may reverse most of a length, and how much."""
        means = self.means(length)
        most, half = max(means.values(), default=(0.0, 0.0))
        level = {name for name, (mean, error) in means.items() if mean + error >= most - half - 1e-12}
        if any(len(seeds) == 1 for seeds in self.shares.values()):
            level = {name for name, (mean, _) in means.items() if share_in_words(mean) == share_in_words(most)}
        return level, most


def t95(freedom: int) -> float:
    """Student's t of a two-sided 95 % interval, found in its distribution."""
    at = np.linspace(0, 20, 400_001)
    density = (1 + at**2 / freedom) ** (-(freedom + 1) / 2)
    scale = math.gamma((freedom + 1) / 2) / (math.sqrt(freedom * math.pi) * math.gamma(freedom / 2))
    mass = 2 * scale * (at[1] - at[0]) * np.cumsum((density[1:] + density[:-1]) / 2)
    return float(at[1:][np.searchsorted(mass, 0.95)])


def share_in_words(share: float) -> str:
    return f"{share:.2f}" if share >= 0.005 else f"{share:.4f}"


def measurement_of(world: World | Measured) -> Measured:
    """What the shipped file holds, or what a test has made up."""
    if isinstance(world, Measured):
        return world
    values = json.loads(lzma.decompress(LENGTHS.read_bytes()))
    shares: dict[str, list[list[float | None]]] = {}
    falls: dict[str, list[tuple[float, float] | None]] = {}
    for trial in values["trials"]:
        counts = [None if count is None else count / values["sequences"] for count in trial["exact"]]
        shares.setdefault(trial["positions"], []).append(counts)
        fall = trial["fall"]
        falls.setdefault(trial["positions"], []).append(None if fall is None else (fall["nats"], fall["half"]))
    config = values["config"]
    return Measured(config["training"]["max_steps"], config["task"]["length"], shares, falls)


def encodings(said: str) -> set[str]:
    """Those that a sentence names."""
    named = {each.removesuffix(" positions") for each in said.lower().replace(" and ", ", ").split(", ")}
    return {"none" if each in ("a model without", "a model without positions", "no") else each for each in named}


HEADLINE = "app_pages/positions/lengths/measurement.headline"
BEGIN = r"Trained up to length (?P<trained>\d+)"
FAR = (
    r"(?:; (?:none reverses length (?P<none>\d+)|"
    r"(?P<other>.+?) (?:up to )?(?P<far_share>[\d.]+) of length (?P<far>\d+)))?"
)


@law(
    HEADLINE,
    rf"{BEGIN}, (?P<name>.+) reverses (?P<own>[\d.]+) of length (?P<itself>\d+) and (?P<share>[\d.]+) of length "
    rf"(?P<near>\d+){FAR}\.",
)
@law(
    HEADLINE,
    rf"{BEGIN}, (?P<name>.+) reverse about as much of length (?P<near>\d+), up to (?P<share>[\d.]+){FAR}\.",
    rare=True,
)
def reverses(
    world: World | Measured, trained: str, name: str, share: Shown, near: str, none: str | None,
    other: str | None, far_share: Shown | None, far: str | None, own: Shown | None = None, itself: str | None = None,
) -> None:  # fmt: skip
    found = measurement_of(world)
    assert int(trained) == int(itself or trained) == found.trained
    leads(found, name, share, int(near))
    assert (own is None) == (len(found.best(int(near))[0]) > 1)
    if own is not None:
        (best,) = found.best(int(near))[0]
        assert own == found.means(found.trained)[best][0]
    if none is not None:
        assert found.best(int(none))[1] == 0
    if other is not None and far_share is not None:
        leads(found, other, far_share, int(far or 0))


def leads(found: Measured, named: str, share: Shown, length: int) -> None:
    level, most = found.best(length)
    assert most > 0
    assert str(share) == share_in_words(most)
    if re.fullmatch(r"\d+ encodings", named):
        assert int(named.split()[0]) == len(level) > 3
    else:
        assert encodings(named) == level


@law(HEADLINE, rf"{BEGIN}, no encoding reverses length (?P<near>\d+)\.", rare=True)
def none_reverses(world: Measured, trained: str, near: str) -> None:
    assert int(trained) == world.trained
    assert world.best(int(near))[1] == 0


@law(HEADLINE, rf"{BEGIN}: no longer ones were measured\.", rare=True)
def none_is_longer(world: Measured, trained: str) -> None:
    assert int(trained) == world.trained
    assert {len(seed) for seeds in world.shares.values() for seed in seeds} <= {*range(world.trained + 1)}


UNFINISHED = "app_pages/positions/lengths/measurement.unfinished"
RULE = (
    r" \(mean of the last (?P<tenth>\d+) steps below that of the (?P<before>\d+) before, by more than 0\.001 nats and "
    r"two standard errors\)\."
)


@law(
    UNFINISHED,
    rf"Each encoding got (?P<steps>[\d,]+) steps\. At the end (?:no loss was still falling|the loss was still "
    rf"falling for (?P<names>.+?): more steps may help there){RULE}",
)
def was_still_falling(world: World | Measured, steps: Shown, names: str | None, tenth: str, before: str) -> None:
    found = measurement_of(world)
    assert steps.value == found.steps
    assert int(tenth) == int(before) == found.steps // 10
    still = set()
    for name, falls in found.falls.items():
        known = [fall for fall in falls if fall is not None]
        assert len(known) == len(falls)
        nats = sum(each for each, _ in known) / len(known)
        noise = sum(half**2 for _, half in known) ** 0.5 / len(known)
        if nats > 0.001 and nats > noise:
            still.add(name)
    assert (encodings(names) if names else set()) == still


@law(UNFINISHED, r"Each encoding got (?P<steps>[\d,]+) steps\. One that learns slowly may need more\.", rare=True)
def may_need_more(world: Measured, steps: Shown) -> None:
    assert steps.value == world.steps
    assert any(fall is None for falls in world.falls.values() for fall in falls)


@law(
    "app_pages/learn/bottleneck/measurement.headline",
    r"(?P<asked>One vector forgets|One vector or attention)[.?] Right at length (?P<length>\d+): GRU (?P<gru>[\d.]+), "
    r"with attention (?P<attention>[\d.]+), transformer (?P<transformer>[\d.]+)\.",
)
def right_at_length(world: World, asked: str, length: str, gru: Shown, attention: Shown, transformer: Shown) -> None:
    values = json.loads(BOTTLENECK.read_text())
    assert int(length) == values["contestants"][0]["config"]["task"]["length"]
    shares = [each["exact"][-1] / values["sequences"] for each in values["contestants"]]
    for said, share in zip((gru, attention, transformer), shares, strict=True):
        assert said == share
    error = max(4 * (share * (1 - share) / values["sequences"]) ** 0.5 for share in shares)
    assert asked != "One vector forgets" or shares[0] < min(shares[1:])
    assert asked == "One vector forgets" or shares[0] + 2 * error > min(shares[1:])


# --- the race of encodings, and what teacher forcing does


@dataclass(frozen=True)
class Raced:
    """A made-up racer: what it is called, its last step, how much it had right then, and what its loss did."""

    name: str
    step: int
    share: float
    solved: bool
    falling: bool | None
    """None where it took too few steps to be known."""


@law(
    "app_pages/positions/lengths/race.race_sentence",
    r"(?:Solved: (?P<solved>[^.]+)\.|No encoding solves it\.)"
    r"(?: Not solved: (?P<others>.+?) steps\.)?"
    r"(?: At the end (?:no loss was still falling|the loss was still falling for (?P<falling>[^:]+): more steps may "
    r"help there) \(.*\)\.)?",
    rare=True,
)
def came_in(world: list[Raced], solved: str | None, others: str | None, falling: str | None) -> None:
    ahead = sorted((each.step, each.name) for each in world if each.solved)
    named = [each.rsplit(" at step ", 1) for each in solved.split(", ")] if solved else []
    assert [int(step) for _, step in named] == [step for step, _ in ahead]
    assert {(int(step), name) for name, step in named} == {*ahead}
    left = [each for each in world if not each.solved]
    told = [re.fullmatch(r"(.+) ([\d.]+) after (\d+)", each) for each in others.split(", ")] if others else []
    assert len(told) == len(left)
    for each, one in zip(left, told, strict=True):
        assert one is not None
        assert (one[1], int(one[3])) == (each.name, each.step)
        assert Shown(one[2]) == each.share or (each.share >= 0.995 and float(one[2]) <= each.share < 1)
        assert (one[2] == "1.00") == (each.share == 1)
    assert {*re.split(", | and ", falling or "")} - {""} == {each.name for each in left if each.falling}


FORCING = [ROOT / "checkpoints" / f"{name}.json" for name in ("corners-narrow", "corners-none", "corners")]


@dataclass(frozen=True)
class Forced:
    """What a file of teacher forcing holds: its settings, and the errors by probability and seed."""

    settings: dict[str, float | str]
    own: dict[float, list[float]]
    helped: dict[float, list[float]]

    def difference(self) -> tuple[float, float, float]:
        """How much larger the error is after training with true corners alone: the mean, and its 95 % interval."""
        none, only = min(self.own), max(self.own)
        each = [after - before for before, after in zip(self.own[none], self.own[only], strict=True)]
        half = t95(len(each) - 1) * statistics.stdev(each) / len(each) ** 0.5
        mean = sum(each) / len(each)
        return mean, mean - half, mean + half


def forced_by_hand() -> list[Forced]:
    """The shipped measurements."""
    found = []
    for path in FORCING:
        values = json.loads(path.read_text())
        own: dict[float, list[float]] = {}
        helped: dict[float, list[float]] = {}
        for trial in sorted(values["trials"], key=lambda each: each["seed"]):
            own.setdefault(trial["chance"], []).append(trial["error"])
            helped.setdefault(trial["chance"], []).append(trial["helped_error"])
        found.append(Forced(values["config"], own, helped))
    return found


FORCES = "app_pages/learn/corners/teacher_forcing."


@law(
    f"{FORCES}sentence",
    r"Free-running, the error is (?P<before>[\d.]+) after training without true corners \(p = 0\) and "
    r"(?P<after>[\d.]+) after training with them \(p = 1\)\. The difference is (?P<mean>[+−\d.]+) \(95 % interval "
    r"(?P<low>[+−\d.]+) to (?P<high>[+−\d.]+), (?P<seeds>\d+) seeds\): (?P<verdict>these seeds show no difference|"
    r"teacher forcing costs free-running error|teacher forcing saves free-running error)\. With the true first corner, "
    r"the errors are (?P<told>[\d.]+) and (?P<used>[\d.]+)\.",
)
def costs_or_saves(
    world: World, before: Shown, after: Shown, mean: str, low: str, high: str, seeds: str, verdict: str, told: Shown,
    used: Shown,
) -> None:  # fmt: skip
    """Of one of the shipped measurements: the others have other numbers."""
    mean_, low_, high_ = (Shown(each.removeprefix("+")) for each in (mean, low, high))

    def holds(found: Forced) -> bool:
        means = [
            sum(each) / len(each) for each in (found.own[0.0], found.own[1.0], found.helped[0.0], found.helped[1.0])
        ]
        return (
            all(shown == value for shown, value in zip((before, after, told, used), means, strict=True))
            and all(shown == value for shown, value in zip((mean_, low_, high_), found.difference(), strict=True))
            and int(seeds) == len(found.own[0.0])
        )

    (found,) = [each for each in forced_by_hand() if holds(each)]
    _, least, most = found.difference()
    assert ("costs" in verdict, "saves" in verdict) == (least > 0, most < 0)


@law(f"{FORCES}sentence", r"(?P<done>\d+) of (?P<planned>\d+) trainings are done\.", rare=True)
def are_done(world: Forcing, done: str, planned: str) -> None:
    """Of a made-up measurement: those that are shipped are whole."""
    assert int(done) == len(world.trials)
    assert int(planned) == len(world.chances) * len(world.seeds)


@law(
    f"{FORCES}case",
    r"(?P<attention>.+) attention, width (?P<width>\d+), up to (?P<most>\d+) corners: (?P<does>no difference|costs "
    r"error|saves error)",
)
def does(world: World, attention: str, width: str, most: str, does: str) -> None:
    (found,) = [
        each
        for each in forced_by_hand()
        if each.settings["attention"] == attention.replace("no", "none")
        and (each.settings["d_model"], each.settings["most"]) == (int(width), int(most))
    ]
    _, least, high = found.difference()
    assert does == ("costs error" if least > 0 else "saves error" if high < 0 else "no difference")
