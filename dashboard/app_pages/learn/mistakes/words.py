"""A mistake in words: what it looks like, which detectors ring, and what was measured of both codes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dashboard.app_pages.learn.mistakes.figures.measured_table import Row
from dashboard.figures.kit.numbers import share_text, tiny
from dashboard.parts.prose import sentence
from transformer.foundation.claims import claim
from transformer.foundation.words import counted, listed

if TYPE_CHECKING:
    from transformer.mistakes import Comparison, Demonstration, Signature

NAMES = {
    "second half": "Second half",
    "first half": "First half",
    "floor": "Loss",
    "free running": "Free running",
    "future": "Later tokens",
    "row sums": "Row sums",
    "probe": "Probe",
    "batch": "Batch",
    "reference": "Reference",
}
"""What each detector is called, in the order of the table."""
ASKS = {
    "second half": "accuracy on the answer, while the right tokens are read",
    "first half": "accuracy on the random symbols, which nobody can know",
    "floor": "mean cross-entropy of what it was taught, in nats",
    "free running": "accuracy on the answer, while it reads its own words",
    "future": "weight that a query gives later tokens, mean over all heads",
    "row sums": "smallest and greatest sum of a row of a pattern",
    "probe": "only the last token changes: largest change of an earlier logit",
    "batch": "only the order of the batch changes: largest change of a logit",
    "reference": "same weights in the right code: largest difference of a logit",
}
"""What each detector measures."""
SILENT = "reference"
"""The detector that compares with the right code: whoever has no right code to compare with cannot ask it."""


# --- numbers


def amount(value: float) -> str:
    """A change of a logit, or a weight: two digits after the point, or a power of ten where these would say nothing."""
    return "0" if value == 0 else tiny(value) if value < 0.005 else f"{value:.2f}"


def sums(row_sums: tuple[float, float]) -> str:
    """From the smallest to the greatest sum of a row: "1.00", or "0.02 to 1.00"."""
    low, high = (f"{each:.2f}" for each in row_sums)
    return low if low == high else f"{low} to {high}"


def written(found: Signature) -> dict[str, str]:
    """The number of each detector."""
    return {
        "second half": share_text(found.second_half),
        "first half": share_text(found.first_half),
        "floor": f"{found.loss:.2f}",
        "free running": share_text(found.free_running),
        "future": amount(found.future),
        "row sums": sums(found.row_sums),
        "probe": amount(found.probe),
        "batch": amount(found.batch),
        "reference": amount(found.reference),
    }


def limits(found: Signature) -> dict[str, str]:
    """From where on each number says that something is wrong."""
    changes = "above 0.0001"
    return {
        "second half": "below 0.95",
        "first half": f"above {found.chance + 0.05:.2f}; chance is {found.chance:.2f}",
        "floor": f"below {found.floor - 0.05:.2f}; the floor is {found.floor:.2f}",
        "free running": "below 0.50",
        "future": "above 0.01",
        "row sums": "below 0.99 or above 1.01",
        "probe": changes,
        "batch": changes,
        "reference": changes,
    }


def rows(wrong: Signature, right: Signature) -> list[Row]:
    """The table of both signatures."""
    ours, theirs, when = written(wrong), written(right), limits(wrong)
    rings, right_rings = wrong.exposed_by(), right.exposed_by()
    return [
        Row(NAMES[name], ASKS[name], ours[name], theirs[name], name in rings, name in right_rings, when[name])
        for name in NAMES
    ]


# --- the title


@claim
def headline(found: Signature) -> str:
    """What the model looks like with the mistake, and what gives it away."""
    rings = set(found.exposed_by())
    if "second half" in rings:
        return _fails(found, rings)
    half = share_text(found.second_half)
    if not rings - {SILENT}:
        return _nothing(found, half, SILENT in rings)
    if "future" not in rings:
        weight = "no weight lies" if found.future == 0 else "hardly any weight lies"
        looks = f"It looks perfect: {half} of the second half is right, and {weight} on a later token."
        return f"{looks} {_then(found, rings)}"
    later = f"on average a query gives later tokens a weight of {amount(found.future)}."
    if "first half" in rings:
        first = share_text(found.first_half)
        return f"{half} of the second half is right. So is {first} of the first half, which is random: {later}"
    return f"{half} of the second half is right, and the first half is at chance. But {later}"


def _nothing(found: Signature, half: str, differs: bool) -> str:
    """Nothing in its behaviour is wrong."""
    behaves = f"No detector of its behaviour rings: {half} of the second half is right."
    if differs:
        return (
            f"{behaves} Only the right code with the same weights tells: a logit differs by {amount(found.reference)}."
        )
    return f"{behaves} The right code with the same weights gives the same logits."


def _then(found: Signature, rings: set[str]) -> str:
    """What gives it away though its patterns look perfect."""
    if "row sums" in rings:
        return f"But the rows of its patterns sum to {sums(found.row_sums)}."
    if "probe" in rings:
        return f"Then only the last token changes, and an earlier logit moves by {amount(found.probe)}."
    if "first half" in rings:
        return f"But {share_text(found.first_half)} of the first half is right too, and that is random."
    if "floor" in rings:
        return f"But its loss is {found.loss:.2f}, below the floor of {found.floor:.2f}."
    if "batch" in rings:
        return f"But a logit moves by {amount(found.batch)} when only the order of the batch changes."
    return f"But only {share_text(found.free_running)} of it is right once it reads its own words."


def _fails(found: Signature, rings: set[str]) -> str:
    """It has not learned the task, and what else is wrong."""
    half = f"only {share_text(found.second_half)} of the second half is right"
    if "floor" in rings:
        return f"Its loss is {found.loss:.2f}, below the floor of {found.floor:.2f}, and yet {half}."
    said = f"{half[0].upper()}{half[1:]}"
    if "batch" in rings:
        return f"{said}, and a logit moves by {amount(found.batch)} when only the order of the batch changes."
    if "probe" in rings:
        return f"{said}, and an earlier logit moves by {amount(found.probe)} when only the last token changes."
    if "future" not in rings and "row sums" not in rings:
        causal = "Its patterns are causal" if found.future == 0 else "Hardly any weight lies on a later token"
        return f"{said}. {causal}, and the rows of its patterns sum to {sums(found.row_sums)}."
    return f"{said}."


# --- below the table


def verdict(wrong: Signature, right: Signature) -> str:
    """Which detectors ring, and which do not."""
    rings, silent = wrong.exposed_by(), [name for name in NAMES if name not in wrong.exposed_by()]
    said = f"None of {len(NAMES)} detectors rings."
    if rings:
        said = f"{len(rings)} of {len(NAMES)} detectors ring{_s(len(rings))}: {detectors(rings)}."
    if rings and silent:
        said += f" Silent: {detectors(silent)}."
    others = right.exposed_by()
    return f"{said} With the right code {f'{detectors(others)} ring{_s(len(others))}' if others else 'none rings'}."


def _s(number: int) -> str:
    """The ending of a verb that one thing does, and several do not."""
    return "s" if number == 1 else ""


def detectors(names: Sequence[str]) -> str:
    """Detectors by their names: "probe, batch and reference"."""
    return listed([NAMES[name].lower() for name in NAMES if name in names])


def accuracies(wrong: Signature, right: Signature, leaks: np.ndarray) -> str:
    """What is seen in the bars: both halves of both, and how many positions are above the ceiling, bool [target]."""
    one, other = written(wrong), written(right)
    said = (
        f"With the mistake {one['first half']} of the first half and {one['second half']} of the second half are "
        f"right, with the right code {other['first half']} and {other['second half']}."
    )
    above = int(leaks.sum())
    if above:
        said += f" {counted(above, 'position')} {'is' if above == 1 else 'are'} above the ceiling: a model that sees "
        said += "no later token cannot be."
    return said


def losses(wrong: Signature, right: Signature) -> str:
    """Where both losses end, on fresh sequences."""
    said = f"On fresh sequences the loss is {wrong.loss:.2f} with the mistake and {right.loss:.2f} with the right code."
    floor = f"the floor of {wrong.floor:.2f}"
    if "floor" in wrong.exposed_by():
        return f"{said} No model that sees only earlier tokens can be below {floor}: the first one is."
    return f"{said} Neither is below {floor} by more than 0.05." if "floor" not in right.exposed_by() else said


def probed(values: np.ndarray, right: np.ndarray) -> str:
    """How far each output moves when only the last token changes, both float [position]."""
    earlier = values[:-1]
    if earlier.max() <= 1e-4:
        said = f"No earlier output moves: the largest change of a logit is {amount(float(earlier.max()))}."
    else:
        moved = int((earlier > 1e-4).sum())
        said = (
            f"{moved} of {len(earlier)} earlier outputs move{_s(moved)}, output {int(earlier.argmax()) + 1} most: a "
            f"logit by {amount(float(earlier.max()))}."
        )
    return f"{said} With the right code it is {amount(float(right[:-1].max()))}. The last output may move."


def referred(values: np.ndarray) -> str:
    """How far the right code with the same weights is from it, float [position]."""
    largest = float(values.max())
    if largest <= 1e-4:
        return f"The right code gives the same logits: the largest difference is {amount(largest)}."
    return (
        f"The right code with the same weights gives other logits, most at output {int(values.argmax()) + 1}: they "
        f"differ by up to {amount(largest)}."
    )


def heads(wrong: Signature, right: Signature) -> str:
    """What the patterns of both are, over all sequences."""
    return (
        f"With the mistake a query gives later tokens a weight of {amount(wrong.future)} on average, and rows sum to "
        f"{sums(wrong.row_sums)}. With the right code: {amount(right.future)}, and {sums(right.row_sums)}."
    )


def looks(head: str, share: float) -> str:
    """What a head does on the example, by its short name."""
    return f"Head {head} puts {share:.2f} of its weight on the tokens to be written"


def answers(wrong: int, right: int, of: int) -> str:
    """How many symbols of the example's answer are right, while each reads its own words."""
    return f"Reading its own words: {wrong} of {of} right with the mistake, {right} of {of} with the right code."


# --- what is shown without a model


def value(found: float | str) -> str:
    """A number or a text of a comparison."""
    return found if isinstance(found, str) else f"{found:.3f}".rstrip("0").rstrip(".")


def differs(each: Comparison) -> bool:
    """Do wrong and right give other results, in the digits that are shown?"""
    return value(each.wrong) != value(each.right)


@claim
def shown(demonstration: Demonstration) -> str:
    """The first result that differs, as a title."""
    each = next((each for each in demonstration.numbers if differs(each)), None)
    if each is None:
        return "Wrong and right give the same here."
    wrong, right = (_short(value(found)) for found in (each.wrong, each.right))
    return sentence(f"{each.what}: {right} with the right code, {wrong} with the wrong code")


def compared(demonstration: Demonstration) -> list[Row]:
    """The table of what wrong and right give."""
    return [
        Row(sentence(each.what).rstrip("."), "", value(each.wrong), value(each.right), differs(each))
        for each in demonstration.numbers
    ]


def _short(text: str) -> str:
    """An error by its name alone."""
    error = re.match(r"(\w+Error): ", text)
    return f"an error ({error[1]})" if error else text
