"""A positional encoding: a function that makes the table, a module that adds it, or one that turns queries and keys."""

from __future__ import annotations

import contextlib
import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from transformer.checking import signatures
from transformer.checking.bench import Bench, Described
from transformer.checking.faults import Refused
from transformer.checking.findings import Findings, mistakes, same, unlike
from transformer.foundation.words import counted
from transformer.mistakes import PositionsMistake
from transformer.positions import BASE, angles
from transformer.positions.sinusoidal import sinusoids

WIDTH, LENGTH, LONGEST = 12, 7, 32
BATCH = 3
SETTINGS = {"d_model": WIDTH, "n_ctx": LONGEST, "dropout": 0.0, "d_head": WIDTH, "n_heads": 1, "base": BASE}


def _waves(length: int, width: int) -> Tensor:
    return sinusoids(torch.arange(length), width).float()


def _halves(length: int, width: int) -> Tensor:
    angle = angles(torch.arange(length), width).float()
    return torch.cat([angle.sin(), angle.cos()], dim=-1)


def _cosines_first(length: int, width: int) -> Tensor:
    angle = angles(torch.arange(length), width).float()
    return torch.stack([angle.cos(), angle.sin()], dim=-1).flatten(1)


def _spaced(length: int, width: int) -> Tensor:
    """Wavelengths spaced so that the slowest is exactly 2π · base (tensor2tensor)."""
    pair = torch.arange(width // 2, dtype=torch.float64)
    rate = BASE ** (-pair / max(1, width // 2 - 1))
    angle = (torch.arange(length)[:, None] * rate).float()
    return torch.cat([angle.sin(), angle.cos()], dim=-1)


TABLES: dict[str, Callable[[int, int], Tensor]] = {
    "Sine and cosine alternate, as in the paper.": _waves,
    "All sines stand before all cosines.": _halves,
    "Each cosine stands before its sine.": _cosines_first,
    "All sines stand before all cosines, the slowest wave 10000 times as long as the first (tensor2tensor).": _spaced,
}


def judge(bench: Bench, described: Described) -> Findings:
    """Is it an encoding of positions? A fixed one is compared with the formula, any other is tried on its laws."""
    trained = False
    if described.is_class:
        trained = bool(bench.make(signatures.settings(described, SETTINGS)).parameters)
    called = [each.name for each in described.called_with if not each.optional]
    roles = [signatures.role(name, ("x", "n_ctx", "d_model", "query", "key")) for name in called]
    findings = Findings()
    turns = "query" in roles or re.search(r"rope|rotary|rotate", described.name.lower())
    if turns and 1 <= len(called) <= 2:
        _rotation(bench, len(called), findings)
    elif (not described.is_class and len(called) == 2) or roles[:1] in (["n_ctx"], ["d_model"]):
        _table(bench, roles, findings)
    elif len(called) == 1:
        _added(Adding(bench, described.is_class), trained, findings)
    else:
        raise Refused("An encoding is checked as a function of length and d_model, or of x.", fatal=True)
    return findings


def _which(table: Tensor) -> str:
    """The words for a known table [position, dimension]; empty for any other."""
    return next((words for words, make in TABLES.items() if same(table, make(*table.shape))), "")


def _name(table: Tensor, findings: Findings) -> None:
    """A table [batch, position, dimension], or one for all sequences, is none that is known. Which mistake is it?"""
    expected = _waves(LENGTH, WIDTH)
    for each in mistakes(PositionsMistake):
        wrong = each.wrong(torch.zeros(BATCH, LENGTH, WIDTH)).expand(BATCH, -1, -1)
        wrong = wrong.expand(-1, LENGTH, -1)
        if same(table.expand_as(wrong), wrong) and not findings.mistake:
            findings.call_by_name(each)
    apart = (~((table - expected).abs() <= 1e-4)).nonzero()  # what is no number is apart as well
    if not len(apart):
        findings.wrong.append("The table is that of the paper, but not for every x, or not in every call.")
        return
    place = tuple(int(each) for each in apart[0][-2:])
    cell = table[0][place] if table.dim() == 3 else table[place]
    findings.wrong.append(
        f"The table is not that of the paper: at position {place[0]}, dimension {place[1]} (from 0), it has "
        f"{float(cell):.4g} in place of {float(expected[place]):.4g}."
    )


# --- a table


def _table(bench: Bench, roles: Sequence[str], findings: Findings) -> None:
    def answered(length: int, width: int) -> Tensor:
        arguments = [width, length] if roles[:1] == ["d_model"] and len(roles) > 1 else [length, width]
        found = bench.call(arguments[: len(roles)]).values[0].float()
        if found.numel() == length * width:
            return found.reshape(length, width)
        raise Refused(f"For {length} positions of {width} numbers it returns the shape {list(found.shape)}.")

    findings.tried.append(f"{LENGTH} positions of {WIDTH} numbers")
    words = _which(answered(LENGTH, WIDTH))
    if not words:
        _name(answered(LENGTH, WIDTH), findings)
        return
    findings.conventions.append(words)
    for length, width in ((1, WIDTH), (LENGTH, 4), (2 * LENGTH, WIDTH), (60, 64)):
        size = f"{counted(length, 'position')} of {width} numbers"
        findings.try_it(size, lambda: unlike(answered(length, width), TABLES[words](length, width), size))  # noqa: B023
    findings.look_at(
        "an odd number of dimensions", lambda: "" if answered(LENGTH, 5).isfinite().all() else "It has NaN."
    )


# --- added to x


@dataclass
class Adding:
    """Code that adds an encoding to x, or gives what is to be added."""

    bench: Bench
    is_class: bool
    first: bool = False
    """Do positions come before the sequences of the batch?"""
    factor: float = 1.0
    """By what x is multiplied; 0 where it is left out."""

    def added(self, x: Tensor, **options: Any) -> Tensor:
        """What is added to x [batch, position, d_model]. Raises Refused."""
        given = self.order(x)
        found = self.bench.call([given], **options).values[0].float()
        if self.factor == 0.0:  # the table alone is spread over x
            with contextlib.suppress(RuntimeError):
                found = found.expand_as(given)
        if found.shape != given.shape:
            raise Refused(f"For the shape {list(given.shape)} it returns {list(found.shape)}.")
        return self.order(found - self.factor * given)

    def order(self, x: Tensor) -> Tensor:
        return x.transpose(0, 1) if self.first else x


def _added(student: Adding, trained: bool, findings: Findings) -> None:
    x = torch.randn(BATCH, LENGTH, WIDTH, generator=torch.Generator().manual_seed(3))
    findings.tried.append(f"{counted(BATCH, 'sequence')} of {LENGTH} positions and {WIDTH} numbers")
    refusals, likeliest = [], None
    right_if_first = False
    for factor, first in itertools.product((1.0, 0.0, math.sqrt(WIDTH)), (False, True)):
        student.first, student.factor = first, factor
        try:
            added = student.added(x)
            fixed = same(added, student.added(torch.zeros_like(x)))
        except Refused as refused:
            if refused.fatal:
                raise
            refusals.append(refused)
            continue
        if fixed and same(added, added[:1].expand_as(added)) and _which(added[0]):
            if first and factor == 0.0 and not student.is_class:
                right_if_first = True
                continue
            _fixed(student, x, _which(added[0]), findings)
            return
        if (fixed and likeliest is None) or (likeliest is None and factor == 1.0):
            likeliest = (factor, first)
    if likeliest is None:
        _other_lengths(student, findings, refusals[0])
        return
    student.factor, student.first = likeliest
    added = student.added(x)
    laws = [sentence for faulty, sentence in _laws(student, x) if faulty]
    if trained and not laws:
        findings.conventions.append("The vectors are trained: they are not compared with a formula.")
        return
    _name(added, findings)
    findings.wrong[1:1] = laws
    if right_if_first:
        findings.wrong.append("It is right if x is [position, batch, d_model]; here it is [batch, position, d_model].")


def _other_lengths(student: Adding, findings: Findings, refused: Refused) -> None:
    """It refuses x. Does it take one as long as it was made for, or as long as there are sequences?"""
    cases = (
        ((BATCH, LONGEST), "It takes no sequence that is shorter than the longest.", "encoding-of-maximal-length"),
        (
            (LENGTH, LENGTH),
            "It takes the length from the batch: x.shape[0] for x.shape[1].",
            "length-from-the-batch",
        ),
    )
    student.factor, student.first = 1.0, False
    for (batch, length), sentence, name in cases:
        try:
            student.added(torch.zeros(batch, length, WIDTH))
        except Refused:
            continue
        findings.wrong += [sentence, str(refused)]
        findings.call_if_there(name)
        return
    raise Refused(str(refused), fatal=True)


def _runs_batch_first(student: Adding, x: Tensor) -> bool:
    """Does it take x as [batch, position, d_model] as well, without an error?"""
    student.first = False
    try:
        student.added(x)
    except Refused as refused:
        if refused.fatal:
            raise
        return False
    finally:
        student.first = True
    return True


def _fixed(student: Adding, x: Tensor, words: str, findings: Findings) -> None:
    order = "[position, batch, d_model]" if student.first else "[batch, position, d_model]"
    findings.conventions += [words, f"x is {order}."]
    if student.first and _runs_batch_first(student, x):
        findings.notes.append(
            "The table is cut by the first axis of x. Where x is [batch, position, d_model] nothing fails, and every "
            "token of a sequence gets the same position: cut it by `x.size(1)` there."
        )
    if student.factor == 0.0:
        findings.conventions.append("It returns what is to be added.")
    elif student.factor != 1.0:
        findings.conventions.append("It multiplies x by √d_model before it adds.")

    def case(size: str, each: Tensor) -> None:
        expected = TABLES[words](each.shape[1], WIDTH).expand_as(each)
        findings.try_it(size, lambda: unlike(student.added(each), expected, size))

    case("one token", x[:, :1])
    case("one sequence", x[:1])
    case("3 positions", x[:, :3])
    case("20 positions", x.repeat(1, 3, 1)[:, :20])
    findings.try_it("the same call twice", lambda: _twice(student, x))
    findings.try_it("inputs that must not change", lambda: _in_place(student, x))
    findings.look_at("half precision (bfloat16)", lambda: _half(student, x))


def _twice(student: Adding, x: Tensor) -> str:
    return "" if same(student.added(x), student.added(x, seed=1)) else "Two calls differ: is dropout on?"


def _in_place(student: Adding, x: Tensor) -> str:
    return "The code changes x in place." if student.bench.call([student.order(x)]).changed else ""


def _half(student: Adding, x: Tensor) -> str:
    found = student.bench.call([student.order(x)], precision="bfloat16").values[0]
    if not student.is_class or found.dtype == torch.bfloat16:
        return ""
    return "In bfloat16 the output is not bfloat16: `register_buffer` lets the table move with the module."


def _laws(student: Adding, x: Tensor) -> Iterator[tuple[bool, str]]:
    """What holds of any encoding that is added, and the sentence that it does not."""
    table = student.added(x)
    yield not bool(table.isfinite().all()), "What is added is not finite."
    alone = same(table, student.added(torch.zeros_like(x)))
    yield not alone, "What is added depends on x, and not on the position alone."
    one = same(table, table[:1].expand_as(table))
    yield not one, "The sequences of a batch get different vectors: the encoding runs along the batch."
    alike = same(table, table[:, :1].expand_as(table))
    yield alike, "All positions get the same vector: nothing tells their order."
    shorter = same(student.added(x[:, :3]), table[:, :3])
    yield not shorter, "The first three positions get other vectors when the sequence is shorter."


# --- turned


def _rotation(bench: Bench, arguments: int, findings: Findings) -> None:
    """Rotary positions: lengths stay, and the product of a query and a key depends on their distance alone."""
    generator = torch.Generator().manual_seed(4)
    one = torch.randn(WIDTH, generator=generator)
    other = torch.randn(WIDTH, generator=generator)

    def turned(vector: Tensor, length: int = LENGTH) -> Tensor:
        x = vector.expand(2, 2, length, WIDTH).clone()
        return bench.call([x] * arguments).values[0].float()

    findings.tried.append(f"one vector at each of {LENGTH} positions")
    a, b = turned(one), turned(other)
    for each in (a, b):
        if each.shape != (2, 2, LENGTH, WIDTH):
            raise Refused(f"For the shape [2, 2, {LENGTH}, {WIDTH}] it returns {list(each.shape)}.")
    if not same(a.norm(dim=-1), one.norm().expand(2, 2, LENGTH)):
        findings.wrong.append("The vectors change their length: each pair of dimensions should be turned by an angle.")
    products = (a @ b.transpose(-2, -1))[0, 0]
    for distance in range(-2, 3):
        diagonal = products.diagonal(distance)
        if not same(diagonal, diagonal[:1].expand_as(diagonal)):
            findings.wrong.append("The product of a query and a key does not depend on their distance alone.")
            break
    if same(a, a[:, :, :1].expand_as(a)):
        findings.wrong.append("No vector is turned, so the order of the tokens is not told.")
    findings.try_it(
        "one token", lambda: "" if same(turned(one, 1), a[:, :, :1]) else "One token alone is turned otherwise."
    )
    if not findings.wrong:
        findings.conventions.append("Queries and keys are turned (rotary positions).")
        angle = angles(torch.arange(LENGTH), WIDTH).float()
        x, y = one[0::2], one[1::2]
        neighbours = torch.stack(
            [x * angle.cos() - y * angle.sin(), x * angle.sin() + y * angle.cos()], dim=-1
        ).flatten(1)
        if same(a[0, 0], neighbours):
            findings.conventions.append("A pair is two neighbouring dimensions, as in the paper.")
        x, y = one.chunk(2)
        halves = torch.cat([x * angle.cos() - y * angle.sin(), x * angle.sin() + y * angle.cos()], dim=-1)
        if same(a[0, 0], halves):
            findings.conventions.append("A pair is a dimension of the first half and one of the second, as in Llama.")
