"""What is done to queries and keys besides attention, found from the numbers before it and behind it.

Each `Way` of CHANGES is tried in turn: it is fitted to what went in and what came out, and counts where nothing is left
over. Tensors are [batch, head, position, d_head].
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from transformer.checking.around import EPSILONS
from transformer.checking.findings import TOLERANCE, same

BATCH, HEAD, POSITION, D = range(4)


@dataclass(frozen=True)
class Change:
    """What was done to queries, keys or values."""

    words: str = ""
    """As "normalised (LayerNorm)"; empty for nothing but a factor."""
    factor: float = 1.0
    """By which they are longer than what `words` say."""
    exact: bool = True
    """Is the factor known exactly, and not up to the gains of a norm?"""
    norm: str = ""
    """The norm, or empty."""
    turns: Tensor | None = None
    """By what each pair of numbers is multiplied at each place, [position, pair], complex."""
    fault: str = ""
    """What is wrong with it, as the end of "They are …"."""


Way = Callable[[Tensor, Tensor, Sequence[Tensor]], Change | None]
"""From what went in, what came out and the module's parameters."""


def _longer(given: Tensor, made: Tensor, weights: Sequence[Tensor]) -> Change | None:
    """Multiplied by a number; to each head a vector may be added."""
    mean, result = given.mean((BATCH, POSITION), keepdim=True), made.mean((BATCH, POSITION), keepdim=True)
    factor = float(((given - mean) * (made - result)).sum() / (given - mean).pow(2).sum().clamp(min=1e-12))
    if abs(factor) < 1e-6 or not same((made - result) / factor, given - mean):
        return None
    alike = same(made / factor, given)
    return Change("" if alike else "moved by a vector for each head", factor)


NORMS: dict[str, tuple[tuple[int, ...], str]] = {
    "": ((D,), ""),
    ", over all heads": ((HEAD, D), ""),
    " over the heads": ((HEAD,), "normalised over the heads"),
    " over the positions": ((POSITION,), "normalised over the positions"),
    " over the positions and all heads": ((HEAD, POSITION, D), "normalised over positions and heads together"),
    " over positions and numbers": ((POSITION, D), "normalised over the positions of a head together"),
    " over the batch": ((BATCH,), "normalised over the sequences of the batch"),
}
"""The axes over which a norm may run, and what is wrong with those over which it should not."""
FEW, ROUGH = 5, 0.02
"""Sequences on which each norm is tried first, and the share by which it may be off there."""
LAYER_NORM, RMS_NORM, LENGTH_ONE = "LayerNorm", "RMSNorm", "length 1"


def _normalised(given: Tensor, made: Tensor, weights: Sequence[Tensor]) -> Change | None:
    """Normalised, with a gain and a bias for each number."""
    for (where, (axes, fault)), name in itertools.product(NORMS.items(), (LAYER_NORM, RMS_NORM)):
        width = math.prod(given.shape[axis] for axis in axes)
        if width == 1 or _fits(given[:FEW], made[:FEW], axes, name, 0.0, ROUGH) is None:
            continue
        for epsilon in EPSILONS:
            if (gain := _fits(given, made, axes, name, epsilon, TOLERANCE[torch.float32])) is None:
                continue
            factor, exact = _factor(gain, weights)
            if name == RMS_NORM and math.isclose(factor, width**-0.5, rel_tol=0.2):
                name = LENGTH_ONE
            return Change(f"normalised ({name}{where})", factor, exact, name, fault=fault)
    return None


def _fits(
    given: Tensor, made: Tensor, axes: tuple[int, ...], name: str, epsilon: float, tolerance: float
) -> Tensor | None:
    """The gain with which a norm makes one of the other; None where it does not, up to a share of its size."""
    if BATCH in axes and len(given) == FEW:
        return torch.ones(1)  # of the whole batch it is told
    centred = given - given.mean(axes, keepdim=True) if name == LAYER_NORM else given
    plain = centred / (centred.pow(2).mean(axes, keepdim=True) + epsilon).sqrt()
    gain, bias = _affine(plain, made)
    size = gain.abs().mean().clamp(min=1e-9)
    return gain if float((gain * plain + bias - made).abs().max() / size) <= tolerance * 3 else None


def _affine(plain: Tensor, made: Tensor) -> tuple[Tensor, Tensor]:
    """The gain and the bias of each head's numbers that make one of the other best."""
    over = (BATCH, POSITION)
    mean, result = plain.mean(over, keepdim=True), made.mean(over, keepdim=True)
    centred = plain - mean
    gain = (centred * (made - result)).sum(over, keepdim=True) / centred.pow(2).sum(over, keepdim=True).clamp(min=1e-12)
    return gain, result - gain * mean


def _factor(gain: Tensor, weights: Sequence[Tensor]) -> tuple[float, bool]:
    """How much longer a norm's gain makes it than the module's own weights say, and whether that is exact."""
    heads, width = gain.shape[HEAD], gain.shape[D]
    plain = gain[0, :, 0]
    for weight in (torch.ones(1), *weights):
        for each in (weight, 1 + weight):
            if each.numel() in (1, width, heads * width, heads):
                shaped = (
                    each.reshape(-1, 1)
                    if each.numel() == heads != width
                    else each.reshape(-1, min(each.numel(), width))
                )
                if bool((shaped.abs() < 1e-6).any()):
                    continue
                ratio = plain / shaped
                if bool(((ratio - ratio.mean()).abs() < 1e-3 * ratio.mean().abs()).all()):
                    return float(ratio.mean()), True
    return float(plain.mean()), False


PAIRS: tuple[Callable[[Tensor], Tensor], ...] = (
    lambda x: torch.view_as_complex(x.contiguous().unflatten(-1, (-1, 2))),
    lambda x: torch.complex(*x.contiguous().chunk(2, -1)),
)
"""Which two numbers are turned together: neighbours, or one of each half."""
PAIRED = ("pairs of neighbours", "pairs from both halves")


def _turned(given: Tensor, made: Tensor, weights: Sequence[Tensor]) -> Change | None:
    """Turned, pair by pair, by an angle for each position; or else for each head or sequence, which is wrong."""
    if given.shape[D] % 2:
        return None
    for pairs, words in zip(PAIRS, PAIRED, strict=True):
        one, other = pairs(given), pairs(made)
        for axis, fault in (
            (POSITION, ""),
            (HEAD, "turned by the head’s index"),
            (BATCH, "turned by the sequence’s index"),
        ):
            over = tuple({BATCH, HEAD, POSITION} - {axis})
            turn = (other * one.conj()).sum(over, keepdim=True) / one.abs().pow(2).sum(over, keepdim=True).clamp(
                min=1e-12
            )
            size = turn.abs().mean()
            if size < 1e-6 or not bool(((turn.abs() / size - 1).abs() < 1e-3).all()):
                continue
            if same(torch.view_as_real(turn * one / size), torch.view_as_real(other / size)):
                turns = (turn / size).flatten(0, 2) if axis == POSITION else None
                return Change(f"turned (rotary positions, {words})", float(size), turns=turns, fault=fault)
    return None


CHANGES: tuple[Way, ...] = (_longer, _normalised, _turned)
"""What may be done to queries and keys, tried in turn, alone or two behind each other."""


def find_change(given: Tensor, made: Tensor, between: Sequence[Tensor], weights: Sequence[Tensor]) -> Change | None:
    """What makes one of the other: a single change, or two with one of the steps `between`; None where nothing does."""
    given, made = given.double(), made.double()
    for way in CHANGES:
        if (found := way(given, made, weights)) is not None:
            return found
    for middle in (each.double() for each in between):
        if same(middle, given):
            break  # what is older made the projection
        if (turn := _turned(middle, made, weights)) is not None:
            norm = _normalised(given, middle, weights)
        elif (turn := _turned(given, middle, weights)) is not None:
            norm = _normalised(middle, made, weights)
        else:
            continue
        if norm is not None:
            both = replace(norm, turns=turn.turns, factor=norm.factor * turn.factor, fault=norm.fault or turn.fault)
            return replace(both, words=f"{norm.words} and {turn.words}")
    return None


def turned_alike(query: Change, key: Change) -> bool:
    """Does the product of what both give depend on the distance alone?"""
    if query.turns is None or key.turns is None:
        return (query.turns is None) == (key.turns is None)
    if query.turns.shape != key.turns.shape:
        return True  # of two sequences of other lengths
    products = query.turns[:, None] * key.turns[None].conj()
    return all(
        bool((diagonal - diagonal[:, :1]).abs().max() < 1e-3)
        for distance in range(1 - len(products), len(products))
        if (diagonal := products.diagonal(distance)).numel()
    )


# --- what is added to the scores, and to what the pattern weighs


@dataclass(frozen=True)
class Terms:
    """What scores hold besides the product of queries and keys."""

    scale: Tensor
    """By what the product is multiplied, for each head."""
    added: Tensor
    """[batch, head, query, key]"""
    words: tuple[str, ...] = ()
    by_distance: bool = True


def find_terms(query: Tensor, key: Tensor, scores: Tensor, shown: Tensor) -> Terms | None:
    """The scale and what is added to it: numbers, or products of a query or a key with vectors, for each two places.

    `shown` says which scores to look at, [query, key]. None where scores are something else.
    """
    query, key, scores = query.double(), key.double(), scores.double()
    product = query @ key.mT
    seen = torch.where(shown, product, 0.0)
    scale = (seen * torch.where(shown, scores, 0.0)).sum((0, 2, 3)) / seen.pow(2).sum((0, 2, 3)).clamp(min=1e-12)
    plain = scale[:, None, None] * product
    if same(torch.where(shown, plain, 0.0), torch.where(shown, scores, 0.0)) and bool((scale.abs() > 1e-6).all()):
        return Terms(scale, torch.zeros_like(scores))
    batch, width = len(query), query.shape[-1]
    if batch < 2 * width + 6:
        return None
    pairs = torch.cat(
        [
            product[..., None],
            query[:, :, :, None].expand(-1, -1, -1, key.shape[2], -1),
            key[:, :, None].expand(-1, -1, query.shape[2], -1, -1),
            torch.ones(*product.shape, 1, dtype=torch.float64),
        ],
        dim=-1,
    ).permute(1, 2, 3, 0, 4)
    wanted = torch.where(shown, scores, 0.0).permute(1, 2, 3, 0)[..., None]
    found = torch.linalg.lstsq(pairs, wanted).solution
    if not same(torch.where(shown[..., None, None], pairs @ found, 0.0), wanted):
        return None
    factors = found[..., 0, 0]
    scale = torch.stack([each[shown].median() for each in factors])
    if not all(
        bool(((one[shown] - middle).abs() <= 1e-3 * middle.abs()).all())
        for one, middle in zip(factors, scale, strict=True)
    ):
        return None
    if bool((scale.abs() < 1e-6).any()):
        return None
    added = torch.where(shown, (pairs @ found)[..., 0].permute(3, 0, 1, 2) - scale[:, None, None] * product, 0.0)
    of_query, of_key, alone = found[..., 1 : 1 + width, 0], found[..., 1 + width : 1 + 2 * width, 0], found[..., -1:, 0]
    words, by_distance = [], True
    names = {
        "a product of each query with a vector of the distance (relative positions, as in Shaw et al.)": of_query,
        "a product of each key with a vector of the distance": of_key,
        "a bias by distance, the same for every x": alone,
    }
    for name, each in names.items():
        if each is not of_key:  # what is the same in a whole row changes no pattern
            each = each - each.diagonal(0, 1, 2).permute(0, 2, 1)[:, :, None] if _square(shown) else each
        each = torch.where(shown[..., None], each, 0.0)
        if float(each.abs().max()) > 1e-3 * max(1.0, float(scores[..., shown].abs().max())) * 0.1:
            words.append(name)
            by_distance = by_distance and depends_on_distance(each, shown)
    return Terms(scale, added, tuple(words), by_distance)


def _square(shown: Tensor) -> bool:
    return shown.shape[0] == shown.shape[1] and bool(shown.diagonal().all())


def depends_on_distance(vectors: Tensor, shown: Tensor) -> bool:
    """Are vectors [head, query, key, numbers] the same wherever keys are as far away, in a row or a square of them?"""
    queries, keys = shown.shape
    row, column = torch.arange(queries)[:, None], torch.arange(keys)[None]
    distances = [column - row]
    side = math.isqrt(keys)
    if side * side == keys == queries:
        distances.append((column // side - row // side) * 1000 + column % side - row % side)
    return any(_same_at(vectors, shown, distance) for distance in distances)


def _same_at(vectors: Tensor, shown: Tensor, distance: Tensor) -> bool:
    for each in distance.unique():
        there = vectors[:, shown & (distance == each)]
        if there.shape[1] and not same(there, there[:, :1].expand_as(there)):
            return False
    return True


def find_weighed(pattern: Tensor, rest: Tensor) -> bool | None:
    """Is what is left of the weighed values a vector for each two places, weighed as well; is it one by distance?

    None where it is neither. `rest` is [batch, head, query, d_head].
    """
    pattern, rest = pattern.double(), rest.double()
    rows, wanted = pattern.permute(1, 2, 0, 3), rest.permute(1, 2, 0, 3)
    if len(pattern) < pattern.shape[-1] + 4:
        return None
    shown = pattern.amax((0, 1)) > 1e-9
    found = torch.linalg.lstsq(rows, wanted, driver="gelsd").solution
    if not same(rows @ found, wanted):
        return None
    return depends_on_distance(torch.where(shown[..., None], found, 0.0), shown)


def trained_numbers(parameters: Mapping[str, Tensor]) -> Iterator[Tensor]:
    """Parameters that may be gains: vectors, and what has one axis that is longer than 1 or two."""
    yield from (each.detach().double() for each in parameters.values() if each.numel() <= 4096)
