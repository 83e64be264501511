"""How tokens and numbers are written in a sentence, and whether they are those of a model: what laws share."""

from __future__ import annotations

import re

import numpy as np

from tests.kit.claims import Shown
from tests.kit.claims.world import World

TOKEN = r"'(?P<token>[^']+)' at (?P<place>\d+)(?P<source> of the source)?"
LARGEST = r" (?P<end>[^.]+(?:\.\d+[^.]*)*\.)"
"""How `claims.largest_in_size` ends."""


def shares_of(logits: np.ndarray) -> np.ndarray:
    """Their softmax, over the last axis."""
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def power_of_ten(text: str) -> tuple[float, int]:
    """The digits and the exponent of "1.2 × 10⁻⁷"; of a number without one the exponent is 0."""
    digits, _, power = text.partition(" × 10")
    return float(digits), int(power.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")) or 0)


def is_small(text: str, value: float) -> bool:
    """Is it written with three digits, or as a power of ten?"""
    if "×" not in text:
        return Shown(text) == value
    digits, exponent = power_of_ten(text)
    return abs(value / 10.0**exponent - digits) < 0.06


def number(text: str) -> int:
    """ "1,024" as a number."""
    return int(text.replace(",", ""))


def are_likeliest(world: World, shares: np.ndarray, says: str, share: str) -> bool:
    """Is no token likelier than these, and are they all that are so likely, as it is written?"""
    names, away = world.task.vocabulary, shares.max() - shares
    half = 0.0005 if "×" not in share else 0.05 * shares.max() / float(share.partition(" ")[0])
    sure, perhaps = int((np.abs(shares - shares.max()) == 0).sum()), int((away < 2.4 * half).sum())
    if "×" not in share:
        sure = int((np.abs(shares - Shown(share).value) < half - 2e-4).sum())
    if counted := re.fullmatch(r"([\d,]+) tokens( or more)?", says):
        return is_small(share, shares.max()) and max(4, sure * (not counted[2])) <= number(counted[1]) <= perhaps
    named = [names.index(name) for name in re.findall(r"'(.+?)'(?:, | and |$)", says)]
    right = all(is_small(share, shares[each]) for each in named) and shares[named].max() >= shares.max() - 1e-6
    return right and sure <= len(named)


def stands(world: World, token: str, place: str, source: str | None) -> bool:
    """Does the token stand there, in what one of the stacks reads?"""
    batch, _ = world.alone
    read = batch.tokens[0] if not source else batch.source[0]  # type: ignore[index]
    return world.task.vocabulary[read[int(place) - 1]] == token


def level_of(values: np.ndarray, write: str, half: float) -> tuple[set[int], set[int]]:
    """Which values round to what is written, for certain and perhaps."""
    away = np.abs(values - Shown(write).value)
    sure, perhaps = ({*np.flatnonzero(away < half + slack).tolist()} for slack in (-2e-4, 2e-4))
    return sure, perhaps


def are_largest(values: np.ndarray, end: str, where: str = r"in dimension (\d+)") -> bool:
    """Do the numbers that are named have the greatest size as it is written, and no other?"""
    sizes = np.abs(values)
    if len(values) == 1:
        return bool((alone := re.fullmatch(r"It is (.+)\.", end)) and Shown(alone[1]) == values[0])
    if end in ("All are 0.", "All are nearer to 0 than 0.005."):
        return bool(sizes.max() < (1e-6 if end == "All are 0." else 0.005 + 2e-4))
    named = re.findall(rf"([−\d.]+),? {where}(?:,| and|\.$)", end)
    counted = re.fullmatch(
        r"(?:All (?P<all>\d+) lie|The largest in size are (?P<many>\d+) of these (?P<of>\d+): each lies) "
        r"(?P<size>[\d.]+) from 0\.",
        end,
    )
    if counted:
        most, many = Shown(counted["size"]), int(counted["all"] or counted["many"])
        right = int(counted["all"] or counted["of"]) == len(values) and (many == len(values)) == bool(counted["all"])
    elif not named:
        return False
    else:
        most, many = Shown(named[0][0].replace("−", "")), len(named)
        verb = "is" if many == 1 else "are"
        right = end.startswith(f"The largest in size {verb} ") and all(
            Shown(value) == values[int(at)] and most == sizes[int(at)] for value, at in named
        )
    sure, perhaps = (np.abs(sizes - most.value) < 0.005 + slack for slack in (-2e-4, 2e-4))
    return bool(right and most == sizes.max() and sure.sum() <= many <= perhaps.sum())


def is_share(text: str, share: float, slack: float = 2e-4) -> bool:
    """Is a share written so, or with less than no slack for certain? Nearly all is cut off after three digits."""
    if text == "1.00":
        return share > 1 - 1e-5 if slack > 0 else share == 1
    if len(text) > 4:
        return float(text) - slack < share < float(text) + 0.001 + slack
    return abs(share - float(text)) < 0.005 + slack


def reads(world: World, token: str, place: str) -> bool:
    """Does the token stand there, in what one of the stacks reads?"""
    batch, _ = world.alone
    stacks = [each[0] for each in (batch.tokens, batch.source) if each is not None]
    return any(int(place) <= len(each) and world.task.vocabulary[each[int(place) - 1]] == token for each in stacks)
