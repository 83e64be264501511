"""A multi-head attention module: compared with ours, which is given the student's own projections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from transformer.checking import laws, signatures
from transformer.checking.bench import CONFIG, Bench, Described
from transformer.checking.faults import Refused
from transformer.checking.findings import Findings
from transformer.checking.kinds.module.conventions import find_masks, find_order, take_one_sequence
from transformer.checking.kinds.module.edges import try_edges, try_paths
from transformer.checking.kinds.module.reference import find_reference
from transformer.checking.kinds.module.student import (
    BATCH,
    D_MODEL,
    HEADS,
    LENGTH,
    ONE_HEAD,
    SETTINGS,
    Student,
    student_of,
)
from transformer.foundation.words import counted


def judge(bench: Bench, described: Described) -> Findings:
    """Is it multi-head attention? Its conventions, its laws, and the reference with the same weights."""
    if not described.is_class:
        raise Refused("A multi-head attention is checked as a class.", fatal=True)
    roles = {signatures.role(each.name, tuple(SETTINGS)) for each in described.parameters}
    configured = any(each.name in CONFIG for each in described.parameters)
    one_head = not configured and "n_heads" not in roles
    values = SETTINGS | (ONE_HEAD if one_head else {})
    settings = signatures.settings(described, values)
    student, findings = student_of(bench, described), Findings()
    student.heads, student.counted = (1, False) if one_head else (HEADS, True)
    made = bench.make(settings)
    student.parameters = made.parameters
    if not configured and not roles & {"d_model", "d_out"} and settings.keys():
        student.width = _width(made.parameters)
    x = student.drawn(max(BATCH, 5 * student.width // (4 * LENGTH)), LENGTH, 1)
    try:
        find_order(student, x, findings)
    except Refused as refused:
        take_one_sequence(student, x, findings, refused)
        return findings
    seen = find_masks(student, x, findings)
    if seen is None and not findings.wrong:
        switch = any(student.flags.values())
        laws.require_causal(described.name, findings, takes_mask="mask" in student.places, switch=switch)
    reference = find_reference(student, x, seen, findings)
    if not findings.wrong:
        try_edges(student, reference, seen, findings)
        try_paths(student, reference, x, seen, findings)
    if not findings.wrong and "n_groups" in roles:
        _other_groups(student, described, settings, x, seen, findings)
    return findings


def _width(parameters: Mapping[str, Tensor]) -> int:
    """Numbers that most of its layers read, where no setting says how many they are."""
    read = Counter(each.shape[-1] for each in parameters.values() if each.dim() == 2)
    return read.most_common(1)[0][0] if read else D_MODEL


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
