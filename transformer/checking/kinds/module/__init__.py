"""A multi-head attention module: compared with ours, which is given the student's own projections."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from collections import Counter
from collections.abc import Mapping, Set
from typing import Any

from torch import Tensor

from transformer.checking import laws, signatures
from transformer.checking.bench import CONFIG, Bench, Described
from transformer.checking.faults import Refused
from transformer.checking.findings import Findings
from transformer.checking.kinds.module.conventions import find_masks, find_order, take_one_sequence
from transformer.checking.kinds.module.edges import try_edges, try_paths, twice
from transformer.checking.kinds.module.pooled import judge_pooling
from transformer.checking.kinds.module.reference import find_reference
from transformer.checking.kinds.module.student import (
    BATCH,
    D_MODEL,
    GRID,
    HEADS,
    LENGTH,
    ONE_HEAD,
    SETTINGS,
    SHORT,
    WIDEST,
    WINDOW,
    Student,
    enough,
    student_of,
)
from transformer.foundation.words import counted

TURNING = re.compile(r"(^|[._])(cos|sin|inv)|freq|rope|rotary|rotat", re.IGNORECASE)
"""Names of what turns queries and keys."""


def judge(bench: Bench, described: Described) -> Findings:
    """Is it multi-head attention? Its conventions, its laws, and the reference with the same weights."""
    if not described.is_class:
        raise Refused("A multi-head attention is checked as a class.", fatal=True)
    roles = {signatures.role(each.name, tuple(SETTINGS)) for each in described.parameters}
    told = {"n_heads"} <= roles or any(each.name in CONFIG for each in described.parameters)
    settings = signatures.settings(described, SETTINGS | ({} if told else ONE_HEAD))
    student, x, findings = _begun(bench, described, settings, roles, told=told)
    if x is None:
        return findings
    findings.tried.append("the same call twice")
    if drops := twice(student.run(x), student.run(x, seed=1)):
        findings.wrong.append(drops)
        return findings
    seen = find_masks(student, x, findings)
    if seen is None and not findings.wrong:
        switch = any(student.flags.values())
        laws.require_causal(described.name, findings, takes_mask="mask" in student.places, switch=switch)
    reference = find_reference(student, x, seen, findings)
    if not findings.wrong:
        try_edges(student, reference, seen, findings)
        try_paths(student, reference, x, seen, findings)
    if not findings.wrong and "n_groups" in roles and student.counted:
        _other_groups(student, described, settings, x, seen, findings)
    if findings.wrong:
        findings.conventions = [
            each.replace("The attention is right; it also", "It also") for each in findings.conventions
        ]
    return findings


def _begun(
    bench: Bench, described: Described, settings: Mapping[str, Any], roles: Set[str], *, told: bool
) -> tuple[Student, Tensor | None, Findings]:
    """The module, made with the check's sizes or else with its own; x in which it runs; and how it takes that.

    x is None where it takes one sequence alone, which is found to be wrong. Raises Refused where it does not run.
    """
    refused: list[tuple[Refused, Student, Tensor]] = []
    own = signatures.needed(described, settings)
    attempts = list(itertools.product([settings] if own == settings else [settings, own], (LENGTH, SHORT)))
    windows = [name for name in settings if signatures.role(name, tuple(SETTINGS)) == "window"]
    if windows:  # of a picture, so wide and so high
        attempts += [({**settings, **dict.fromkeys(windows, GRID)}, math.prod(GRID)), (dict(settings), WINDOW**2)]
    for given, length in attempts:
        ours = given is not own
        student = student_of(bench, described)
        if (grid := given is not own and given is not settings) and student.places.get("mask") not in student.needed:
            student.places.pop("mask", None)
        student.grid, student.told_window = grid, student.told_window and not grid
        student.heads, student.counted = (HEADS, True) if told and ours else (1, False)
        student.length, student.told_length = length, ours and "n_ctx" in roles
        try:
            made = bench.make(given)
            student.parameters, student.windows = made.parameters, made.windows
            student.turns = any(map(TURNING.search, (described.name, *made.buffers, *student.positions)))
        except Refused as problem:
            if problem.fatal:
                raise
            refused.append((problem, student, student.drawn(BATCH, length, 1)))
            continue
        for width in _widths(student.parameters, told=ours and bool(roles & {"d_model", "d_out"})):
            student, findings = dataclasses.replace(student, width=width), Findings()
            x = student.drawn(enough(width, length), length, 1)
            try:
                find_order(student, x, findings)
            except Refused as problem:
                if problem.fatal:
                    raise
                refused.append((problem, student, x))
            else:
                return student, x, findings
    first, student, x = refused[0]
    findings = Findings()
    student.parameters = bench.make(settings).parameters
    if judge_pooling(student, findings):
        return student, None, findings
    take_one_sequence(student, x, findings, first)
    return student, None, findings


def _widths(parameters: Mapping[str, Tensor], *, told: bool) -> list[int]:
    """How many numbers a vector of x may have: as many as it was told, or as most of its layers read."""
    if told:
        return [D_MODEL]
    matrices = [each for each in parameters.values() if each.dim() == 2]
    read = Counter(each.shape[-1] for each in matrices) or Counter([D_MODEL])
    made = Counter(each.shape[0] for each in matrices)
    every = [size for sizes in (read, made) for size, _ in sizes.most_common(2)]
    return list(dict.fromkeys(each for each in every if each <= WIDEST))


def _other_groups(
    student: Student,
    described: Described,
    settings: Mapping[str, Any],
    x: Tensor,
    seen: Tensor | None,
    findings: Findings,
) -> None:
    """Is it right, too, where all heads share their keys and values, and where none do?"""
    names = [each.name for each in described.parameters if signatures.role(each.name, tuple(SETTINGS)) == "n_groups"]
    for groups in (1, student.heads):
        words = f"{counted(groups, 'group')} of heads"

        def attempt(groups: int = groups, words: str = words) -> str:
            student.parameters = student.bench.make({**settings, **dict.fromkeys(names, groups)}).parameters
            found = Findings()
            find_reference(student, x, seen, found)
            return f"With {words}: {found.wrong[0]}" if found.wrong else ""

        findings.try_it(words, attempt)
