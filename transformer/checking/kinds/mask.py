"""A function that makes a mask: causal, of padding, or both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from transformer.checking.bench import Bench, Described
from transformer.checking.conventions import MASK_FORMS, MaskForm
from transformer.checking.faults import Refused
from transformer.checking.findings import Findings, mistakes
from transformer.checking.signatures import role
from transformer.foundation.foreign import quoted
from transformer.foundation.words import counted
from transformer.mistakes import MaskMistake

LENGTHS = (5, 1, 2, 8, 33)
PAD = 9


def causal(length: int) -> Tensor:
    """The causal mask [query, key]."""
    return torch.ones(length, length, dtype=torch.bool).tril()


def judge(bench: Bench, described: Described) -> Findings:
    """Does it give the mask that it should, at each length, whichever way round?"""
    if described.is_class:
        raise Refused("A mask is checked as a function: give one that returns it.", fatal=True)
    needed = [each.name for each in described.parameters if not each.optional]
    roles = [role(name, ("tokens", "d_vocab", "n_ctx", "d_model")) for name in needed]
    findings = Findings()
    if (len(needed) == 2 and "pad" in needed[1].lower()) or (
        len(needed) == 1 and _reads_tokens(bench, needed[0], roles[0])
    ):
        _padding(bench, needed, findings)
    else:
        _causal(bench, needed, findings)
    return findings


def _reads_tokens(bench: Bench, name: str, one: str) -> bool:
    """Is the only argument a tensor of tokens? Its name says so, or a number is refused."""
    if one == "tokens" or name in ("x", "src", "tgt", "seq", "ids", "trg"):
        try:
            bench.call([4])
        except Refused as refused:
            if refused.fatal:
                raise
            return True
    return False


def _causal(bench: Bench, needed: Sequence[str], findings: Findings) -> None:
    if len(needed) not in (1, 2):
        raise Refused(
            f"A mask is made for a length, or for two; {quoted(', '.join(needed))} is something else.", fatal=True
        )

    def answered(length: int) -> Tensor:
        return _matrix(bench.call([length] * len(needed)).values[0], length)

    first = answered(LENGTHS[0])
    found = _form(first, causal(LENGTHS[0]))
    if found is None:
        findings.tried.append("5 positions")
        _name(first, findings)
        return
    findings.conventions.append(f"Mask: {found.words}.")
    for length in LENGTHS:
        findings.try_it(counted(length, "position"), partial(_unlike, found, answered, length))


def _padding(bench: Bench, needed: Sequence[str], findings: Findings) -> None:
    """Tokens in, a mask out: of padding alone, or causal as well. Padding is 9 where it is asked for, else 0."""
    pad = PAD if len(needed) > 1 else 0
    rest: list[Any] = [pad] * (len(needed) - 1)
    tokens = torch.tensor([[3, 4, 5, 6, 7], [3, 4, pad, pad, pad], [6, 6, 6, 6, pad]])
    mask = bench.call([tokens, *rest]).values[0]
    real = (tokens != pad)[:, None, :]
    both = causal(5) & real
    findings.tried.append("three sequences of 5 tokens, two of them with padding")
    expected, words = real.expand(3, 5, 5), "padding alone"
    read = [(form, form.read(mask)) for form in MASK_FORMS]
    for form, seen in read:
        for target, what in ((expected, words), (both, "padding and later tokens")):
            if seen is not None and _spread(seen, target):
                findings.conventions += [f"Mask: {form.words}.", f"It hides {what}."]
                return
    findings.wrong.append("The mask hides neither the padding alone nor the padding and later tokens.")


def _spread(seen: Tensor, target: Tensor) -> bool:
    """Is a mask this one, with an axis of heads or of queries that is 1 or left out?"""
    if seen.dim() == 4 and seen.shape[1]:
        seen = seen[:, 0]
    if seen.dim() == 2 and seen.shape == (target.shape[0], target.shape[2]):
        seen = seen[:, None]
    try:
        return torch.equal(seen.expand_as(target), target)
    except RuntimeError:
        return False


def _matrix(mask: Tensor, length: int) -> Tensor:
    """The matrix [query, key] in a mask whose other axes are 1. Raises Refused."""
    squeezed = (
        mask.reshape(mask.shape[-2:]) if mask.dim() > 1 and mask.numel() == mask.shape[-1] * mask.shape[-2] else mask
    )
    if squeezed.shape != (length, length):
        raise Refused(f"For {length} positions it returns the shape {list(mask.shape)}, not [{length}, {length}].")
    return squeezed


def _form(mask: Tensor, expected: Tensor) -> MaskForm | None:
    """The convention under which a mask is the expected one."""
    for form in MASK_FORMS:
        if (seen := form.read(mask)) is not None and torch.equal(seen, expected):
            return form
    return None


def _unlike(form: MaskForm, answered: Callable[[int], Tensor], length: int) -> str:
    """The sentence that a mask is not causal; empty where it is."""
    if torch.equal(answered(length), form.write(causal(length))):
        return ""
    seen = form.read(answered(length))
    if seen is not None and torch.equal(seen, causal(length)):
        return ""
    return f"For {counted(length, 'position')} the mask is not causal."


def _name(mask: Tensor, findings: Findings) -> None:
    """Which mistake is it? Read as True = seen first, and then the other ways round."""
    length = len(mask)
    named = None
    for form in MASK_FORMS:
        seen = form.read(mask)
        if seen is None:
            continue
        sentence = _sentence(seen)
        findings.wrong += [f"Read as “{form.words}”: {sentence}"] if form.words not in str(findings.wrong) else []
        for each in mistakes(MaskMistake):
            if named is None and torch.equal(each.wrong(length), seen):
                named = each
    if not findings.wrong:
        findings.wrong.append("The mask holds other numbers than 0, 1 and −inf.")
    if named is not None:
        findings.call_by_name(named)


def _sentence(seen: Tensor) -> str:
    """What is not causal about a mask, by its first wrong cell."""
    query, key = (int(each) for each in (seen != causal(len(seen))).nonzero()[0])
    if seen[query, key]:
        return f"position {query + 1} sees position {key + 1}, which comes later."
    return f"position {query + 1} does not see position {key + 1}{', itself' if query == key else ''}."
