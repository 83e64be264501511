"""What is right in the middle, and may go wrong at the edges: other sizes, other sequences, other masks, flags."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import torch
from torch import Tensor

from transformer.checking.around import ATTENTION_ALONE, read_from
from transformer.checking.conventions import MASK_FORMS
from transformer.checking.faults import Refused
from transformer.checking.findings import Findings, difference, of_another_precision, repeats, same, share, unlike
from transformer.checking.kinds.module.student import BEYOND, Student, causal
from transformer.checking.projections import (
    Hypothesis,
    layers_of,
)
from transformer.foundation.foreign import shortened
from transformer.foundation.words import counted
from transformer.positions import NO_POSITIONS


def try_edges(student: Student, reference: Hypothesis | None, seen: Tensor | None, findings: Findings) -> None:
    def masked(batch: int, length: int) -> Tensor | None:
        return None if seen is None and not student.window else student.mask(batch, length)

    def case(batch: int, length: int, seed: int) -> None:
        beyond = length > student.length and not student.told_length
        if (beyond or student.grid) and _refused(student, batch, length, seed):
            sizes = f"for {student.length}" if student.grid else "for fewer"
            findings.notes.append(f"It takes no {counted(length, 'position')}: its own sizes are {sizes}.")
            return
        words = f"{counted(batch, 'sequence')} of {counted(length, 'position')}"
        x, visible = student.drawn(batch, length, seed), masked(batch, length)

        def attempt() -> str:
            found = student.run(x, student.shown(visible))
            if reference is not None:
                return unlike(found, reference.run(x, visible), words)
            return "" if bool(found.isfinite().all()) else f"With {words} the output is not finite."

        findings.try_it(words, attempt)

    for shape in ((1, 5, 21), (2, 1, 22), (3, 17, 23)):
        case(*shape)
    if (span := len(student.window)) > student.length and (reference is None or reference.positions is NO_POSITIONS):
        case(1, span + BEYOND, 24)
    some = student.length if student.grid else 6
    x, visible = student.drawn(2, some, 30), student.shown(masked(2, some))
    if student.crossed and reference is not None and (seen is None or "mask" in student.places):
        _crossed(student, reference, x, findings)
    if reference is not None:
        _not_needed(student, reference, x, findings)
    if reference is None:
        _unread(student, some, findings)
    if student.cache[0]:
        _cached(student, findings, causal=seen is not None and "mask" not in student.places)
    findings.try_it("gradients", lambda: _gradients(student, x, visible))
    findings.try_it("inputs that must not change", lambda: _in_place(student, x, visible))
    for precision in (torch.float16, torch.bfloat16):
        name = str(precision).removeprefix("torch.")
        findings.look_at(f"half precision ({name})", partial(_half, student, x, visible, precision, name))
    if "mask" in student.places and student.axes != "keys":
        findings.look_at("a query that may see nothing", lambda: _nothing(student, x))


def _refused(student: Student, batch: int, length: int, seed: int) -> bool:
    """Does it raise an error for so many positions?"""
    try:
        student.run(student.drawn(batch, length, seed), student.shown(student.mask(batch, length)))
    except Refused as refused:
        if refused.fatal:
            raise
        return True
    return False


def try_paths(
    student: Student, reference: Hypothesis | None, x: Tensor, seen: Tensor | None, findings: Findings
) -> None:
    """Each flag of the code, on and off: what it opens is judged like the path without it."""

    def attempt(flag: str, value: bool, causal_flag: bool) -> str:
        visible = seen
        if causal_flag:
            visible = causal(len(x), x.shape[1]) if value else None
        shown = None if causal_flag else student.shown(seen)
        try:
            found, again = (student.run(x, shown, flags={flag: value}, seed=seed) for seed in (0, 1))
        except Refused as refused:
            if refused.fatal:
                raise
            return ""  # a path that wants more than attention does, such as a cache
        if not repeats(found, again):
            return ""  # dropout of a training
        if reference is not None:
            return unlike(found, reference.run(x, visible), f"{flag}={value}")
        return "" if causal_flag else unlike(found, student.run(x, shown), f"{flag}={value}")

    for flag, causal_flag in student.flags.items():
        for value in (True, False):
            findings.try_it(f"{flag}={value}", partial(attempt, flag, value, causal_flag))


def _not_needed(student: Student, reference: Hypothesis, x: Tensor, findings: Findings) -> None:
    """Is what may be handed over besides used as its name says: a sequence to look at, a mask of padding?"""
    other, keys = student.drawn(2, 8, 34), torch.tensor([True, True, False, True, True, False])
    hides = keys.expand(2, 1, 6, 6)

    def looks(name: str) -> str:
        return _looks(student, reference, x, other, name, {name: student.turn(other)})

    def pads(name: str) -> str:
        plain, found = student.run(x), []
        for form in MASK_FORMS:
            given = {name: form.write(hides)[:, 0, 0]}
            try:
                found.append(student.run(x, flags=given))
            except Refused as refused:
                if refused.fatal:
                    raise
                continue
            if same(found[-1], reference.run(x, hides)):
                both = causal(2, 6)
                together = student.run(x, student.shown(both), flags=given)
                seen = hides & both if "mask" in student.places else hides
                return unlike(together, reference.run(x, seen), f"{name} and the other mask together")
        if found and all(same(each, plain) for each in found):
            return f"It takes {name} and never reads it."
        findings.notes.append(f"It takes no mask [batch, key] as {name}; no other was tried.")
        return ""

    for name, role in student.further.items():
        if role == "memory":
            findings.try_it(f"{name}, 8 positions", partial(looks, name))
        elif "padding" in name.lower():
            findings.try_it(f"{name} beside the other mask", partial(pads, name))


def _looks(
    student: Student, reference: Hypothesis, x: Tensor, other: Tensor, words: str, flags: Mapping[str, Tensor]
) -> str:
    """The sentence that it makes something else of another sequence to look at; empty where it does not.

    That may be read as x is, as it comes, with a norm of its own, or behind x.
    """
    answer = student.ask(x, None, None if flags else other, flags=flags, record=True)
    found, ways = student.output(answer, x), [reference.run(x, None, other), reference.run(x, None, other, plain=True)]
    for _, source, _ in layers_of(answer.steps, x, other, reference.module.n_heads):
        if read_from(source, x, other):
            ways.append(reference.run(x, None, source, plain=True))
    return unlike(found, next((each for each in ways if same(found, each)), ways[0]), words)


def _crossed(student: Student, reference: Hypothesis, x: Tensor, findings: Findings) -> None:
    """Are queries, keys and values each made of what they are handed?"""
    same_length, longer = student.drawn(2, 6, 32), student.drawn(2, 8, 31)

    def attempt(words: str, other: Tensor) -> str:
        return _looks(student, reference, x, other, words, {})

    words = "another sequence to look at"
    findings.try_it(words, partial(attempt, words, same_length))
    words = "6 queries and 8 keys"
    look = findings.try_it if "memory" in student.places else findings.look_at
    look(words, partial(attempt, words, longer))
    if {"key", "value"} <= student.places.keys() and reference.around is ATTENTION_ALONE:
        values = student.drawn(2, 6, 33)
        words = "other values than keys"

        def apart() -> str:
            found = student.run(x, None, same_length, flags={student.places["value"]: student.turn(values)})
            return unlike(found, reference.cross(x, same_length, values), words)

        findings.try_it(words, apart)


def _unread(student: Student, length: int, findings: Findings) -> None:
    """Say what may be looked at and is not read."""
    names = [student.places.get(one) for one in ("key", "value", "memory")]
    names += [name for name, role in student.further.items() if role == "memory"]

    def attempt() -> str:
        x, other = student.drawn(2, length, 36), student.drawn(2, length, 37)
        before = student.run(x)
        for name in filter(None, names):
            if same(student.run(x, flags={name: student.turn(other)}), before):
                return f"It takes {name} and never reads it."
        return ""

    if any(names):
        findings.try_it("each argument by itself", attempt)


PIECES = (3, 2, 1)
"""Tokens that are handed over at a time, with the keys and values of those before."""


def _cached(student: Student, findings: Findings, *, causal: bool) -> None:
    """Do tokens that are handed over piece by piece, with the keys and values of those before, give the same?"""
    x = student.drawn(2, sum(PIECES), 38)
    takes, asks = student.cache
    if student.positions:
        findings.notes.append(f"Its {takes} was not tried: it is handed positions as well.")
        return
    whole, kept, begun = student.run(x), None, 0
    words = f"{takes}, " + ", then ".join(counted(each, "token") for each in PIECES)
    for many in PIECES:
        piece = x[:, begun : begun + many]
        flags = ({asks: True} if asks else {}) | ({takes: kept} if kept else {})
        try:
            answer = student.ask(piece, flags=flags)
            found = student.output(answer, piece)
        except Refused as refused:
            if refused.fatal:
                raise
            findings.notes.append(f"Its {takes} was not tried: {refused}")
            return
        kept = tuple(each for each in answer.values if each.dim() > 3)
        if len(kept) != 2:
            findings.notes.append(f"Its {takes} was not tried: it returns no keys and values.")
            return
        compared = begun > 0 if causal else begun + many == len(x[0])  # else those that are earlier see less
        if compared and not same(found, whole[:, begun : begun + many]):
            findings.tried.append(words)
            gap = difference(found, whole[:, begun : begun + many])
            findings.wrong.append(
                f"With {takes}, {counted(many, 'token')} after {begun} others give another output than all at once, by "
                f"up to {gap:.3g}: the new tokens should see all that were kept, in their order, and nothing later."
            )
            return
        begun += many
    findings.tried.append(words)


def _gradients(student: Student, x: Tensor, seen: Tensor | None) -> str:
    answer = student.ask(x, seen, gradients=True)
    if answer.array:
        return ""  # NumPy has none
    if answer.gradients and answer.gradients[0] is None:
        return "No gradient reaches the input: the code leaves PyTorch's graph (`.detach()`, `.data`, NumPy)."
    # A bias of the keys moves all scores of a row alike, and softmax takes no notice: in right code as well.
    unused = [name for name in answer.unused if name in student.parameters and student.parameters[name].dim() > 1]
    return f"No gradient reaches the weight {shortened(unused[0])}: it takes no part in the output." if unused else ""


def twice(found: Tensor, again: Tensor) -> str:
    """The sentence that two calls with the same inputs, which drew other numbers, differ; empty where they do not."""
    return "" if repeats(found, again) else "Two calls with the same inputs differ: dropout is on also in evaluation."


def _in_place(student: Student, x: Tensor, seen: Tensor | None) -> str:
    return "The module changes its input in place." if student.ask(x, seen).changed else ""


def _half(student: Student, x: Tensor, seen: Tensor | None, precision: torch.dtype, name: str) -> str:
    answer = student.ask(x, seen, precision=name)
    if answer.array:
        return ""  # NumPy computes in precisions of its own
    full, found = student.run(x, seen), student.output(answer, x)
    gap = share(found, full)
    far = f"In {name} the output differs by {gap:.0%} of its largest number." if not gap < 0.15 else ""
    return of_another_precision(found, precision) or far


def _nothing(student: Student, x: Tensor) -> str:
    seen = torch.ones(2, 1, 6, 6, dtype=torch.bool).tril()
    seen[:, :, 2] = False
    found = student.run(x, seen)
    if bool(found[:, 2].isnan().any()):
        return "A query that may see nothing gets NaN: −inf in the whole row makes softmax divide 0 by 0."
    return "" if bool(found.isfinite().all()) else "A query that may see nothing makes other outputs NaN."
