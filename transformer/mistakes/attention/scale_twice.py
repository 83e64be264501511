"""Queries and keys are both divided by the root of d_head, so that scores are divided by d_head."""

import math

from transformer.attention import masked_softmax
from transformer.mistakes import AttentionMistake
from transformer.trace import UNTRACED


class ScaleTwice(AttentionMistake):
    title = "The scale is applied twice"
    hidden = "Weights can make up for a factor: accuracy, loss, pattern and probe are those of a right model."
    exposes = "Nothing in its behaviour does. The difference to the reference with the same weights shows it."
    silent = True
    mend = "Divide once: the scores, or only the queries."
    met = "a lecture notebook"
    stage = "scaled"

    @staticmethod
    def right(query, key, value, mask, trace=UNTRACED):
        scores = trace("scores", query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1]))
        pattern = trace("pattern", masked_softmax(scores, mask))
        return trace("z", pattern @ value), pattern

    @staticmethod
    def wrong(query, key, value, mask, trace=UNTRACED):
        query, key = query / math.sqrt(query.shape[-1]), key / math.sqrt(key.shape[-1])
        scores = trace("scores", query @ key.transpose(-2, -1))
        pattern = trace("pattern", masked_softmax(scores, mask))
        return trace("z", pattern @ value), pattern
