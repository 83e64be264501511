"""The mask is multiplied in after the softmax."""

import math

from transformer.attention import masked_softmax
from transformer.mistakes import AttentionMistake
from transformer.trace import UNTRACED


class MaskedAfterSoftmax(AttentionMistake):
    title = "The mask comes after the softmax"
    hidden = "The pattern has a perfect triangle: no weight lies on a hidden token."
    exposes = "The rows do not sum to 1: each is divided by a sum that knows later tokens. The probe is not 0."
    mend = "Hide the scores before the softmax."
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
        pattern = trace("pattern", scores.softmax(dim=-1) * mask)
        return trace("z", pattern @ value), pattern
