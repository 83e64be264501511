"""What a module does besides attention: a norm before it, a residual connection, a norm or a layer after it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from transformer.checking.findings import same
from transformer.checking.recording import Step

EPSILONS = (1e-5, 1e-6, 1e-12, 0.0)
"""What is added to a variance, in the norms of published code."""


Change = Callable[[Tensor], Tensor]
Sum = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Around:
    """What is done to x before attention reads it, and to what attention makes of it."""

    words: tuple[str, ...]
    """Each part, as "a residual connection"."""
    read: Change
    write: Sum
    """From x and what attention makes, [batch, position, d_model] each, the output."""
    fault: str = ""
    """The sentence that this is wrong around attention; empty where it is not."""
    doubt: str = ""
    """The sentence that it is right or wrong by what it is meant to be."""


def _same(x: Tensor) -> Tensor:
    return x


def _attended(x: Tensor, attended: Tensor) -> Tensor:
    return attended


SUMS: tuple[tuple[tuple[str, ...], Sum], ...] = (((), _attended), (("a residual connection",), torch.add))
ATTENTION_ALONE = Around((), _same, _attended)
RESIDUAL, LAYER_NORM, RMS_NORM, LAYER = "a residual connection", "a LayerNorm", "an RMSNorm", "a layer after its last"
ADDED_TO_ITSELF = "What attention makes is added to itself, and x is lost: a residual connection adds x."
TAKEN_AWAY = "What attention makes is taken away from x: a residual connection adds it."
OF_THE_NORM = (
    "The attention is right. What is added to it is x as it was normalised, and x itself is lost: some published "
    "models do so (BLOOM by a setting), and in a layer with a norm before it that is a mistake. Adding x would decide "
    "it."
)


def what_is_around(
    x: Tensor, attended: Tensor, output: Tensor, *, layers: bool, read: Tensor, sums: Iterable[Tensor] = ()
) -> Around | None:
    """What makes the output of x and of what attention makes of it; None where that is nothing that is known.

    Whether there are more `layers` is known: without one, twice what attention makes is no layer of it. `read` is x as
    attention reads it, and `sums` are the code's own: behind a norm, a factor is not to be seen.

    Gains and biases of a norm, and the weights of a layer, are read off the numbers; another norm, or a sum with
    something else, has none that fit. All are [batch, position, d_model], with more positions than a layer has weights
    for each of its results.
    """
    for words, add in SUMS:
        base = add(x, attended)
        if same(base, output):
            return Around(words, _same, add)
    if any(same(each, 2 * attended) for each in sums) or any(same(output, n * attended) for n in (2, 3)):
        return Around((), _same, _attended, fault=ADDED_TO_ITSELF)
    if same(output, x - attended):
        return Around((), _same, torch.sub, fault=TAKEN_AWAY)
    if same(output, read + attended):
        return Around((), _same, _attended, doubt=OF_THE_NORM)
    for words, add in SUMS:
        base = add(x, attended)
        for name, transform in _fitted(base, output, layers=layers):
            return Around((*words, name), _same, partial(_after_the_sum, add, transform))
    for name, transform in _fitted(attended, output - x, layers=layers):
        return Around((name, RESIDUAL), _same, partial(_before_the_sum, transform))
    return None


def _after_the_sum(add: Sum, transform: Change, x: Tensor, attended: Tensor) -> Tensor:
    return transform(add(x, attended))


def _before_the_sum(transform: Change, x: Tensor, attended: Tensor) -> Tensor:
    return x + transform(attended)


def _fitted(base: Tensor, output: Tensor, *, layers: bool) -> Iterator[tuple[str, Change]]:
    """The norm, or else the layer, that makes one of the other."""
    norms = list(_normalised(base, output))
    yield from norms
    layer = _linear(base, output)
    if layers and not norms and same(layer(base), output):
        yield LAYER, layer


def _normalised(base: Tensor, output: Tensor) -> Iterator[tuple[str, Change]]:
    """The norm that makes one of the other."""
    for epsilon in EPSILONS:
        for name, normalise in ((LAYER_NORM, _standardise), (RMS_NORM, _divide_by_root)):
            scale = _affine(normalise(base, epsilon), output)
            if same(scale(normalise(base, epsilon)), output):
                yield name, partial(_norm, normalise, epsilon, scale)
                return


def _norm(normalise: Callable[[Tensor, float], Tensor], epsilon: float, scale: Change, x: Tensor) -> Tensor:
    return scale(normalise(x, epsilon))


def _standardise(x: Tensor, epsilon: float) -> Tensor:
    return _divide_by_root(x - x.mean(-1, keepdim=True), epsilon)


def _divide_by_root(x: Tensor, epsilon: float) -> Tensor:
    return x / (x.pow(2).mean(-1, keepdim=True) + epsilon).sqrt()


def _affine(x: Tensor, y: Tensor) -> Change:
    """The gain and the bias of each feature that make y of x best."""
    flat, results = x.flatten(0, 1).double(), y.flatten(0, 1).double()
    centred, mean = flat - flat.mean(0), results.mean(0)
    gain = (centred * (results - mean)).sum(0) / centred.pow(2).sum(0).clamp(min=1e-12)
    bias = mean - gain * flat.mean(0)
    return lambda x: (x.double() * gain + bias).float()


def _linear(x: Tensor, y: Tensor) -> Change:
    """The layer that makes y of x best, by least squares."""
    flat = x.flatten(0, 1).double()
    rows = torch.cat([flat, torch.ones(len(flat), 1, dtype=torch.float64)], dim=1)
    found = torch.linalg.lstsq(rows, y.flatten(0, 1).double(), driver="gelsy").solution
    return lambda x: (x.double() @ found[:-1] + found[-1]).float()


def read_from(source: Tensor, x: Tensor, other: Tensor) -> bool:
    """Is what a layer reads another sequence, or x and that one behind each other, each as it comes or normalised?"""
    places = x.shape[1]
    pieces = {
        other.shape[1]: [[(source, other)]],
        places + other.shape[1]: [
            [(source[:, :places], x), (source[:, places:], other)],
            [(source[:, -places:], x), (source[:, :-places], other)],
        ],
    }.get(source.shape[1], [])
    return any(all(same(one, of) or any(_normalised(of, one)) for one, of in each) for each in pieces)


def is_normalised(x: Tensor, made: Tensor) -> bool:
    """Is one a norm of the other?"""
    return any(_normalised(x, made))


def norm_before(steps: Sequence[Step], x: Tensor) -> Around | None:
    """The norm by which x is read, where the first thing that a module does is to normalise it; else None."""
    for step in steps:
        if step.value.shape == x.shape:
            for name, transform in _normalised(x, step.value):
                return Around((f"{name} before it",), transform, _attended)
        if step.parameter and "norm" not in step.name:
            return None
    return None
