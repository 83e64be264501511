"""A hidden score becomes -1 in place of minus infinity."""

import math

from transformer.attention import masked_softmax
from transformer.mistakes import AttentionMistake
from transformer.trace import UNTRACED


class MaskedWithMinusOne(AttentionMistake):
    title = "Hidden scores become -1"
    hidden = "There is a mask, it has the right triangle, and it is used in the right place."
    exposes = (
        "Weight lies on later tokens, the random first half is right, the loss lies below its floor and the probe "
        "is not 0."
    )
    mend = "Give hidden scores minus infinity: only its exponential is 0."
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
        pattern = trace("pattern", scores.masked_fill(~mask, -1).softmax(dim=-1))
        return trace("z", pattern @ value), pattern
