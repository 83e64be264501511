"""The scores are divided by the root of d_model, the width of all heads together."""

import math

from transformer.attention import masked_softmax
from transformer.mistakes import AttentionMistake
from transformer.trace import UNTRACED


class ScaleOfDModel(AttentionMistake):
    title = "The scale is that of d_model"
    hidden = "Weights can make up for a factor: accuracy, loss, pattern and probe are those of a right model."
    exposes = "Nothing in its behaviour does. The difference to the reference with the same weights shows it."
    silent = True
    mend = "Divide by the root of the width of one head: d_head = d_model / n_heads."
    met = "bug reports in public repositories"
    stage = "scaled"

    @staticmethod
    def right(query, key, value, mask, trace=UNTRACED):
        scores = trace("scores", query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1]))
        pattern = trace("pattern", masked_softmax(scores, mask))
        return trace("z", pattern @ value), pattern

    @staticmethod
    def wrong(query, key, value, mask, trace=UNTRACED):
        d_model = query.shape[-3] * query.shape[-1]
        scores = trace("scores", query @ key.transpose(-2, -1) / math.sqrt(d_model))
        pattern = trace("pattern", masked_softmax(scores, mask))
        return trace("z", pattern @ value), pattern
