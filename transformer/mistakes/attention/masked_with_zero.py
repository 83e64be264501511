"""Scores are multiplied by the mask, so that a hidden score becomes 0."""

import math

from transformer.attention import masked_softmax
from transformer.mistakes import AttentionMistake
from transformer.trace import UNTRACED


class MaskedWithZero(AttentionMistake):
    title = "Scores are multiplied by the mask"
    hidden = "A hidden score is 0, and 0 looks like nothing."
    exposes = (
        "Weight lies on later tokens, the random first half is right, the loss lies below its floor and the probe "
        "is not 0."
    )
    mend = "Give hidden scores minus infinity: the exponential of 0 is 1."
    met = "bug reports in public repositories"
    stage = "masked"

    @staticmethod
    def right(query, key, value, mask, trace=UNTRACED):
        scores = trace("scores", query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1]))
        pattern = trace("pattern", masked_softmax(scores, mask))
        return trace("z", pattern @ value), pattern

    @staticmethod
    def wrong(query, key, value, mask, trace=UNTRACED):
        scores = trace("scores", query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1]))
        pattern = trace("pattern", (scores * mask).softmax(dim=-1))
        return trace("z", pattern @ value), pattern
