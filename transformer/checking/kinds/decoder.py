"""A whole decoder: tokens in, logits of the next token out. It is tried on laws; its first attention is compared."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from transformer.checking import signatures
from transformer.checking.bench import Answer, Bench, Described
from transformer.checking.conventions import MASK_FORMS, SEEN, MaskForm
from transformer.checking.faults import Refused
from transformer.checking.findings import Findings, difference, moved, of_another_precision, same, share, unlike
from transformer.checking.kinds.module.conventions import leak
from transformer.checking.kinds.module.reference import SHARED, diagnose
from transformer.checking.kinds.module.student import causal
from transformer.checking.projections import ADDING, LINEAR, follow, hypotheses, read_by
from transformer.checking.recording import Step
from transformer.foundation.foreign import shortened

D_MODEL, HEADS, LONGEST, D_VOCAB = 24, 3, 16, 11
BATCH, LENGTH = 4, 9
ROLES = ("tokens", "mask")
DEFAULTS = {"flag": False, "causal": True, "memory": None, "dropout": 0.0}
SETTINGS = {
    "d_model": D_MODEL,
    "n_heads": HEADS,
    "n_groups": 1,
    "n_layers": 2,
    "d_vocab": D_VOCAB,
    "d_ff": 2 * D_MODEL,
    "n_ctx": LONGEST,
    "dropout": 0.0,
    "d_head": D_MODEL // HEADS,
    "bias": True,
    "causal": True,
}
CHANGED = 1e-5
"""A logit that moves by more has changed."""


@dataclass
class Student:
    """The decoder, asked in its convention."""

    bench: Bench
    places: dict[str, str]
    needed: set[str]
    form: MaskForm = SEEN
    axes: str = "full"
    targets: bool = False
    """Are logits of all positions given only where there are targets?"""

    def ask(self, tokens: Tensor, **options: Any) -> Answer:
        """What it answers for tokens [batch, position]. Raises Refused."""
        given: dict[str, Any] = {"tokens": tokens}
        if self.places.get("mask") in self.needed:
            mask = self.form.write(causal(*tokens.shape))
            given["mask"] = mask[0, 0] if self.axes == "matrix" else mask
        if self.targets:
            given["targets"] = tokens
        given |= {one: value for one, value in DEFAULTS.items() if self.places.get(one) in self.needed}
        return self.bench.call(list(given.values()), [self.places[one] for one in given], **options)

    def run(self, tokens: Tensor, **options: Any) -> Tensor:
        """The logits, [batch, position, d_vocab]. Raises Refused where no tensor has that shape."""
        answer = self.ask(tokens, **options)
        for value in answer.values:
            if value.shape == (*tokens.shape, D_VOCAB):
                return value
            if value.shape == (tokens.numel(), D_VOCAB):
                return value.unflatten(0, tokens.shape)
        shape = list(answer.values[0].shape)
        raise Refused(f"It returns the shape {shape}; the logits should be {[*tokens.shape, D_VOCAB]}.")


def drawn(batch: int, length: int, seed: int) -> Tensor:
    """Tokens [batch, position]."""
    return torch.randint(1, D_VOCAB, (batch, length), generator=torch.Generator().manual_seed(seed))


def judge(bench: Bench, described: Described) -> Findings:
    """Is it a decoder? Its laws, and its first attention beside ours with the same weights."""
    if not described.is_class:
        raise Refused("A decoder is checked as a class.", fatal=True)
    bench.make(signatures.settings(described, SETTINGS))
    places = signatures.places(described.called_with, ROLES, {**DEFAULTS, "targets": None})
    student = Student(bench, places, {each.name for each in described.called_with if not each.optional})
    findings = Findings()
    tokens = drawn(BATCH, LENGTH, 1)
    logits = _begin(student, tokens, findings)
    _laws(student, tokens, logits, findings)
    _attention(student, tokens, findings)
    if not findings.wrong:
        _edges(student, tokens, logits, findings)
    return findings


def _begin(student: Student, tokens: Tensor, findings: Findings) -> Tensor:
    """The logits, in the convention in which there are some. Raises Refused where there is none."""
    findings.tried.append(f"{BATCH} sequences of {LENGTH} tokens out of {D_VOCAB}, two layers, {HEADS} heads")
    refusals: list[Refused] = []
    masked = student.places.get("mask") in student.needed
    targets = (False, True) if "targets" in student.places else (False,)
    forms, axes = (MASK_FORMS, ("full", "matrix")) if masked else ((SEEN,), ("full",))
    runs: list[tuple[bool, MaskForm, str]] = []
    for convention in itertools.product(targets, forms, axes):
        student.targets, student.form, student.axes = convention
        try:
            student.run(tokens)
        except Refused as refused:
            if refused.fatal:
                raise
            refusals.append(refused)
            continue
        runs.append(convention)
        if not masked or torch.equal(_reach(student, tokens), causal(1, LENGTH)[0, 0]):
            break
    else:
        if not runs:
            raise Refused(str(refusals[0]), fatal=True)
        student.targets, student.form, student.axes = runs[0]
    if masked:
        findings.conventions.append(f"Mask: {student.form.words}.")
    if student.targets:
        findings.conventions.append("Logits of all positions come with targets only.")
    return student.run(tokens)


def _reach(student: Student, tokens: Tensor) -> Tensor:
    """Which logits change with which tokens, [query, key]."""
    logits, columns = student.run(tokens), []
    for place in range(tokens.shape[1]):
        other = tokens.clone()
        other[:, place] = other[:, place] % (D_VOCAB - 1) + 1
        columns.append(moved(student.run(other), logits).amax(dim=(0, 2)) > CHANGED)
    return torch.stack(columns, dim=1)


def _laws(student: Student, tokens: Tensor, logits: Tensor, findings: Findings) -> None:
    reach, expected = _reach(student, tokens), causal(1, LENGTH)[0, 0]
    findings.tried.append("each token replaced: which logits change?")
    if bool((reach & ~expected).any()):
        query, key = (int(each) for each in (reach & ~expected).nonzero()[0])
        what = leak(reach | torch.eye(LENGTH, dtype=torch.bool), expected)
        told = "" if "leaks" in what else f" {what}"
        findings.wrong.append(
            f"The future leaks: the logits at position {query + 1} change with the token at position {key + 1}.{told}"
        )
    elif not torch.equal(reach, expected):
        query, key = (int(each) for each in (reach != expected).nonzero()[0])
        sentence = f"The logits at position {query + 1} do not change with the token at position {key + 1}."
        (findings.wrong if query == key else findings.notes).append(sentence)

    def alone() -> str:
        return unlike(student.run(tokens[:1]), logits[:1], "one sequence in place of four")

    def shorter() -> str:
        if bool((reach & ~expected).any()):
            return ""
        return unlike(student.run(tokens[:, :4]), logits[:, :4], "the first four tokens alone")

    findings.try_it("one sequence in place of four", alone)
    findings.try_it("the first four tokens alone", shorter)
    sums = logits.exp().sum(-1)
    if same(logits.sum(-1), torch.ones(logits.shape[:-1])) and bool((logits >= 0).all()):
        findings.notes.append("It returns probabilities; `cross_entropy` takes logits, before the softmax.")
    elif same(sums, torch.ones_like(sums)):
        findings.conventions.append("It returns logarithms of probabilities.")


def _attention(student: Student, tokens: Tensor, findings: Findings) -> None:
    """The first attention of the decoder beside ours, and what stands around it."""
    steps = student.ask(tokens, record=True).steps
    for step in steps:
        x = read_by(step, steps) if step.name in LINEAR and step.parameter else None
        if x is not None and x.shape == (LENGTH, BATCH, D_MODEL):
            x = x.transpose(0, 1)
        if x is None or x.shape != (BATCH, LENGTH, D_MODEL) or not bool(x.isfinite().all()):
            continue
        read = follow(steps, x, HEADS)
        found = list(hypotheses(read, LONGEST))
        if read.shared:
            findings.wrong.insert(0, SHARED)
            findings.call_if_there("one-projection-for-all-heads")
        if not found or read.after is None:
            continue
        seen = causal(BATCH, LENGTH)
        findings.tried.append("the first attention beside ours with the same weights")
        for hypothesis in found:
            if same(hypothesis.run(x, seen), read.after):
                findings.conventions += hypothesis.words
                break
        else:
            wrong = bool(findings.wrong)
            diagnose(found, x, seen, read.after, steps, findings)
            if wrong and not findings.mistake:
                findings.wrong.append(findings.wrong.pop(0))  # the law that is broken says more
        _around(steps, read.after, findings)
        break
    else:
        findings.undecided = (
            "Its attention was not found, so it was compared with no reference: only the laws of a decoder were "
            "checked. The class of its attention, checked by itself, would decide it."
        )
    _norms(steps, findings)


def _around(steps: Sequence[Step], attended: Tensor, findings: Findings) -> None:
    """Is what attention makes added to the stream?"""
    names = {f"step {place}" for place, step in enumerate(steps) if _equal(step.value, attended)}
    for step in steps:
        if step.name in ADDING and names & set(step.sources):
            if len([each for each in step.sources if each]) > 1:
                return
        elif step.name in ("dropout", "contiguous", "reshape", "view", "transpose", "__mul__", "mul", "__get__"):
            names |= {f"step {place}" for place, each in enumerate(steps) if each is step and names & set(step.sources)}
    findings.wrong.append("What attention makes is not added to its input: the residual connection is missing.")
    if not findings.mistake:
        findings.call_if_there("no-residual")


def _equal(one: Tensor, other: Tensor) -> bool:
    return one.numel() == other.numel() and (
        torch.equal(one.reshape(-1), other.reshape(-1))
        or (one.shape[:2] == other.shape[1::-1] and torch.equal(one.transpose(0, 1).reshape(-1), other.reshape(-1)))
    )


def _norms(steps: Sequence[Step], findings: Findings) -> None:
    """Is a vector divided by its unbiased standard deviation?"""
    for step in steps:
        source = read_by(step, steps)
        if step.name not in ("std", "var") or source is None or source.shape != (BATCH, LENGTH, D_MODEL):
            continue
        unbiased = source.std(-1) if step.name == "std" else source.var(-1)
        if step.value.numel() == unbiased.numel() and same(step.value.reshape(unbiased.shape), unbiased):
            findings.wrong.append("A norm divides by the unbiased standard deviation; LayerNorm takes the biased one.")
            if not findings.mistake:
                findings.call_if_there("norm-by-std")
            return


# --- the edges


def _edges(student: Student, tokens: Tensor, logits: Tensor, findings: Findings) -> None:
    def finite(batch: int, length: int) -> str:
        return "" if bool(student.run(drawn(batch, length, 5)).isfinite().all()) else "The logits are not all finite."

    findings.try_it("one token", lambda: finite(2, 1))
    findings.try_it(f"as many tokens as it was made for, {LONGEST}", lambda: finite(2, LONGEST))
    findings.try_it("gradients", lambda: _gradients(student, tokens))
    findings.try_it("the same call twice", lambda: _twice(student, tokens, logits))
    findings.look_at("half precision (bfloat16)", lambda: _half(student, tokens, logits))
    findings.look_at("two earlier tokens exchanged", lambda: _exchanged(student, tokens, logits))


def _gradients(student: Student, tokens: Tensor) -> str:
    unused = student.ask(tokens, gradients=True).unused
    # A bias of the keys moves all scores of a row alike, and softmax takes no notice: in right code as well.
    unused = tuple(name for name in unused if not name.endswith("bias"))
    return f"No gradient reaches {shortened(unused[0])}: it takes no part in the logits." if unused else ""


def _twice(student: Student, tokens: Tensor, logits: Tensor) -> str:
    return "" if same(student.run(tokens, seed=1), logits) else "Two calls differ in evaluation mode: is dropout on?"


def _half(student: Student, tokens: Tensor, logits: Tensor) -> str:
    found = student.run(tokens, precision="bfloat16")
    gap = share(found, logits)
    far = f"In bfloat16 the logits differ by {gap:.0%} of the largest." if not gap < 0.15 else ""
    return of_another_precision(found, torch.bfloat16) or far


def _exchanged(student: Student, tokens: Tensor, logits: Tensor) -> str:
    """A causal mask alone tells something of the order, from the second layer on."""
    tokens = tokens.clone()
    tokens[:, 1] = tokens[:, 2] % (D_VOCAB - 1) + 1
    other = tokens.clone()
    other[:, [1, 2]] = other[:, [2, 1]]
    gap = difference(student.run(tokens)[:, -1], student.run(other)[:, -1])
    if gap > CHANGED:
        return ""
    return "The last logits do not change when two earlier tokens are exchanged: nothing tells the order."
