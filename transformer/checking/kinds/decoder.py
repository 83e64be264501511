"""A whole decoder: tokens in, logits of the next token out. It is tried on laws; its first attention is compared."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from transformer.checking import signatures
from transformer.checking.bench import CONFIG, Answer, Bench, Described
from transformer.checking.conventions import MASK_FORMS, SEEN, MaskForm
from transformer.checking.faults import Refused
from transformer.checking.findings import (
    Findings,
    difference,
    moved,
    of_another_precision,
    repeats,
    same,
    share,
    unlike,
)
from transformer.checking.kinds.module.conventions import leak
from transformer.checking.kinds.module.edges import twice
from transformer.checking.kinds.module.reference import FEW, SHARED, diagnose
from transformer.checking.kinds.module.student import ANY_HEADS, causal, enough
from transformer.checking.projections import ADDING, LINEAR, follow, hypotheses, read_by
from transformer.checking.recording import Step
from transformer.foundation.foreign import shortened

D_MODEL, HEADS, LONGEST, D_VOCAB = 24, 3, 16, 11
BATCH, LENGTH, SHORT = 4, 9, 6
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
    "dropout": 0.1,
    "d_head": D_MODEL // HEADS,
    "bias": True,
    "causal": True,
}
BENT = ("gelu", "relu", "silu", "tanh", "sigmoid", "softmax", "scaled_dot_product_attention")
"""What a layer does to what it makes: behind it the stream is no more."""
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
    length: int = LENGTH
    """Tokens of a sequence, in the comparison."""
    told: frozenset[str] = frozenset()
    """The sizes that it was told, of SETTINGS; all others are its own."""
    d_vocab: int = D_VOCAB
    d_model: int = D_MODEL
    heads: int = HEADS

    def ask(self, tokens: Tensor, targets: Tensor | None = None, **options: Any) -> Answer:
        """What it answers for tokens [batch, position], and for targets, if it takes any. Raises Refused."""
        given: dict[str, Any] = {"tokens": tokens}
        if self.places.get("mask") in self.needed:
            mask = self.form.write(causal(*tokens.shape))
            given["mask"] = mask[0, 0] if self.axes == "matrix" else mask
        if self.targets or targets is not None:
            given["targets"] = tokens if targets is None else targets
        given |= {one: value for one, value in DEFAULTS.items() if self.places.get(one) in self.needed}
        return self.bench.call(list(given.values()), [self.places[one] for one in given], **options)

    def run(self, tokens: Tensor, **options: Any) -> Tensor:
        """The logits, [batch, position, d_vocab]. Raises Refused where no tensor has that shape."""
        answer = self.ask(tokens, **options)
        for value in answer.values:
            own = value.shape[-1] if "d_vocab" not in self.told and value.dim() > 1 else self.d_vocab
            if value.shape == (*tokens.shape, own):
                return value
            if value.shape == (tokens.numel(), own):
                return value.unflatten(0, tokens.shape)
        shape = list(answer.values[0].shape)
        raise Refused(f"It returns the shape {shape}; the logits should be {[*tokens.shape, self.d_vocab]}.")

    def drawn(self, batch: int, length: int, seed: int) -> Tensor:
        """Tokens [batch, position]."""
        most = min(self.d_vocab, D_VOCAB)
        return torch.randint(1, most, (batch, length), generator=torch.Generator().manual_seed(seed))

    def other(self, tokens: Tensor) -> Tensor:
        """Another token for each."""
        return tokens % (min(self.d_vocab, D_VOCAB) - 1) + 1


def judge(bench: Bench, described: Described) -> Findings:
    """Is it a decoder? Its laws, and its first attention beside ours with the same weights."""
    if not described.is_class:
        raise Refused("A decoder is checked as a class.", fatal=True)
    student, tokens, logits, findings = _begun(bench, described)
    findings.tried.append("the same call twice")
    if drops := twice(logits, student.run(tokens, seed=1)):
        findings.wrong.append(drops)
        return findings
    changed, kept = student.other(tokens), len(tokens) // 2  # behind a causal mask the first one sees no other
    changed[kept] = tokens[kept]
    if not repeats(logits[kept], student.run(changed)[kept]):
        findings.wrong.append("The sequences of a batch mix: another sequence beside it changes what a sequence gives.")
    leaks = _laws(student, tokens, logits, findings)
    _attention(student, tokens, findings)
    if leaks and not findings.mistake:
        findings.wrong.append(leaks)
    if "targets" in student.places:
        findings.try_it("the loss with targets", lambda: _loss(student, tokens, findings))
    if not findings.wrong:
        _edges(student, tokens, logits, findings)
    return findings


def _begun(bench: Bench, described: Described) -> tuple[Student, Tensor, Tensor, Findings]:
    """The decoder, made with the check's sizes or else with its own; tokens that it runs on, and their logits.

    Raises Refused where it does not run.
    """
    settings = signatures.settings(described, SETTINGS)
    own = signatures.needed(described, settings)
    places = signatures.places(described.called_with, ROLES, {**DEFAULTS, "targets": None})
    needed = {each.name for each in described.called_with if not each.optional}
    refusal: Refused | None = None
    for given, length in itertools.product([settings] if own == settings else [settings, own], (LENGTH, SHORT)):
        told = {name if name in CONFIG else signatures.role(name, tuple(SETTINGS)) for name in given}
        student, findings = Student(bench, places, needed, length=length, told=frozenset(told)), Findings()
        try:
            made = bench.make(given).parameters
            first = _begin(student, student.drawn(BATCH, length, 1), Findings())
            student.d_vocab = first.shape[-1]
            if "d_model" not in told:
                student.d_model = _width(made, student.d_vocab)
            if "n_heads" not in told:
                student.heads = 0
            tokens = student.drawn(enough(student.d_model, length, BATCH), length, 1)
            return student, tokens, _begin(student, tokens, findings), findings
        except Refused as refused:
            if refused.fatal:
                raise
            refusal = refusal or refused
    assert refusal is not None
    raise refusal


def _width(parameters: Mapping[str, Tensor], d_vocab: int) -> int:
    """Numbers of a vector of the stream: as many as one of the vocabulary has, or as most layers read."""
    matrices = [each for each in parameters.values() if each.dim() == 2]
    vectors = [each for each in matrices if len(each) == d_vocab] or matrices
    return Counter(each.shape[-1] for each in vectors).most_common(1)[0][0] if vectors else D_MODEL


def _begin(student: Student, tokens: Tensor, findings: Findings) -> Tensor:
    """The logits, in the convention in which there are some. Raises Refused where there is none."""
    heads = f", {student.heads} heads" if student.heads else ""
    layers = ", two layers" if "n_layers" in student.told else ""
    words = f"{len(tokens)} sequences of {student.length} tokens out of {student.d_vocab}{layers}{heads}"
    findings.tried.append(words)
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
        if not masked or torch.equal(_reach(student, tokens), causal(1, student.length)[0, 0]):
            break
    else:
        if not runs:
            raise refusals[0]
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
        other[:, place] = student.other(other[:, place])
        columns.append(moved(student.run(other), logits).amax(dim=(0, 2)) > CHANGED)
    return torch.stack(columns, dim=1)


def _laws(student: Student, tokens: Tensor, logits: Tensor, findings: Findings) -> str:
    """Try the laws; more on how the future leaks, where that is not what a mistake with a name does."""
    leaks = ""
    reach, expected = _reach(student, tokens), causal(1, student.length)[0, 0]
    findings.tried.append("each token replaced: which logits change?")
    if bool((reach & ~expected).any()):
        query, key = (int(each) for each in (reach & ~expected).nonzero()[0])
        what = leak(reach | torch.eye(student.length, dtype=torch.bool), expected)
        leaks = "" if "leaks" in what else what
        findings.wrong.append(
            f"The future leaks: the logits at position {query + 1} change with the token at position {key + 1}."
        )
    elif not torch.equal(reach, expected):
        query, key = (int(each) for each in (reach != expected).nonzero()[0])
        sentence = f"The logits at position {query + 1} do not change with the token at position {key + 1}."
        (findings.wrong if query == key else findings.notes).append(sentence)

    def alone() -> str:
        return unlike(student.run(tokens[:1]), logits[:1], "one sequence in place of several")

    def shorter() -> str:
        if bool((reach & ~expected).any()):
            return ""
        return unlike(student.run(tokens[:, :4]), logits[:, :4], "the first four tokens alone")

    findings.try_it("one sequence in place of several", alone)
    findings.try_it("the first four tokens alone", shorter)
    sums = logits.exp().sum(-1)
    if same(logits.sum(-1), torch.ones(logits.shape[:-1])) and bool((logits >= 0).all()):
        findings.undecided = (
            "It returns probabilities, and no logits. Its loss would decide it: `cross_entropy` takes logits, from "
            "before the softmax, and with probabilities it is wrong."
        )
    elif same(sums, torch.ones_like(sums)):
        findings.conventions.append("It returns logarithms of probabilities.")
    return leaks


def _attention(student: Student, tokens: Tensor, findings: Findings) -> None:
    """The first attention of the decoder beside ours, and what stands around it."""
    steps = student.ask(tokens, record=True).steps
    for step in steps:
        x = read_by(step, steps) if step.name in LINEAR and step.parameter else None
        if x is not None and x.shape == (tokens.shape[1], tokens.shape[0], student.d_model):
            x = x.transpose(0, 1)
        if x is None or x.shape != (*tokens.shape, student.d_model) or not bool(x.isfinite().all()):
            continue
        reads = [follow(steps, x, heads) for heads in _heads(student, steps, tokens)]
        every, found = (hypothesis for read in reads for hypothesis in hypotheses(read, LONGEST)), []
        if any(read.shared for read in reads):
            findings.wrong.insert(0, SHARED)
            findings.call_if_there("one-projection-for-all-heads")
        seen, after = causal(*tokens.shape), next((read.after for read in reads if read.after is not None), None)
        if after is None:
            continue
        agrees = False
        for hypothesis in every:
            found.append(hypothesis)
            agrees = same(hypothesis.run(x[:FEW], seen[:FEW]), after[:FEW])
            agrees = agrees and same(hypothesis.run(x, seen), after)
            if agrees:
                break
        if not found:
            continue
        findings.tried.append("the first attention beside ours with the same weights")
        if agrees:
            findings.conventions += found[-1].words
        else:
            wrong = bool(findings.wrong)
            own = next((place for place, step in enumerate(steps) if _equal(step.value, after)), len(steps))
            diagnose(found, x, seen, after, steps[: own + 1], findings)
            if wrong and not findings.mistake:
                findings.wrong.append(findings.wrong.pop(0))  # the law that is broken says more
        _around(steps, after, findings)
        break
    else:
        findings.undecided = findings.undecided or (
            "Its attention was not found, so it was compared with no reference: only the laws of a decoder were "
            "checked. The class of its attention, checked by itself, would decide it."
        )
    _norms(steps, findings)
    _places(steps, tokens, findings)


def _heads(student: Student, steps: Sequence[Step], tokens: Tensor) -> Sequence[int]:
    """How many heads it may have: as many as it was told, or as patterns in its first softmax, or any number."""
    if student.heads:
        return (student.heads,)
    square, one = (tokens.shape[1], tokens.shape[1]), tokens.shape[0] * tokens.shape[1] ** 2
    patterns = (step.value for step in steps if step.name == "softmax" and step.value.shape[-2:] == square)
    found = next((each.numel() // one for each in patterns), 0)
    return list(dict.fromkeys([*([found] if found else []), *ANY_HEADS]))


def _places(steps: Sequence[Step], tokens: Tensor, findings: Findings) -> None:
    """Do all positions get one vector of an embedding of positions?"""
    for step in steps:
        if step.name != "embedding" or not re.search(r"pos|wpe", step.parameter) or step.value.dim() < 2:
            continue
        rows = step.value.flatten(0, -2)
        if step.value.dim() == 3 and step.value.shape[:2] == tokens.shape and not same(*step.value[:2]):
            findings.wrong.append(
                f"The same position gets other vectors of {step.parameter} in another sequence: look them up by the "
                "position, and not by the token."
            )
        elif step.value.shape[-2] == tokens.shape[1] and torch.equal(rows, rows[:1].expand_as(rows)):
            findings.wrong.append(f"Every position gets the same vector of {step.parameter}: nothing tells the order.")


def _around(steps: Sequence[Step], attended: Tensor, findings: Findings) -> None:
    """Is what attention makes added to the stream, and is the stream added to what comes of it?"""
    names = {f"step {place}" for place, step in enumerate(steps) if _equal(step.value, attended)}
    for place, step in enumerate(steps):
        if step.name in ADDING and names & set(step.sources):
            if _adds_two(step):
                _require_stream(steps, place, findings)
                return
        elif step.name in ("dropout", "contiguous", "reshape", "view", "transpose", "__mul__", "mul", "__get__"):
            names |= {f"step {place}"} if names & set(step.sources) else set()
    findings.wrong.append("What attention makes is not added to its input: the residual connection is missing.")
    if not findings.mistake:
        findings.call_if_there("no-residual")


def _adds_two(step: Step) -> bool:
    return len([each for each in step.sources if each]) > 1


def _require_stream(steps: Sequence[Step], place: int, findings: Findings) -> None:
    """Note as wrong that what stands in the stream at a place is never added to what later layers make of it."""
    stream, later = {f"step {place}"}, False
    for number, step in enumerate(steps[place + 1 :], place + 1):
        sums = step.name in ADDING and _adds_two(step) and step.value.shape == steps[place].value.shape
        if sums and not step.parameter:
            read = stream & set(step.sources)
            later = True
            if read and set(step.sources) - stream:
                return
        if stream & set(step.sources) and not (step.name in LINEAR and step.parameter) and step.name not in BENT:
            stream.add(f"step {number}")
    if later:
        findings.wrong.append(
            "Behind the first attention the stream is lost: no layer's result is added to it. The residual connection "
            "of the feed-forward layer is missing."
        )


def _equal(one: Tensor, other: Tensor) -> bool:
    return one.numel() == other.numel() and (
        torch.equal(one.reshape(-1), other.reshape(-1))
        or (one.shape[:2] == other.shape[1::-1] and torch.equal(one.transpose(0, 1).reshape(-1), other.reshape(-1)))
    )


def _norms(steps: Sequence[Step], findings: Findings) -> None:
    """Is a vector divided by its unbiased standard deviation?"""
    for step in steps:
        source = read_by(step, steps)
        if step.name not in ("std", "var") or source is None or source.shape[-1] < 2 or source.dim() != 3:
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
        found = student.run(student.drawn(batch, length, 5))
        return "" if bool(found.isfinite().all()) else "The logits are not all finite."

    findings.try_it("one token", lambda: finite(2, 1))
    if "n_ctx" in student.told or any(name in CONFIG for name in student.told):  # whose class may have its own length
        attempt = findings.try_it if "n_ctx" in student.told else findings.look_at
        attempt(f"as many tokens as it was made for, {LONGEST}", lambda: finite(2, LONGEST))
    findings.try_it("gradients", lambda: _gradients(student, tokens))
    findings.look_at("half precision (bfloat16)", lambda: _half(student, tokens, logits))
    findings.look_at("two earlier tokens exchanged", lambda: _exchanged(student, tokens, logits))


def _loss(student: Student, tokens: Tensor, findings: Findings) -> str:
    """What is wrong with the loss that it returns where it is given targets; empty where nothing is known to be."""
    targets = student.drawn(len(tokens), tokens.shape[1], 6)
    answer = student.ask(tokens, targets=targets)
    losses = [each for each in answer.values if each.numel() == 1]
    logits = student.run(tokens)
    if not losses:
        return ""

    def is_of(scores: Tensor, of: Tensor) -> bool:
        mean = cross_entropy(scores.flatten(0, -2), of.flatten())
        return any(same(losses[0].reshape(()), each) for each in (mean, mean * of.numel()))

    if is_of(logits, targets):
        return ""
    if is_of(logits[:, :-1], targets[:, 1:]):
        findings.conventions.append("The loss shifts its targets itself: hand over the tokens that are read.")
    elif is_of(logits, tokens) or is_of(logits[:, :-1], tokens[:, 1:]):
        return "The loss compares the logits with the tokens that are read, and not with the targets."
    elif is_of(logits.softmax(-1), targets):
        return "The loss is that of probabilities: `cross_entropy` takes logits, from before the softmax."
    else:
        findings.notes.append("Its loss is no mean of cross-entropies of its logits and targets: it was not judged.")
    return ""


def _gradients(student: Student, tokens: Tensor) -> str:
    unused = student.ask(tokens, gradients=True).unused
    # A bias of the keys moves all scores of a row alike, and softmax takes no notice: in right code as well.
    unused = tuple(name for name in unused if not name.endswith("bias"))
    return f"No gradient reaches {shortened(unused[0])}: it takes no part in the logits." if unused else ""


def _half(student: Student, tokens: Tensor, logits: Tensor) -> str:
    found = student.run(tokens, precision="bfloat16")
    gap = share(found, logits)
    far = f"In bfloat16 the logits differ by {gap:.0%} of the largest." if not gap < 0.15 else ""
    return of_another_precision(found, torch.bfloat16) or far


def _exchanged(student: Student, tokens: Tensor, logits: Tensor) -> str:
    """A causal mask alone tells something of the order, from the second layer on."""
    tokens = tokens.clone()
    tokens[:, 1] = student.other(tokens[:, 2])
    other = tokens.clone()
    other[:, [1, 2]] = other[:, [2, 1]]
    gap = difference(student.run(tokens)[:, -1], student.run(other)[:, -1])
    if gap > CHANGED:
        return ""
    return "The last logits do not change when two earlier tokens are exchanged: nothing tells the order."
