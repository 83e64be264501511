"""What can be known of a reversal when order is not: the ceiling of a model without positions. No PyTorch.

Attention without positions is a weighted sum over a set: permute what a query sees, and it says the same. One causal
layer without positions therefore knows two things when it predicts: which tokens came before it, as a bag, and which
one stands at its own place. (Two causal layers can know more: the first can count how many tokens a place sees, and so
tell places apart, Haviv et al., 2022, "Transformer Language Models without Positional Encodings Still Learn Positional
Information".)
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from functools import cache, reduce

import numpy as np
from jaxtyping import Float


@cache
def bag_ceiling(length: int, symbols: int) -> Float[np.ndarray, "answer"]:
    """The best accuracy at each place of the answer y1..yn, given the bag of what was read and the token read last.

    For `[x1..xn, SEP, y1..yn]` with y the reversal of x, the x uniform and independent. Before it says y(k+1), the
    model has read x1..xn and y1..yk: each symbol t = a + 2b times, b of them said, and a still to be said. It sees t,
    not a and b. All questions being equally likely, a split into a and b weighs as much as there are orders of it,

        (n-k)! / Π a!  ·  k! / Π b!

    of which a share b(q) / k ends with q, the token read last, and a share a(s) / (n-k) goes on with s. The best guess
    is the s that weighs most. The sum over splits is a coefficient of a product of polynomials, one for each symbol.
    """
    return np.array([_accuracy(length, said, symbols) for said in range(length)])


def _accuracy(length: int, said: int, symbols: int) -> float:
    """Of the answer's next symbol, when `said` of its symbols are read already."""
    right = 0.0
    for bag in _bags(length + said, symbols):
        kinds = Counter(bag)
        alike = math.factorial(symbols) / math.prod(math.factorial(n) for n in kinds.values())
        if said:
            right += alike * sum(n * _most(bag, said, bag.index(t)) for t, n in kinds.items() if t > 1)
        else:
            right += alike * _most(bag, said, None)
    orders = math.factorial(length - said - 1) * math.factorial(max(0, said - 1))
    return float(orders * right / symbols**length)


def _most(bag: tuple[int, ...], said: int, last: int | None) -> float:
    """Weight of the symbol that most likely comes next in a bag, when its symbol number `last` was read last."""
    candidates = {(times, place == last): place for place, times in enumerate(bag)}
    return max(_weight(bag, said, last, place) for place in candidates.values())


def _weight(bag: tuple[int, ...], said: int, last: int | None, then: int) -> float:
    """Sum of Π 1/(a! b!) · b(last) · a(then) over all splits of a bag of which `said` tokens are said."""
    factors = [_factor(times, place == last, place == then) for place, times in enumerate(bag)]
    product = reduce(np.convolve, factors)
    return float(product[said]) if said < len(product) else 0.0


@cache
def _factor(times: int, last: bool, then: bool) -> Float[np.ndarray, "said"]:
    """One symbol's polynomial: at power b, what it adds when b of its copies are said and a = times - 2b are not."""
    splits = [(times - 2 * b, b) for b in range(times // 2 + 1)]
    return np.array([a**then * b**last / (math.factorial(a) * math.factorial(b)) for a, b in splits], dtype=np.float64)


def _bags(total: int, symbols: int, most: int | None = None) -> Iterator[tuple[int, ...]]:
    """The ways to share `total` tokens among symbols, the most frequent first: which symbol is which is left open."""
    if symbols == 0:
        if total == 0:
            yield ()
        return
    for times in range(min(total, total if most is None else most), -1, -1):
        for others in _bags(total - times, symbols - 1, times):
            yield (times, *others)
