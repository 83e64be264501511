"""Softmax over the queries in place of the keys."""

import math

from transformer.attention import masked_softmax
from transformer.mistakes import AttentionMistake
from transformer.trace import UNTRACED


class SoftmaxOverQueries(AttentionMistake):
    title = "Softmax runs over the queries"
    hidden = "No weight lies on a hidden token, and the columns of the pattern sum to 1."
    exposes = "The rows do not sum to 1, and later queries change an earlier one's weights: the probe is not 0."
    mend = "Let softmax run over the keys, the last dimension: dim=-1."
    met = "bug reports in public repositories"
    stage = "softmax"

    @staticmethod
    def right(query, key, value, mask, trace=UNTRACED):
        scores = trace("scores", query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1]))
        pattern = trace("pattern", masked_softmax(scores, mask))
        return trace("z", pattern @ value), pattern

    @staticmethod
    def wrong(query, key, value, mask, trace=UNTRACED):
        scores = trace("scores", query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1]))
        pattern = trace("pattern", scores.masked_fill(~mask, -math.inf).softmax(dim=-2))
        return trace("z", pattern @ value), pattern
