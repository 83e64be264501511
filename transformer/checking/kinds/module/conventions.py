"""How a module takes x and a mask, found by trying: which axis is the batch, and which keys a mask hides."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import torch
from torch import Tensor

from transformer.checking import laws
from transformer.checking.conventions import MASK_FORMS, SEEN, MaskForm
from transformer.checking.faults import Refused
from transformer.checking.findings import Findings, moved, repeats
from transformer.checking.kinds.module.student import BEYOND, LONG, MASK_AXES, Student, causal
from transformer.foundation.foreign import shortened
from transformer.foundation.words import counted, listed

PADDING = torch.tensor([True, True, False, True, False, True]).expand(6, 6)
"""Which keys of six are no padding, for every query."""
ITSELF = torch.eye(6, dtype=torch.bool)


def find_order(student: Student, x: Tensor, findings: Findings) -> None:
    """Which axis is the batch? Other sequences must not change what one of them gives."""
    heads = f", {counted(student.heads, 'head')}" if student.counted else ""
    findings.tried.append(f"{len(x)} sequences of {x.shape[1]} positions, d_model {student.width}{heads}")
    changed, kept = student.drawn(len(x), x.shape[1], 2), len(x) // 2  # behind a mask the first one sees no other
    changed[kept] = x[kept]
    masked = student.places.get("mask") in student.needed
    refusal: Refused | None = None
    forms = tuple(itertools.product(MASK_FORMS, (*MASK_AXES, "keys"))) if masked else ((SEEN, "full"),)
    for rotation, (form, axes) in itertools.product(student.rotations(), forms):
        student.rotation, student.form, student.axes = rotation, form, axes
        for student.first in (False, True):
            try:
                found, other = student.run(x), student.run(changed)
            except Refused as refused:
                if refused.fatal:
                    raise
                refusal = refusal or refused
                continue
            if repeats(found[kept], other[kept]):
                order = "[position, batch, d_model]" if student.first else "[batch, position, d_model]"
                findings.conventions.append(f"x is {order}.")
                findings.conventions += ["It is handed rotations by position."] if student.rotation[1] else []
                return
    if refusal is not None:
        raise refusal
    student.first = False
    findings.wrong.append("The sequences of a batch mix: another sequence beside it changes what a sequence gives.")


def take_one_sequence(student: Student, x: Tensor, findings: Findings, refused: Refused) -> None:
    """It refuses several sequences. Does it take one?"""
    student.form, student.axes, student.first = SEEN, "full", False
    try:
        student.run(x[:1])
    except Refused:
        raise refused from None
    findings.wrong += ["It takes one sequence at a time, and no batch.", str(refused)]
    findings.call_if_there("batch-of-one")


def _reach(student: Student, x: Tensor, seen: Tensor | None) -> Tensor:
    """Which outputs change with which inputs, [query, key], itself left out (set to True)."""
    reach = torch.eye(x.shape[1], dtype=torch.bool)
    for size in (1.0, 0.1):  # large inputs make some weights 0, small ones make all alike
        if bool(reach.all()):
            break
        found = student.run(size * x, seen)
        for key in range(x.shape[1]):
            other = size * x
            other[:, key] = size * student.drawn(len(x), x.shape[1], 3)[:, key]
            reach[:, key] |= moved(student.run(other, seen), found).amax(dim=(0, 2)) > size * 1e-5
    return reach


def find_masks(student: Student, x: Tensor, findings: Findings) -> Tensor | None:
    """How it takes a mask; the mask of the comparison that follows: causal, or None where it takes none."""
    if "mask" not in student.places:
        reach, ahead = _reach(student, x[:2], None), causal(1, student.length)[0, 0]
        if torch.equal(reach, torch.eye(len(reach), dtype=torch.bool)):
            _require_attention(student, x, findings)
            return None
        if student.told_window:
            laws.require_window(student.name, findings, reach)
        windowless = bool(reach.all()) or torch.equal(reach, ahead)
        named = bool(laws.WINDOW.search(student.name))
        if windowless and (named or student.windows) and not student.told_window:
            _look_further(student, findings, ahead=not bool(reach.all()), named=named)
            if student.window:
                findings.conventions.append(f"A window is built in: a token sees {_sees(student.window)}.")
                return None if bool(reach.all()) else causal(len(x), student.length)
        if bool(reach.all()):
            findings.notes.append("It takes no mask: only attention without one was checked.")
            return None
        if torch.equal(reach, ahead):
            findings.conventions.append("The causal mask is built in.")
        elif window := _window(reach):
            student.window = window
            findings.conventions.append(f"A window is built in: a token sees {_sees(window)}.")
        else:
            findings.wrong.append(leak(reach, ahead))
        return student.mask(len(x), student.length)
    batch, x, ahead = len(x), x[:2, :6], causal(1, 6)[0, 0]
    findings.tried.append("masks both ways round: True = seen, True = hidden, added to the scores, ones and zeros")
    row = torch.arange(6)
    seen = torch.rand(6, 6, generator=torch.Generator().manual_seed(5)) < 0.5
    seen[row, row], seen[row, (row + 2) % 6] = True, False
    given = seen.expand(2, 1, 6, 6)
    found: list[tuple[MaskForm, str, Tensor]] = []
    for form, axes in itertools.product(MASK_FORMS, MASK_AXES):
        student.form, student.axes = form, axes
        try:
            reach = _reach(student, x, given)
        except Refused as refused:
            if refused.fatal:
                raise
            continue
        built_in = torch.equal(reach, seen & ahead)
        if built_in or torch.equal(reach, seen):
            findings.conventions.append(f"Mask: {form.words}.")
            findings.conventions += ["A causal mask is built in as well."] if built_in else []
            return causal(batch, student.length)
        found.append((form, axes, reach))
    if _padding(student, x, findings):
        return student.mask(batch, student.length)
    student.form, student.axes = SEEN, "full"
    if not found and (wrong := _padding_that_fails(student, x)):
        findings.wrong.append(wrong)
        return student.mask(batch, student.length)
    if not found and _is_switch(student, x):
        name = student.places.pop("mask")
        student.flags = {**student.flags, name: True}
        return find_masks(student, student.drawn(batch, student.length, 1), findings)
    if not found:
        student.run(x, given)  # says why no mask is taken
    student.form, student.axes, reach = found[0]
    if all(torch.equal(reach, ahead) for *_, reach in found):
        findings.notes.append("It takes a mask and never reads it: its own causal mask alone hides.")
        del student.places["mask"]
        return causal(batch, student.length)
    findings.wrong.append(leak(reach, seen))
    return causal(batch, student.length)


def _require_attention(student: Student, x: Tensor, findings: Findings) -> None:
    """Say what is wrong with code that has weights of attention, and takes nothing from one position to another.

    Raises Refused where it has none: it is something else.
    """
    answer = student.ask(x, record=True)
    if not any("softmax" in step.name or step.name == "exp" for step in answer.steps):
        raise Refused("It takes nothing from one position to another, so it is no attention.", fatal=True)
    lost = bool(student.output(answer, x).isnan().any())
    nan = " Its output holds NaN: some queries see no key at all." if lost else ""
    findings.wrong.append(f"No position takes anything from another.{nan}")


def _is_switch(student: Student, x: Tensor) -> bool:
    """Is what is called a mask true or false, and switches a mask of its own?"""
    name = student.places["mask"]
    if name in student.needed:
        return False
    try:
        for value in (True, False):
            student.run(x, flags={name: value})
    except Refused as refused:
        if refused.fatal:
            raise
        return False
    return True


def _window(reach: Tensor) -> frozenset[int]:
    """The distances at which a key is seen, where nothing else decides and none is later, or both sides are alike."""
    place = torch.arange(len(reach))
    distance = place - place[:, None]
    seen = frozenset(int(each) for each in distance.unique() if bool(reach[distance == each].all()))
    regular = torch.equal(reach, torch.isin(distance, torch.tensor(sorted(seen))))
    return seen if regular and (max(seen) == 0 or seen == frozenset(-each for each in seen)) else frozenset()


def _look_further(student: Student, findings: Findings, *, ahead: bool, named: bool) -> None:
    """Set the window of code that hides nothing of a short sequence, and say where it has none and is `named` so.

    It is looked for among more positions; where the code says how far it reaches, among a few more than that.
    """
    sizes = {name: size for name, size in student.windows.items() if size + BEYOND <= LONG[-1]}
    name, size = min(sizes.items(), key=lambda each: each[1], default=("", 0))
    length = 0
    for many in (size + BEYOND,) if sizes else LONG:
        x = student.drawn(1, many, 43)
        other = x.clone()
        other[:, 0] = student.drawn(1, many, 44)[:, 0]
        try:
            moves = (moved(student.run(other), student.run(x)) > 1e-6).any(-1)[0]
        except Refused as refused:
            if refused.fatal:
                raise
            break
        length, last = many, int(moves.nonzero()[-1]) if bool(moves.any()) else 0
        if last < many - 1:
            student.window = frozenset(range(-last, 1 if ahead else last + 1))
            return
    if not named:
        return
    if sizes and length:
        findings.wrong.append(
            f"It has a window of {size} (`{shortened(name)}`), and of {length} positions it hides none by it."
        )
        return
    findings.undecided = (
        f"Its name says that it has a window, and of {length or student.length} positions it hides none. A setting for "
        "the tokens of its window would decide it."
    )


def _sees(window: frozenset[int]) -> str:
    """Which tokens a window lets a token see, in words."""
    reach = -min(window)
    if window == frozenset(range(-reach, max(window) + 1)):
        sides = "before it" if max(window) == 0 else "on each side"
        return f"itself and the {reach} {sides}"
    return f"itself and those {listed([str(-each) for each in sorted(window) if each < 0])} places before it"


def _padding_reaches(student: Student, x: Tensor) -> Iterator[tuple[MaskForm, Tensor]]:
    """Which outputs change with which inputs, under each way to write a mask of padding [batch, key] that it takes.

    The student is left set to the way that was yielded last.
    """
    for form in MASK_FORMS:
        student.form, student.axes = form, "keys"
        try:
            reach = _reach(student, x, PADDING.expand(len(x), 1, 6, 6))
        except Refused as refused:
            if refused.fatal:
                raise
            continue
        yield form, reach


def _padding_that_fails(student: Student, x: Tensor) -> str:
    """What a mask [batch, key] does not do, where the code takes no other; it is set to be written so. Empty else."""
    for _, reach in _padding_reaches(student, x):
        return leak(reach, PADDING | ITSELF)
    student.form, student.axes = SEEN, "full"
    return ""


def _padding(student: Student, x: Tensor, findings: Findings) -> bool:
    """Does it take a mask of padding, [batch, key]? Sets how that is written."""
    before = student.axes
    for form, reach in _padding_reaches(student, x):
        built_in = torch.equal(reach, (PADDING & causal(1, 6)[0, 0]) | ITSELF)
        if built_in or torch.equal(reach, PADDING | ITSELF):
            findings.conventions.append(f"Mask of padding, [batch, key]: {form.words}.")
            findings.conventions += ["A causal mask is built in as well."] if built_in else []
            student.built_in = built_in
            return True
    student.axes = before
    return False


def leak(reach: Tensor, seen: Tensor) -> str:
    """What a mask does not do, by which outputs change with which inputs, [query, key]."""
    if bool(reach.all()):
        return "Nothing is hidden in the end: every position changes with every other."
    if torch.equal(reach, seen.T | torch.eye(len(seen), dtype=torch.bool)):
        return "The mask is transposed: its rows should be the queries, its columns the keys."
    query, key = (int(each) for each in (reach != seen).nonzero()[0])
    if reach[query, key]:
        return f"The mask leaks: position {query + 1} changes with position {key + 1}, which is hidden from it."
    return f"The mask hides too much: position {query + 1} does not change with position {key + 1}, which it may see."
