"""The scores are not divided by the root of d_head."""

import math

from transformer.attention import masked_softmax
from transformer.mistakes import AttentionMistake
from transformer.trace import UNTRACED


class ScaleMissing(AttentionMistake):
    title = "The scale is missing"
    hidden = "Weights can make up for a factor: in a narrow model accuracy, loss, pattern and probe are a right one's."
    exposes = "The difference to the reference with the same weights. A wide model learns more slowly, or not at all."
    silent = True
    mend = "Divide the scores by math.sqrt(d_head)."
    met = "bug reports in public repositories"
    stage = "scaled"

    @staticmethod
    def right(query, key, value, mask, trace=UNTRACED):
        scores = trace("scores", query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1]))
        pattern = trace("pattern", masked_softmax(scores, mask))
        return trace("z", pattern @ value), pattern

    @staticmethod
    def wrong(query, key, value, mask, trace=UNTRACED):
        scores = trace("scores", query @ key.transpose(-2, -1))
        pattern = trace("pattern", masked_softmax(scores, mask))
        return trace("z", pattern @ value), pattern
