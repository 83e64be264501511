"""Our module with the student's weights, or the first stage at which the two differ, and the mistake that it is."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

from torch import Tensor

from transformer.checking import stages
from transformer.checking.around import ATTENTION_ALONE, Around, norm_before, what_is_around
from transformer.checking.faults import Refused
from transformer.checking.findings import Findings, same
from transformer.checking.kinds.module.explained import LOWEST, Explained, explain, explain_all
from transformer.checking.kinds.module.student import ANY_HEADS, HEADS, LONGEST, Student, causal
from transformer.checking.laws import require_read_masks
from transformer.checking.projections import (
    ADDING,
    ANY,
    LINEAR,
    NONE,
    Hypothesis,
    follow,
    hypotheses,
    layers_of,
    mistaken,
    of_a_module,
    read_by,
)
from transformer.checking.recording import Step
from transformer.foundation.words import listed
from transformer.positions import NO_POSITIONS

SHARED = "All heads share one projection of d_head × d_head: each head needs weights of its own."
UNFOLLOWED = ("projected", "split", "scores")
"""Stages that were read off the code itself: where one of them is the first that differs, it cannot be followed."""
TURNED = ("view_as_real", "view_as_complex", "cos", "sin", "polar")
"""Functions that code calls which turns queries and keys."""
FEW = 3
"""Sequences on which every way to mean the projections is tried; those that fit are tried on all."""
TILED = (
    "The heads read the shared keys and values in the order 0 1 0 1 …; it should be 0 0 1 1 …. That is another order "
    "of the heads: trained from scratch it learns as well, and with anybody else's weights it is wrong."
)


def find_reference(student: Student, x: Tensor, seen: Tensor | None, findings: Findings) -> Hypothesis | None:
    """Our module with the student's weights, arranged so that both agree; None where that cannot be found out."""
    answer = student.ask(x, student.shown(seen), record=True)
    output = student.output(answer, x)
    require_read_masks(answer.steps, findings)
    likeliest: list[Hypothesis] = []
    after: Tensor | None = None
    before = norm_before(answer.steps, x)
    arounds = (ATTENTION_ALONE, *([] if before is None else [before]))
    for heads, around in itertools.product([HEADS] if student.counted else _heads(answer.steps, x), arounds):
        read = follow(answer.steps, around.read(x), heads, ANY if around is ATTENTION_ALONE else NONE)
        if around is not ATTENTION_ALONE:
            read = dataclasses.replace(read, elsewhere=_looking_elsewhere(student, x, heads))
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
                if hypothesis.positions is NO_POSITIONS and any(step.name in TURNED for step in answer.steps):
                    turned = explain(student, x, seen, around, heads)
                    findings.wrong += [] if turned is None else turned.wrong
                return _agrees(hypothesis, x, seen, output, answer.steps, findings)
            if wanted and read.after is not None and same(attended, read.after):
                return _agrees_inside(hypothesis, x, seen, output, answer.steps, findings)
        after = read.after if likeliest and after is None else after
    if before is not None and _reads_two(answer.steps, x, before.read(x)):
        findings.wrong.append(
            "Queries, keys and values are not made of the same: two read x as it is normalised, and one reads x itself."
        )
    elif not likeliest:
        findings.undecided = (
            "Its queries, keys and values were not found, so its output was compared with no reference: only the laws "
            "of attention were checked. Written as layers that are applied to x, they would decide it."
        )
    else:
        found = explain_all(student, x, seen, arounds, [HEADS] if student.counted else _heads(answer.steps, x))
        if found is not None and (found.added or not (found.wrong or found.unknown)):
            _say_explained(found, findings)
        else:
            inside = [] if after is None or same(after, output) else [after]
            diagnose(likeliest, x, seen, output, answer.steps, findings, inside)
            _only_by_name(findings)
            if findings.undecided and found is not None and found.wrong:
                _say_explained(found, findings)
    if findings.undecided and all(_by_token(step) for step in answer.steps):
        _equal_tokens(student, x, seen, findings)
    return None


def _reads_two(steps: Sequence[Step], x: Tensor, read: Tensor) -> bool:
    """Do two layers before the softmax read x as it is normalised, and one x itself?"""
    first = next((place for place, step in enumerate(steps) if step.name == "softmax"), 0)
    plain, normed = follow(steps[:first], x, 1).parts, follow(steps[:first], read, 1, NONE).parts
    return len(plain) == 1 and len(normed) == 2


def _looking_elsewhere(student: Student, x: Tensor, heads: int) -> tuple[tuple[str, Tensor, Tensor], ...]:
    """What its layers make of another sequence that it is handed besides x, if it takes one."""
    names = [name for name, role in student.further.items() if role == "memory"]
    other = student.drawn(len(x), x.shape[1], 35)
    try:
        steps = student.ask(x, flags=dict.fromkeys(names, student.turn(other)), record=True).steps if names else ()
    except Refused as refused:
        if refused.fatal:
            raise
        return ()
    return layers_of(steps, x, other, heads)


def _say_explained(found: Explained, findings: Findings) -> None:
    """Say what is added to attention, or wrong with it."""
    findings.wrong += found.wrong
    findings.divergence = found.divergence
    findings.notes += found.refused
    if found.mistake is not None:
        findings.call_by_name(found.mistake)
    findings.conventions += [found.packing] if found.packing else []
    if found.bias is not None:
        bias, visible, trained, scaled = found.bias
        _say_bias(bias, visible, findings, trained=trained, scaled=scaled)
    also = [*found.also, *([f"has {listed(found.around)}"] if found.around else [])]
    begin = "It also" if findings.wrong or found.unknown else "The attention is right; it also"
    findings.conventions += [f"{begin} {listed(also)}."] if also else []
    findings.undecided = "" if findings.wrong else found.unknown


def _say_bias(bias: Tensor, visible: Tensor, findings: Findings, *, trained: bool, scaled: bool) -> None:
    """Say what a bias [head, query, key] by distance is, and what is wrong with one that is not trained."""
    of_last = bias[:, -1].flip(-1)  # by the distance from the last query, which sees all keys, if any query does
    if len((100 * bias[visible]).round().unique()) == 2 and not trained:
        findings.wrong.append(
            "A mask of two numbers is added to the scores, and the smaller one hides nothing: give hidden scores −inf."
        )
    elif not trained and bool((of_last.diff(dim=-1) > 0).all()):
        findings.wrong.append(
            "The bias that is added to the scores grows with the distance, so that far keys are preferred; it should "
            "fall: subtract a slope times the distance."
        )
    findings.conventions.append("A bias by distance, the same for every x, is added to the scores.")
    if not scaled:
        findings.conventions.append(
            "The scores are not divided by √d_head, as in T5: there the weights of the queries are drawn smaller."
        )


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
        findings.conventions.append(f"The attention is right; it also has {listed(hypothesis.around.words)}.")
    attended = hypothesis.around.read(x)
    expected = stages.of_module(hypothesis.beside or hypothesis.module, attended, seen, hypothesis.positions)
    if hypothesis.beside is not None:
        findings.wrong.append(TILED)
        findings.call_if_there("key-heads-tiled")
        del expected["projected"]  # there they are the same: the reference has them repeated already
    result = output if hypothesis.around.write is ATTENTION_ALONE.write else expected["out"][0]
    findings.divergence = stages.compare(steps, result, expected)
    return hypothesis


def _agrees_inside(
    hypothesis: Hypothesis, x: Tensor, seen: Tensor | None, output: Tensor, steps: Sequence[Step], findings: Findings
) -> Hypothesis | None:
    """Its last layer gives what the reference gives, and something else is returned: what does the module add?"""
    attended = hypothesis.run(x, seen)
    made = next((place for place, step in enumerate(steps) if _is_made(step.value, attended)), len(steps))
    layers = any(step.name in LINEAR and step.parameter for step in steps[made + 1 :])
    sums = [step.value for step in steps if step.name in ADDING and step.value.shape == output.shape]
    after = what_is_around(x, attended, output, layers=layers, read=hypothesis.around.read(x), sums=sums)
    if after is not None and after.fault:
        findings.wrong.append(after.fault)
        return None
    if after is not None and after.doubt:
        findings.undecided = after.doubt
        return None
    if after is None:
        findings.undecided = (
            "What its last layer gives is right, and what it returns is something else, which was compared with "
            "nothing. The module without what comes after its last layer would decide it."
        )
        return None
    words = (*hypothesis.around.words, *after.words)
    around = Around(words, hypothesis.around.read, after.write)
    return _agrees(dataclasses.replace(hypothesis, around=around), x, seen, output, steps, findings)


def _is_made(value: Tensor, attended: Tensor) -> bool:
    turned = value.transpose(0, 1) if value.dim() == 3 else value
    return any(each.shape == attended.shape and same(each, attended) for each in (value, turned))


def _by_token(step: Step) -> bool:
    """Does a layer, if this is one, make of each token what it makes of it anywhere?"""
    return not step.parameter or step.name in (*LINEAR, *ADDING) or "norm" in step.name


def _equal_tokens(student: Student, x: Tensor, seen: Tensor | None, findings: Findings) -> None:
    """Say where equal tokens give different outputs: of equal values, weights that add up to 1 make the same.

    Where queries and keys are turned, their scores tell how far two equal tokens lie apart, and nothing else.
    """
    same_tokens = x[:, :1].expand_as(x).contiguous()
    answer = student.ask(same_tokens, student.shown(seen), record=True)
    found = student.output(answer, same_tokens)
    findings.tried.append("a sequence of equal tokens")
    if not same(found, found[:, :1].expand_as(found)):
        findings.wrong.append(
            "Equal tokens give different outputs: the weights of a query do not add up to 1 over the keys, or the "
            "values are not those of the tokens alone."
        )
        return
    if not student.turns and not any(step.name in TURNED for step in answer.steps):
        return
    for scores in (read_by(step, answer.steps) for step in answer.steps if step.name == "softmax"):
        if scores is None or scores.dim() != 4 or scores.shape[-2:] != (x.shape[1], x.shape[1]):
            continue
        along = [scores[0].diagonal(distance, -2, -1) for distance in range(1 - x.shape[1], x.shape[1])]
        shown = [each[:, (each.abs() < LOWEST).all(0)] for each in along]
        if not all(same(each, each[:, :1].expand_as(each)) for each in shown if each.numel()):
            findings.wrong.append(
                "Of equal tokens, the score of a query and a key does not depend on their distance alone: turn both, "
                "each by its own position, and the same way."
            )
        return


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
    known = of_a_module()
    exact = (
        (each, mask, mistake)
        for each, mask in itertools.product(likeliest, masks)
        if each.positions is NO_POSITIONS
        for mistake, wrong in mistaken(
            each.module, each.around.read(x[:FEW]), None if mask is None else mask[:FEW], known
        )
        if any(same(wrong, result[:FEW]) for result in (output, *inside))
    )
    hypothesis, seen, named = next(exact, (likeliest[0], seen, None))
    read = hypothesis.around.read(x)
    expected = stages.of_module(hypothesis.module, read, seen)
    divergence = stages.compare(steps, output, expected)
    if divergence.first in UNFOLLOWED and hypothesis.module.n_heads > 1:  # are they computed one after the other?
        one_by_one = stages.compare(stages.gathered(steps, hypothesis.module.n_heads), output, expected)
        divergence = divergence if one_by_one.first in UNFOLLOWED else one_by_one
    findings.divergence = divergence
    if (
        named is None
        and not findings.wrong
        and ((divergence.first in UNFOLLOWED and not divergence.specific) or _other_scores(divergence, steps, expected))
    ):
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


def _other_scores(divergence: stages.Divergence, steps: Sequence[Step], expected: stages.Reference) -> bool:
    """Does softmax read something else than a multiple of the scores: is more than a factor between the two?"""
    if divergence.first != "scaled":
        return False
    scores = expected["scores"][0]
    for source in (read_by(step, steps) for step in steps if step.name == "softmax"):
        if source is None or source.shape != scores.shape:
            continue
        visible = source.abs() < LOWEST
        factor = (source[visible] * scores[visible]).sum() / scores[visible].pow(2).sum()
        return not same(source[visible], factor * scores[visible])
    return False


def _only_by_name(findings: Findings) -> None:
    """Leave the mistake that gives the same output, and where: a law that is broken is broken by it."""
    if findings.mistake:
        del findings.wrong[2:]
