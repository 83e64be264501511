"""A small function of the gallery that is none of the other kinds: does it give what the right one gives?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from transformer.checking.bench import Bench, Described, Local
from transformer.checking.faults import Refused
from transformer.checking.findings import Findings, same
from transformer.mistakes import MISTAKES, Mistake
from transformer.positions.sinusoidal import sinusoids


def _numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(6))


GIVEN: dict[str, Callable[[], tuple[Any, ...]]] = {
    "encoding-of-maximal-length": lambda: (_numbers(2, 5, 8), 9),
    "key-heads-tiled": lambda: (_numbers(2, 2, 5, 3), 4),
    "length-from-the-batch": lambda: (_numbers(1, 5, 8),),
    "matrix-never-written": lambda: (torch.full((5, 8), 7.0), sinusoids(torch.arange(5), 8).float()),
    "normal-draw": lambda: (1000, 0.5),
    "norm-by-std": lambda: (_numbers(2, 5, 8), _numbers(8), _numbers(8), 1e-5),
    "output-viewed-by-key-length": lambda: (_numbers(2, 3, 4, 5).softmax(-1), _numbers(2, 3, 5, 6)),
    "width-as-float": lambda: (_numbers(2, 5, 12), 3),
}
"""What the code of each mistake is given."""


def meant(described: Described) -> type[Mistake] | None:
    """The mistake of the gallery whose function has this name and these parameters."""
    names = [each.name for each in described.parameters if not each.optional]
    for name in GIVEN.keys() & set(MISTAKES.names()):
        mistake = MISTAKES[name]
        own = Local(mistake.right).describe()
        if mistake.function == described.name and names == [each.name for each in own.parameters if not each.optional]:
            return mistake
    return None


def judge(bench: Bench, described: Described) -> Findings:
    """Does it give what the right code gives, or what the mistake gives?"""
    mistake = None if described.is_class else meant(described)
    if mistake is None:
        raise Refused("The gallery of mistakes has no function of this name with these parameters.", fatal=True)
    given = GIVEN[mistake.name]()
    found, right, wrong = (_given(each, given) for each in (bench, Local(mistake.right), Local(mistake.wrong)))
    findings = Findings(tried=[f"the inputs of “{mistake.title}”"])
    if isinstance(found, str):
        findings.wrong.append(found)
    elif not _same(found, right):
        findings.wrong.append("It gives something else than the right code.")
    if findings.wrong and _same(found, wrong):
        findings.call_by_name(mistake)
    return findings


def _given(bench: Bench, given: tuple[Any, ...]) -> tuple[Tensor, ...] | str:
    """What the code gives, or the sentence that it raises; draws are the same for all."""
    try:
        return bench.call(given).values
    except Refused as refused:
        if refused.fatal:
            raise
        return str(refused)


def _same(one: tuple[Tensor, ...] | str, other: tuple[Tensor, ...] | str) -> bool:
    """Two errors are alike, whatever their words."""
    if isinstance(one, str) or isinstance(other, str):
        return isinstance(one, str) and isinstance(other, str)
    return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
