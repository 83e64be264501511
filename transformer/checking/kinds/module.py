"""A multi-head attention module: compared with ours, which is given the student's own projections."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from transformer.checking import laws, signatures, stages
from transformer.checking.around import ATTENTION_ALONE, Around, norm_before, what_is_around
from transformer.checking.bench import CONFIG, Answer, Bench, Described
from transformer.checking.conventions import MASK_FORMS, SEEN, MaskForm
from transformer.checking.faults import Refused
from transformer.checking.findings import Findings, moved, of_another_precision, repeats, same, share, unlike
from transformer.checking.projections import (
    ADDING,
    LINEAR,
    AddedBias,
    Hypothesis,
    follow,
    hypotheses,
    mistaken,
    read_by,
)
from transformer.checking.recording import Step
from transformer.foundation.foreign import quoted, shortened
from transformer.foundation.words import counted, listed
from transformer.positions import NO_POSITIONS

D_MODEL, HEADS, GROUPS, LONGEST = 24, 6, 2, 40
BATCH, LENGTH = 8, 9
"""Together more positions than a layer reads numbers, so that it can be read off its results."""
MASK_AXES = ("full", "matrix", "batch", "heads")
"""[batch, 1, query, key], [query, key], [batch, query, key] or [batch · head, query, key]."""
ROLES = ("query", "key", "value", "mask")
DEFAULTS = {"flag": False, "causal": False, "dropout": 0.0}
SETTINGS = {
    "d_model": D_MODEL,
    "n_heads": HEADS,
    "n_groups": GROUPS,
    "d_head": D_MODEL // HEADS,
    "d_out": D_MODEL,
    "n_ctx": LONGEST,
    "dropout": 0.0,
    "bias": True,
    "causal": False,
}


SHARED = "All heads share one projection of d_head × d_head: each head needs weights of its own."


ONE_HEAD = {"d_head": 8, "d_out": 8}
"""Settings of a class that is one head: narrower than d_model, so that no width is taken for another."""
FEW = 3
"""Sequences on which every way to mean the projections is tried; those that fit are tried on all."""
ANY_HEADS = (1, 2, 3, 4, 6, 8, 12, 16)
"""How many heads a class may have that takes no number of them."""
TILED = (
    "Keys and values are tiled over the heads that share them (0 1 0 1 …): repeat each beside itself (0 0 1 1 …), with "
    "`repeat_interleave`. Trained from scratch it learns as well, for the heads come in another order; with anybody "
    "else's weights it is wrong."
)


def causal(batch: int, length: int) -> Tensor:
    """The causal mask [batch, 1, query, key]."""
    return torch.ones(length, length, dtype=torch.bool).tril().expand(batch, 1, -1, -1)


@dataclass
class Student:
    """The module, asked in its convention."""

    bench: Bench
    places: dict[str, str]
    needed: set[str]
    parameters: dict[str, Tensor] = field(default_factory=dict)
    form: MaskForm = SEEN
    axes: str = "full"
    first: bool = False
    """Do positions come before the sequences of the batch?"""
    window: frozenset[int] = frozenset()
    """Distances from a query to the keys that a window which is built in lets it see; none where there is no window."""
    built_in: bool = False
    """Is a causal mask built in beside one of padding?"""
    heads: int = HEADS
    counted: bool = True
    """Was it told how many heads to have? Where it was not, any number may be its own."""
    width: int = D_MODEL
    """Numbers of a vector of x."""
    further: Mapping[str, str] = field(default_factory=dict)
    """Other masks, and what may be looked at, that need not be given: the role of each by its name."""
    flags: Mapping[str, bool] = field(default_factory=dict)
    """The parameters that open another path; is it the one that switches a causal mask?"""

    def drawn(self, batch: int, length: int, seed: int) -> Tensor:
        """x [batch, position, d_model], so large that attention is not uniform."""
        return 3 * torch.randn(batch, length, self.width, generator=torch.Generator().manual_seed(seed))

    def mask(self, batch: int, length: int) -> Tensor:
        """The mask of a comparison [batch, 1, query, key]: causal, or one of padding where no other can be said."""
        if self.window:
            place = torch.arange(length)
            return torch.isin(place - place[:, None], torch.tensor(sorted(self.window))).expand(batch, 1, -1, -1)
        if self.axes == "keys":
            seen = torch.ones(batch, 1, length, length, dtype=torch.bool)
            seen[..., length - length // 3 :] = False
            return seen & causal(batch, length) if self.built_in else seen
        return causal(batch, length)

    @property
    def crossed(self) -> bool:
        """Does it take queries, keys and values, or queries and what is looked at?"""
        return len([one for one in ("query", "key", "value", "x", "memory") if one in self.places]) > 1

    def ask(
        self,
        x: Tensor,
        seen: Tensor | None = None,
        looked_at: Tensor | None = None,
        flags: Mapping[str, Any] = MappingProxyType({}),
        **options: Any,
    ) -> Answer:
        """What it answers for x [batch, position, d_model] and a mask [batch, 1, query, key], with some flags set.

        Raises Refused.
        """
        looked_at = x if looked_at is None else looked_at
        if seen is None and self.places.get("mask") in self.needed:
            seen = torch.ones(len(x), 1, x.shape[1], looked_at.shape[1], dtype=torch.bool)
        given: dict[str, Any] = {}
        for one in ("query", "x"):
            if one in self.places:
                given[one] = self.turn(x)
        for one in ("key", "value", "memory"):
            if one in self.places:
                given[one] = self.turn(looked_at)
        if seen is not None and "mask" in self.places:
            given["mask"] = self._mask(seen)
        given |= {one: value for one, value in DEFAULTS.items() if self.places.get(one) in self.needed}
        named = {self.places[one]: value for one, value in given.items()} | dict(flags)
        return self.bench.call(list(named.values()), list(named), **options)

    def output(self, answer: Answer, like: Tensor) -> Tensor:
        """The output [batch, position, d_model], what is narrower filled up with zeros.

        Raises Refused where none of the tensors has its shape.
        """
        wanted = self.turn(like).shape
        fitting = [each for each in answer.values if each.dim() == 3 and each.shape[:2] == wanted[:2]]
        found = next((each for each in fitting if each.shape == wanted), None)
        if found is None and self.heads == 1:
            found = next((each for each in fitting if each.shape[2] == ONE_HEAD["d_head"]), None)
        if found is None:
            raise Refused(f"It returns the shape {list(answer.values[0].shape)}; the output should be {list(wanted)}.")
        return pad(self.turn(found), (0, like.shape[-1] - found.shape[-1]))

    def run(self, x: Tensor, seen: Tensor | None = None, looked_at: Tensor | None = None, **options: Any) -> Tensor:
        return self.output(self.ask(x, seen, looked_at, **options), x)

    def shown(self, seen: Tensor | None) -> Tensor | None:
        """The mask, if it takes one."""
        return seen if "mask" in self.places else None

    def turn(self, x: Tensor) -> Tensor:
        return x.transpose(0, 1) if self.first else x

    def _mask(self, seen: Tensor) -> Tensor:
        written = self.form.write(seen)
        if self.axes == "matrix":
            return written[0, 0]
        if self.axes == "batch":
            return written[:, 0]
        if self.axes == "heads":
            return written.expand(-1, self.heads, -1, -1).flatten(0, 1)
        if self.axes == "keys":
            return written[:, 0, 0]
        return written


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
        _order(student, x, findings)
    except Refused as refused:
        _one_sequence(student, x, findings, refused)
        return findings
    seen = _masks(student, x, findings)
    if seen is None:
        switch = any(student.flags.values())
        laws.require_causal(described.name, findings, takes_mask="mask" in student.places, switch=switch)
    reference = _reference(student, x, seen, findings)
    if not findings.wrong:
        _edges(student, reference, seen, findings)
        _paths(student, reference, x, seen, findings)
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
            _reference(student, x, seen, found)
            return f"With {words}: {found.wrong[0]}" if found.wrong else ""

        findings.try_it(words, attempt)


def student_of(bench: Bench, described: Described) -> Student:
    """What the parameters of `forward` are for."""
    parameters = described.called_with
    names = [each.name for each in parameters if not each.optional]
    one = [each for each in names if signatures.role(each, ("mask",)) != "mask"]
    if len(one) == 1:
        roles: tuple[str, ...] = ("x", "mask")
        places = {"x": one[0]}
        for each in parameters:
            found = signatures.role(each.name, ("mask", *DEFAULTS))
            if found and found not in places and each.name != one[0]:
                places[found] = each.name
    else:
        roles = ("x", "memory", "mask") if len(one) == 2 else ROLES
        places = signatures.places(parameters, roles, DEFAULTS)
    needed = {each.name for each in parameters if not each.optional}
    for each in parameters:
        if not each.optional and each.name not in places.values():
            raise Refused(
                f"`forward` needs an argument {quoted(each.name)}, which the check does not know.", fatal=True
            )
    further = {
        each.name: found
        for each in parameters
        if each.optional and each.name not in places.values()
        if (found := signatures.role(each.name, ("mask", "memory")))
    }
    return Student(bench, places, needed, flags=laws.flags(parameters), further=further)


# --- conventions


def _order(student: Student, x: Tensor, findings: Findings) -> None:
    """Which axis is the batch? Other sequences must not change what one of them gives."""
    heads = counted(student.heads, "head")
    findings.tried.append(f"{len(x)} sequences of {LENGTH} positions, d_model {student.width}, {heads}")
    changed = x.clone()
    changed[1:] = student.drawn(len(x), LENGTH, 2)[1:]
    masked = student.places.get("mask") in student.needed
    refusal: Refused | None = None
    for form, axes in itertools.product(MASK_FORMS, (*MASK_AXES, "keys")) if masked else ((SEEN, "full"),):
        student.form, student.axes = form, axes
        for student.first in (False, True):
            try:
                found, other = student.run(x), student.run(changed)
            except Refused as refused:
                if refused.fatal:
                    raise
                refusal = refusal or refused
                continue
            if repeats(found[0], other[0]):
                order = "[position, batch, d_model]" if student.first else "[batch, position, d_model]"
                findings.conventions.append(f"x is {order}.")
                return
    if refusal is not None:
        raise Refused(str(refusal), fatal=True)
    student.first = False
    findings.wrong.append("The sequences of a batch mix: another sequence beside it changes what a sequence gives.")


def _one_sequence(student: Student, x: Tensor, findings: Findings, refused: Refused) -> None:
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


def _masks(student: Student, x: Tensor, findings: Findings) -> Tensor | None:
    """How it takes a mask; the mask of the comparison that follows: causal, or None where it takes none."""
    if "mask" not in student.places:
        reach, ahead = _reach(student, x[:2], None), causal(1, LENGTH)[0, 0]
        if torch.equal(reach, torch.eye(len(reach), dtype=torch.bool)):
            raise Refused("It takes nothing from one position to another, so it is no attention.", fatal=True)
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
        return student.mask(len(x), LENGTH)
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
            return causal(batch, LENGTH)
        found.append((form, axes, reach))
    if _padding(student, x, findings):
        return student.mask(batch, LENGTH)
    student.form, student.axes = SEEN, "full"
    if not found and (wrong := _padding_that_fails(student, x)):
        findings.wrong.append(wrong)
        return student.mask(batch, LENGTH)
    if not found:
        student.run(x, given)  # says why no mask is taken
    student.form, student.axes, reach = found[0]
    if all(torch.equal(reach, ahead) for *_, reach in found):
        findings.notes.append("It takes a mask and never reads it: its own causal mask alone hides.")
        del student.places["mask"]
        return causal(batch, LENGTH)
    findings.wrong.append(leak(reach, seen))
    return causal(batch, LENGTH)


def _window(reach: Tensor) -> frozenset[int]:
    """The distances at which a key is seen, where nothing else decides and none is later, or both sides are alike."""
    place = torch.arange(len(reach))
    distance = place - place[:, None]
    seen = frozenset(int(each) for each in distance.unique() if bool(reach[distance == each].all()))
    regular = torch.equal(reach, torch.isin(distance, torch.tensor(sorted(seen))))
    return seen if regular and (max(seen) == 0 or seen == frozenset(-each for each in seen)) else frozenset()


def _sees(window: frozenset[int]) -> str:
    """Which tokens a window lets a token see, in words."""
    reach = -min(window)
    if window == frozenset(range(-reach, max(window) + 1)):
        sides = "before it" if max(window) == 0 else "on each side"
        return f"itself and the {reach} {sides}"
    return f"itself and those {listed([str(-each) for each in sorted(window) if each < 0])} places before it"


def _padding_that_fails(student: Student, x: Tensor) -> str:
    """What a mask [batch, key] does not do, where the code takes no other; it is set to be written so. Empty else."""
    keys = torch.tensor([True, True, False, True, False, True]).expand(6, 6)
    for form in MASK_FORMS:
        student.form, student.axes = form, "keys"
        try:
            reach = _reach(student, x, keys.expand(len(x), 1, 6, 6))
        except Refused as refused:
            if refused.fatal:
                raise
            continue
        return leak(reach, keys | torch.eye(6, dtype=torch.bool))
    student.form, student.axes = SEEN, "full"
    return ""


def _padding(student: Student, x: Tensor, findings: Findings) -> bool:
    """Does it take a mask of padding, [batch, key]? Sets how that is written."""
    keys = torch.tensor([True, True, False, True, False, True])
    seen, itself = keys.expand(6, 6), torch.eye(6, dtype=torch.bool)
    before = student.axes
    for form in MASK_FORMS:
        student.form, student.axes = form, "keys"
        try:
            reach = _reach(student, x, seen.expand(len(x), 1, 6, 6))
        except Refused as refused:
            if refused.fatal:
                raise
            continue
        built_in = torch.equal(reach, (seen & causal(1, 6)[0, 0]) | itself)
        if built_in or torch.equal(reach, seen | itself):
            findings.conventions.append(f"Mask of padding, [batch, key]: {form.words}.")
            findings.conventions += ["A causal mask is built in as well."] if built_in else []
            student.built_in = built_in
            return True
    student.axes = before
    return False


def leak(reach: Tensor, seen: Tensor) -> str:
    """What a mask does not do, by which outputs change with which inputs, [query, key]."""
    if bool(reach.all()):
        return "The mask hides nothing: every position changes with every other."
    if torch.equal(reach, seen.T | torch.eye(len(seen), dtype=torch.bool)):
        return "The mask is transposed: its rows should be the queries, its columns the keys."
    query, key = (int(each) for each in (reach != seen).nonzero()[0])
    if reach[query, key]:
        return f"The mask leaks: position {query + 1} changes with position {key + 1}, which is hidden from it."
    return f"The mask hides too much: position {query + 1} does not change with position {key + 1}, which it may see."


# --- the reference with the same weights


def _reference(student: Student, x: Tensor, seen: Tensor | None, findings: Findings) -> Hypothesis | None:
    """Our module with the student's weights, arranged so that both agree; None where that cannot be found out."""
    answer = student.ask(x, student.shown(seen), record=True)
    output = student.output(answer, x)
    likeliest: list[Hypothesis] = []
    after: Tensor | None = None
    before = norm_before(answer.steps, x)
    arounds = (ATTENTION_ALONE, *([] if before is None else [before]))
    for heads, around in itertools.product([HEADS] if student.counted else _heads(answer.steps, x), arounds):
        read = follow(answer.steps, around.read(x), heads)
        if read.shared:
            findings.wrong.append(SHARED)
            findings.call_if_there("one-projection-for-all-heads")
            return None
        for hypothesis in (dataclasses.replace(each, around=around) for each in hypotheses(read, LONGEST)):
            likeliest.append(hypothesis)
            few = hypothesis.run(x[:FEW], None if seen is None else seen[:FEW])
            wanted = [each for each in (output, read.after) if each is not None and same(few, each[:FEW])]
            attended = hypothesis.run(x, seen) if wanted else few
            if wanted and same(attended, output):
                return _agrees(hypothesis, x, seen, output, answer.steps, findings)
            if wanted and read.after is not None and same(attended, read.after):
                return _agrees_inside(hypothesis, x, seen, output, answer.steps, findings)
        after = read.after if likeliest and after is None else after
    if not likeliest:
        findings.undecided = (
            "Its queries, keys and values were not found, so its output was compared with no reference: only the laws "
            "of attention were checked. Written as layers that are applied to x, they would decide it."
        )
    elif _biased(likeliest, x, seen, output, answer.steps, findings):
        return None
    else:
        inside = [] if after is None or same(after, output) else [after]
        diagnose(likeliest, x, seen, output, answer.steps, findings, inside)
    if findings.undecided and all(_by_token(step) for step in answer.steps):
        _equal_tokens(student, x, seen, findings)
    return None


def _biased(
    likeliest: Sequence[Hypothesis],
    x: Tensor,
    seen: Tensor | None,
    output: Tensor,
    steps: Sequence[Step],
    findings: Findings,
) -> bool:
    """Is it the reference but for a bias on the scores, by distance and not by x? It is read off what softmax reads."""
    sources = [read_by(step, steps) for step in steps if step.name == "softmax"]
    for each in (each for each in likeliest if each.positions is NO_POSITIONS and not each.tiled):
        read, module = each.around.read(x), each.module
        query, key = (module._split(layer(read)) for layer in (module.query, module.key))
        scaled = query @ key.transpose(-2, -1) / module.d_head**0.5
        for source in sources:
            if source is None or source.shape != scaled.shape:
                continue
            visible = torch.ones_like(scaled[0], dtype=torch.bool) if seen is None else seen[0].expand_as(scaled[0])
            bias = (source - scaled).masked_fill(~visible, 0.0)
            biased = dataclasses.replace(each, positions=AddedBias(bias[0], x.shape[-1]))
            if not same(bias, bias[:1].expand_as(bias)) or not same(biased.run(x, seen), output):
                continue
            if not _by_distance(bias[0], visible):
                continue
            findings.conventions += each.words
            findings.conventions.append("A bias by distance, the same for every x, is added to the scores.")
            return True
    return False


def _by_distance(bias: Tensor, visible: Tensor) -> bool:
    """Does a bias [head, query, key] depend on the distance alone, and is it more than ones and zeros of a mask?"""
    place = torch.arange(bias.shape[-1])
    distance = place - place[:, None]
    for each in distance.unique():
        there = visible & (distance == each)
        for head, seen in zip(bias, there, strict=True):
            values = head[seen]
            if len(values) and not same(values, values[:1].expand_as(values)):
                return False
    return len((100 * bias[visible]).round().unique()) > 2


def _heads(steps: Sequence[Step], x: Tensor) -> Sequence[int]:
    """How many heads a class has that takes no number of them: as many patterns as it makes, or any number."""
    one = len(x) * x.shape[1] ** 2
    patterns = [step.value for step in steps if step.name == "softmax"]
    found = sum(each.numel() for each in patterns if each.shape[-2:] == (x.shape[1], x.shape[1]))
    return [found // one] if found and found % one == 0 else ANY_HEADS


def _agrees(
    hypothesis: Hypothesis, x: Tensor, seen: Tensor | None, output: Tensor, steps: Sequence[Step], findings: Findings
) -> Hypothesis:
    """Say by which conventions it is the reference."""
    findings.conventions += hypothesis.words
    if hypothesis.around.words:
        findings.conventions.append(f"The attention is right; the module also has {listed(hypothesis.around.words)}.")
    if hypothesis.tiled:
        findings.wrong.append(TILED)
        findings.call_if_there("key-heads-tiled")
    attended = hypothesis.around.read(x)
    expected = stages.of_module(hypothesis.module, attended, seen, hypothesis.positions)
    result = output if hypothesis.around.write is ATTENTION_ALONE.write else expected["out"][0]
    findings.divergence = stages.compare(steps, result, expected)
    return hypothesis


def _agrees_inside(
    hypothesis: Hypothesis, x: Tensor, seen: Tensor | None, output: Tensor, steps: Sequence[Step], findings: Findings
) -> Hypothesis | None:
    """Its last layer gives what the reference gives, and something else is returned: what does the module add?"""
    attended = hypothesis.run(x, seen)
    after = what_is_around(x, attended, output)
    if after is None:
        findings.undecided = (
            "What its last layer gives is right, and what it returns is something else, which was compared with "
            "nothing. The module without what comes after its last layer would decide it."
        )
        return None
    words = (*hypothesis.around.words, *after.words)
    around = Around(words, hypothesis.around.read, after.write)
    return _agrees(dataclasses.replace(hypothesis, around=around), x, seen, output, steps, findings)


def _by_token(step: Step) -> bool:
    """Does a layer, if this is one, make of each token what it makes of it anywhere?"""
    return not step.parameter or step.name in (*LINEAR, *ADDING) or "norm" in step.name


def _equal_tokens(student: Student, x: Tensor, seen: Tensor | None, findings: Findings) -> None:
    """Say where equal tokens give different outputs: of equal values, weights that add up to 1 make the same."""
    same_tokens = x[:, :1].expand_as(x).contiguous()
    found = student.run(same_tokens, student.shown(seen))
    findings.tried.append("a sequence of equal tokens")
    if not same(found, found[:, :1].expand_as(found)):
        findings.wrong.append(
            "Equal tokens give different outputs: the weights of a query do not add up to 1 over the keys."
        )


def diagnose(
    likeliest: Sequence[Hypothesis],
    x: Tensor,
    seen: Tensor | None,
    output: Tensor,
    steps: Sequence[Step],
    findings: Findings,
    inside: Sequence[Tensor] = (),
) -> None:
    """The first stage that differs from the reference, and the mistake of the gallery that gives the same output.

    Every way in which the projections may be meant is tried with every mistake; `inside` are results on the way that a
    mistake may give as well. Scores that are no product of queries and keys decide nothing where no mistake is known
    that makes them: there are more right ways to compare a query and a key than this check knows.
    """
    # A mask that is built in and does not hide, as behind a softmax over the queries, is not known to be there.
    masks = [seen] if seen is not None else [None, causal(len(x), x.shape[1])]
    exact = (
        (each, mask, mistake)
        for each, mask in itertools.product(likeliest, masks)
        if each.positions is NO_POSITIONS
        for mistake, wrong in mistaken(each.module, each.around.read(x[:FEW]), None if mask is None else mask[:FEW])
        if any(same(wrong, result[:FEW]) for result in (output, *inside))
    )
    hypothesis, seen, named = next(exact, (likeliest[0], seen, None))
    read = hypothesis.around.read(x)
    divergence = stages.compare(steps, output, stages.of_module(hypothesis.module, read, seen))
    findings.divergence = divergence
    if named is None and divergence.first in ("projected", "scores") and not findings.wrong:
        # The projections were read off the code itself: it is what is made of them that is not known.
        findings.undecided = (
            "The scores are no product of the queries and keys that were found. What follows was not compared. The "
            "same code without what it does to queries and keys before their product (a norm, or another rotation) "
            "would decide it."
        )
        return
    findings.wrong.insert(0, divergence.sentence)
    if named is not None:
        findings.call_by_name(named)


# --- the edges


def _edges(student: Student, reference: Hypothesis | None, seen: Tensor | None, findings: Findings) -> None:
    def masked(batch: int, length: int) -> Tensor | None:
        return None if seen is None else student.mask(batch, length)

    def case(batch: int, length: int, seed: int) -> None:
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
    x, visible = student.drawn(2, 6, 30), student.shown(masked(2, 6))
    if student.crossed and reference is not None and (seen is None or "mask" in student.places):
        _crossed(student, reference, x, findings)
    if reference is not None:
        _not_needed(student, reference, x, findings)
    findings.try_it("gradients", lambda: _gradients(student, x, visible))
    findings.try_it("the same call twice", lambda: _twice(student, x, visible))
    findings.try_it("inputs that must not change", lambda: _in_place(student, x, visible))
    for precision in (torch.float16, torch.bfloat16):
        name = str(precision).removeprefix("torch.")
        findings.look_at(f"half precision ({name})", partial(_half, student, x, visible, precision, name))
    if "mask" in student.places and student.axes != "keys":
        findings.look_at("a query that may see nothing", lambda: _nothing(student, x))


def _paths(student: Student, reference: Hypothesis | None, x: Tensor, seen: Tensor | None, findings: Findings) -> None:
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
        return unlike(student.run(x, None, flags={name: student.turn(other)}), reference.run(x, None, other), name)

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


def _crossed(student: Student, reference: Hypothesis, x: Tensor, findings: Findings) -> None:
    """Are queries, keys and values each made of what they are handed?"""
    same_length, longer = student.drawn(2, 6, 32), student.drawn(2, 8, 31)

    def attempt(words: str, other: Tensor) -> str:
        return unlike(student.run(x, None, other), reference.run(x, None, other), words)

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


def _gradients(student: Student, x: Tensor, seen: Tensor | None) -> str:
    answer = student.ask(x, seen, gradients=True)
    if answer.gradients and answer.gradients[0] is None:
        return "No gradient reaches the input: the code leaves PyTorch's graph (`.detach()`, `.data`, NumPy)."
    # A bias of the keys moves all scores of a row alike, and softmax takes no notice: in right code as well.
    unused = [name for name in answer.unused if name in student.parameters and student.parameters[name].dim() > 1]
    return f"No gradient reaches the weight {shortened(unused[0])}: it takes no part in the output." if unused else ""


def _twice(student: Student, x: Tensor, seen: Tensor | None) -> str:
    if repeats(student.run(x, seen), student.run(x, seen, seed=1)):
        return ""
    return "Two calls with the same inputs differ in evaluation mode: is dropout on?"


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
