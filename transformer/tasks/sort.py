"""Sorting as continuation: after the separator, say the symbols in ascending order.

Unlike in the other tasks no answer is one token of the question: each needs all of it, and a part of the question is
worth a part of the accuracy. So the ceiling is a posterior, worked out exactly for each of many questions.
"""

import math
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int

from transformer.tasks import Ceiling
from transformer.tasks._layouts import Continuation

SAMPLED_QUESTIONS = 2000


class Sort(Continuation):
    """`[x1..xn, SEP, sorted x]`: every answer needs all of the question."""

    law: ClassVar[str] = "after SEP, the symbols in ascending order"

    def answer(self, question):
        return np.sort(question)

    def symbols_of_slots(self, length: int):
        """Here y1..yn are symbols n to 2n-1, of their own: no single place of the question carries them."""
        return np.concatenate([np.arange(length), [-1], np.arange(length, 2 * length - 1)])

    def symbols_of_targets(self, length: int):
        return np.concatenate([np.arange(1, length), [-1], np.arange(length, 2 * length)])

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
        size = int(np.clip(40_000_000 // (length**2 * self.symbols), 50, SAMPLED_QUESTIONS))
        return self.ceiling_over(reach, np.random.default_rng(0).integers(0, self.symbols, (size, length)))

    def ceiling_over(
        self, reach: Bool[np.ndarray, "target slot"], questions: Int[np.ndarray, "question length"]
    ) -> Ceiling:
        """The ceiling as an average over these questions; over all there are, it is exact."""
        length = questions.shape[1]
        whole = Continuation.ceiling(self, reach)
        accuracy, nats = whole.accuracy.copy(), whole.nats.copy()
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
                posteriors[seen] = _posterior(questions, x, y, self.symbols)
            answers, hidden = posteriors[seen]
            probability = hidden if symbol < length else answers[:, symbol - length]
            accuracy[target] = probability.max(axis=-1).mean()
            nats[target] = -(probability * np.log(np.maximum(probability, 1e-300))).sum(axis=-1).mean()
        return Ceiling(accuracy, nats)


def _posterior(
    questions: Int[np.ndarray, "question length"],
    x: Bool[np.ndarray, "length"],
    y: Bool[np.ndarray, "length"],
    symbols: int,
) -> tuple[Float[np.ndarray, "question length symbol"], Float[np.ndarray, "question symbol"]]:
    """P(y_r = v) for each rank r, and P(x = v) for a hidden place, given the visible places x and ranks y.

    How many of the m hidden symbols have each value is multinomial, so the number H(v) of hidden symbols up to v is a
    Markov chain over v. A visible y_r = u says that fewer than r symbols lie below u and at least r do not lie above
    it: bounds on H. Forward and backward sums over the chain give the law of every H(v); everything follows from it,
    as y_r ≤ v means visible(v) + H(v) ≥ r, and hidden places share H(v) - H(v-1) among themselves.
    """
    size, length = questions.shape
    m = length - int(x.sum())
    values, ranks, used = np.arange(symbols), np.arange(1, length + 1), np.arange(m + 1)
    visible = (questions[:, x, None] <= values).sum(axis=1)  # question, value
    said = np.sort(questions, axis=1)[:, y, None]
    least = np.where(said <= values, ranks[y][:, None], 0).max(axis=1, initial=0)
    most = np.where(said > values, ranks[y][:, None] - 1, length).min(axis=1, initial=length)
    total = visible[:, :, None] + used
    allowed = (least[:, :, None] <= total) & (total <= most[:, :, None])  # question, value, H

    # 1/k! up to a factor that every path shares: as Poisson probabilities, and rescaled on the way, nothing underflows.
    rate = m / symbols
    weight = np.array([math.exp(k * math.log(rate) - rate - math.lgamma(k + 1)) for k in used.tolist()])
    more = used[None, :] - used[:, None]
    ways = np.where(more >= 0, weight[more.clip(0)], 0.0)
    forward = np.zeros((symbols, size, m + 1))
    backward = np.zeros((symbols, size, m + 1))
    state = np.eye(m + 1)[[0] * size]
    for v in values:
        state = forward[v] = _scaled((state @ ways) * allowed[:, v])
    state = backward[-1] = np.eye(m + 1)[[m] * size]
    for v in values[:0:-1]:
        state = backward[v - 1] = _scaled((state * allowed[:, v]) @ ways.T)
    law = _scaled(np.moveaxis(forward * backward, 0, 1))  # question, value, H

    at_most = np.stack([(law * (total >= rank)).sum(axis=-1) for rank in ranks], axis=1)
    share = (law @ used) / m
    return np.diff(at_most, axis=-1, prepend=0.0).clip(0), np.diff(share, axis=-1, prepend=0.0).clip(0)


def _scaled(weights: Float[np.ndarray, "*rows H"]) -> Float[np.ndarray, "*rows H"]:
    """Each row, so that it sums to one."""
    return weights / weights.sum(axis=-1, keepdims=True)
