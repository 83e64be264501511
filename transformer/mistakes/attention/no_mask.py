"""The mask is never used."""

import math

from transformer.attention import masked_softmax
from transformer.mistakes import AttentionMistake
from transformer.trace import UNTRACED


class NoMask(AttentionMistake):
    title = "The mask is not used"
    hidden = "The loss falls to nothing, and every answer is right while the right tokens are read."
    exposes = (
        "The random first half is right, the loss lies below its floor, weight lies on later tokens and the probe "
        "is not 0."
    )
    mend = "Hide the scores of later tokens before the softmax."
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
        pattern = trace("pattern", scores.softmax(dim=-1))
        return trace("z", pattern @ value), pattern
