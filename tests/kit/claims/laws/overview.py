"""Laws of the overview: what goes in, what comes out, and what a model of a text guesses."""

from __future__ import annotations

import math
import re

import numpy as np

from tests.kit.claims import law
from tests.kit.claims.world import World
from tests.kit.claims.written import are_likeliest, is_small, shares_of


def counts(world: World) -> tuple[int, int, bool]:
    """How many tokens of the answer can be known and are right, how many can be known, and whether that is all."""
    batch, seen = world.alone
    answers = world.task.answers(len(world.question))
    known = answers & (world.most(len(world.question)) > 1 - 1e-9)
    return int((seen.said[0] == batch.targets[0])[known].sum()), int(known.sum()), bool((known == answers).all())


NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
SYMBOLS = r"(?P<upto>up to |\w+ to )?(?P<most>\w+) (?P<noun>digits?|symbols?)"
WHO = rf"This (?P<kind>transformer|recurrent network) (?P<begins>reads|is to read) {SYMBOLS}"
FAR = r"(?P<far>, as far as its mask lets it see)?"
COUNTS = r"(?P<right>\d+) of (?P<of>\d+) right"
OVERVIEW = "app_pages/overview/words."


def judge_symbols(world: World, kind: str, upto: str | None, most: str, noun: str) -> None:
    """What it is, and what it reads."""
    lengths, symbols = world.task.lengths, world.task.symbols
    assert kind == ("recurrent network" if world.sizes.architecture == "gru" else "transformer")
    assert (NUMBERS.index(most) if most in NUMBERS else int(most)) == max(lengths)
    words = [NUMBERS[min(lengths)] if min(lengths) < len(NUMBERS) else str(min(lengths)), "to "]
    assert upto == (None if min(lengths) == max(lengths) else "up to " if min(lengths) == 1 else " ".join(words))
    assert noun == ("digit" if symbols <= 10 else "symbol") + "s" * (max(lengths) != 1)


def aim_of(world: World) -> str:
    return world.task.aim.replace("them", "it") if world.task.length == 1 else world.task.aim


@law(f"{OVERVIEW}headline", rf"{WHO} and (?P<does>[^,.]+){FAR}\.")
def does(
    world: World, kind: str, begins: str, upto: str | None, most: str, noun: str, does: str, far: str | None
) -> None:
    judge_symbols(world, kind, upto, most, noun)
    right, of, everything = counts(world)
    assert (right == of > 0, everything) == (True, far is None)
    first, _, rest = aim_of(world).partition(" ")
    assert (begins, does) == ("reads", f"{first}s {rest}" if first else world.task.verb)


@law(
    f"{OVERVIEW}headline",
    rf"{WHO} and (?P<aim>[^,.]+){FAR}\. It (?P<learned>has begun to learn it|has not learned it yet): {COUNTS}\.",
)
def not_yet(
    world: World,
    kind: str,
    begins: str,
    upto: str | None,
    most: str,
    noun: str,
    aim: str,
    far: str | None,
    learned: str,
    right: str,
    of: str,
) -> None:
    judge_symbols(world, kind, upto, most, noun)
    assert (int(right), int(of), far is None) == counts(world)
    assert int(right) < int(of)
    assert (begins, aim) == ("is to read", aim_of(world) or "answer")
    blind = world.most(len(world.question), blind=True)[world.task.answers(len(world.question))].mean()
    beyond = blind * int(of) + math.sqrt(blind * (1 - blind) * int(of))
    if learned == "has begun to learn it":
        assert int(right) > beyond
    else:
        assert int(right) < blind * int(of) + 4 * math.sqrt(blind * (1 - blind) * int(of)) + 1


@law(
    f"{OVERVIEW}headline",
    r"This (?P<kind>transformer|recurrent network) was trained on .* only: of (?P<asked>\w+) \w+, \d+ of \d+ come out "
    r"right\.",
    rare=True,
)
def of_another_length(world: World, kind: str, asked: str) -> None:
    length = NUMBERS.index(asked) if asked in NUMBERS else int(asked)
    assert (world.step > 0, length in world.task.lengths, bool(kind)) == (True, False, True)


@law(
    f"{OVERVIEW}headline",
    rf"{WHO}\. No answer can be known here: the mask hides what it depends on\.",
)
def none_to_know(world: World, kind: str, begins: str, upto: str | None, most: str, noun: str) -> None:
    judge_symbols(world, kind, upto, most, noun)
    assert (counts(world)[1], begins) == (0, "reads")


HERE = r"Of this answer (?P<right>\d+) of (?P<of>\d+) tokens? (?:is|are) right\."


def judge_answer(world: World, right: str, of: str) -> None:
    batch, seen = world.alone
    answers = world.task.answers(len(world.question))
    assert int(of) == answers.sum()
    assert int(right) == (seen.said[0] == batch.targets[0])[answers].sum()


@law(
    f"{OVERVIEW}lineage",
    rf"Nobody told it how: it was shown (?P<examples>[\d,]+) examples, in (?P<steps>[\d,]+) steps?\. {HERE}",
)
def lineage(world: World, examples: str, steps: str, right: str, of: str) -> None:
    judge_answer(world, right, of)
    assert int(steps.replace(",", "")) == world.step > 0
    assert int(examples.replace(",", "")) == world.step * world.config.training.batch_size


@law(f"{OVERVIEW}lineage", rf"It has seen no example yet: its weights are random\. {HERE}")
def no_example_seen(world: World, right: str, of: str) -> None:
    judge_answer(world, right, of)
    assert world.step == 0


@law(f"{OVERVIEW}lineage", rf"Its weights were written by hand: it was never trained\. {HERE}", rare=True)
def by_hand(world: World, right: str, of: str) -> None:
    judge_answer(world, right, of)
    assert not world.run.folder.is_dir()


@law(
    "app_pages/overview/guesses.headline",
    r"It guesses (?:(?P<words>\d+) of (?P<all>\d+) (?:words?|letters?))?(?:, and )?(?:(?P<marks>\d+) of (?P<of>\d+) "
    r"(?:blank, line end or mark|blanks, line ends and marks))?\.",
    rare=True,
)
def guesses(world: World, words: str | None, all: str | None, marks: str | None, of: str | None) -> None:
    """Of a text, which the test of all pages about texts has; a word has a letter or a digit in it."""
    batch, seen = world.alone
    word = np.array([bool(re.search(r"\w", world.task.vocabulary[token])) for token in batch.targets[0]])
    right = seen.said[0] == batch.targets[0]
    assert (int(words or 0), int(all or 0)) == (right[word].sum(), word.sum())
    assert (int(marks or 0), int(of or 0)) == (right[~word].sum(), (~word).sum())


@law(
    "app_pages/overview/guesses.best_guess",
    r"After '(?P<token>.+?)' at (?P<place>\d+) its best (?:guess is|guesses are) (?P<says>.+), with probability "
    r"(?P<share>.+?)(?P<each> each)?\. The text goes on with '(?P<next>.+)', which has (?P<own>.+)\.",
    rare=True,
)
def guesses_best(
    world: World, token: str, place: str, says: str, share: str, each: str | None, next: str, own: str
) -> None:
    batch, seen = world.alone
    at, names = int(place) - 1, world.task.vocabulary
    shares, target = shares_of(seen.logits[0, at]), batch.targets[0, at]
    assert (names[batch.tokens[0, at]], names[target]) == (token, next)
    assert are_likeliest(world, shares, says, share)
    assert is_small(own, shares[target])
    assert (each is None) == (" and " not in re.sub("'.+?'", "", says) and "tokens" not in re.sub("'.+?'", "", says))
