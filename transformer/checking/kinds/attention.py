"""A function of query, key, value and mask, or a module without weights that is called with them."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from transformer.attention import scaled_dot_product_attention
from transformer.checking import laws, signatures, stages
from transformer.checking.bench import Answer, Bench, Described, weighing
from transformer.checking.conventions import ADDED, LAYOUTS, MASK_FORMS, ONES, SEEN, Layout, MaskForm, laid_out
from transformer.checking.faults import Refused
from transformer.checking.findings import Findings, difference, mistakes, of_another_precision, repeats, same, unlike
from transformer.mistakes import AttentionMistake

ROLES = ("query", "key", "value", "mask")
D = 6
"""Dimensions of a query."""
DEFAULTS = {"dropout": None, "d_head": D, "d_model": D, "scale": 1 / math.sqrt(D), "causal": False, "flag": False}
"""What else a function may need."""
SETTINGS = {"d_head": D, "d_model": D, "dropout": 0.1, "scale": math.sqrt(D)}
"""What a class may need; there the scale is a temperature, which divides."""


TOP_LEFT, BOTTOM_RIGHT = "the first query sees the first key alone", "the last query sees all keys"
BUILT_IN = (TOP_LEFT, BOTTOM_RIGHT)


@dataclass(frozen=True)
class Trial:
    """Queries, keys and values [batch, head, position, d_head], and what is seen: [batch, 1, query, key] or all."""

    query: Tensor
    key: Tensor
    value: Tensor
    seen: Tensor | None = None

    def times(self, factor: float) -> Trial:
        """The same with longer queries, so with larger scores."""
        return dataclasses.replace(self, query=self.query * factor)


def trial(batch: int, heads: int, queries: int, keys: int, *, mask: str = "", seed: int) -> Trial:
    """A trial with random numbers; `mask` is "", "one" for all sequences, "own" for each its own, or "causal"."""
    generator = torch.Generator().manual_seed(seed)

    def drawn(length: int) -> Tensor:
        return 1.5 * torch.randn(batch, heads, length, D, generator=generator)

    query, key, value = drawn(queries), drawn(keys), drawn(keys)
    if not mask:
        return Trial(query, key, value)
    if mask == "causal":
        return Trial(query, key, value, torch.ones(queries, keys, dtype=torch.bool).tril().expand(batch, 1, -1, -1))
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
    built_in: str = ""
    """How the code's own causal mask lies where there are fewer queries than keys, one of BUILT_IN; "" without one."""

    def read(self, tensor: Tensor) -> Tensor:
        """What the reference gives for all that this hands over: a matrix is one head of one sequence."""
        return tensor[:1, :1] if self.layout.axes == 2 else tensor

    def seen(self, trial: Trial) -> Tensor | None:
        """What is seen in all, [batch, 1, query, key], the code's own causal mask included; None where that is all."""
        if not self.built_in:
            return trial.seen
        queries, keys = trial.query.shape[2], trial.key.shape[2]
        last = keys - queries if self.built_in == BOTTOM_RIGHT else 0
        own = torch.ones(len(trial.query), 1, queries, keys, dtype=torch.bool).tril(last)
        return own if trial.seen is None else trial.seen & own

    def results(self, trial: Trial) -> tuple[Tensor, Tensor]:
        """Output and pattern of the reference."""
        output, pattern = scaled_dot_product_attention(trial.query, trial.key, trial.value, self.seen(trial))
        return self.read(output), self.read(pattern)


class Student:
    """The code, asked in one convention or another."""

    def __init__(self, bench: Bench, described: Described) -> None:
        self.bench = bench
        self.places = signatures.places(described.called_with, ROLES, DEFAULTS)
        self.flags = laws.flags(described.called_with)
        self.needed = {each.name for each in described.called_with if not each.optional}
        self.masks = "mask" in self.places
        """Does it read a mask?"""
        self.mask = "one" if self.masks else ""
        if described.is_class:
            bench.make(signatures.settings(described, SETTINGS))

    def needs(self, one: str) -> bool:
        """Is there a parameter for this that must be given?"""
        return self.places.get(one) in self.needed

    def ask(
        self, trial: Trial, convention: Convention, flags: Mapping[str, bool] = MappingProxyType({}), **options: Any
    ) -> Answer:
        """What the code answers, with some of its `flags` set. Raises Refused."""
        layout = convention.layout
        given: dict[str, Any] = {one: layout.write(getattr(trial, one)) for one in ROLES[:3]}
        seen = trial.seen
        if seen is None and self.needs("mask"):
            seen = torch.ones(len(trial.query), 1, trial.query.shape[2], trial.key.shape[2], dtype=torch.bool)
        if seen is not None and "mask" in self.places:
            given["mask"] = laid_out(convention.form.write(seen), layout, convention.axes, trial.query.shape[1])
        given |= {one: value for one, value in DEFAULTS.items() if self.needs(one)}
        named = {self.places.get(one, ""): value for one, value in given.items() if one not in ROLES[:3]} | dict(flags)
        arguments = [*(given[one] for one in ROLES[:3]), *named.values()]
        return self.bench.call(arguments, [*(self.places.get(one, "") for one in ROLES[:3]), *named], **options)

    def run(self, trial: Trial, convention: Convention, **options: Any) -> Tensor:
        """The output, [batch, head, query, d_head]. Raises Refused where none of the tensors has its shape."""
        return self.output(self.ask(trial, convention, **options), trial, convention)[0]

    def output(self, answer: Answer, trial: Trial, convention: Convention) -> tuple[Tensor, Tensor | None]:
        """The output, and the pattern as it comes, if it does."""
        layout = convention.layout
        wanted = layout.write(trial.query[..., :1].expand(*trial.query.shape[:-1], trial.value.shape[-1])).shape
        place = next((place for place, value in enumerate(answer.values) if value.shape == wanted), None)
        if place is None:
            shapes = " and ".join(str(list(value.shape)) for value in answer.values[:3])
            raise Refused(f"It returns the shape {shapes}; the output should be {list(wanted)}.")
        others = [value for other, value in enumerate(answer.values) if other != place]
        pattern = next((each for each in others if each.shape[-2:] == (trial.query.shape[2], trial.key.shape[2])), None)
        batch, heads = convention.read(trial.query).shape[:2]
        return layout.read(answer.values[place], batch, heads), pattern

    def differs(self, trial: Trial, convention: Convention, words: str) -> str:
        """The sentence that the output is not the reference's; empty where it is."""
        return unlike(self.run(trial, convention), convention.results(trial)[0], words)


def judge(bench: Bench, described: Described) -> Findings:
    """Is it attention? Conventions first, then the formula, then the edges."""
    findings, student = Findings(), Student(bench, described)
    plain, masked = trial(2, 3, 5, 5, seed=1), trial(2, 3, 5, 5, mask="one", seed=2)
    convention, right = _layout(student, plain, findings)
    if right and convention.built_in:
        convention = _aligned(student, convention, findings)
    if student.masks:
        convention, right_masked = _mask_form(student, masked, convention, findings)
        right = right and right_masked
    findings.conventions.append(f"Queries, keys and values: {convention.layout.words}.")
    asked = masked if student.masks else plain
    if right:
        _say_mask(findings, convention, student)
        if student.masks and convention.form is ADDED:
            _say_numbers(findings, student, convention, asked)
        findings.divergence = _compare(student, convention, asked)
        _edges(findings, student, convention)
        _paths(findings, student, convention)
        if not convention.built_in:
            switch = any(student.flags.values())
            laws.require_causal(described.name, findings, takes_mask=student.masks, switch=switch)
    else:
        _name(findings, student, convention, asked)
        _drops(findings, student, convention, asked)
    return findings


# --- conventions


def _aligned(student: Student, convention: Convention, findings: Findings) -> Convention:
    """The same, with the way in which the causal mask that is built in lies where queries are fewer than keys."""
    findings.tried.append("a causal mask of its own, with fewer queries than keys")
    each = trial(2, 3, 4, 7, seed=19)
    for built_in in BUILT_IN:
        one = dataclasses.replace(convention, built_in=built_in)
        try:
            found = student.run(each, one)
        except Refused as refused:
            if refused.fatal:
                raise
            break
        if same(found, one.results(each)[0]):
            findings.conventions.append(f"The causal mask is built in; where queries are fewer than keys, {built_in}.")
            return one
    findings.conventions.append("The causal mask is built in.")
    return convention


def _layout(student: Student, plain: Trial, findings: Findings) -> tuple[Convention, bool]:
    """The layout in which the code is right without a mask; else the first in which it runs.

    Code that runs on heads and is wrong there is not called right because one matrix, or one head, comes out right.
    """
    findings.tried.append("two sequences, three heads, five positions, no mask")
    runs: list[Convention] = []
    refusals: list[Refused] = []
    for layout in LAYOUTS:
        forms, mask_axes = (MASK_FORMS, layout.mask_axes) if student.needs("mask") else ((SEEN,), ("full",))
        for form, axes in itertools.product(forms, mask_axes):
            convention = Convention(layout, form, axes)
            if layout.axes < max((each.layout.axes for each in runs), default=0):
                break
            try:
                found = student.run(plain, convention)
            except Refused as refused:
                if refused.fatal:
                    raise
                refusals.append(refused)
                continue
            for built_in in ("", TOP_LEFT):  # on a square both lie alike
                one = dataclasses.replace(convention, built_in=built_in)
                if same(found, one.results(plain)[0]):
                    return one, True
            runs.append(convention)
    if not runs:
        raise Refused(str(refusals[0]), fatal=True)
    return runs[0], False


def _masked(student: Student, masked: Trial, plain: Convention) -> Iterator[tuple[Convention, Tensor]]:
    """What the code answers under each way to write a mask that it takes."""
    for form, axes in itertools.product(MASK_FORMS, plain.layout.mask_axes):
        convention = dataclasses.replace(plain, form=form, axes=axes)
        try:
            yield convention, student.run(masked, convention)
        except Refused as refused:
            if refused.fatal:
                raise


def _mask_form(student: Student, masked: Trial, plain: Convention, findings: Findings) -> tuple[Convention, bool]:
    """The way to write a mask in which the code is right; else the one in which it is least far from it."""
    findings.tried.append("masks both ways round: True = seen, True = hidden, added to the scores, ones and zeros")
    best, read = (math.inf, plain), False
    for convention, found in _masked(student, masked, plain):
        expected = convention.results(masked)[0]
        if same(found, expected):
            return convention, True
        read = read or not same(found, convention.results(dataclasses.replace(masked, seen=None))[0])
        best = min(best, (difference(found, expected), convention), key=lambda each: each[0])
    if plain.built_in and not read:
        findings.notes.append("It takes a mask and never reads it: its own causal mask alone hides.")
        student.masks, student.mask = False, ""
        return plain, True
    return best[1], False


def _say_mask(findings: Findings, convention: Convention, student: Student) -> None:
    if not student.masks:
        if not convention.built_in:
            findings.notes.append("The code takes no mask: only attention without one was checked.")
        return
    findings.conventions.append(f"Mask: {convention.form.words}.")
    if convention.axes == "batch":
        findings.conventions.append("The mask has the axes [batch, query, key]; the code adds the axis of the heads.")


def _say_numbers(findings: Findings, student: Student, convention: Convention, asked: Trial) -> None:
    """What a mask of truth values, or of ones and zeros, does that is added to the scores: nothing."""
    assert asked.seen is not None
    scores = asked.query @ asked.key.transpose(-2, -1) / math.sqrt(D) + asked.seen.float()
    added = convention.read(scores.softmax(-1) @ asked.value)
    for form in (SEEN, ONES):
        try:
            answer = student.ask(asked, dataclasses.replace(convention, form=form), record=True)
        except Refused as refused:
            if refused.fatal:
                raise
            continue
        if not same(student.output(answer, asked, convention)[0], added):
            continue
        mask = f"input {len(ROLES) - 1}"
        if form is SEEN and any(step.name == "float" and mask in step.sources for step in answer.steps):
            findings.wrong.append(
                "The mask is made numbers (`.float()`) and added to the scores, so ones and zeros hide nothing: give "
                "hidden scores −inf with `masked_fill`."
            )
        else:
            findings.notes.append(
                "A mask of truth values, or of ones and zeros, is added to the scores as well, and hides nothing: hand "
                "over 0 and −inf."
            )
        return


# --- what is wrong


def _drops(findings: Findings, student: Student, convention: Convention, asked: Trial) -> None:
    """Are weights dropped at random, at all times?"""
    answers = [student.ask(asked, convention, seed=seed, record=True) for seed in (0, 1)]
    first, second = (student.output(each, asked, convention) for each in answers)
    if repeats(first[0], second[0]):
        return
    findings.mistake = ""
    pattern = first[1]
    dropped = any("dropout" in step.name for step in answers[0].steps)
    sums = pattern is not None and not same(pattern.sum(-1), torch.ones(pattern.shape[:-1]))
    words = "Two calls with the same inputs differ: " + (
        "dropout is on at all times. Switch it off outside training." if dropped else "is dropout on?"
    )
    more = "The weights that it returns are those after dropout: they do not add up to 1." if dropped and sums else ""
    findings.wrong[:] = [each for each in (words, more) if each]


def _name(findings: Findings, student: Student, convention: Convention, asked: Trial) -> None:
    """Which mistake is it, and at which stage does it first differ?"""
    answers = (
        list(_masked(student, asked, convention)) if student.masks else [(convention, student.run(asked, convention))]
    )
    right, seen = convention.results(asked)[0], convention.seen(asked)
    every = torch.ones(2, 1, 5, 5, dtype=torch.bool) if seen is None else seen
    named = None
    for each in mistakes(AttentionMistake):
        wrong = convention.read(each.wrong(asked.query, asked.key, asked.value, every)[0])
        for one, found in answers:
            if named is None and same(found, wrong) and not same(wrong, right):
                named, convention = each, one
    findings.divergence = _compare(student, convention, asked)
    if findings.divergence.first is not None:
        findings.wrong.append(findings.divergence.sentence)
    else:
        findings.wrong.append("With a mask the output is right; without one it differs from the reference.")
    laws.require_read_masks(student.ask(asked, convention, record=True).steps, findings)
    if named is not None:
        findings.call_by_name(named)


def _compare(student: Student, convention: Convention, asked: Trial) -> stages.Divergence:
    """The code's steps beside the stages of the reference."""
    answer = student.ask(asked, convention, record=True)
    query, key, value = (convention.read(each) for each in (asked.query, asked.key, asked.value))
    seen = convention.seen(asked)
    reference = stages.of_attention(query, key, value, None if seen is None else seen[: len(query)])
    output = student.output(answer, asked, convention)[0]
    found = stages.compare(answer.steps, output, reference)
    if answer.array and found.first is not None:  # NumPy's steps are not recorded
        gap = difference(output, reference["values"][0])
        words = f"The output differs from the reference by up to {gap:.3g}; what NumPy computes on the way is not seen."
        found = dataclasses.replace(found, sentence=words)
    return found


# --- the edges


def _edges(findings: Findings, student: Student, convention: Convention) -> None:
    """What is right in the middle may go wrong at the edges."""
    mask = student.mask

    def case(words: str, *shape: int, mask: str = mask, seed: int, factor: float = 1.0) -> None:
        each = trial(*shape, mask=mask, seed=seed).times(factor)
        findings.try_it(words, lambda: student.differs(each, convention, words))

    def unequal(queries: int, keys: int) -> str:
        words = f"{queries} queries and {keys} keys"
        return student.differs(trial(2, 3, queries, keys, mask=mask, seed=queries + 1), convention, words)

    case("one sequence", 1, 3, 5, 5, seed=3)
    case("one head", 2, 1, 4, 4, seed=4)
    if convention.built_in:  # written for a sequence that looks at itself; how it lies elsewhere is a convention
        findings.look_at("4 queries and 7 keys", partial(unequal, 4, 7))
    else:
        case("4 queries and 7 keys", 2, 3, 4, 7, seed=5)
        case("7 queries and 4 keys", 2, 3, 7, 4, seed=6)
    case("one token", 2, 3, 1, 1, mask="", seed=7)
    case("50 positions", 1, 1, 50, 50, seed=8)
    case("large scores", 2, 3, 5, 5, seed=11, factor=8)
    if student.masks:
        case("a causal mask", 2, 3, 6, 6, mask="causal", seed=9)
    if student.masks and convention.axes != "matrix" and convention.layout.axes > 2:
        case("a mask of its own for each sequence", 2, 3, 5, 5, mask="own", seed=10)
    words = "values wider than the queries"
    findings.try_it(words, lambda: _wider(student, convention, words))
    usual = trial(2, 3, 5, 5, mask=mask, seed=12)
    attempts: dict[str, Callable[[], str]] = {
        "gradients": lambda: _gradients(student, convention, usual),
        "inputs that must not change": lambda: _in_place(student, convention, usual),
        "the same call twice": lambda: _twice(student, convention, usual),
        "the weights, if it returns them": lambda: _pattern(findings, student, convention),
    }
    for words, attempt in attempts.items():
        findings.try_it(words, attempt)
    for precision in (torch.float16, torch.bfloat16):
        name = str(precision).removeprefix("torch.")
        findings.look_at(f"half precision ({name})", partial(_half, student, convention, usual, precision, name))
    if student.masks:
        findings.look_at("a query that may see nothing", lambda: _nothing(student, convention))
    findings.look_at("scores beyond 100", lambda: _finite(student, convention, usual.times(60)))


def _wider(student: Student, convention: Convention, words: str) -> str:
    """The sentence that values of another width make it wrong; empty where they do not, or it takes none."""
    each = trial(2, 3, 5, 5, mask=student.mask, seed=17)
    each = dataclasses.replace(each, value=torch.cat([each.value, each.value.flip(-1)[..., : D // 2]], dim=-1))
    try:
        return student.differs(each, convention, words)
    except Refused as refused:
        if refused.fatal:
            raise
        return ""  # written for heads of one width


def _gradients(student: Student, convention: Convention, trial: Trial) -> str:
    if student.ask(trial, convention).array:
        return ""  # NumPy has none
    answer = student.ask(trial, convention, gradients=True)
    layout = convention.layout
    own = [layout.write(each).clone().requires_grad_() for each in (trial.query, trial.key, trial.value)]
    batch, heads = convention.read(trial.query).shape[:2]
    seen = convention.seen(trial)
    seen = None if seen is None else seen[:batch]
    query, key, value = (layout.read(each, batch, heads) for each in own)
    output = layout.write(scaled_dot_product_attention(query, key, value, seen)[0])
    if answer.values[0].shape != output.shape:
        return ""  # the weights come first, and are compared elsewhere
    (output * weighing(output)).sum().backward()
    for name, found, each in zip(ROLES, answer.gradients, own, strict=False):
        assert each.grad is not None
        if found is None:
            return f"No gradient reaches the {name}: the code leaves PyTorch's graph (`.detach()`, `.data`, NumPy)."
        if not same(found, each.grad):
            return f"The gradient of the {name} differs from the reference by up to {difference(found, each.grad):.3g}."
    return ""


def _in_place(student: Student, convention: Convention, trial: Trial) -> str:
    changed = student.ask(trial, convention).changed
    return f"The code changes its {ROLES[changed[0]]} in place: write `x = x / y` and not `x /= y`." if changed else ""


def _twice(student: Student, convention: Convention, trial: Trial) -> str:
    first, second = (student.run(trial, convention, seed=seed) for seed in (0, 1))
    return "" if repeats(first, second) else "Two calls with the same inputs differ: is dropout on?"


def _pattern(findings: Findings, student: Student, convention: Convention) -> str:
    each = trial(2, 3, 4, 5, mask=student.mask, seed=16)
    _, pattern = student.output(student.ask(each, convention), each, convention)
    if pattern is None:
        return ""
    expected = convention.results(each)[1]
    if same(pattern, expected.mean(1)) and expected.shape[1] > 1:
        findings.notes.append("The weights that it returns are the mean over the heads, not those of each head.")
        return ""
    if pattern.numel() != expected.numel():
        return f"The weights that it returns have the shape {list(pattern.shape)}, not {list(expected.shape)}."
    findings.conventions.append("It returns the weights as well.")
    gap = difference(pattern.reshape(expected.shape), expected)
    return f"The output is right, and the weights that it returns differ by up to {gap:.3g}." if gap > 1e-4 else ""


def _half(student: Student, convention: Convention, trial: Trial, precision: torch.dtype, name: str) -> str:
    answer = student.ask(trial, convention, precision=name)
    if answer.array:
        return ""  # NumPy computes in precisions of its own
    found = student.output(answer, trial, convention)[0]
    expected = convention.results(trial)[0]
    return of_another_precision(found, precision) or unlike(found.float(), expected, name, precision)


def _nothing(student: Student, convention: Convention) -> str:
    each = trial(2, 3, 5, 5, mask="one", seed=18)
    assert each.seen is not None
    each.seen[:, :, 2] = False
    found, expected = student.run(each, convention), convention.results(each)[0]
    others = [0, 1, 3, 4]
    if not same(found[:, :, others], expected[:, :, others]):
        return "A query that may see nothing changes the output of other queries."
    row, value = found[:, :, 2], convention.read(each.value)
    if bool(row.isnan().any()):
        return "A query that may see nothing gets NaN: −inf in the whole row makes softmax divide 0 by 0."
    if same(row, value.mean(2)):
        return "A query that may see nothing reads all keys alike, also the hidden ones; the reference gives it zeros."
    return "" if same(row, torch.zeros_like(row)) else "A query that may see nothing gets an output that is not zero."


def _finite(student: Student, convention: Convention, trial: Trial) -> str:
    if bool(student.run(trial, convention).isfinite().all()):
        return ""
    return "Scores beyond 100 give NaN: subtract the largest score of a row before `exp`, or use `torch.softmax`."


# --- every path that a flag opens


def _paths(findings: Findings, student: Student, convention: Convention) -> None:
    """Each flag of the code, on and off: what it opens is judged like the path without it."""
    for flag, causal in student.flags.items():
        for value in (True, False):
            words = f"{flag}={value}"
            findings.try_it(words, partial(_path, student, convention, {flag: value}, words, causal=causal))


def _path(student: Student, plain: Convention, flags: Mapping[str, bool], words: str, *, causal: bool) -> str:
    each = trial(2, 3, 5, 5, mask="" if causal else student.mask, seed=20)
    convention = plain
    if causal:
        convention = dataclasses.replace(plain, built_in=TOP_LEFT if all(flags.values()) else "")
    try:
        answers = [student.ask(each, convention, flags, seed=seed) for seed in (0, 1)]
        (output, pattern), (again, _) = (student.output(answer, each, convention) for answer in answers)
    except Refused as refused:
        if refused.fatal:
            raise
        return ""  # a path that wants more than attention does, such as a cache
    if not repeats(output, again):
        return ""  # dropout of a training
    expected, weights = convention.results(each)
    if (differs := unlike(output, expected, words)) or pattern is None or pattern.numel() != weights.numel():
        return differs
    gap = difference(pattern.reshape(weights.shape), weights)
    return f"With {words} the weights that it returns differ by up to {gap:.3g}." if gap > 1e-4 else ""
