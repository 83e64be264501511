"""Attention that makes one vector, or a few, of a sequence: by a query that is trained, or by one of its tokens."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer.checking.around import is_normalised
from transformer.checking.bench import Answer
from transformer.checking.faults import Refused
from transformer.checking.findings import Findings, repeats, same
from transformer.checking.kinds.module.student import GRID, LENGTH, Student
from transformer.checking.operands import laid_out, made_of_inputs, sources_of
from transformer.checking.projections import LINEAR
from transformer.checking.recording import Step
from transformer.foundation.foreign import shortened
from transformer.foundation.words import counted

MANY = 16
"""Sequences: so many that no axis is taken for another."""
MOST = 4
"""Vectors that are made of a sequence, at most: fewer than it has positions."""
FEW = 40
"""Results on the way that are looked at, at most, where one is looked for."""
HANDED: dict[str, Callable[[Tensor], Tensor]] = {
    "x is [batch, position, d_model].": lambda x: x,
    "x is [position, batch, d_model].": lambda x: x.transpose(0, 1),
    "x is a picture, [batch, d_model, height, width].": lambda x: x.transpose(1, 2).unflatten(-1, GRID),
}


@dataclass(frozen=True)
class Pooled:
    """What a recording shows of it."""

    x: Tensor
    answer: Answer
    output: Tensor
    """[batch, vector, numbers]"""

    @property
    def steps(self) -> Sequence[Step]:
        return self.answer.steps


def judge_pooling(student: Student, findings: Findings) -> bool:
    """Say what is right or wrong with code that makes few vectors of a sequence; false where it does not."""
    if "x" not in student.places:
        return False
    for words, write in HANDED.items():
        x = student.drawn(MANY, LENGTH, 1)
        try:
            pooled = _asked(student, write, x)
        except Refused as refused:
            if refused.fatal:
                raise
            continue
        if pooled is None or not any(step.name == "softmax" for step in pooled.steps):
            continue
        findings.tried.append(f"{MANY} sequences of {LENGTH} positions, d_model {student.width}")
        findings.conventions.append(words)
        findings.conventions.append(f"It makes {counted(pooled.output.shape[1], 'vector')} of a sequence.")
        _judge(student, write, pooled, findings)
        return True
    return False


def _asked(student: Student, write: Callable[[Tensor], Tensor], x: Tensor, **options: bool | int) -> Pooled | None:
    """What it makes of x, [batch, vector, numbers]; None where that is no few vectors of each sequence."""
    name = student.places["x"]
    answer = student.bench.call([write(x)], [name], record=True, **options)  # type: ignore[arg-type]
    found = answer.values[0].float()
    if found.dim() == 2:
        found = found[:, None]
    if found.dim() == 3 and found.shape[0] != len(x):
        found = found.transpose(0, 1)
    if found.dim() != 3 or len(found) != len(x) or not 0 < found.shape[1] <= MOST or found.shape[2] == 1:
        return None
    return Pooled(x, answer, found)


def _judge(student: Student, write: Callable[[Tensor], Tensor], pooled: Pooled, findings: Findings) -> None:
    x, kept = pooled.x, len(pooled.x) // 2
    changed = student.drawn(len(x), x.shape[1], 2)
    changed[kept] = x[kept]
    other = _asked(student, write, changed)
    again = _asked(student, write, x, seed=1)
    if other is None or again is None or not repeats(pooled.output, again.output):
        findings.wrong.append("Two calls with the same inputs differ: dropout is on also in evaluation.")
        return
    if not repeats(pooled.output[kept], other.output[kept]):
        findings.wrong.append("The sequences of a batch mix: another sequence beside it changes what a sequence gives.")
        return
    if same(pooled.output, other.output):
        findings.wrong.append("Nothing of x is in what it returns.")
        return
    name = student.places["x"]
    unused = student.bench.call([write(x)], [name], gradients=True).unused
    unused = tuple(each for each in unused if each in student.parameters and student.parameters[each].dim() > 1)
    softmax = next(place for place, step in enumerate(pooled.steps) if step.name == "softmax")
    heads = [student.heads] if student.counted else [1]
    found = [
        one
        for many in dict.fromkeys([*heads, 1])
        for pattern in _patterns(pooled, softmax, many)
        for one in _weighing(pooled, pattern, softmax)
    ]
    if not found:
        findings.undecided = (
            "What it weighs by its softmax was not found, so it was compared with nothing. Written as layers of x, and "
            "a product of the weights with one of them, it would be decided."
        )
    else:
        _judge_weighing(student, pooled, softmax, found, findings)
    if unused and not findings.wrong:
        findings.wrong.append(f"No gradient reaches the weight {shortened(unused[0])}: it takes no part in the output.")


def _patterns(pooled: Pooled, softmax: int, heads: int) -> Iterator[Tensor]:
    """What softmax gives as [batch, head, vector, position]; one more position where a vector stands before them."""
    value, x = pooled.steps[softmax].value, pooled.x
    for length in (x.shape[1], x.shape[1] + 1):
        each = len(x) * heads * length
        if value.numel() % each == 0 and value.numel() // each <= MOST:
            yield from laid_out(value, (len(x), heads, value.numel() // each, length))


@dataclass(frozen=True)
class Weighing:
    """Vectors that a pattern weighs."""

    pattern: Tensor
    weighed: int
    """The step that made them, or −1 for x itself."""
    z: Tensor
    """[batch, vector, numbers]"""
    returned: bool
    """Is that what is returned, or what a last layer makes of it?"""


def _vectors(pooled: Pooled, length: int, before: int) -> Iterator[tuple[int, Tensor]]:
    """What was made of each position up to a step, [batch, position, numbers], with its place; x itself is −1."""
    if length == pooled.x.shape[1]:
        yield -1, pooled.x
    batch, fed = len(pooled.x), made_of_inputs(pooled.steps)
    for place, step in enumerate(pooled.steps[:before]):
        value = step.value
        if value.dim() == 3 and fed[place] and step.name != "softmax":
            for each in (value, value.transpose(0, 1)):
                if each.shape[:2] == (batch, length):
                    yield place, each.float()


def _weighing(pooled: Pooled, pattern: Tensor, softmax: int) -> Iterator[Weighing]:
    """What the pattern weighs, such that what comes of it is handed on."""
    heads, length = pattern.shape[1], pattern.shape[-1]
    results = [(place, step) for place, step in enumerate(pooled.steps) if place > softmax]
    for place, vectors in _vectors(pooled, length, len(pooled.steps)):
        if vectors.shape[-1] % heads:
            continue
        split = vectors.unflatten(-1, (heads, -1)).transpose(1, 2)
        z = (pattern @ split).transpose(1, 2).flatten(2)
        if same(z, pooled.output):
            yield Weighing(pattern, place, z, True)
            return
        for after, step in results:
            if step.name in LINEAR and step.parameter and step.value.numel() == pooled.output.numel():
                read = next((pooled.steps[each].value for each in sources_of(step)[:1]), None)
                if read is None or read.numel() != z.numel() or not _holds(read, z):
                    continue
                made = _with_bias(pooled.steps, after)
                yield Weighing(pattern, place, z, _holds(made, pooled.output))
                return


def _holds(value: Tensor, wanted: Tensor) -> bool:
    return any(same(each, wanted) for each in laid_out(value, wanted.shape))


def _with_bias(steps: Sequence[Step], place: int) -> Tensor:
    later = next((step for step in steps[place + 1 :] if f"step {place}" in step.sources), None)
    return (
        later.value
        if later is not None and later.name.strip("_") in ("add", "radd", "iadd") and later.parameter
        else steps[place].value
    )


def _judge_weighing(
    student: Student, pooled: Pooled, softmax: int, found: Sequence[Weighing], findings: Findings
) -> None:
    one = next((each for each in found if _adds_up(each.pattern)), None)
    if one is None:
        findings.wrong.append(
            "The weights of a vector do not add up to 1 over the positions: softmax runs over another axis, and it "
            "should run over the positions."
        )
        return
    scores = next((each for each in sources_of(pooled.steps[softmax])), None)
    told = False
    if scores is not None:
        for value in laid_out(pooled.steps[scores].value, one.pattern.shape):
            if same(value.softmax(-1), one.pattern):
                told = _judge_scores(student, pooled, scores, value, one, findings)
                break
    if findings.wrong:
        return
    if not told:
        findings.undecided = "What its scores are made of was not found, so they were compared with nothing."
    elif not one.returned:
        findings.undecided = "What it returns is more than its last layer gives, and was compared with nothing."
    elif one.weighed >= 0 and not _reads_x(pooled, one.weighed):
        findings.undecided = "What it weighs is no layer of x, or of x with positions, and was compared with nothing."


def _adds_up(pattern: Tensor) -> bool:
    total = pattern.sum(-1)
    return same(total, torch.ones_like(total))


def _judge_scores(
    student: Student, pooled: Pooled, place: int, scores: Tensor, one: Weighing, findings: Findings
) -> bool:
    """Say what the scores are the product of, and whether they are divided; false if nothing is found."""
    batch, heads, many, length = scores.shape
    fed = made_of_inputs(pooled.steps)
    keys = [(at, each) for at, each in _vectors(pooled, length, place) if each.shape[-1] % heads == 0][:FEW]
    queries: list[tuple[str, bool, Tensor]] = [
        ("the query is trained", False, each.float()) for each in student.parameters.values()
    ]
    queries += [
        ("the query is made of x" if fed[at] else "the query is trained", True, step.value.float())
        for at, step in enumerate(pooled.steps[:place])
    ]
    for at, key in reversed(keys):
        if at >= 0 and not _reads_x(pooled, at):
            continue
        width = key.shape[-1] // heads
        split = key.unflatten(-1, (heads, width)).transpose(1, 2)
        for words, by_layer, raw in queries:
            for shape in ((batch, heads, many, width), (1, heads, many, width)):
                if raw.numel() != math.prod(shape):
                    continue
                for query in laid_out(raw, shape):
                    product = query @ split.mT
                    factor = float((product * scores).sum() / product.pow(2).sum().clamp(min=1e-12))
                    if abs(factor) < 1e-6 or not same(factor * product, scores):
                        continue
                    findings.conventions.append(f"It is attention by a few queries: {words}.")
                    if same(_vector_of(pooled, one.weighed), key) and _part_of_more(pooled, at):
                        findings.wrong.append(
                            "The values are the keys, and a part of the layer that makes them is never read."
                        )
                    _judge_scale(factor, width, findings, free=not by_layer)
                    return True
    step = pooled.steps[place]
    layer = next((pooled.steps[each] for each in (place, *sources_of(step)) if pooled.steps[each].name in LINEAR), None)
    if layer is not None and layer.parameter and heads == 1:
        findings.conventions.append("Each position is weighed by a score that a layer makes of it.")
        return True
    return False


def _vector_of(pooled: Pooled, place: int) -> Tensor:
    """What is weighed, [batch, position, numbers]."""
    value = pooled.x if place < 0 else pooled.steps[place].value.float()
    return value if len(value) == len(pooled.x) else value.transpose(0, 1)


def _part_of_more(pooled: Pooled, place: int) -> bool:
    """Is a step a part of what a layer makes?"""
    while place >= 0 and pooled.steps[place].name not in LINEAR and (read := sources_of(pooled.steps[place])):
        if pooled.steps[read[0]].value.numel() > pooled.steps[place].value.numel():
            return True
        place = read[0]
    return False


def _judge_scale(factor: float, width: int, findings: Findings, *, free: bool) -> None:
    if math.isclose(factor, width**-0.5, rel_tol=1e-3):
        return
    if math.isclose(factor, 1.0, rel_tol=1e-3):
        if free:
            findings.notes.append(
                "The scores are not divided by √d_head: the query is trained by itself, and can be short."
            )
            return
        findings.wrong.append(f"The scores are not divided at all; they should be divided by √d_head = √{width}.")
        return
    findings.wrong.append(f"The scores are divided by {1 / factor:.4g}; they should be divided by √d_head = √{width}.")


def _reads_x(pooled: Pooled, place: int) -> bool:
    """Is a step made, by layers of each token, of x as it comes or normalised, or with positions or a vector before?"""
    x, left, met = pooled.x, [place], set()
    while left:
        at = left.pop()
        if at in met:
            continue
        met.add(at)
        value = pooled.steps[at].value
        if any(each == "input 0" for each in pooled.steps[at].sources):
            return True
        if value.dim() == 3:
            for each in (value, value.transpose(0, 1)):
                if len(each) == len(x) and each.shape[1] >= x.shape[1] and each.shape[2] == x.shape[2]:
                    rest = each[:, -x.shape[1] :] - x
                    if same(rest, rest[:1].expand_as(rest)) or is_normalised(x, each[:, -x.shape[1] :]):
                        return True
        step = pooled.steps[at]
        if step.name not in LINEAR and step.name not in PASSED:
            return False
        left += sources_of(step)
    return False


PASSED = (
    *("view", "reshape", "transpose", "permute", "flatten", "unflatten", "contiguous", "chunk", "split", "unbind"),
    *("__getitem__", "add", "__add__", "__radd__", "add_", "dropout", "cat", "layer_norm", "tanh", "mul", "__mul__"),
)
"""Functions that keep tokens apart, or only lay them out."""
