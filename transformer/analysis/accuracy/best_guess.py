"""The best guess of somebody who is not told how long the sequence is. No PyTorch.

Where lengths vary, what reaches a target need not tell the length: a causal model in the middle of a question does not
know whether SEP comes next, and one that reverses in place does not know which place is the mirrored one. All that can
be told is told by which slots arrive and what stands in them. So two lengths look alike from a target when the same
slots arrive, SEP among them in the same places; between those, Bayes' rule: each length weighs as much as it is likely
to be drawn, times the probability of the visible symbols if it is the right one (`Task.belief`).

What a layer may not see because it is not there (padding is hidden) tells as well: it is a slot that does not arrive.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from transformer.tasks import Batch, Cases, Ceiling, Task

View = tuple[int, bytes, bytes]
TIE = 1e-9
"""Probabilities that differ by less than this share are the same: the rest is rounding."""
DECIMALS = 12
"""Rounded to so many, sums over exact cases give 1 and 0.1 where they are meant."""


@dataclass(frozen=True, eq=False)
class BestGuess:
    """Knows the law, how lengths are drawn, and what of each sequence reaches each target; and not its length."""

    task: Task
    reach: dict[int, Bool[np.ndarray, "_target _slot"]]
    """Of each length that is drawn, which slots can influence each target."""

    def alike(self, length: int, target: int) -> tuple[int, ...]:
        """The lengths that look the same from one target of a sequence of this length."""
        return self._alike[target][self._view(length, target)]

    @cached_property
    def _alike(self) -> list[dict[View, tuple[int, ...]]]:
        """For each target, the lengths by what is seen of them."""
        found: list[dict[View, tuple[int, ...]]] = [{} for _ in range(max(map(len, self.reach.values())))]
        for length, reach in self.reach.items():
            for target in range(len(reach)):
                view = self._view(length, target)
                found[target][view] = (*found[target].get(view, ()), length)
        return found

    def _view(self, length: int, target: int) -> View:
        """What is seen of the length: which slots arrive, and which of them hold SEP. A source is read whole."""
        slots = np.flatnonzero(self.reach[length][target])
        separators = self.task.symbols_of_slots(length)[slots] < 0
        return length if self.task.has_source else 0, slots.tobytes(), separators.tobytes()

    def expects(
        self, target: int, lengths: tuple[int, ...], contents: Int[np.ndarray, "row read"]
    ) -> tuple[Float[np.ndarray, "row token"], list[Float[np.ndarray, "row token"]]]:
        """Probability of each symbol and of SEP, all `lengths` being as likely beforehand; and if each were the one."""
        visible = self.reach[lengths[0]][target]
        beliefs = [self.task.belief(n, target, visible, contents) for n in lengths]
        evidence = np.stack([belief.log_evidence for belief in beliefs])
        weights = np.exp(evidence - evidence.max(axis=0))
        weights /= weights.sum(axis=0)
        mixed = sum(weight[:, None] * belief.probability for weight, belief in zip(weights, beliefs, strict=True))
        return np.asarray(mixed), [belief.probability for belief in beliefs]

    def ceilings(self) -> dict[int, Ceiling]:
        """The ceiling of each length: exact where all cases can be gone through, else with a standard error."""
        found = {n: [np.zeros(len(reach)) for _ in fields(Ceiling)] for n, reach in self.reach.items()}
        for target, views in enumerate(self._alike):
            for lengths in views.values():
                for n, values in zip(lengths, self._values(target, lengths), strict=True):
                    for array, value in zip(found[n], values, strict=True):
                        array[target] = value
        return {n: Ceiling(*arrays) for n, arrays in found.items()}

    def _values(self, target: int, lengths: tuple[int, ...]) -> list[tuple[float, ...]]:
        """The fields of `Ceiling` at one target, for each of some lengths that look alike from there."""
        visible = self.reach[lengths[0]][target]
        cases = self.task.cases(target, lengths, visible)
        ends = np.cumsum([len(each.questions) for each in cases])
        contents = np.full((ends[-1], len(visible)), -1)
        for end, each in zip(ends, cases, strict=True):
            read = self.task.contents(each.questions)[:, : len(visible)]
            contents[end - len(read) : end, : read.shape[1]] = read
        mixed, single = self.expects(target, lengths, contents)
        values = []
        for end, given, each in zip(ends, single, cases, strict=True):
            rows = slice(end - len(each.questions), end)
            values.append(_summed(mixed[rows], given[rows], each))
        return values

    def share(self, batch: Batch, predicted: Int[np.ndarray, "batch position"]) -> float:
        """What guesses are worth, as a share of the best ones: over all answers about which anything can be known.

        A guess is worth the probability of being right, given what is seen: the best one is worth 1 wherever ties are
        broken, and no luck is in it. Minus infinity where nothing can be known.
        """
        worth = best = 0.0
        read = batch.tokens if batch.source is None else batch.source
        lengths = (np.cumsum(read >= self.task.symbols, axis=1) == 0).sum(axis=1)  # SEP or padding ends a question
        for length in self.reach:
            rows = lengths == length
            if not rows.any():
                continue
            questions = read[rows, :length]
            contents, answers = self.task.contents(questions), np.flatnonzero(self.task.answers(length))
            for target in answers.tolist():
                mixed, _ = self.expects(target, self.alike(length, target), contents)
                most = mixed.max(axis=1)
                counted = most > self.task.chance * (1 + TIE)
                said = np.minimum(predicted[rows, target], mixed.shape[1])
                got = np.pad(mixed, ((0, 0), (0, 1)))[np.arange(len(mixed)), said]
                worth += float(np.where(got >= most * (1 - TIE), most, got)[counted].sum())
                best += float(most[counted].sum())
        return worth / best if best else -np.inf


def _summed(
    mixed: Float[np.ndarray, "row token"],
    given: Float[np.ndarray, "row token"],
    cases: Cases,
) -> tuple[float, ...]:
    """The fields of `Ceiling`, from what is expected without knowing the length and with it, over weighted cases."""
    tied = mixed >= mixed.max(axis=1, keepdims=True) * (1 - TIE)
    right = (given * tied).sum(axis=1) / tied.sum(axis=1)
    nats = -(given * np.log(np.where(given > 0, mixed, 1.0))).sum(axis=1)
    least, greatest = np.where(tied, given, np.inf).min(axis=1), given.max(axis=1)
    means = [float(np.round(cases.weights @ each, DECIMALS)) + 0.0 for each in (right, nats, least, greatest)]
    spread = [0.0 if cases.exact else float(each.std()) / len(each) ** 0.5 for each in (right, nats, greatest)]
    return (*means, *(round(each, DECIMALS) for each in spread))
