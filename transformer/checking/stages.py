"""The first stage of attention at which a piece of code and the reference differ, and by how much at every stage.

The code is recorded step by step (`recording.py`). A stage of the reference counts as reached where one of those steps
has its numbers, in whatever order of the axes. The first stage after the last one reached is where the code diverges.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from transformer.attention import MultiHeadAttention, masked_softmax
from transformer.checking.recording import Recording, Step
from transformer.checking.verdict import Stage
from transformer.mistakes import STAGES
from transformer.positions import NO_POSITIONS, PositionalEncoding

AXES = {"batch": "the sequences", "head": "the heads", "query": "the queries", "key": "the keys", "d": "the features"}
_SCORES, _VECTORS = ("batch", "head", "query", "key"), ("batch", "head", "query", "d")
CLOSE = 1e-4
"""A difference up to this share of the largest number is rounding."""
_HIDDEN = 20.0
"""A score this far below all visible ones hides: e^-20 is 2e-9."""


@dataclass(frozen=True)
class Divergence:
    """All stages, the first at which the code differs, and in words what is wrong there."""

    stages: tuple[Stage, ...]
    first: str | None
    """None where the result is the same."""
    sentence: str
    specific: bool = False
    """Does the sentence say what is done there, and not only that it differs?"""


Reference = Mapping[str, Sequence[Tensor]]
"""The reference's tensors, by stage."""


def diverge(compute: Callable[[], Any], reference: Reference) -> Divergence:
    """Record what our own code computes, and compare it with the stages of the reference.

    `compute` returns the output, or a tuple that begins with it, as `lambda: mistake.wrong(query, key, value, mask)`
    beside `of_attention(query, key, value, mask)`. A student's code is compared by `check`, in a process of its own.
    """
    with torch.no_grad(), Recording() as recording:
        found = compute()
    return compare(recording.steps, found[0] if isinstance(found, tuple) else found, reference)


def of_attention(
    query: Float[Tensor, "batch head query d_head"],
    key: Float[Tensor, "batch head key d_head"],
    value: Float[Tensor, "batch head key d_head"],
    visible: Bool[Tensor, "#batch #head query key"] | None = None,
    bias: Float[Tensor, "head query key"] | None = None,
) -> dict[str, list[Tensor]]:
    """The stages of the formula; `visible` is True where a query may see a key, `bias` is added to the scores."""
    scores = query @ key.transpose(-2, -1)
    scaled = scores / math.sqrt(query.shape[-1]) + (0.0 if bias is None else bias)
    pattern = masked_softmax(scaled, visible)
    found = {"scores": [scores], "scaled": [scaled]}
    if visible is not None:
        found["masked"] = [scaled.masked_fill(~visible, -math.inf)]
    return {**found, "softmax": [pattern], "values": [pattern @ value]}


@torch.no_grad()
def of_module(
    module: MultiHeadAttention,
    x: Float[Tensor, "batch position d_model"],
    visible: Bool[Tensor, "#batch #head position position"] | None = None,
    positions: PositionalEncoding = NO_POSITIONS,
) -> dict[str, list[Tensor]]:
    """The stages of our multi-head attention."""
    layers = (module.query, module.key, module.value)
    projected = [layer(x).unflatten(-1, (module.n_heads, module.d_head)) for layer in layers]
    split = [each.transpose(1, 2).contiguous() for each in projected]
    query, key = (positions.rotate(each) for each in split[:2])
    attention = of_attention(query, key, split[2], visible, positions.bias(x.shape[1], x.shape[1]))
    found = {"projected": projected, "split": split, **attention}
    merged = found["values"][0].transpose(1, 2).flatten(2)
    return {**found, "merged": [merged], "out": [module.out(merged)]}


def compare(steps: Sequence[Step], result: Tensor, reference: Reference) -> Divergence:
    """What `steps` computed beside the stages of the reference, whose last is that of `result`."""
    values = [step.value.float() for step in steps] + [result.float()]
    stages, places = [], {}
    begin = 0
    for name in (each for each in STAGES if each in reference):
        wanted = reference[name]
        found = [_closest(values, target, name, begin) for target in wanted]
        reached = all(
            place is not None and gap <= CLOSE * _size(target)
            for (gap, place), target in zip(found, wanted, strict=True)
        )
        gaps = [gap for gap, place in found if place is not None]
        place = found[0][1]
        shape = None if place is None else tuple(values[place].shape)
        if reached:
            places[name] = max(place for _, place in found if place is not None)
            begin = min(place for _, place in found if place is not None)
        stages.append(Stage(name, max(gaps) if gaps else None, shape, tuple(wanted[0].shape), reached))
    last = max((number for number, stage in enumerate(stages) if stage.reached), default=-1)
    if last == len(stages) - 1:
        final = stages[-1].name
        (returned, _), target = _closest(values[-1:], reference[final][0], final), reference[final][0]
        if returned <= CLOSE * _size(target):
            return Divergence(tuple(stages), None, "Every stage agrees with the reference.")
        return Divergence(
            tuple(stages), final, "Every stage agrees with the reference, but something else is returned."
        )
    after = stages[last + 1 :]
    first = next((stage for stage in after if stage.difference is not None), after[-1])
    if first.name == "scores" and "split" in reference and (words := _never_turned(values, reference)):
        return Divergence(tuple(stages), "split", words, specific=True)
    if first.name == "scores" and "scaled" in reference and _factor(values, reference["scores"][0]) is not None:
        first = next(stage for stage in after if stage.name == "scaled")
    looks = {"scaled": _scale, "masked": _mask, "softmax": _softmax, "split": _split, "merged": _merge}
    look = looks.get(first.name)
    sentence = look(steps, values, reference) if look is not None else ""
    return Divergence(tuple(stages), first.name, sentence or _words(first), specific=bool(sentence))


def gathered(steps: Sequence[Step], heads: int) -> list[Step]:
    """The steps of heads that were computed one after the other, put together: an axis of heads behind the batch.

    Steps alike, of one name and shape, that are there as many times as heads, or so many times that, are those of the
    heads in turn.
    """
    alike: dict[tuple[str, torch.Size, str], list[int]] = {}
    for place, step in enumerate(steps):
        alike.setdefault((step.name, step.value.shape, "parameter" if step.parameter else ""), []).append(place)
    turns = {
        places[first]: places[first :: len(places) // heads]
        for places in alike.values()
        if len(places) % heads == 0 and steps[places[0]].value.dim() > 1
        for first in range(len(places) // heads)
    }
    head = {place: first for first, places in turns.items() for place in places}
    found: list[Step] = []
    new: dict[int, int] = {}
    for place, step in enumerate(steps):
        if head.get(place, place) != place:
            continue
        new[place] = len(found)
        value = step.value if place not in turns else torch.stack([steps[one].value for one in turns[place]], dim=1)
        sources = tuple(_renamed(each, head, new) for each in step.sources)
        dim = step.dim if step.dim is None or place not in turns or step.dim == 0 else step.dim + 1
        found.append(Step(step.name, value, sources, dim))
    return found


def _renamed(source: str, head: Mapping[int, int], new: Mapping[int, int]) -> str:
    if not source.startswith("step "):
        return source
    place = int(source.split(" ")[1])
    place = head.get(place, place)
    return f"step {new[place]}" if place in new else ""


# --- the same numbers, in whatever order of the axes


def _size(target: Tensor) -> float:
    finite = target[torch.isfinite(target)]
    return max(1.0, float(finite.abs().max())) if finite.numel() else 1.0


def _merges(shape: Sequence[int], into: Sequence[int]) -> bool:
    """Does putting neighbouring axes of one shape together give the other?"""
    sizes, left = list(shape), 1
    for size in into:
        while left < size or (left == 1 and sizes and sizes[0] == 1 and size == 1):
            if not sizes:
                return False
            left *= sizes.pop(0)
            if size == 1 and left == 1:
                break
        if left != size:
            return False
        left = 1
    return all(size == 1 for size in sizes)


def orders(value: Tensor, target: Tensor) -> list[tuple[int, ...]]:
    """The orders of the target's axes under which it has the value's shape, or that with neighbours put together."""
    if value.numel() != target.numel():
        return []
    every = itertools.permutations(range(target.dim()))
    return [order for order in every if _merges([target.shape[axis] for axis in order], value.shape)]


def gap(value: Tensor, target: Tensor, order: Sequence[int]) -> float:
    """The largest |difference| under an order of the axes. Two minus infinities are the same."""
    other = target.permute(*order).reshape(value.shape)
    differing = (value - other).abs()
    differing = torch.where(value == other, 0.0, differing)
    return float(differing.max()) if not differing.isnan().any() else math.inf


def _hidden_gap(value: Tensor, target: Tensor, order: Sequence[int]) -> float:
    """As `gap`; where the target is minus infinity a low number will do, and by how much it is too high counts."""
    other = target.permute(*order).reshape(value.shape)
    seen = torch.isfinite(other)
    if not seen.any() or value.isnan().any():
        return math.inf
    apart = float((value - other)[seen].abs().max())
    above = float(value[~seen].max() - (value[seen].min() - _HIDDEN)) if (~seen).any() else 0.0
    return max(apart, above)


def _closest(values: Sequence[Tensor], target: Tensor, name: str, begin: int = 0) -> tuple[float, int | None]:
    """The least gap of any tensor from a place on, and its place; None where none has such axes."""
    measure = _hidden_gap if name == "masked" else gap
    best: tuple[float, int | None] = (math.inf, None)
    for place in range(begin, len(values)):
        for order in orders(values[place], target):
            if name == "split" and values[place].shape[-1] != target.shape[-1]:
                continue  # the heads are still side by side
            found = measure(values[place], target, order)
            if best[1] is None or found < best[0]:
                best = (found, place)
    return best


def _factor(values: Sequence[Tensor], target: Tensor) -> float | None:
    """The number by which some tensor is the target; of several the last, where it is scaled."""
    found = None
    for value in values:
        for order in orders(value, target):
            other = target.permute(*order).reshape(value.shape)
            share = float((value * other).sum() / (other * other).sum().clamp(min=1e-12))
            if abs(share) > 1e-6 and gap(value, other * share, range(value.dim())) <= CLOSE * abs(share) * _size(other):
                found = share
    return found


# --- words


def _words(first: Stage) -> str:
    """That the first stage that differs does, and by how much, where more is not known."""
    if first.difference is None or first.difference == math.inf:
        return f"The result differs; the code has no step of its own for the stage “{first.name}”."
    what = {
        "projected": "The projected queries, keys and values differ",
        "split": "The heads are not split as the reference splits them",
        "scores": "The scores are not query · key",
        "scaled": "The scaled scores differ",
        "masked": "The masked scores differ",
        "softmax": "The pattern differs",
        "values": "The output is not the values weighed by the pattern",
        "merged": "The heads are not merged as the reference merges them",
        "out": "The output projection differs",
    }[first.name]
    return f"{what}: by up to {first.difference:.3g}."


def _scale(steps: Sequence[Step], values: Sequence[Tensor], reference: Reference) -> str:
    share = _factor(values, reference["scores"][0])
    if share is None:
        return ""
    d_head = _d_head(reference)
    heads = reference["scores"][0].shape[1] if reference["scores"][0].dim() == 4 else 1
    divisor = 1 / share
    should = f"they should be divided by √d_head = √{d_head}"
    known = {
        1.0: "not divided at all",
        float(d_head): f"divided by {d_head} = d_head, as if the scale were applied twice",
        math.sqrt(d_head * heads): f"divided by √{d_head * heads} = √d_model",
        1 / math.sqrt(d_head): "multiplied by √d_head",
    }
    for number, words in known.items():
        if math.isclose(divisor, number, rel_tol=1e-3):
            return f"The scores are {words}; {should}."
    return f"The scores are divided by {divisor:.4g}; {should}."


def _d_head(reference: Reference) -> int:
    scores, scaled = reference["scores"][0], reference["scaled"][0]
    return round(float((scores * scores).sum() / (scaled * scaled).sum()))


def _mask(steps: Sequence[Step], values: Sequence[Tensor], reference: Reference) -> str:
    scaled, masked = reference["scaled"][0], reference["masked"][0]
    visible = torch.isfinite(masked)
    softmax = [step for step in steps if step.name in ("softmax", "log_softmax")]
    for step in softmax:
        source = _source(step, values)
        if source is None:
            continue
        for order in orders(source, scaled):
            plain = scaled.permute(*order).reshape(source.shape)
            seen = visible.expand_as(scaled).permute(*order).reshape(source.shape)
            if gap(source, plain, range(source.dim())) <= CLOSE * _size(plain):
                return "The mask does not reach the scores before the softmax: it is applied later, or not at all."
            changed = (source - plain).abs() > CLOSE * _size(plain)
            if torch.equal(changed, ~seen):
                number = float(source[changed].max())
                return (
                    f"Hidden scores are only {number:.4g} before the softmax; they should be −inf, or as low as −1e9."
                )
            if torch.equal(changed, seen):
                return "The mask is the wrong way round: it hides what it should show, and shows what it should hide."
            square = scaled.shape[-1] == scaled.shape[-2]
            turned = visible.expand_as(scaled).transpose(-2, -1) if square else visible
            if square and torch.equal(changed, ~turned.permute(*order).reshape(source.shape)):
                return "The mask is transposed: its rows should be the queries, its columns the keys."
    return ""


def _source(step: Step, values: Sequence[Tensor]) -> Tensor | None:
    number = next((each.split(" ")[1] for each in step.sources if each.startswith("step ")), None)
    return None if number is None else values[int(number)]


def _softmax(steps: Sequence[Step], values: Sequence[Tensor], reference: Reference) -> str:
    for step in (each for each in steps if each.name in ("softmax", "log_softmax") and each.dim is not None):
        source, names = _source(step, values), _SCORES
        if source is None or source.shape != step.value.shape:
            continue
        for name in ("masked", "scaled"):
            if name not in reference:
                continue
            target = reference[name][0]
            measure = _hidden_gap if name == "masked" else gap
            for order in orders(source, target):
                if measure(source, target, order) > CLOSE * _size(target) or source.dim() != target.dim():
                    continue
                over = names[order[step.dim or 0]]
                if over != "key":
                    place = order.index(names.index("key"))
                    where = "the last" if place == source.dim() - 1 else f"dimension {place}"
                    return (
                        f"Softmax runs over dimension {step.dim}, {AXES[over]}; it should run over the keys, {where}."
                    )
    return ""


def _split(steps: Sequence[Step], values: Sequence[Tensor], reference: Reference) -> str:
    if "projected" not in reference:
        return ""
    projected, split = reference["projected"][0], reference["split"][0]
    viewed = projected.reshape(split.shape)
    if any(
        value.shape == viewed.shape and gap(value, viewed, range(viewed.dim())) <= CLOSE * _size(viewed)
        for value in values
    ):
        return (
            "The heads are split by `view` without the transpose: view as [batch, position, head, d_head] first, and "
            "then transpose positions and heads."
        )
    return ""


def _never_turned(values: Sequence[Tensor], reference: Reference) -> str:
    """Do the heads of one position look at each other?"""
    query, key = (each.transpose(1, 2) for each in reference["split"][:2])
    scores = query @ key.transpose(-2, -1)
    if _factor([value for value in values if value.shape == scores.shape], scores) is None:
        return ""
    return (
        "Positions and heads are never transposed: the heads of one position look at each other, and no position looks "
        "at another; bring the heads before the positions with transpose(1, 2)."
    )


def _merge(steps: Sequence[Step], values: Sequence[Tensor], reference: Reference) -> str:
    merged, z = reference["merged"][0], reference["values"][0]
    viewed = z.reshape(merged.shape)
    if any(
        value.shape == viewed.shape and gap(value, viewed, range(viewed.dim())) <= CLOSE * _size(viewed)
        for value in values
    ):
        return (
            "The heads are merged without the transpose: [batch, head, position, d_head] is read as [batch, position, "
            "d_model]; transpose heads and positions first."
        )
    return ""
