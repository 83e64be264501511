"""What one attention was computed of, read off a recording: queries, keys, values, scores and what comes of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer.checking.projections import LINEAR
from transformer.checking.recording import SCALED, WEIGHED, Step
from transformer.checking.stages import orders

PRODUCTS = (*LINEAR, SCALED, WEIGHED)
"""Functions of which a product of two tensors comes."""


@dataclass(frozen=True)
class Operands:
    """The steps whose product the scores are, and those that the pattern weighs, as they come: their axes lie anyhow.

    Each is a place among the steps; what a step is made of can be followed from there.
    """

    query: int
    key: int
    value: int
    scores: int
    """What softmax reads."""
    softmax: int
    scaling: tuple[int, ...]
    """The steps between the product and the softmax."""


def sources_of(step: Step) -> list[int]:
    """The places of the steps that a step reads."""
    return [int(each.split(" ")[1]) for each in step.sources if each.startswith("step ")]


def made_of_inputs(steps: Sequence[Step]) -> list[bool]:
    """Of each step, whether anything that the code was handed is in it."""
    found: list[bool] = []
    for step in steps:
        found.append(any(each.startswith("input ") for each in step.sources) or any(found[i] for i in sources_of(step)))
    return found


def find_operands(steps: Sequence[Step]) -> Operands | None:
    """The operands of the first softmax in a recording; None where there is none, or no product of two before it."""
    softmax = next((place for place, step in enumerate(steps) if step.name == "softmax"), None)
    if softmax is None or not sources_of(steps[softmax]):
        return None
    (scores, *_), fed = sources_of(steps[softmax]), made_of_inputs(steps)
    between: list[int] = []
    product: list[int] = []
    left = [scores]
    while left:
        place = left.pop(0)
        read = [each for each in sources_of(steps[place]) if fed[each]]
        if steps[place].name in PRODUCTS and len(read) == 2:
            product = product or read
            between += [place] if steps[place].name == SCALED else []
        elif steps[place].name not in LINEAR:
            between.append(place)
            left += [each for each in read if each not in (*between, *left)]
    after, value = {softmax}, None
    for place in range(softmax + 1, len(steps)):
        read = sources_of(steps[place])
        if not after.intersection(read):
            continue
        if steps[place].name not in PRODUCTS:
            after.add(place)
        elif others := [each for each in read if each not in after and fed[each]]:
            value = others[0]
            break
    if not product or value is None:
        return None
    return Operands(product[0], product[1], value, scores, softmax, tuple(between))


def before(place: int, steps: Sequence[Step]) -> Iterator[Tensor]:
    """What a step is made of, and what that is made of, the latest first, it itself left out."""
    left, met = sources_of(steps[place]), set()
    while left:
        one = max(left)
        left = [each for each in left if each != one]
        if one not in met:
            met.add(one)
            yield steps[one].value
            left += sources_of(steps[one])


def laid_out(value: Tensor, shape: Sequence[int]) -> Iterator[Tensor]:
    """A tensor with its axes in the order of a shape, in every way in which they may be meant."""
    met: list[tuple[int, ...]] = []
    for order in orders(value, torch.empty(tuple(shape), device="meta")):
        back = tuple(order.index(axis) for axis in range(len(shape)))
        turned = value.reshape([shape[axis] for axis in order]).permute(back)
        strides = tuple(stride for stride, size in zip(turned.stride(), shape, strict=True) if size > 1)
        if strides not in met:
            met.append(strides)
            yield turned.float()
