"""Laws of what the pages below *Training* say."""

from __future__ import annotations

import math
import re
from builtins import all as every
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from tests.kit.claims import Shown, law
from tests.kit.claims.laws.several_pages import NOISE, last
from tests.kit.claims.world import World

WORDS = "app_pages/training/accuracy/words."
OF = r"(?P<of>the answer|what can be known of the answer)"


def is_of(world: World, of: str | None) -> np.ndarray:
    """The targets that are counted; is it said that they are not the whole answer?"""
    known = world.known()
    assert (of in (None, "the answer")) == (known == world.task.answers(world.task.length)).all()
    return known


@law(
    f"{WORDS}chance_sentence",
    r"A random guess is right once in (?P<symbols>\d+): chance is (?P<chance>[\d.]+)\.(?: Saying the commonest "
    r"symbol of each "
    r"place, without reading, is right (?:about )?(?P<blind>[\d.]+) of the time\.)?",
)
def chance(world: World, symbols: str, chance: Shown, blind: str | None) -> None:
    assert int(symbols) == world.task.symbols
    assert chance == 1 / world.task.symbols
    found = world.most(blind=True)[world.task.answers(world.task.length)].mean()
    assert abs(float(blind or 1 / world.task.symbols) - found) < 0.012


@law(
    "app_pages/training/film/film.share_sentence",
    r"At step (?P<step>\d+) head (?P<head>.+) has (?P<share>[\d.]+) of its attention on the token to say next: the "
    r"mean over \d+ sequences\.(?: At step (?P<first>\d+) it had (?P<before>[\d.]+)\.)?",
)
def has_of_its_attention(
    world: World, step: str, head: str, share: Shown, first: str | None, before: Shown | None
) -> None:
    kept = world.run.snapshots()
    assert int(step) == max(kept)
    assert (first is None) == (len(kept) == 1)
    assert abs(world.at_step(int(step)).shares()[world.head(head)] - share.value) < NOISE
    if first is not None and before is not None:
        assert int(first) == min(kept)
        assert abs(world.at_step(int(first)).shares()[world.head(head)] - before.value) < NOISE


def left_without(world: World, heads: str, known: np.ndarray) -> dict[str, float]:
    named = heads.replace(" or ", ", ").split(", ")
    return {each: float(world.right(2048, without=(world.head(each),), other=True)[:, known].mean()) for each in named}


@law(
    f"{WORDS}head_sentence",
    rf"Removing head (?P<head>[^:]+) costs most: accuracy on {OF} falls from (?P<before>[\d.]+) to "
    rf"(?P<after>[\d.]+)\. It falls "
    r"most at (?P<target>\w+), to (?P<there>[\d.]+)\.",
)
def costs_most(world: World, head: str, of: str, before: Shown, after: Shown, target: str, there: Shown) -> None:
    known = is_of(world, of)
    whole, without = world.right(512), world.right(512, without=(world.head(head),))
    assert before == whole[:, known].mean()
    assert after == without[:, known].mean()
    falls = (whole.mean(axis=0) - without.mean(axis=0)) * known
    at = world.task.target_names(world.task.length).index(target)
    assert falls[at] >= falls.max() - 1e-3
    assert there == without[:, at].mean()
    left = {each: world.right(2048, without=(each,), other=True)[:, known].mean() for each in world.heads}
    assert left[world.head(head)] <= min(left.values()) + 0.005, "on other sequences another costs more"


@law(
    f"{WORDS}head_sentence",
    rf"Removing head (?P<heads>[^:]+) costs about as much: accuracy on {OF} falls from (?P<before>[\d.]+) to "
    rf"(?P<after>[\d.]+) "
    r"without head (?P<worst>.+)\.",
)
def cost_as_much(world: World, heads: str, of: str, before: Shown, after: Shown, worst: str) -> None:
    known = is_of(world, of)
    assert before == world.right(512)[:, known].mean()
    assert after == world.right(512, without=(world.head(worst),))[:, known].mean()
    left = left_without(world, heads, known)
    assert worst in left
    assert len(left) > 1
    assert max(left.values()) - min(left.values()) < 0.09 + NOISE
    others = [world.right(2048, without=(each,), other=True)[:, known].mean() for each in world.heads]
    assert min(left.values()) <= min(others) + 0.005


@law(
    f"{WORDS}head_sentence",
    rf"No head is needed by itself for {OF}: removing any one costs less than 0\.005 of the accuracy\.",
)
def none_needed(world: World, of: str) -> None:
    known = is_of(world, of)
    before = world.right(512)[:, known].mean()
    assert all(before - world.right(512, without=(each,))[:, known].mean() < 0.006 for each in world.heads)


def by_symbol(world: World, known: np.ndarray) -> dict[str, tuple[int, int]]:
    right, targets = world.right(512), world.drawn(512).targets
    found: dict[str, tuple[int, int]] = {}
    for token, name in enumerate(world.task.vocabulary):
        here = (targets == token) & known
        if here.any():
            found[name] = int(right[here].sum()), int(here.sum())
    return found


@law(f"{WORDS}symbol_sentence", rf"Every symbol of {OF} is right every time: (?P<right>[\d,]+) of (?P<all>[\d,]+)\.")
def every_symbol(world: World, of: str, right: Shown, all: Shown) -> None:
    found = by_symbol(world, is_of(world, of))
    assert right.value == all.value == sum(seen for _, seen in found.values()) == sum(hit for hit, _ in found.values())


@law(
    f"{WORDS}symbol_sentence",
    rf"Every symbol of {OF} is right equally often: (?P<share>[\d.]+) of the time\.",
    rare=True,
)
def equally_often(world: World, of: str, share: Shown) -> None:
    assert all(share == hit / seen for hit, seen in by_symbol(world, is_of(world, of)).values())


@law(
    f"{WORDS}symbol_sentence",
    rf"Of {OF} (?P<low>'[^:]+) (?:is|are) right least often: (?:(?P<few>[\d,]+) of (?P<among>[\d,]+) "
    rf"\((?P<least>[\d.]+)\)|(?P<least_each>[\d.]+) of the time each); (?P<high>'[^:]+) "
    r"most often: (?:(?P<many>[\d,]+) of (?P<out>[\d,]+) \((?P<most>[\d.]+)\)|(?P<most_each>[\d.]+) of the time each)"
    r"\.",
)
def least_and_most(
    world: World,
    of: str,
    low: str,
    few: Shown | None,
    among: Shown | None,
    least: Shown | None,
    least_each: Shown | None,
    high: str,
    many: Shown | None,
    out: Shown | None,
    most: Shown | None,
    most_each: Shown | None,
) -> None:
    """All that are right as seldom are named, and all that are right as often."""
    found = by_symbol(world, is_of(world, of))
    shares = {name: hit / seen for name, (hit, seen) in found.items()}
    for names, share, each, counts, extreme in (
        (low, least, least_each, (few, among), min(shares.values())),
        (high, most, most_each, (many, out), max(shares.values())),
    ):
        named = names.replace("'", "").replace(" and ", ", ").split(", ")
        assert {*named} == {name for name, value in shares.items() if value == extreme}
        assert (share or each) == extreme
        if each is None:
            assert found[named[0]] == tuple(each.value for each in counts if each is not None)


def whole_answers(world: World, length: int) -> float:
    answers = world.task.answers(length)
    return float(world.right(512, length)[:, answers].all(axis=1).mean())


@law(
    f"{WORDS}length_sentence",
    r"The share of whole answers that are right is the same at every length: (?P<share>[\d.]+)\.",
)
def same_at_every(world: World, share: Shown) -> None:
    assert all(share == whole_answers(world, n + 1) for n in range(world.task.length))


@law(
    f"{WORDS}length_sentence",
    r"Whole answers are right most often at lengths? (?P<high>[^:]+): (?P<most>[\d.]+)\. They are right least often at "
    r"lengths? (?P<low>[^:]+): (?P<least>[\d.]+)\.",
)
def at_lengths(world: World, high: str, most: Shown, low: str, least: Shown) -> None:
    """All lengths with as much are named, and all with as little."""
    found = {n + 1: whole_answers(world, n + 1) for n in range(world.task.length)}
    for names, share, extreme in ((high, most, max(found.values())), (low, least, min(found.values()))):
        named = {int(each.split()[0]): "not trained" in each for each in names.replace(" and ", ", ").split(", ")}
        assert share == extreme
        assert {*named} == {length for length, value in found.items() if value == extreme}
        assert named == {length: length not in world.task.lengths for length in named}


def confused(world: World, known: np.ndarray) -> Counter[tuple[str, str]]:
    batch, names = world.drawn(512), world.task.vocabulary
    said = world.as_measured(batch).said
    return Counter(
        (names[true], names[token])
        for row in range(512)
        for true, token in zip(batch.targets[row, known], said[row, known], strict=True)
    )


@law(
    f"{WORDS}confusion_sentence",
    rf"No symbol of {OF} is said wrongly: (?P<right>[\d,]+) of (?P<all>[\d,]+) are right\.",
)
def none_confused(world: World, of: str, right: Shown, all: Shown) -> None:
    found = confused(world, is_of(world, of))
    assert right.value == all.value == found.total()
    assert {true == token for true, token in found} == {True}


@law(
    f"{WORDS}confusion_sentence",
    rf"Its most frequent confusion in {OF}: it says '(?P<said>\w+)' where '(?P<true>\w+)' is right, "
    rf"(?P<times>[\d,]+) of "
    r"(?P<asked>[\d,]+) times \((?P<share>[\d.]+)%\)\. (?P<right>[\d,]+) of (?P<all>[\d,]+) symbols are right\.",
)
def most_confused(
    world: World, of: str, said: str, true: str, times: Shown, asked: Shown, share: Shown, right: Shown, all: Shown
) -> None:
    found = confused(world, is_of(world, of))
    wrong = {pair: count for pair, count in found.items() if pair[0] != pair[1]}
    assert times.value == wrong[true, said] == max(wrong.values())
    assert asked.value == sum(count for (token, _), count in found.items() if token == true)
    assert share == 100 * times.value / asked.value
    assert (right.value, all.value) == (found.total() - sum(wrong.values()), found.total())


@law(
    f"{WORDS}hardest_sentence",
    r"None of (?P<n>[\d,]+) answers is wrong(?: in (?P<of>what can be known of the answer))?\. The model is least "
    r"sure of "
    r"(?P<input>[\w ]+): it gives the right tokens probability (?P<p>[\d.e−-]+)\.",
)
def none_wrong(world: World, n: Shown, of: str | None, input: str, p: str) -> None:
    known = is_of(world, of)
    right = world.right(512)[:, known]
    assert n.value == len(right)
    assert right.all()
    found = dict(probabilities(world, known))
    assert abs(found[input] / float(p) - 1) < 0.06
    assert found[input] <= min(found.values()) * (1 + 1e-3)


def probabilities(world: World, known: np.ndarray) -> list[tuple[str, float]]:
    batch = world.drawn(512)
    logits = world.through(batch).logits
    logits = logits - logits.max(axis=-1, keepdims=True)
    shares = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    found = []
    for row in range(512):
        question = batch.source[row] if batch.source is not None else batch.tokens[row, : world.task.length]
        named = " ".join(world.task.vocabulary[token] for token in question)
        found.append(
            (named, math.prod(float(shares[row, t, batch.targets[row, t]]) for t in np.flatnonzero(known).tolist()))
        )
    return found


@law(
    f"{WORDS}hardest_sentence",
    r"(?P<wrong>[\d,]+) of (?P<n>[\d,]+) answers (?:are|is) wrong(?: in (?P<of>what can be known of the "
    r"answer))?(?:\. The hardest "
    r"input is (?P<input>[\w ]+): (?P<tokens>\d+) tokens? wrong|: that to (?P<one>[\w ]+), in (?P<its>\d+) tokens?)\.",
)
def some_wrong(
    world: World, wrong: Shown, n: Shown, of: str | None, input: str | None, tokens: str | None, one: str | None,
    its: str | None,
) -> None:  # fmt: skip
    known = is_of(world, of)
    count = (~world.right(512)[:, known]).sum(axis=1)
    assert (wrong.value, n.value) == ((count > 0).sum(), 512)
    assert int(tokens or its or 0) == count.max()
    names = [name for name, _ in probabilities(world, known)]
    assert (input or one) in [name for name, each in zip(names, count, strict=True) if each == count.max()]


# --- runs

RACES = "app_pages/training/runs/races."
DONE = r"(?:mine: )?"


def at_the_end(world: World, part: str | None, share: str | None) -> None:
    if share is not None and part is not None:
        chosen = np.array(world.task.groups(world.task.length)) == part
        found = last(world).right(4096)[:, chosen].mean()
        assert abs(float(share.lstrip(">")) - found) < 0.006


TOOK = r"(?P<steps>\d+) steps?(?: and (?P<seconds>[\d.]+) s)?(?:: (?P<share>[>\d.]+) of the (?P<part>.+) right)?"
for name, full in ((f"{RACES}headline", r"\."), (f"{RACES}outcome", "")):

    @law(name, rf"{DONE}not solved in {TOOK}{full}")
    def not_solved(world: World, steps: str, seconds: str | None, share: str | None, part: str | None) -> None:
        metrics = world.run.metrics()
        assert int(steps) == max(world.run.snapshots())
        assert (seconds is None) == (not metrics)
        assert not (metrics and metrics[-1].get("solved"))
        at_the_end(world, part, share)

    @law(
        name,
        rf"{DONE}(?P<won>solved|solved, as far as it can be known,|right, because its mask shows it the answers,) "
        rf"at step "
        rf"(?P<step>\d+) after (?P<seconds>[\d.]+) s{full}",
    )
    def solved(world: World, won: str, step: str, seconds: str) -> None:
        assert int(step) == max(world.run.snapshots())
        end = last(world)
        answers = world.task.answers(world.task.length)
        right = end.right(4096).mean(axis=0)
        known = answers & (world.most() > 1 - 1e-9)
        assert right[known].mean() >= 0.99 if known.any() else True
        shown = bool((world.greatest() > world.greatest(honest=True) + 1e-9).any())
        assert (won[0] == "r") == shown
        assert ("as far" in won) == (not shown and not (known == answers).all())


@law(f"{RACES}headline", r"mine: (?P<said>[^:]+: your mask leaks)\.")
def leaks(world: World, said: str) -> None:
    honest = world.greatest(honest=True)
    right = last(world).right(4096).mean(axis=0)
    groups = np.array(world.task.groups(world.task.length))
    assert any(right[groups == part].mean() > honest[groups == part].mean() for part in world.task.parts)


@law(f"{RACES}meaning", None)
def not_measured(world: World) -> None:
    assert world.run.evaluation is None


@law(
    f"{RACES}meaning",
    r"(?P<verdict>[^:]+: your mask leaks)\. Under the mask (?P<mask>[^ ]+) a query sees the very token that it "
    r"has to say next\. "
    r"So the model can copy, and need not learn the law\.",
)
def sees_answers(world: World, verdict: str, mask: str) -> None:
    leaks(world, verdict)
    assert (world.greatest() > world.greatest(honest=True) + 1e-9).any()


@law(
    f"{RACES}meaning",
    r"(?P<verdict>[^:]+: (?:not yet at the ceiling|the mask holds|every answer can be known, and is|the mask "
    r"shows the answers, and the model does not use them))\.(?: Under "
    r"its mask at most (?P<share>[\d.]+) of the (?P<part>.+) can be right\.)?",
)
def what_it_means(world: World, verdict: str, share: str | None, part: str | None) -> None:
    groups = np.array(world.task.groups(world.task.length))
    most = world.greatest()
    judged = groups == world.task.part
    assert (share is None) == bool((most[judged] > 1 - 1e-9).all())
    if share is not None:
        assert part == world.task.part
        assert abs(float(share) - most[judged].mean()) < 0.02


@law(f"{RACES}meaning", r"(?P<said>.*Without positions \d+ layers reach .*)", rare=True)
def second_layer(world: World, said: str) -> None:
    raise AssertionError("no model of the grid is as long")


# --- several runs beside each other: made-up ones, which the tests of the page judge


@dataclass(frozen=True)
class Ran:
    """What became of one run of several."""

    phrase: str
    status: str
    solved: bool
    step: int
    seconds: float
    share: float | None
    perplexity: float | None = None
    task: str = "reverse"
    reads: bool = False
    cheats: bool = False
    to_the_end: bool = False
    """Is it to take all its steps, whatever it has solved?"""


@dataclass(frozen=True)
class Field:
    """Several runs, and the clock by which they are compared."""

    ran: tuple[Ran, ...]
    clock: str

    def clock_of(self, each: Ran) -> str:
        return f"at step {each.step}" if self.clock == "steps" else f"after {each.seconds:.2f} s"

    def firsts(self, *, honest: bool) -> tuple[list[Ran], list[Ran]]:
        """Who solved it, and who of these needed least as the clock is written."""
        solved = [each for each in self.ran if each.solved and not (honest and each.cheats)]
        least = min((each.step if self.clock == "steps" else each.seconds for each in solved), default=0)
        shown = f"at step {least}" if self.clock == "steps" else f"after {least:.2f} s"
        return solved, [each for each in solved if self.clock_of(each) == shown]

    @property
    def live(self) -> bool:
        return any(each.status in ("queued", "running", "paused", "measuring") for each in self.ran)

    def judge_rest(self, rest: str | None) -> None:
        """Raises AssertionError where it is not so that so many of them have not ended."""
        assert (rest is not None) == self.live
        if rest is None:
            return
        still = [each for each in self.ran if each.status in ("queued", "running", "paused")]
        if rest == "the results are being measured":
            assert not still
            return
        form = re.fullmatch(r"(?:it|(\d+) of (\d+) runs) (?:still train(s?)|(has|have) not ended)", rest)
        assert form is not None
        assert (form[1] is None) == (len(self.ran) == 1)
        assert form[1] is None or (int(form[1]), int(form[2])) == (len(still), len(self.ran))
        assert (form[4] is None) == ({each.status for each in still} == {"running"})
        assert (len(still) == 1) == (form[3] == "s" if form[4] is None else form[4] == "has")

    def are_all(self, said: str | None) -> None:
        assert said is None or said.lower() == ("both" if len(self.ran) == 2 else f"all {len(self.ran)}")


def phrases(said: str | None) -> list[str]:
    return (said or "").replace(" and ", ", ").split(", ") if said else []


WHEN = r"at step \d+|after [\d.]+ s"
REST = r"(?P<rest>the results are being measured|(?:it|\d+ of \d+ runs) (?:still trains?|(?:has|have) not ended))"
HEADLINE = f"{RACES}headline"


@law(HEADLINE, r"Nothing to compare yet\.", rare=True)
def nothing_to_compare(world: Field) -> None:
    assert not world.ran


@law(HEADLINE, rf"Not solved yet: {REST}\.", rare=True)
def not_solved_yet(world: Field, rest: str) -> None:
    assert not world.firsts(honest=True)[0]
    world.judge_rest(rest)


@law(
    HEADLINE,
    rf"(?P<begin>Solved|First solved) (?P<who>with .+?) (?P<when>{WHEN}); (?:{REST}|(?P<others>\d+) runs do not|"
    r"(?P<other>with .+), not in (?P<steps>\d+) steps?)\.",
    rare=True,
)
def some_solve_it(
    world: Field, begin: str, who: str, when: str, rest: str | None, others: str | None, other: str | None,
    steps: str | None,
) -> None:  # fmt: skip
    solved, first = world.firsts(honest=world.live)
    assert phrases(who) == [each.phrase for each in first]
    assert when == world.clock_of(first[0])
    assert (begin == "Solved") == (len(first) == len(solved))
    world.judge_rest(rest)
    if rest is None:
        vain = [each for each in world.ran if not each.solved]
        assert vain
        assert (
            (int(others), len(vain) > 1) == (len(vain), True) if others else [other] == [each.phrase for each in vain]
        )
        assert steps is None or int(steps) == vain[0].step


@law(
    HEADLINE,
    rf"(?P<all>Both|All \d+) solve it(?: (?P<level>{WHEN})|\. The first (?P<do>does|do) so (?P<when>{WHEN}), "
    r"(?P<who>.+))\.",
    rare=True,
)
def all_solve_it(world: Field, all: str, level: str | None, do: str | None, when: str | None, who: str | None) -> None:
    solved, first = world.firsts(honest=False)
    world.are_all(all)
    assert len(solved) == len(world.ran)
    assert (level or when) == world.clock_of(first[0])
    assert (level is not None) == (len(first) == len(solved))
    assert level is not None or phrases(who) == [each.phrase for each in first]
    assert do is None or (do == "does") == (len(first) == 1)


@law(
    HEADLINE,
    rf"(?P<some>\d+) of (?P<of>\d+) runs (?P<has>has|have) solved (?P<tasks>its task|their tasks)(?:; {REST})?\.",
    rare=True,
)
def solve_their_tasks(world: Field, some: str, of: str, has: str, tasks: str, rest: str | None) -> None:
    solved, _ = world.firsts(honest=world.live)
    assert len({each.task for each in world.ran}) > 1
    assert (int(some), int(of)) == (len(solved), len(world.ran))
    assert (has == "has") == (tasks == "its task") == (len(solved) == 1)
    world.judge_rest(rest)


@law(
    HEADLINE,
    r"(?:(?P<none>Neither|None of the (?P<many>\d+)) solves it|Every run took all its steps|(?P<ended>\d+) of "
    r"(?P<of>\d+) runs took all (?P<its>its|their) steps)(?:: (?:(?P<all>both|all \d+) have|the best "
    r"(?P<has>has|have)) (?P<share>[\d.]+) of the (?P<part>[\w ]+) right(?:, (?P<who>.+))?)?\.",
    rare=True,
)
def none_solves_it(
    world: Field, none: str | None, many: str | None, ended: str | None, of: str | None, its: str | None,
    all: str | None, has: str | None, share: str | None, part: str | None, who: str | None,
) -> None:  # fmt: skip
    """No share is written like the best one but those that are named. Nearly all is not all: it gets three digits."""
    assert not any(each.solved for each in world.ran)
    assert not world.live
    assert (none is None) == every(each.to_the_end for each in world.ran)
    assert none is None or (none == "Neither") == (len(world.ran) == 2)
    assert many is None or int(many) == len(world.ran)
    finished = sum(each.status == "finished" for each in world.ran)
    assert none is not None or (ended is None) == (finished == len(world.ran))
    assert ended is None or (int(ended), int(of or 0), its == "its") == (finished, len(world.ran), finished == 1)
    known = {each.phrase: each.share for each in world.ran if each.share is not None}
    assert (share is None) == (not known)
    if share is None:
        return
    best = [phrase for phrase, value in known.items() if two_digits(value) == two_digits(max(known.values()))]
    assert share == two_digits(max(known.values()))
    world.are_all(all)
    assert (all is not None) == (len(best) == len(world.ran))
    assert all is not None or phrases(who) == best
    assert has is None or (has == "has") == (len(best) == 1)
    assert part == "second half"


def two_digits(share: float) -> str:
    return f"0.{int(share * 1000 + 1e-9):03d}" if 0.995 <= share < 1 else f"{share:.2f}"


@law(
    HEADLINE,
    rf"(?:(?P<other>These runs have different tasks, so their losses cannot be compared)|No loss was measured yet)"
    rf"(?:; {REST})?\.",
    rare=True,
)
def cannot_be_compared(world: Field, other: str | None, rest: str | None) -> None:
    assert any(each.reads for each in world.ran)
    assert (other is not None) == (len({each.task for each in world.ran}) > 1)
    assert other is not None or every(each.perplexity is None for each in world.ran)
    world.judge_rest(rest)


@law(
    HEADLINE,
    r"(?:(?P<its>Its perplexity is)|(?P<all>Both|All \d+) have perplexity|The lowest perplexity is) (?P<least>[\d.]+)"
    rf"(?:, (?P<who>[^.;]+))?(?P<told>\. [^.;]+)?(?:; {REST})?\.",
    rare=True,
)
def read_best(
    world: Field, its: str | None, all: str | None, least: str, who: str | None, told: str | None, rest: str | None
) -> None:
    assert any(each.reads for each in world.ran)
    known = [each for each in world.ran if each.perplexity is not None]
    best = [each for each in known if f"{each.perplexity:.1f}" == least]
    assert least == f"{min(each.perplexity or 0 for each in known):.1f}"
    assert (its is not None) == (len(world.ran) == 1)
    assert (all is not None) == (len(best) == len(world.ran) > 1)
    world.are_all(all)
    assert its or all or phrases(who) == [each.phrase for each in best]
    shown = sum(each.cheats for each in best)
    said = f"The mask of {shown} of them shows the answers" if len(best) > 1 else "Its mask shows it the answers"
    assert told == (f". {said}" if shown else None)
    world.judge_rest(rest)


# --- populations: no model of the grid is one, so their own tests judge what is said of them


@dataclass(frozen=True)
class Outcomes:
    """What became of the trainings of one combination of settings."""

    planned: int
    most: int
    """Steps that each may take."""
    solved: tuple[int, ...]
    """After how many steps each was solved that was."""
    unsolved: int = 0
    failed: tuple[str, ...] = ()
    """Why each failed that did."""

    @property
    def ended(self) -> int:
        return self.finished + len(self.failed)

    @property
    def finished(self) -> int:
        return len(self.solved) + self.unsolved

    @property
    def steps(self) -> list[float]:
        return sorted([*map(float, self.solved), *[math.inf] * self.unsolved])

    def interval(self) -> tuple[float, float] | None:
        """Between which of the values the median lies in 95 of 100 cases: by counting all ways a coin can fall."""
        n = len(self.steps)
        fair = [rank for rank in range(1, n // 2 + 1) if 2 * sum(math.comb(n, k) for k in range(rank)) <= 0.05 * 2**n]
        return (self.steps[fair[-1] - 1], self.steps[n - fair[-1]]) if fair else None


POPULATIONS = "app_pages/training/populations/words."
OUTCOME = (
    r"(?P<begin>Solved|So far solved) from (?P<solved>\d+) of (?P<finished>\d+) seeds?"
    r"(?: within (?P<within>[\d,]+) steps)?"
    r"(?:; (?P<none>the median is more than that)|, after (?P<median>[\d.,]+) steps in the median)?"
    r"(?: \((?P<interval>[^)]+)\))?(?P<setting>, with [^;]+)?"
    r"(?:; (?P<left>\d+) of (?P<of>\d+) have not ended)?\."
)


def whole(text: str) -> float:
    return float(text.replace(",", ""))


@law(f"{POPULATIONS}headline", OUTCOME, rare=True)
def came_to_this(
    world: Outcomes,
    begin: str,
    solved: str,
    finished: str,
    within: str | None,
    none: str | None,
    median: str | None,
    interval: str | None,
    setting: str | None,
    left: str | None,
    of: str | None,
) -> None:
    assert (int(solved), int(finished)) == (len(world.solved), world.finished)
    assert (begin == "Solved") == (left is None) == (world.ended == world.planned)
    assert left is None or (int(left), int(of or 0)) == (world.planned - world.ended, world.planned)
    middle = np.array(world.steps)[[(world.finished - 1) // 2, world.finished // 2]]
    assert (within is not None) == (not world.solved or math.isinf(middle[1]))
    assert within is None or whole(within) == world.most
    assert (median is not None) == math.isfinite(middle[1])
    assert median is None or whole(median) == middle.mean()
    assert (none is not None) == (bool(world.solved) and math.isinf(middle[1]))
    assert (interval is not None) == bool(world.solved)
    if interval is not None:
        judge_interval(world, interval)


def judge_interval(world: Outcomes, said: str) -> None:
    """Raises AssertionError where an interval of the median is not theirs."""
    found = world.interval()
    if found is None:
        assert said == "fewer than 6 seeds have no 95 % interval of the median"
        assert world.finished < 6
        return
    low, high = (f"more than {world.most:,} steps" if math.isinf(each) else f"{each:,.0f}" for each in found)
    assert said == (f"95 % interval: {low}" if math.isinf(found[0]) else f"95 % interval {low} to {high}")


@law(
    f"{POPULATIONS}headline",
    r"None of the (?P<planned>\d+) trainings(?: with .+)? has ended yet\.",
    r"The one training(?: with .+)? has not ended yet\.",
    rare=True,
)
def none_has_ended(world: Outcomes, planned: str = "1") -> None:
    assert (int(planned), world.ended) == (world.planned, 0)


@law(
    f"{POPULATIONS}headline",
    r"No training(?P<setting> with .+)? could be finished: (?P<failed>\d+) failed(?P<far> so far, of (?P<of>\d+) "
    r"planned)?\.",
    rare=True,
)
def none_is_finished(world: Outcomes, setting: str | None, failed: str, far: str | None, of: str | None) -> None:
    assert world.finished == 0
    assert int(failed) == len(world.failed) > 0
    assert (far is None) == (world.ended == world.planned)
    assert of is None or int(of) == world.planned


@law(f"{POPULATIONS}share_sentence", None, rare=True)
def nothing_has_ended(world: Outcomes) -> None:
    assert world.ended == 0


@law(
    f"{POPULATIONS}share_sentence",
    r"(?:The share of seeds that is solved is (?P<share>[\d.]+), over (?P<seeds>\d+) seeds? \(95 % interval "
    r"(?P<low>[\d.]+) to (?P<high>[\d.]+)\)\.(?P<early> Seeds that solve it quickly end first, so these numbers will "
    r"change\.)?)? ?(?:(?P<failed>\d+) trainings? failed and (?:is|are) not counted: (?P<why>.+)\.)?",
    rare=True,
)
def share_is_solved(
    world: Outcomes,
    share: Shown | None,
    seeds: str | None,
    low: Shown | None,
    high: Shown | None,
    early: str | None,
    failed: str | None,
    why: str | None,
) -> None:
    assert (share is None) == (world.finished == 0)
    if share is not None and low is not None and high is not None:
        assert int(seeds or 0) == world.finished
        assert share == len(world.solved) / world.finished
        edges = score_interval(len(world.solved), world.finished)
        assert low == edges[0]
        assert high == edges[1]
    assert (early is not None) == (world.finished > 0 and world.ended < world.planned)
    assert (failed is None) == (not world.failed)
    if failed is not None and why is not None:
        assert int(failed) == len(world.failed)
        others = len({*world.failed}) - 1
        more = f", and {others} other reason{'s' if others > 1 else ''}" if others else ""
        assert why == f"{world.failed[0]}{more}"


@dataclass(frozen=True)
class Compared:
    """What became of several combinations of settings, by what each is called, and by what they are compared."""

    outcomes: dict[str, Outcomes]
    by_steps: bool = True

    @property
    def known(self) -> dict[str, Outcomes]:
        return {name: each for name, each in self.outcomes.items() if each.finished}

    def rank(self, each: Outcomes) -> tuple[float, float]:
        """Less is better: the median of the steps, and of what is solved by less than half the share."""
        share = -len(each.solved) / each.finished
        middle = np.array(each.steps)[[(each.finished - 1) // 2, each.finished // 2]]
        return (float(middle.mean()), share) if self.by_steps else (0.0, share)

    def alike(self, one: Outcomes, other: Outcomes) -> bool:
        """Are two of them not told apart by their intervals, or are they equal where there is none?"""
        if not self.by_steps or (math.isinf(self.rank(one)[0]) and math.isinf(self.rank(other)[0])):
            edges = [score_interval(len(each.solved), each.finished) for each in (one, other)]
        elif one.interval() is None or other.interval() is None:
            return self.rank(one) == self.rank(other)
        else:
            edges = [each.interval() or (0.0, 0.0) for each in (one, other)]
        return max(low for low, _ in edges) <= min(high for _, high in edges) + 1e-9


def score_interval(hits: int, n: int) -> tuple[float, float]:
    """Wilson (1927): the shares p from which the mean is 1.96 standard errors √(p (1 − p) / n) away."""
    z, mean = 1.959964, hits / n
    edges = np.roots([1 + z**2 / n, -(2 * mean + z**2 / n), mean**2]).real
    return max(0.0, float(edges.min())), min(1.0, float(edges.max()))


def judge_outcome(world: Outcomes, said: str) -> None:
    """Raises AssertionError where an outcome is not theirs; failures and what has not ended are no part of it."""
    form = re.fullmatch(OUTCOME, f"Solved from {said}.")
    assert form is not None, said
    came_to_this(replace(world, planned=world.ended), **form.groupdict())


STEPS, PHASE = f"{POPULATIONS}steps_sentence", f"{POPULATIONS}phase_sentence"


@law(STEPS, r"No training has ended yet\.", rare=True)
@law(PHASE, r"No training of these has ended yet\.", rare=True)
def no_combination_is_known(world: Compared) -> None:
    assert not world.known


LEVEL = r"All (?P<all>\d+) are level\. (?P<first>.+)"


@law(
    STEPS,
    rf"(?:Quickest: (?P<least>.+?)\. Slowest: (?P<most>.+)|{LEVEL}|(?P<each>(?!No |Quickest|All \d).+))\.",
    rare=True,
)
@law(
    PHASE,
    r"(?:(?:Quickest|Solved most often): (?P<least>.+?)\. (?:Slowest|Solved least often): (?P<most>.+)|"
    rf"{LEVEL}|(?P<each>(?!No |Quickest|Solved|All \d).+))\.",
    rare=True,
)
def combinations_compare(
    world: Compared, least: str | None, most: str | None, all: str | None, first: str | None, each: str | None
) -> None:
    known, ranks = world.known, {name: world.rank(outcomes) for name, outcomes in world.known.items()}
    if each is not None:
        told = dict(part.split(": ", 1) for part in re.split(r"\. (?=[A-Z\d])", each))
        assert [name.lower() for name in told] == [name.lower() for name in known]
        for outcomes, said in zip(known.values(), told.values(), strict=True):
            judge_outcome(outcomes, said)
        return
    if first is not None:
        assert int(all or 0) == len(known) > 1
        assert len({*ranks.values()}) == 1
        name, said = first.split(": ", 1)
        assert name.lower() == next(iter(known)).lower()
        judge_outcome(next(iter(known.values())), said)
        return
    for text, end in ((least, min(ranks.values())), (most, max(ranks.values()))):
        name = next(name for name in sorted(known, key=len, reverse=True) if (text or "").startswith(name))
        form = re.fullmatch(
            r"(?: \((\d+) (others?) of (\d+) cannot be told from it\))?, (.+)", (text or "")[len(name) :]
        )
        assert form is not None
        assert ranks[name] == end
        alike = sum(world.alike(known[name], other) for one, other in known.items() if one != name)
        assert int(form[1] or 0) == alike
        assert form[1] is None or (form[2] == "other", int(form[3])) == (alike == 1, len(known))
        judge_outcome(known[name], form[4])


@dataclass(frozen=True)
class Shares:
    """How much of the last part each seed has right."""

    part: str
    values: tuple[float, ...]

    @property
    def sorted_values(self) -> list[float]:
        return sorted(self.values)


BAND = f"{POPULATIONS}band_sentence"


@law(BAND, r"In the one seed (?P<share>[\d.]+) of the (?P<part>.+) is right\.", rare=True)
def one_seed_has(world: Shares, share: str, part: str) -> None:
    assert len(world.values) == 1
    assert (share, part) == (two_digits(world.values[0]), world.part)


@law(
    BAND,
    r"In the median of (?P<seeds>\d+) seeds (?P<middle>[\d.]+) of the (?P<part>.+) is right \("
    r"(?:95 % interval (?P<inner>[\d.]+) to (?P<outer>[\d.]+)|(?P<few>fewer than 6 seeds have no 95 % interval))\); "
    r"(?:(?P<all>all) (?P<again>\d+) seeds|about nine of ten of (?P<of>\d+) seeds) "
    r"lie between (?P<low>[\d.]+) and (?P<high>[\d.]+)\.",
    rare=True,
)
def seeds_have(
    world: Shares, seeds: str, middle: str, part: str, inner: Shown | None, outer: Shown | None, few: str | None,
    all: str | None, again: str | None, of: str | None, low: Shown, high: Shown,
) -> None:  # fmt: skip
    values, n = world.sorted_values, len(world.values)
    assert part == world.part
    assert int(seeds) == n == int(again or of or 0) > 1
    assert middle == two_digits((values[(n - 1) // 2] + values[n // 2]) / 2)
    assert (few is not None) == (n < 6)
    if inner is not None and outer is not None:
        fair = [rank for rank in range(1, n // 2 + 1) if 2 * sum(math.comb(n, k) for k in range(rank)) <= 0.05 * 2**n]
        assert inner == values[fair[-1] - 1]
        assert outer == values[n - fair[-1]]
    inside = sum(low.value - 0.0051 <= value <= high.value + 0.0051 for value in values)
    if all is not None:
        assert inside == n
        assert low.value <= values[0] + 0.0051
        assert high.value >= values[-1] - 0.0051
        return
    assert n >= 20
    strictly = sum(low.value - 0.0051 < value < high.value + 0.0051 for value in values)
    assert strictly >= 0.9 * n - 2, "fewer than nine of ten lie there"
    assert values[0] < low.value or values[-1] > high.value, "all of them lie there"


KINDS = f"{POPULATIONS}kinds_sentence"
Kinds = tuple[dict[str, str], ...]


@law(KINDS, r"No head has been measured\.", rare=True)
def no_kinds(world: Kinds) -> None:
    assert not world


@law(KINDS, r"Every head of (?P<seeds>\d+) seeds? is mixed: no single thing stands out\.", rare=True)
def all_are_mixed(world: Kinds, seeds: str) -> None:
    assert int(seeds) == len(world)
    assert {kind for each in world for kind in each.values()} == {"mixed"}


@law(KINDS, r"(?P<parts>In (?:.*)layer .+)\.", rare=True)
def kinds_form(world: Kinds, parts: str) -> None:
    """No kind is left out that forms in more of the seeds than one that is named."""
    found = Counter(
        (head.split(".")[1], kind)
        for each in world
        for head, kind in {(head.rpartition(".")[0], kind) for head, kind in each.items()}
        if kind != "mixed"
    )
    named = {}
    for part in parts.split("; "):
        form = re.fullmatch(
            r"[Ii]n layer (\d+) at least one head is “(.+)” in (\d+) of (\d+) seeds? \(95 % interval ([\d.]+) to "
            r"([\d.]+)\)",
            part,
        )
        assert form is not None
        named[form[1], form[2]] = int(form[3])
        assert int(form[3]) == found[form[1], form[2]]
        assert int(form[4]) == len(world)
        low, high = score_interval(int(form[3]), len(world))
        assert Shown(form[5]) == low
        assert Shown(form[6]) == high
    assert len(named) == min(2, len(found))
    assert every(count <= min(named.values()) for pair, count in found.items() if pair not in named)
