"""Attention to which something is added: found from the numbers on its way, where no reference of ours has all."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import torch
from torch import Tensor

from transformer.checking import stages
from transformer.checking.added import (
    LENGTH_ONE,
    Change,
    Terms,
    find_change,
    find_terms,
    find_weighed,
    trained_numbers,
    turned_alike,
)
from transformer.checking.around import ATTENTION_ALONE, Around, what_is_around
from transformer.checking.faults import Refused
from transformer.checking.findings import mistakes, same
from transformer.checking.kinds.module.student import Student, causal, enough
from transformer.checking.operands import Operands, before, find_operands, laid_out, made_of_inputs, sources_of
from transformer.checking.projections import ADDING, ANY, FIRST, LINEAR, NONE, OTHERS, Projections, follow, triples
from transformer.checking.recording import SCALED, Step
from transformer.foundation.words import listed
from transformer.mistakes import AttentionMistake, Mistake

LOWEST = 1000.0
"""A score beyond it is hidden."""
MOST = 96
"""Sequences on which it is tried at most."""
OFF = 0.2
"""By which share a scale may be off where gains of norms are in it that are not known exactly."""
LENGTHS = (5, 17)
"""Positions with which it is tried as well."""
BIASED = (*ADDING, SCALED)
"""Steps that may add a bias to the scores."""
PLACED = "What is added to the scores depends on the places of query and key"
RELATIVE = re.compile(r"relative|rel_?pos|shaw|skew", re.IGNORECASE)
"""Names of what should depend on the distance."""
NAMES = ("queries", "keys", "values")


@dataclass(frozen=True)
class Found:
    """Queries, keys and values as the code has them, [batch, head, position, d_head], and what made them."""

    operands: tuple[Tensor, Tensor, Tensor]
    changes: tuple[Change, Change, Change]
    blocks: tuple[int, int, int]
    """Which of the projections each is made of."""
    tiled: tuple[bool | None, bool | None, bool | None]
    """Is one head repeated beside the others, and not beside itself? None where none is repeated."""
    packing: str = ""
    swapped: bool = False
    """Is what stands first in the product taken for the keys?"""


@dataclass
class Explained:
    """What is right about it and what is added, or what is wrong, or what is not known."""

    added: bool = False
    """Is anything added to attention?"""
    also: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    unknown: str = ""
    bias: tuple[Tensor, Tensor, bool, bool] | None = None
    """A bias [head, query, key] alone, what is seen of it, whether it is trained, and whether scores are divided."""
    packing: str = ""
    around: tuple[str, ...] = ()
    mistake: type[Mistake] | None = None
    divergence: stages.Divergence | None = None
    refused: list[str] = field(default_factory=list)
    """What it could not be tried on."""


def enough_to_explain(student: Student, length: int, heads: Sequence[int]) -> Tensor:
    """x with so many sequences that what is added can be told from the scores of each two places."""
    width = student.width // min(heads)
    many = max(enough(student.width, length), length + 10, 3 * width + 12)
    sizes = {length, *heads, *(student.width // each for each in heads)}
    many = next(each for each in itertools.count(min(many, MOST)) if each not in sizes)
    return student.drawn(many, length, 41)


def explain(
    student: Student,
    x: Tensor,
    seen: Tensor | None,
    around: Around,
    heads: int,
    other: Tensor | None = None,
    flags: Mapping[str, Tensor] = MappingProxyType({}),
) -> Explained | None:
    """What the code does with x, held to attention; None where its queries, keys and values are not found.

    It may look at another sequence, which is handed over among the `flags` where it need not be. Raises Refused.
    """
    answer = student.ask(x, student.shown(seen), None if flags else other, flags=flags, record=True)
    output, steps = student.output(answer, x), list(answer.steps)
    own = NONE if around is not ATTENTION_ALONE else ANY if other is None else FIRST
    projections = follow(steps, around.read(x), heads, own)
    if sum(step.name == "softmax" for step in steps) == heads > 1:
        steps = stages.gathered(steps, heads)
    where = find_operands(steps)
    if where is None or not projections.parts:
        return None
    every = [projections]
    if other is not None:  # a query of x, and all else of the other
        looked_at = follow(steps, other, heads, OTHERS).parts
        every = [replace(projections, parts=(one, *looked_at)) for one in projections.parts]
    weights = list(trained_numbers(student.parameters))
    candidates = [(p, found) for p in every for found in _found(p, where, steps, weights)]
    explained: list[Explained] = []
    for p, found in candidates:
        for one in _held(found, p, where, steps, x, output, seen, around):
            if not one.wrong and not one.unknown:
                return one
            explained += [] if found.swapped else [one]
    return next((each for each in explained if each.wrong), next(iter(explained), None))


def _found(p: Projections, where: Operands, steps: Sequence[Step], weights: Sequence[Tensor]) -> Iterator[Found]:
    """Every way in which the operands are made of the projections: those first in which each has one of its own."""
    known: dict[tuple[int, int, bool], tuple[Tensor, Change, bool | None] | None] = {}
    number: dict[int, int] = {}
    kept = list(triples(p))

    def found(places: tuple[int, int, int], blocks: Sequence[Tensor], interleaved: bool, packing: str) -> Found | None:
        made = []
        for place, block in zip(places, blocks, strict=True):
            key = (place, number.setdefault(id(block), len(number)), interleaved)
            if key not in known:
                known[key] = _made_of(p, place, block, interleaved, steps, weights)
            if (one := known[key]) is None:
                return None
            made.append((*one, key[1]))
        operands, changes, tiled, numbers = zip(*made, strict=True)
        return Found(operands, changes, numbers, tiled, packing, swapped=places[0] != where.query)

    orders = ((where.query, where.key, where.value), (where.key, where.query, where.value))
    for (packing, triple), interleaved, places in itertools.product(kept, (False, True), orders):
        if (one := found(places, triple, interleaved, packing)) is not None:
            yield one
    for packing, triple in kept[:1]:
        for blocks in itertools.product(triple, repeat=3):
            if (
                len({id(each) for each in blocks}) == 2
                and (one := found(orders[0], blocks, False, packing)) is not None
            ):
                yield one


def _made_of(
    p: Projections, place: int, block: Tensor, interleaved: bool, steps: Sequence[Step], weights: Sequence[Tensor]
) -> tuple[Tensor, Change, bool | None] | None:
    """An operand with its axes in order, what makes it of a projection, and whether its heads are tiled."""
    batch, length = block.shape[:2]
    few = block.shape[-1] // p.d_head
    given = block.unflatten(-1, (p.d_head, few)).transpose(-2, -1) if interleaved else block.unflatten(-1, (few, -1))
    given = given.transpose(1, 2)
    raw = steps[place].value
    many = raw.numel() // max(1, batch * length * p.d_head)
    if many < few or many % few or raw.numel() != batch * many * length * p.d_head:
        return None
    for tiled in (False, True) if 1 < few < many else (False,):
        spread = _spread(given, many, tiled)
        between = [
            _spread(each, many, tiled)
            for step in before(place, steps)
            if step.numel() in (given.numel(), spread.numel())
            for each in laid_out(step, given.shape if step.numel() == given.numel() else spread.shape)
        ]
        for made in laid_out(raw, spread.shape):
            if (change := find_change(spread, made, between, weights)) is not None:
                repeated = tiled if 1 < few < p.n_heads else None
                return _spread(made, p.n_heads, False), change, repeated
    return None


def _spread(heads: Tensor, many: int, tiled: bool) -> Tensor:
    times = many // heads.shape[1]
    return heads.repeat(1, times, 1, 1) if tiled else heads.repeat_interleave(times, 1)


def _held(
    found: Found,
    p: Projections,
    where: Operands,
    steps: Sequence[Step],
    x: Tensor,
    output: Tensor,
    seen: Tensor | None,
    around: Around,
) -> Iterator[Explained]:
    """These operands held to attention, for each way in which the axes of the scores may be meant."""
    query, key, _ = found.operands
    shape = (len(query), p.n_heads, query.shape[2], key.shape[2])
    for scores in laid_out(steps[where.scores].value, shape):
        finite = (scores.abs() < LOWEST).all(0).all(0)
        visible = [torch.ones_like(finite)] if seen is None else [seen[0, 0]]
        if seen is None and finite.shape[0] == finite.shape[1]:  # a mask that is built in, and does not hide
            visible.append(causal(1, len(finite))[0, 0])
        for shown in visible:
            if (terms := find_terms(query, key, scores, shown)) is not None:
                mask = None if bool(shown.all()) else shown.expand(len(x), 1, -1, -1)
                yield _judged(found, terms, p, where, steps, x, output, mask, around)
                break


def _judged(
    found: Found,
    terms: Terms,
    p: Projections,
    where: Operands,
    steps: Sequence[Step],
    x: Tensor,
    output: Tensor,
    mask: Tensor | None,
    around: Around,
) -> Explained:
    explained = Explained(packing=found.packing)
    changed = any(each.words or each.fault for each in found.changes)
    explained.added = changed or bool(terms.words) or len(set(found.blocks)) < 3
    trained = _trained_between(where, steps)
    _judge_changes(found, explained)
    _judge_scale(found, terms, p.d_head, explained, trained)
    query, key, value = found.operands
    scaled = terms.scale[:, None, None] * (query @ key.mT).double() + terms.added
    expected = stages.of_attention(query, key, value, mask)
    expected |= {"scaled": [scaled.float()]}
    if mask is not None:
        expected["masked"] = [scaled.float().masked_fill(~mask, -math.inf)]
    pattern = expected.get("masked", expected["scaled"])[0].softmax(-1)
    z = pattern @ value
    expected |= {"softmax": [pattern], "values": [z]}
    handed = p.before if p.before is not None else output[..., : p.inner]
    _judge_terms(terms, trained, mask, explained, scaled_by_root=not _is_one(terms, found))
    weighed = _weighed(z, pattern, handed, p)
    if weighed is None:
        _diagnose(found, terms, expected, p, steps, handed, mask, explained)
        return explained
    explained.also += weighed
    explained.added = explained.added or bool(weighed)
    after = p.after if p.after is not None else handed
    padded = torch.nn.functional.pad(after, (0, x.shape[-1] - after.shape[-1]))
    made = next(
        (
            place
            for place, step in enumerate(steps)
            if step.value.numel() == padded.numel()
            and any(same(each, padded) for each in laid_out(step.value, padded.shape))
        ),
        len(steps),
    )
    layers = any(step.name in LINEAR and step.parameter for step in steps[made + 1 :])
    sums = [step.value for step in steps if step.name in ADDING and step.value.shape == output.shape]
    behind = what_is_around(x, padded, output, layers=layers, read=around.read(x), sums=sums)
    if behind is None:
        explained.unknown = (
            explained.unknown or "What is returned is more than its last layer gives, and was compared with nothing."
        )
    else:
        explained.around = (*around.words, *behind.words)
        explained.wrong += [behind.fault] if behind.fault else []
        explained.unknown = explained.unknown or behind.doubt
    return explained


def _weighed(z: Tensor, pattern: Tensor, handed: Tensor, p: Projections) -> list[str] | None:
    """What is added to the weighed values; None where what is handed on is something else."""
    merged = (
        handed.unflatten(-1, (p.n_heads, -1)).transpose(1, 2),
        handed.unflatten(-1, (-1, p.n_heads)).permute(0, 3, 1, 2),
    )
    for each in merged:
        if same(each, z):
            return []
    for each in merged:
        if find_weighed(pattern, each - z):
            return ["adds a vector of the distance to each value (relative positions, as in Shaw et al.)"]
    return None


def _judge_changes(found: Found, explained: Explained) -> None:
    query, key, value = found.changes
    for name, change in zip(NAMES, found.changes, strict=True):
        if change.fault:
            should = "over the numbers of a head" if change.norm else "by each position"
            explained.wrong.append(f"The {name} are {change.fault}; it should be {should}.")
    if len(set(found.blocks)) < 3:
        one, other = next(pair for pair in ((0, 1), (0, 2), (1, 2)) if found.blocks[pair[0]] == found.blocks[pair[1]])
        explained.wrong.append(
            f"The {NAMES[other]} are made of the projection of the {NAMES[one]}, and another projection is never read."
        )
    if found.tiled[1] is not None and found.tiled[1] != found.tiled[2]:
        explained.wrong.append(
            "The shared keys and the shared values are repeated in different orders, so that a head has the keys of "
            "one group and the values of another."
        )
    elif found.tiled[1]:
        explained.unknown = "It repeats shared keys and values as 0 1 0 1 …, and something is added to attention."
    if value.turns is not None and not value.fault:
        explained.wrong.append("The values are turned by their positions as well; only queries and keys should be.")
    elif value.words or not math.isclose(value.factor, 1.0, rel_tol=1e-3):
        explained.unknown = (
            explained.unknown
            or f"The values are {value.words or 'multiplied by a number'}, which was compared with nothing."
        )
    if not turned_alike(query, key) and not any(each.fault for each in found.changes):
        explained.wrong.append(
            "Queries and keys are not turned alike, so that their product does not depend on the distance alone."
        )
    if bool(query.norm) != bool(key.norm):
        which = "queries" if query.norm else "keys"
        explained.unknown = explained.unknown or f"Only the {which} are normalised. Both, or neither, would decide it."
    if query.words and query.words == key.words:
        explained.also.append(f"has queries and keys that are {query.words}")
    else:
        explained.also += [
            f"has {name} that are {each.words}" for name, each in zip(NAMES, (query, key), strict=False) if each.words
        ]


def _is_one(terms: Terms, found: Found) -> bool:
    """Are scores not divided at all?"""
    total = float(terms.scale.mean()) * found.changes[0].factor * found.changes[1].factor
    return math.isclose(total, 1.0, rel_tol=1e-3)


def _judge_scale(found: Found, terms: Terms, d_head: int, explained: Explained, trained: Sequence[Step]) -> None:
    """Are scores divided by √d_head, or where both are of length 1, multiplied by a temperature?"""
    query, key, _ = found.changes
    learned = any(step.name not in BIASED for step in trained)
    if query.norm == key.norm == LENGTH_ONE:
        times = terms.scale * query.factor * key.factor * d_head
        if learned:
            explained.also.append("multiplies the scores by a trained temperature")
        elif float(times.abs().min()) > 1.01:
            explained.also.append(f"multiplies the scores by {float(times.mean()):.3g}")
        else:
            explained.unknown = explained.unknown or (
                f"Queries and keys have the length 1, and their product is multiplied by {float(times.mean()):.3g}: "
                "the weights are nearly alike. A temperature that is trained, or above 1, would decide it."
            )
        return
    if learned:
        explained.also.append("multiplies the scores by a trained temperature")
        return
    total = float(terms.scale.mean()) * query.factor * key.factor
    exact = query.exact and key.exact
    if math.isclose(total * math.sqrt(d_head), 1.0, rel_tol=1e-3 if exact else OFF):
        return
    bias = terms.words and any(step.name in BIASED for step in trained)
    if math.isclose(total, 1.0, rel_tol=1e-3):
        if bias and terms.words[0].startswith("a bias") and not query.norm:
            return
        if query.norm and not query.fault:
            explained.unknown = explained.unknown or (
                f"The scores are not divided by √d_head = √{d_head}. The gains of the norms may stand for it, as in "
                "Gemma 3n; with the division it would be right."
            )
            return
    words = "not divided at all" if math.isclose(total, 1.0, rel_tol=1e-3) else f"divided by {1 / total:.4g}"
    explained.wrong.append(f"The scores are {words}; they should be divided by √d_head = √{d_head}.")


def _trained_between(where: Operands, steps: Sequence[Step]) -> list[Step]:
    """The steps between product and softmax that read what is made of weights alone."""
    fed = made_of_inputs(steps)

    def weights(place: int) -> bool:
        step = steps[place]
        return not fed[place] and (bool(step.parameter) or any(weights(each) for each in sources_of(step)))

    return [
        steps[place]
        for place in where.scaling
        if steps[place].value.numel() == steps[where.scores].value.numel()
        if steps[place].parameter or any(weights(each) for each in sources_of(steps[place]))
    ]


def _judge_terms(
    terms: Terms, trained: Sequence[Step], mask: Tensor | None, explained: Explained, *, scaled_by_root: bool
) -> None:
    if not terms.words:
        return
    if not terms.by_distance:
        explained.unknown = explained.unknown or (
            f"{PLACED}, and not on their distance alone: it was compared with nothing."
        )
        return
    bias = [each for each in terms.words if each.startswith("a bias")]
    if bias and len(terms.words) == 1:
        shown = torch.ones_like(terms.added[0], dtype=torch.bool) if mask is None else mask[0].expand_as(terms.added[0])
        is_trained = any(step.name in BIASED for step in trained)
        explained.bias = (terms.added[0].float(), shown, is_trained, scaled_by_root)
    else:
        explained.also.append(f"adds to the scores {listed(list(terms.words))}")


def _diagnose(
    found: Found,
    terms: Terms,
    expected: dict[str, list[Tensor]],
    p: Projections,
    steps: Sequence[Step],
    handed: Tensor,
    mask: Tensor | None,
    explained: Explained,
) -> None:
    """What is done to right scores that should not be: a mistake of the gallery, or the first stage that differs."""
    query, key, value = found.operands
    width = query.shape[-1]
    # What is added is written as more numbers of queries and keys: the gallery's mistakes know a product alone.
    more = torch.eye(key.shape[2], dtype=torch.float64).expand(*key.shape[:2], -1, -1)
    longer = torch.cat([terms.scale[:, None, None] * query.double(), terms.added], -1) * math.sqrt(width + key.shape[2])
    wider = torch.cat([key.double(), more], -1)
    # A mask that is built in and does not hide, as behind the softmax, is not known to be there.
    square = query.shape[2] == key.shape[2]
    masks = [mask] if mask is not None or not square else [None, causal(len(query), query.shape[2])]
    merged = (
        handed.unflatten(-1, (p.n_heads, -1)).transpose(1, 2),
        handed.unflatten(-1, (-1, p.n_heads)).permute(0, 3, 1, 2),
    )
    for each, visible in itertools.product(mistakes(AttentionMistake), masks):
        every = (
            torch.ones(len(query), 1, query.shape[2], key.shape[2], dtype=torch.bool) if visible is None else visible
        )
        try:
            wrong = each.wrong(longer.float(), wider.float(), value, every)[0]
        except (RuntimeError, TypeError, ValueError, AttributeError):
            continue
        if wrong.shape == value.shape and any(same(one, wrong) for one in merged):
            explained.mistake = each
    expected = {**expected, "merged": [expected["values"][0].transpose(1, 2).flatten(2)]}
    divergence = stages.compare(steps, handed, expected)
    pattern = expected["softmax"][0]
    known = [
        words
        for visible in masks
        for words, wrong in _after(pattern, expected["scaled"][0], value, visible)
        if any(same(one, wrong) for one in merged)
    ]
    if explained.mistake is not None or divergence.specific:
        explained.divergence = divergence
        explained.wrong.append(divergence.sentence)
    elif known:
        explained.wrong.append(known[0])
    elif not explained.wrong:
        explained.unknown = explained.unknown or (
            "The scores are right, and what is made of them is something else, which was compared with nothing."
        )


def _after(pattern: Tensor, scaled: Tensor, value: Tensor, mask: Tensor | None) -> Iterator[tuple[str, Tensor]]:
    """What is done wrong behind right scores, in words, and what it gives, [batch, head, query, d_head]."""
    if pattern.shape[-1] == pattern.shape[-2]:
        yield "The pattern is transposed where it weighs the values.", pattern.mT @ value
    if mask is not None:
        yield (
            "The mask is applied behind the softmax, and the weights of a query do not add up to 1: mask the scores.",
            scaled.softmax(-1).masked_fill(~mask, 0.0) @ value,
        )
    yield "Softmax is taken twice.", pattern.softmax(-1) @ value
    yield "All heads weigh their values by one pattern, the mean of theirs.", pattern.mean(1, keepdim=True) @ value


def explain_all(
    student: Student, x: Tensor, seen: Tensor | None, arounds: Sequence[Around], heads: Sequence[int]
) -> Explained | None:
    """What the code does besides attention, tried on more sequences, on other lengths, and on another sequence to look
    at; what is wrong with it, or not known, first. None where it cannot be followed.
    """
    x = enough_to_explain(student, x.shape[1], heads)
    mask = None if seen is None else student.mask(len(x), x.shape[1])
    tried = [
        (one, around, many)
        for many, around in itertools.product(heads, arounds)
        if (one := explain(student, x, mask, around, many)) is not None
    ]
    if not tried:
        return None
    right = next((each for each in tried if not each[0].wrong and not each[0].unknown), None)
    found, around, many = right or next((each for each in tried if each[0].wrong), tried[0])
    if found.unknown.startswith(PLACED) and RELATIVE.search(student.name):
        found.wrong.append(f"Its name says relative. {PLACED}, and not on their distance alone.")
    if right is None:
        return found

    def again(words: str, given: Tensor, other: Tensor | None = None, name: str = "") -> None:
        masks = (seen is not None or bool(student.window)) and other is None
        visible = student.mask(len(given), given.shape[1]) if masks else None
        flags = {name: student.turn(other)} if name and other is not None else {}
        try:
            one = explain(student, given, visible, around, many, other, flags)
        except Refused as refused:
            if refused.fatal:
                raise
            if other is None:
                found.refused.append(f"With {words}: {refused}")
            else:
                found.unknown = f"With {words}, which was compared with nothing: {refused}"
            return
        if one is not None and one.wrong:
            found.wrong += [f"With {words}: {each}" for each in one.wrong]
        elif one is None or one.unknown:
            found.unknown = f"With {words} it gives what was compared with nothing."

    for length in LENGTHS:
        again(f"{length} positions", enough_to_explain(student, length, [many]))
    if "mask" not in student.places and seen is not None:
        return found
    for length in (x.shape[1], x.shape[1] - 1):
        other = student.drawn(len(x), length, 42)
        if student.crossed:
            again(f"another sequence of {length} to look at", x, other)
        for name in (name for name, role in student.further.items() if role == "memory"):
            again(f"another sequence of {length} as {name}", x, other, name)
    return found
