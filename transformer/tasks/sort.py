"""Sorting as continuation: after the separator, say the symbols in ascending order.

Unlike in the other tasks no answer is one token of the question: each needs all of it, and a part of the question is
worth a part of the accuracy. So the ceiling is a posterior, worked out exactly for each of many questions.
"""

import itertools
import math
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int

from transformer.tasks import SAMPLED_QUESTIONS, Belief, Cases, Ceiling
from transformer.tasks._layouts import Continuation

MOST_QUESTIONS = 4096
"""Questions that are gone through one by one, at most, where the length is not known."""
WORK = 40_000_000
"""Steps of the chain of `_posterior` that are taken at most: fewer long questions are drawn than short ones."""


class Sort(Continuation):
    """`[x1..xn, SEP, sorted x]`: every answer needs all of the question."""

    law: ClassVar[str] = "after SEP, the symbols in ascending order"
    verb: ClassVar[str] = "sorts"
    aim: ClassVar[str] = "write them in ascending order"
    parts: ClassVar[tuple[str, ...]] = ("first half", "second half")

    def answer(self, question):
        return np.sort(question)

    def _answers(self, questions):
        return np.sort(questions, axis=1)

    def expected_keys(self, question):
        """For each target of the answer, every place of the question that holds the symbol to be said."""
        n = len(question)
        expected = np.zeros((2 * n, 2 * n), dtype=bool)
        expected[n:, :n] = self.answer(question)[:, None] == question[None, :]
        return expected

    def ceiling(self, reach):
        """The ceiling when the slots in `reach` can influence each target.

        Exact where a target arrives itself, where all of the question does, and where nothing that bears on it does.
        Between these it is an estimate: the exact posterior, averaged over questions drawn with a fixed seed. With
        2,000 questions the standard error is at most 0.011 for an accuracy; very long ones get fewer, to end in time.
        """
        length = reach.shape[0] // 2
        return self.ceiling_over(reach, Cases.drawn(self.symbols, length, self._size(length)).questions)

    def _size(self, length: int, times: int = 1) -> int:
        """How many questions are drawn: fewer where they are long, or where several lengths are weighed for each."""
        return int(np.clip(WORK // (length**2 * self.symbols * times**2), max(16, 50 // times), SAMPLED_QUESTIONS))

    def ceiling_over(
        self, reach: Bool[np.ndarray, "target slot"], questions: Int[np.ndarray, "question length"]
    ) -> Ceiling:
        """The ceiling as an average over these questions; over all there are, it is exact."""
        length = questions.shape[1]
        whole = Continuation.ceiling(self, reach)
        accuracy, nats = whole.accuracy.copy(), whole.nats.copy()
        error, nats_error = np.zeros(len(accuracy)), np.zeros(len(accuracy))
        sought = self.symbols_of_targets(length)
        posteriors: dict[bytes, tuple[np.ndarray, np.ndarray]] = {}  # targets often see the same
        for target in np.flatnonzero(accuracy < 1):
            slots, symbol = reach[target], sought[target]
            x, y = slots[:length], np.append(slots[length + 1 :], False)
            if x.all():
                accuracy[target], nats[target] = 1.0, 0.0
                continue
            if symbol < length and not y.any():
                continue
            seen = slots.tobytes()
            if seen not in posteriors:
                said = np.sort(questions, axis=1)[:, y]
                posteriors[seen] = _posterior(questions[:, x], said, np.flatnonzero(y), length, self.symbols)[1:]
            answers, hidden = posteriors[seen]
            probability = hidden if symbol < length else answers[:, symbol - length]
            best = probability.max(axis=-1)
            cost = -(probability * np.log(np.maximum(probability, 1e-300))).sum(axis=-1)
            accuracy[target], nats[target] = best.mean(), cost.mean()
            error[target], nats_error[target] = (each.std() / len(each) ** 0.5 for each in (best, cost))
        return Ceiling.of(accuracy, nats, error, nats_error)

    # --- where the length is not known

    def belief(self, length, target, visible, contents):
        """What is expected of a target by somebody who takes the sequence to have this length."""
        sought = int(self.symbols_of_targets(length)[target])
        x, y = self._split(length, visible)
        if sought < length and not len(y):  # symbols that are independent, and SEP
            return super().belief(length, target, visible, contents)
        seen, said = contents[:, x], contents[:, length + 1 + y]
        if len(x) == length:
            answers = np.sort(seen, axis=1)
            possible = (answers[:, y] == said).all(axis=1)
            evidence = np.where(possible, 0.0, -np.inf)
            known = np.eye(self.symbols)[answers[:, [max(0, sought - length)]]]
            hidden = np.zeros((len(contents), self.symbols))
        else:
            rank = np.array([max(0, sought - length)])
            evidence, known, hidden = _posterior(seen, said, y, length, self.symbols, rank)
        evidence = evidence - len(x) * math.log(self.symbols)
        if sought < 0:
            return Belief(evidence, self._sure(np.full(len(contents), self.separator)))
        known = known[:, 0] if sought >= length else self._sure(contents[:, sought]) if sought in x else hidden
        return Belief(evidence, known if known.shape[1] > self.symbols else np.pad(known, ((0, 0), (0, 1))))

    def cases(self, target, lengths, visible):
        """All questions of each length, each as likely; where these are too many, some, drawn with a fixed seed."""
        return [
            self._questions(length, len(lengths))
            if self._hangs_on_question(target, lengths, visible)
            # what they are does not matter, so one stands for all
            else Cases(np.zeros((1, length), dtype=np.int64), np.ones(1), True)
            for length in lengths
        ]

    def _questions(self, length: int, times: int) -> Cases:
        if self.symbols**length > MOST_QUESTIONS:
            return Cases.drawn(self.symbols, length, self._size(length, times))
        every = np.array(list(itertools.product(range(self.symbols), repeat=length)), dtype=np.int64)
        return Cases(every, np.full(len(every), 1 / len(every)), True)

    def _hangs_on_question(self, target: int, lengths: tuple[int, ...], visible: Bool[np.ndarray, "slot"]) -> bool:
        """Does what is known of a target depend on what the visible symbols are, and not only on where they stand?"""
        if len(lengths) == 1:
            x, y = self._split(lengths[0], visible)
            sought = int(self.symbols_of_targets(lengths[0])[target])
            if len(x) == lengths[0] or sought < 0 or sought in x or sought - lengths[0] in y:
                return False
        return any(
            len(self._split(length, visible)[1]) > 0 or self.symbols_of_targets(length)[target] >= length
            for length in lengths
        )

    def _split(
        self, length: int, visible: Bool[np.ndarray, "slot"]
    ) -> tuple[Int[np.ndarray, "seen"], Int[np.ndarray, "said"]]:
        """The places of the question that are visible, and the ranks, both from 0."""
        return np.flatnonzero(visible[:length]), np.flatnonzero(visible[length + 1 : 2 * length])


def _posterior(
    seen: Int[np.ndarray, "question seen"],
    said: Int[np.ndarray, "question said"],
    places: Int[np.ndarray, "said"],
    length: int,
    symbols: int,
    sought: Int[np.ndarray, "sought"] | None = None,
) -> tuple[
    Float[np.ndarray, "question"],
    Float[np.ndarray, "question sought symbol"],
    Float[np.ndarray, "question symbol"],
]:
    """ln P(what is said | what is seen), P(y_r = v) for each rank r that is sought, and P(x = v) for a hidden place.

    Some symbols of the question are `seen`, at least one is not; of the answer those at `places`, from 0, are `said`.

    How many of the m hidden symbols have each value is multinomial, so the number H(v) of hidden symbols up to v is a
    Markov chain over v. A visible y_r = u says that fewer than r symbols lie below u and at least r do not lie above
    it: bounds on H. Forward and backward sums over the chain give the law of every H(v); everything follows from it,
    as y_r ≤ v means visible(v) + H(v) ≥ r, and hidden places share H(v) - H(v-1) among themselves.
    """
    size, m = len(seen), length - seen.shape[1]
    values, ranks, used = np.arange(symbols), np.arange(1, length + 1), np.arange(m + 1)
    visible = (seen[:, :, None] <= values).sum(axis=1)  # question, value
    least = np.where(said[:, :, None] <= values, ranks[places][:, None], 0).max(axis=1, initial=0)
    most = np.where(said[:, :, None] > values, ranks[places][:, None] - 1, length).min(axis=1, initial=length)
    total = visible[:, :, None] + used
    allowed = (least[:, :, None] <= total) & (total <= most[:, :, None])  # question, value, H

    # 1/k! up to a factor that every path shares: as Poisson probabilities, and rescaled on the way, nothing underflows.
    rate = m / symbols
    weight = np.array([math.exp(k * math.log(rate) - rate - math.lgamma(k + 1)) for k in used.tolist()])
    more = used[None, :] - used[:, None]
    ways = np.where(more >= 0, weight[more.clip(0)], 0.0)
    forward = np.zeros((symbols, size, m + 1))
    backward = np.zeros((symbols, size, m + 1))
    state, evidence = np.eye(m + 1)[[0] * size], np.zeros(size)
    for v in values:
        reached = (state @ ways) * allowed[:, v]
        evidence += _log(reached.sum(axis=-1))
        state = forward[v] = _scaled(reached)
    evidence += _log(state[:, m]) - (m * math.log(m) - m - math.lgamma(m + 1))  # given that m are hidden
    state = backward[-1] = np.eye(m + 1)[[m] * size]
    for v in values[:0:-1]:
        state = backward[v - 1] = _scaled((state * allowed[:, v]) @ ways.T)
    law = _scaled(np.moveaxis(forward * backward, 0, 1))  # question, value, H

    wanted = ranks if sought is None else ranks[sought]
    at_most = np.stack([(law * (total >= rank)).sum(axis=-1) for rank in wanted], axis=1)
    share = (law @ used) / m
    answers, hidden = np.diff(at_most, axis=-1, prepend=0.0), np.diff(share, axis=-1, prepend=0.0)
    return evidence, answers.clip(0), hidden.clip(0)


def _scaled(weights: Float[np.ndarray, "*rows H"]) -> Float[np.ndarray, "*rows H"]:
    """Each row, so that it sums to one; one that is nothing but zeros, because it cannot be, stays so."""
    total = weights.sum(axis=-1, keepdims=True)
    return weights / np.where(total > 0, total, 1.0)


def _log(weights: Float[np.ndarray, "*rows"]) -> Float[np.ndarray, "*rows"]:
    return np.log(weights, out=np.full_like(weights, -np.inf), where=weights > 0)
