"""Laws of what is said of a reader's code, and of the mistakes of the gallery.

They speak of no model of the grid: their own tests judge them, by a signature or a verdict in a model's place.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from tests.kit.claims import Shown, law

if TYPE_CHECKING:
    from dashboard.app_pages.learn.check.verdict import Explained
    from transformer.mistakes import Demonstration, Signature

TITLE = "app_pages/learn/mistakes/words.headline"
RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
HALF = r"(?P<half>[\d.]+) of the second half is right"


def is_said(text: str, value: float) -> bool:
    """Is this how an amount is written: with its last digit rounded, or as a power of ten?"""
    digits, _, power = text.partition(" × 10")
    if not power:
        return Shown(text) == value
    scale = 10.0 ** int(power.translate(RAISED))
    return abs(float(digits) - value / scale) <= 0.05 + 1e-9


def are_sums(text: str, found: Signature) -> bool:
    """Are these the smallest and the greatest sum of a row; one number where both look alike?"""
    return [Shown(each).value for each in text.split(" to ")] == [
        *dict.fromkeys(float(f"{each:.2f}") for each in found.row_sums)
    ]


def rings(found: Signature) -> set[str]:
    """The detectors that ring, by the limits that the page's table names."""
    earlier = float(np.max(found.moved[:-1]))
    return {
        name
        for name, is_wrong in {
            "second half": found.second_half < 0.95,
            "first half": found.first_half > found.chance + 0.05,
            "floor": found.loss < found.floor - 0.05,
            "free running": found.free_running < 0.5,
            "future": found.future > 0.01,
            "row sums": found.row_sums[0] < 0.99 or found.row_sums[1] > 1.01,
            "probe": earlier > 1e-4,
            "batch": found.batch > 1e-4,
            "reference": float(np.max(found.differs)) > 1e-4,
        }.items()
        if is_wrong
    }


THEN = {
    r"But the rows of its patterns sum to (?P<sums>[\d. to]+)\.": "row sums",
    r"Then only the last token changes, and an earlier logit moves by (?P<by>.+)\.": "probe",
    r"But (?P<first>[\d.]+) of the first half is right too, and that is random\.": "first half",
    r"But its loss is (?P<loss>[\d.]+), below the floor of (?P<floor>[\d.]+)\.": "floor",
    r"But a logit moves by (?P<by>.+) when only the order of the batch changes\.": "batch",
    r"But only (?P<free>[\d.]+) of it is right once it reads its own words\.": "free running",
}
"""What gives away a model that looks perfect, and the detector that found it."""


def judge_named(found: Signature, detector: str, named: dict[str, str]) -> None:
    """Raises AssertionError where a number of a detector is another."""
    assert detector in rings(found)
    known = {
        "first": found.first_half,
        "loss": found.loss,
        "floor": found.floor,
        "free": found.free_running,
        "by": found.batch if detector == "batch" else float(np.max(found.moved[:-1])),
    }
    for name, text in named.items():
        assert are_sums(text, found) if name == "sums" else is_said(text, known[name]), name


@law(
    TITLE,
    rf"It looks perfect: {HALF}, and (?P<weight>no|hardly any) weight lies on a later token\. (?P<then>.+)",
    rare=True,
)
def looks_perfect(found: Signature, half: Shown, weight: str, then: str) -> None:
    assert half == found.second_half
    assert found.second_half >= 0.95
    assert (weight == "no") == (found.future == 0)
    assert found.future <= 0.01
    (form,) = (form for form in THEN if re.fullmatch(form, then))
    match = re.fullmatch(form, then)
    assert match
    judge_named(found, THEN[form], match.groupdict())


@law(
    TITLE,
    rf"No detector of its behaviour rings: {HALF}\. (?:The right code with the same weights gives the same logits|Only "
    r"the right code with the same weights tells: a logit differs by (?P<by>.+))\.",
    rare=True,
)
def behaves_well(found: Signature, half: Shown, by: str | None) -> None:
    assert half == found.second_half
    assert rings(found) == (set() if by is None else {"reference"})
    assert by is None or is_said(by, float(np.max(found.differs)))


@law(
    TITLE,
    rf"{HALF}(?:\. So is (?P<first>[\d.]+) of the first half, which is random: |, and the first half is at chance\. "
    r"But )on average a query gives later tokens a weight of (?P<weight>.+)\.",
    rare=True,
)
def sees_later_tokens(found: Signature, half: Shown, first: Shown | None, weight: str) -> None:
    assert half == found.second_half
    assert ("first half" in rings(found)) == (first is not None)
    assert first is None or first == found.first_half
    assert "future" in rings(found)
    assert "second half" not in rings(found)
    assert is_said(weight, found.future)


@law(
    TITLE,
    r"Its loss is (?P<loss>[\d.]+), below the floor of (?P<floor>[\d.]+), and yet only (?P<half>[\d.]+) of the second "
    r"half is right\.",
    rare=True,
)
def fails_below_the_floor(found: Signature, loss: Shown, floor: Shown, half: Shown) -> None:
    assert {"second half", "floor"} <= rings(found)
    assert (loss == found.loss, floor == found.floor, half == found.second_half) == (True, True, True)


@law(
    TITLE,
    r"Only (?P<half>[\d.]+) of the second half is right(?:, and (?:a logit moves by (?P<order>.+) when only the order "
    r"of the batch changes|an earlier logit moves by (?P<probe>.+) when only the last token changes)|\. (?P<weight>Its "
    r"patterns are causal|Hardly any weight lies on a later token), and the rows of its patterns sum to "
    r"(?P<sums>[\d. to]+))?\.",
    rare=True,
)
def fails(
    found: Signature, half: Shown, order: str | None, probe: str | None, weight: str | None, sums: str | None
) -> None:
    assert half == found.second_half
    assert "second half" in rings(found)
    assert "floor" not in rings(found)
    for detector, text in (("batch", order), ("probe", probe)):
        if text is not None:
            judge_named(found, detector, {"by": text})
    if weight is not None and sums is not None:
        assert not rings(found) & {"future", "row sums", "batch", "probe"}
        assert (weight == "Its patterns are causal") == (found.future == 0)
        assert are_sums(sums, found)


SHOWN = "app_pages/learn/mistakes/words.shown"


@law(SHOWN, r"Wrong and right give the same here\.", rare=True)
def give_the_same(found: Demonstration) -> None:
    assert all(same(each.wrong, each.right) for each in found.numbers)


@law(SHOWN, r"(?P<what>.+): (?P<right>.+) with the right code, (?P<wrong>.+) with the wrong code\.", rare=True)
def give_other_results(found: Demonstration, what: str, right: str, wrong: str) -> None:
    each = next(each for each in found.numbers if not same(each.wrong, each.right))
    assert each.what.lower() == what.lower()
    for said, value in ((right, each.right), (wrong, each.wrong)):
        error = re.fullmatch(r"an error \((\w+)\)", said)
        if error:
            assert str(value).startswith(f"{error[1]}: ")
        else:
            assert said == value if isinstance(value, str) else abs(float(said) - value) <= 0.0005 + 1e-9
    assert right != wrong


def same(one: float | str, other: float | str) -> bool:
    """Are two results the same in three digits after the point?"""
    texts = isinstance(one, str) or isinstance(other, str)
    return one == other if texts else f"{one:.3f}" == f"{other:.3f}"


VERDICT = "app_pages/learn/check/words.headline"


@law(VERDICT, r"Right in all that was tried\.", rare=True)
def is_right(verdict: Explained) -> None:
    assert (verdict.wrong, verdict.undecided, verdict.not_run) == ((), "", "")


@law(VERDICT, r"Your code could not be run\.", rare=True)
def was_not_run(verdict: Explained) -> None:
    assert verdict.not_run


@law(VERDICT, r"Not decided: nothing wrong was found, and not all was compared\.", rare=True)
def was_not_decided(verdict: Explained) -> None:
    assert verdict.undecided
    assert (verdict.wrong, verdict.not_run) == ((), "")


@law(VERDICT, r"Wrong: (?P<what>.+)\.", rare=True)
def is_wrong(verdict: Explained, what: str) -> None:
    assert verdict.wrong
    assert not verdict.not_run
    said = [verdict.wrong[0]] if verdict.known is None else [verdict.known.title, *verdict.wrong[1:]]
    assert any(each.lower().startswith(what.lower()) for each in said)
