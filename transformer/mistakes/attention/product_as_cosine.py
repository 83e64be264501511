"""The product of a query and a key is taken to be their cosine."""

import math

from torch.nn.functional import cosine_similarity

from transformer.attention import masked_softmax
from transformer.mistakes import AttentionMistake
from transformer.trace import UNTRACED


class ProductAsCosine(AttentionMistake):
    title = "The product is taken for a cosine"
    hidden = "Both are large where the two point the same way, and of unit vectors they are the same."
    exposes = "TODO"
    mend = "Multiply the vectors as they are: a long key is meant to be looked at more."
    met = "a lecture notebook"
    stage = "scores"

    @staticmethod
    def right(query, key, value, mask, trace=UNTRACED):
        scores = trace("scores", query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1]))
        pattern = trace("pattern", masked_softmax(scores, mask))
        return trace("z", pattern @ value), pattern

    @staticmethod
    def wrong(query, key, value, mask, trace=UNTRACED):
        scores = trace("scores", cosine_similarity(query.unsqueeze(-2), key.unsqueeze(-3), dim=-1))
        pattern = trace("pattern", masked_softmax(scores, mask))
        return trace("z", pattern @ value), pattern
