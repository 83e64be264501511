"""A function of query, key, value and mask, or a module without weights that is called with them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from transformer.attention import scaled_dot_product_attention
from transformer.checking import signatures, stages
from transformer.checking.bench import Answer, Bench, Described, Refused, weighing
from transformer.checking.conventions import LAYOUTS, MASK_FORMS, SEEN, Layout, MaskForm, laid_out
from transformer.checking.findings import Findings, difference, mistakes, same
from transformer.foundation.foreign import shortened

ROLES = ("query", "key", "value", "mask")
D = 6
"""Dimensions of a query."""
DEFAULTS = {"dropout": None, "d_head": D, "d_model": D, "scale": 1 / math.sqrt(D), "causal": False, "flag": False}
"""What else a function may need."""


@dataclass(frozen=True)
class Trial:
    """Queries, keys and values [batch, head, position, d_head], and what is seen: [batch, 1, query, key] or all."""

    query: Tensor
    key: Tensor
    value: Tensor
    seen: Tensor | None = None

    @property
    def expected(self) -> tuple[Tensor, Tensor]:
        """Output and pattern of the reference."""
        return scaled_dot_product_attention(self.query, self.key, self.value, self.seen)


def trial(batch: int, heads: int, queries: int, keys: int, *, mask: str = "", seed: int = 0) -> Trial:
    """A trial with random numbers; `mask` is "", "one" for all sequences, "own" for each its own, or "causal"."""
    generator = torch.Generator().manual_seed(seed)

    def drawn(length: int) -> Tensor:
        return 1.5 * torch.randn(batch, heads, length, D, generator=generator)

    query, key, value = drawn(queries), drawn(keys), drawn(keys)
    seen = None
    if mask == "causal":
        seen = torch.ones(queries, keys, dtype=torch.bool).tril().expand(batch, 1, -1, -1)
    elif mask:
        seen = torch.rand(batch, 1, queries, keys, generator=generator) < 0.5
        if mask == "one":
            seen = seen[:1].expand(batch, -1, -1, -1).clone()
        row = torch.arange(queries)
        seen[..., row, row % keys] = True  # a query sees something …
        seen[..., row, (row + 2) % keys] = False  # … and not everything
    return Trial(query, key, value, seen)


@dataclass(frozen=True)
class Convention:
    """How a trial is handed over."""

    layout: Layout
    form: MaskForm = SEEN
    axes: str = "full"


class Student:
    """The code, asked in one convention or another."""

    def __init__(self, bench: Bench, described: Described) -> None:
        self.bench = bench
        self.places = signatures.places(described.called_with, ROLES, DEFAULTS)
        self.needed = {each.name for each in described.called_with if not each.optional}
        self.masks = "mask" in self.places
        if described.is_class:
            bench.make(signatures.settings(described, {"d_head": D, "d_model": D, "dropout": 0.0, "scale": math.sqrt(D)}))

    def needs(self, one: str) -> bool:
        """Is there a parameter for this that must be given?"""
        return self.places.get(one) in self.needed

    def ask(self, trial: Trial, convention: Convention, **options: Any) -> Answer:
        """What the code answers. Raises Refused."""
        layout = convention.layout
        given: dict[str, Any] = {one: layout.write(getattr(trial, one)) for one in ROLES[:3]}
        seen = trial.seen
        if seen is None and self.needs("mask"):
            seen = torch.ones(len(trial.query), 1, trial.query.shape[2], trial.key.shape[2], dtype=torch.bool)
        if seen is not None and "mask" in self.places:
            given["mask"] = laid_out(convention.form.write(seen), layout, convention.axes, trial.query.shape[1])
        given |= {one: value for one, value in DEFAULTS.items() if self.needs(one)}
        return self.bench.call(list(given.values()), [self.places.get(one, "") for one in given], **options)

    def output(self, answer: Answer, trial: Trial, layout: Layout) -> tuple[Tensor, Tensor | None]:
        """Output and pattern of an answer, [batch, head, …]. Raises Refused where the output has another shape."""
        batch, heads, queries, _ = trial.query.shape
        one = layout.axes == 2
        wanted = layout.write(trial.expected[0]).shape
        found = next((value for value in answer.values if value.shape == wanted), None)
        if found is None:
            said = " and ".join(str(list(value.shape)) for value in answer.values[:3])
            raise Refused(f"It returns a tensor of shape {said}; the output should be {list(wanted)}.")
        others = [value for value in answer.values if value is not found]
        pattern = next((each for each in others if each.shape[-2:] == (queries, trial.key.shape[2])), None)
        return layout.read(found, 1 if one else batch, 1 if one else heads), pattern


def expected(self) -> tuple[Tensor, Tensor]:
        """Output and pattern of the reference."""
        return scaled_dot_product_attention(self.query, self.key, self.value, self.seen)


def trial(batch: int, heads: int, queries: int, keys: int, *, mask: str = "", seed: int = 0) -> Trial:
    """A trial with random numbers; `mask` is "", "one" for all sequences, "own" for each its own, or "causal"."""
    generator = torch.Generator().manual_seed(seed)

    def drawn(length: int) -> Tensor:
        return 1.5 * torch.randn(batch, heads, length, D, generator=generator)

    query, key, value = drawn(queries), drawn(keys), drawn(keys)
    seen = None
    if mask == "causal":
        seen = torch.ones(queries, keys, dtype=torch.bool).tril().expand(batch, 1, -1, -1)
    elif mask:
        seen = torch.rand(batch, 1, queries, keys, generator=generator) < 0.5
        if mask == "one":
            seen = seen[:1].expand(batch, -1, -1, -1).clone()
        row = torch.arange(queries)
        seen[..., row, row % keys] = True  # a query sees something …
        seen[..., row, (row + 2) % keys] = False  # … and not everything
    return Trial(query, key, value, seen)


@dataclass(frozen=True)
class Convention:
    """How a trial is handed over."""

    layout: Layout
    form: MaskForm = SEEN
    axes: str = "full"


class Student:
    """The code, asked in one convention or another."""

    def __init__(self, bench: Bench, described: Described) -> None:
        self.bench = bench
        self.places = signatures.places(described.called_with, ROLES, DEFAULTS)
        self.needed = {each.name for each in described.called_with if not each.optional}
        self.masks = "mask" in self.places
        if described.is_class:
            bench.make(signatures.settings(described, {"d_head": D, "d_model": D, "dropout": 0.0, "scale": math.sqrt(D)}))

    def needs(self, one: str) -> bool:
        """Is there a parameter for this that must be given?"""
        return self.places.get(one) in self.needed

    def ask(self, trial: Trial, convention: Convention, **options: Any) -> Answer:
        """What the code answers. Raises Refused."""
        layout = convention.layout
        given: dict[str, Any] = {one: layout.write(getattr(trial, one)) for one in ROLES[:3]}
        seen = trial.seen
        if seen is None and self.needs("mask"):
            seen = torch.ones(len(trial.query), 1, trial.query.shape[2], trial.key.shape[2], dtype=torch.bool)
        if seen is not None and "mask" in self.places:
            given["mask"] = laid_out(convention.form.write(seen), layout, convention.axes, trial.query.shape[1])
        given |= {one: value for one, value in DEFAULTS.items() if self.needs(one)}
        return self.bench.call(list(given.values()), [self.places.get(one, "") for one in given], **options)

    def output(self, answer: Answer, trial: Trial, layout: Layout) -> tuple[Tensor, Tensor | None]:
        """Output and pattern of an answer, [batch, head, …]. Raises Refused where the output has another shape."""
        batch, heads, queries, _ = trial.query.shape
        one = layout.axes == 2
        wanted = layout.write(trial.expected[0]).shape
        found = next((value for value in answer.values if value.shape == wanted), None)
        if found is None:
            said = " and ".join(str(list(value.shape)) for value in answer.values[:3])
            raise Refused(f"It returns a tensor of shape {said}; the output should be {list(wanted)}.")
        others = [value for value in answer.values if value is not found]
        pattern = next((each for each in others if each.shape[-2:] == (queries, trial.key.shape[2])), None)
        return layout.read(found, 1 if one else batch, 1 if one else heads), pattern


def _leading(order: list[str], names: list[str]) -> int:
    """How many of the first parameters are among these names."""
    return next((number for number, name in enumerate(order) if name not in names), len(order))


def expected(trial: Trial, layout: Layout) -> Tensor:
    """The reference's output for what a layout hands over."""
    output = trial.expected[0]
    return output[:1, :1] if layout.axes == 2 else output


def judge(bench: Bench, described: Described) -> Findings:
    """Is it attention? Conventions first, then the formula, then what is usual to go wrong at the edges."""
    findings, student = Findings(), Student(bench, described)
    plain, masked = trial(2, 3, 5, 5, seed=1), trial(2, 3, 5, 5, mask="one", seed=2)
    layout, right = _layout(student, plain, findings)
    convention = Convention(layout)
    if student.masks:
        convention, right_masked = _mask_form(student, masked, layout, findings)
        right = right and right_masked
    if right:
        _say(findings, convention, student)
        _edges(findings, student, convention)
        return findings
    _name(findings, student, layout, convention, (plain, masked))
    return findings


def _layout(student: Student, plain: Trial, findings: Findings) -> tuple[Layout, bool]:
    """The layout in which the code is right without a mask; else the first in which it runs."""
    findings.tried.append("two sequences, three heads, five positions, no mask")
    runs: list[Layout] = []
    refusal: Refused | None = None
    for layout in LAYOUTS:
        if layout.axes == 2 and runs:
            break
        for form in MASK_FORMS if student.masks else (SEEN,):
            for axes in layout.mask_axes:
                try:
                    answer = student.ask(plain, Convention(layout, form, axes))
                    found, _ = student.output(answer, plain, layout)
                except Refused as refused:
                    if refused.fatal:
                        raise
                    refusal = refusal or refused
                    continue
                if same(found, expected(plain, layout)):
                    if runs and runs[0].axes == 4 and layout.axes == 3:
                        return runs[0], False
                    return layout, True
                if layout not in runs:
                    runs.append(layout)
            if not student.needs("mask"):
                break
    if not runs:
        assert refusal is not None
        raise Refused(str(refusal), fatal=True)
    return runs[0], False


def _mask_form(student: Student, masked: Trial, layout: Layout, findings: Findings) -> tuple[Convention, bool]:
    """The way to write a mask in which the code is right; else the one in which it is least far from it."""
    findings.tried.append("masks both ways round: True = seen, True = hidden, added to the scores, ones and zeros")
    best: tuple[float, Convention] = (math.inf, Convention(layout))
    for convention, found in _masked(student, masked, layout):
        if same(found, expected(masked, layout)):
            return convention, True
        if (gap := difference(found, expected(masked, layout))) < best[0]:
            best = (gap, convention)
    return best[1], False


def _masked(student: Student, masked: Trial, layout: Layout) -> Iterator[tuple[Convention, Tensor]]:
    """What the code answers under each way to write a mask that it takes."""
    for form, axes in itertools.product(MASK_FORMS, layout.mask_axes):
        convention = Convention(layout, form, axes)
        try:
            found, _ = student.output(student.ask(masked, convention), masked, layout)
        except Refused as refused:
            if refused.fatal:
                raise
            continue
        yield convention, found


def _say(findings: Findings, convention: Convention, student: Student) -> None:
    findings.conventions.append(f"Queries, keys and values: {convention.layout.words}.")
    if student.masks:
        findings.conventions.append(f"Mask: {convention.form.words}.")
        if convention.axes == "batch":
            findings.conventions.append("The mask has the axes [batch, query, key]; the code adds the heads' axis.")
    else:
        findings.notes.append("The code takes no mask: only attention without one was checked.")


def _name(
    findings: Findings, student: Student, layout: Layout, convention: Convention, trials: tuple[Trial, Trial]
) -> None:
    """Which mistake is it? By the gallery; else by the first stage that differs."""
    plain, masked = trials
    asked = masked if student.masks else plain
    answers = list(_masked(student, masked, layout)) if student.masks else []
    if not student.masks:
        answers = [(convention, student.output(student.ask(plain, convention), plain, layout)[0])]
    every = torch.ones(2, 1, 5, 5, dtype=torch.bool) if asked.seen is None else asked.seen
    named = None
    for each in mistakes("attention"):
        wrong, _ = each.wrong(asked.query, asked.key, asked.value, every)
        wrong = wrong[:1, :1] if layout.axes == 2 else wrong
        for one, found in answers:
            if named is None and same(found, wrong) and not same(wrong, expected(asked, layout)):
                named, convention = each, one
    if layout.axes > 2:
        shown = asked if asked.seen is None or named is None or _differs(student, plain, convention) is None else asked
        answer = student.ask(shown, convention, record=True)
        reference = stages.of_attention(shown.query, shown.key, shown.value, shown.seen)
        written = {name: [_like(layout, each) for each in group] for name, group in reference.items()}
        findings.divergence = stages.compare(answer.steps, _like(layout, student.output(answer, shown, layout)[0]), written)
    if findings.divergence is not None and findings.divergence.first is not None:
        findings.wrong.append(findings.divergence.sentence)
    if not findings.wrong:
        gap = difference(student.output(student.ask(asked, convention), asked, layout)[0], expected(asked, layout))
        findings.wrong.append(f"The output differs from the reference by up to {gap:.3g}.")
    if named is not None:
        findings.call_by_name(named)


def _like(layout: Layout, tensor: Tensor) -> Tensor:
    return tensor


def _differs(student: Student, plain: Trial, convention: Convention) -> str | None:
    found, _ = student.output(student.ask(plain, convention), plain, convention.layout)
    return None if same(found, expected(plain, convention.layout)) else "without a mask"


def _edges(findings: Findings, student: Student, convention: Convention) -> None:
    """What is right in the middle may go wrong at the edges."""
    layout = convention.layout
    mask = "one" if student.masks else ""

    def agrees(trial: Trial, words: str) -> Callable[[], str]:
        def attempt() -> str:
            answer = student.ask(trial, convention)
            found, _ = student.output(answer, trial, layout)
            if same(found, expected(trial, layout)):
                return ""
            return f"With {words} the output differs from the reference by up to {difference(found, expected(trial, layout)):.3g}."

        return attempt

    cases = [
        ("one sequence", trial(1, 3, 5, 5, mask=mask, seed=3)),
        ("one head", trial(2, 1, 4, 4, mask=mask, seed=4)),
        ("4 queries and 7 keys", trial(2, 3, 4, 7, mask=mask, seed=5)),
        ("7 queries and 4 keys", trial(2, 3, 7, 4, mask=mask, seed=6)),
        ("one token", trial(2, 3, 1, 1, seed=7)),
        ("50 positions", trial(1, 1, 50, 50, mask=mask, seed=8)),
    ]
    if student.masks:
        cases.append(("a causal mask", trial(2, 3, 6, 6, mask="causal", seed=9)))
    if student.masks and layout.axes > 2 and convention.axes != "matrix":
        cases.append(("a mask of its own for each sequence", trial(2, 3, 5, 5, mask="own", seed=10)))
    for words, each in cases:
        findings.try_it(words, agrees(each, words))
    large = trial(2, 3, 5, 5, mask=mask, seed=11)
    large = Trial(large.query * 8, large.key, large.value, large.seen)
    findings.try_it("large scores", agrees(large, "large scores"))
    findings.try_it("gradients", lambda: _gradients(student, convention, trial(2, 3, 5, 5, mask=mask, seed=12)))
    findings.try_it("inputs that must not change", lambda: _in_place(student, convention, trial(2, 3, 5, 5, mask=mask, seed=13)))
    findings.try_it("the same call twice", lambda: _twice(student, convention, trial(2, 3, 5, 5, mask=mask, seed=14)))
    findings.try_it("its weights, if it returns them", lambda: _pattern(findings, student, convention, mask))
    for precision in ("float16", "bfloat16"):
        findings.look_at(
            f"half precision ({precision})", lambda precision=precision: _half(student, convention, mask, precision)
        )
    if student.masks:
        findings.look_at("a query that may see nothing", lambda: _nothing(student, convention))
    huge = trial(2, 3, 5, 5, mask=mask, seed=15)
    huge = Trial(huge.query * 60, huge.key, huge.value, huge.seen)
    findings.look_at("scores beyond 100", lambda: _finite(student, convention, huge))


def _gradients(student: Student, convention: Convention, trial: Trial) -> str:
    answer = student.ask(trial, convention, gradients=True)
    if answer.array:
        return ""
    layout = convention.layout
    own = [layout.write(each).clone().requires_grad_() for each in (trial.query, trial.key, trial.value)]
    batch, heads = (1, 1) if layout.axes == 2 else trial.query.shape[:2]
    seen = None if trial.seen is None else trial.seen[:1] if layout.axes == 2 else trial.seen
    output, _ = scaled_dot_product_attention(*(layout.read(each, batch, heads) for each in own), seen)
    written = layout.write(output)
    place = next(n for n, value in enumerate(answer.values) if value.shape == written.shape)
    if place:
        return ""
    (written * weighing(written)).sum().backward()
    for name, found, each in zip(ROLES, answer.gradients, own, strict=False):
        assert each.grad is not None
        if found is None:
            return f"No gradient reaches the {name}: the code leaves PyTorch's graph (`.detach()`, `.data`, `.item()`, NumPy)."
        if not same(found, each.grad):
            return f"The gradient of the {name} differs from the reference by up to {difference(found, each.grad):.3g}."
    return ""


def _in_place(student: Student, convention: Convention, trial: Trial) -> str:
    changed = student.ask(trial, convention).changed
    if not changed:
        return ""
    return f"The code changes its {ROLES[changed[0]]} in place: work on a copy, `x = x / y` and not `x /= y`."


def _twice(student: Student, convention: Convention, trial: Trial) -> str:
    first, second = (student.ask(trial, convention, seed=seed).values[0] for seed in (0, 1))
    return "" if same(first, second) else "Two calls with the same inputs differ: is dropout on?"


def _pattern(findings: Findings, student: Student, convention: Convention, mask: str) -> str:
    each = trial(2, 3, 4, 5, mask=mask, seed=16)
    _, pattern = student.output(student.ask(each, convention), each, convention.layout)
    if pattern is None:
        return ""
    expected = each.expected[1]
    expected = expected[0, 0] if convention.layout.axes == 2 else expected
    if pattern.numel() == expected.numel():
        findings.conventions.append("It returns the weights as well.")
        if same(pattern.reshape(-1), expected.reshape(-1)):
            return ""
        if convention.layout.axes == 3 and same(pattern.reshape(-1), expected.flatten(0, 1).reshape(-1)):
            return ""
        return f"The output is right, and the weights that are returned differ by up to {difference(pattern.reshape(expected.shape), expected):.3g}."
    if same(pattern, expected.mean(1)):
        findings.notes.append("The weights that are returned are the mean over the heads, not those of each head.")
        return ""
    return f"The weights that are returned have the shape {shortened(str(list(pattern.shape)))}, not {list(expected.shape)}."


def _half(student: Student, convention: Convention, mask: str, precision: str) -> str:
    each = trial(2, 3, 5, 5, mask=mask, seed=17)
    dtype: torch.dtype = getattr(torch, precision)
    found, _ = student.output(student.ask(each, convention, precision=precision), each, convention.layout)
    expected_ = expected(each, convention.layout)
    if found.dtype != dtype and not found.dtype == torch.float64:
        return f"In {precision} the output is {str(found.dtype).removeprefix('torch.')}: a number in the code has a precision of its own."
    if same(found.float(), expected_, dtype):
        return ""
    return f"In {precision} the output differs by up to {difference(found.float(), expected_):.3g}."


def _nothing(student: Student, convention: Convention) -> str:
    each = trial(2, 3, 5, 5, mask="one", seed=18)
    assert each.seen is not None
    each.seen[:, :, 2] = False
    found, _ = student.output(student.ask(each, convention), each, convention.layout)
    others = [row for row in range(5) if row != 2]
    if not same(found[:, :, others], expected(each, convention.layout)[:, :, others]):
        return "A query that may see nothing changes the output of other queries."
    row, value = found[:, :, 2], each.value[:1, :1] if convention.layout.axes == 2 else each.value
    if bool(row.isnan().any()):
        return "A query that may see nothing gets NaN: −inf in the whole row makes softmax divide 0 by 0."
    if same(row, value.mean(2)):
        return "A query that may see nothing reads all keys alike, also the hidden ones; the reference gives it zeros."
    return "" if same(row, torch.zeros_like(row)) else "A query that may see nothing gets an output that is not zero."


def _finite(student: Student, convention: Convention, trial: Trial) -> str:
    found, _ = student.output(student.ask(trial, convention), trial, convention.layout)
    if bool(found.isfinite().all()):
        return ""
    return "Scores beyond 100 give NaN: subtract the largest score of a row before `exp`, or use `torch.softmax`."
