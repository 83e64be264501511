"""The product of a query and a key is taken to be their cosine."""

import math

import torch
from torch.nn.functional import cosine_similarity, normalize

from transformer.attention import masked_softmax
from transformer.foundation.drawing import drawing
from transformer.mistakes import AttentionMistake, Comparison, Demonstration
from transformer.trace import UNTRACED


class ProductAsCosine(AttentionMistake):
    title = "The product is taken for a cosine"
    hidden = (
        "Of unit vectors they are the same, and two layers learn the task with either: its behaviour is that of a"
        " right model."
    )
    exposes = (
        "Nothing in its behaviour does. All scores lie between -1 and 1, and the difference to the reference shows it."
    )
    silent = True
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
        scores = trace("scores", normalize(query, dim=-1) @ normalize(key, dim=-1).transpose(-2, -1))
        pattern = trace("pattern", masked_softmax(scores, mask))
        return trace("z", pattern @ value), pattern

    @classmethod
    def demonstrate(cls):
        with drawing(0):
            query, key = torch.randn(2, 1000, 64)
        cosine = cosine_similarity(query, key)
        found = []
        for what, one, other in (("drawn", query, key), ("of length 1", normalize(query), normalize(key))):
            product = (one * other).sum(dim=-1)
            found.append(Comparison(f"greatest score of pairs {what}", float(cosine.max()), float(product.max())))
        return Demonstration(
            f"The greatest product of 1000 pairs of vectors of 64 normal numbers is {found[0].right:.1f}, the greatest "
            f"cosine {found[0].wrong:.2f}. Once all vectors have length 1, both are {found[1].right:.2f}.",
            tuple(found),
        )
