"""Softmax over dimension 1: the columns of a matrix, but the heads of a batch."""

import math

import torch

from transformer.attention import masked_softmax
from transformer.mistakes import AttentionMistake
from transformer.trace import UNTRACED


class SoftmaxOverHeads(AttentionMistake):
    title = "Softmax runs over dimension 1"
    hidden = (
        "For one matrix of scores dimension 1 is the keys, and the code is right. In a batch of heads it is the heads."
    )
    exposes = (
        "The rows do not sum to 1. Of 4 heads each gives a hidden token 0.25: weight lies on later tokens and the"
        " probe is not 0."
    )
    mend = "Count the dimension from the end: dim=-1 is the keys, whatever stands before."
    met = "a lecture notebook"
    stage = "softmax"

    @staticmethod
    def right(query, key, value, mask, trace=UNTRACED):
        scores = trace("scores", query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1]))
        pattern = trace("pattern", masked_softmax(scores, mask))
        return trace("z", pattern @ value), pattern

    @staticmethod
    def wrong(query, key, value, mask, trace=UNTRACED):
        scores = trace("scores", query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1]))
        hidden = torch.finfo(scores.dtype).min
        pattern = trace("pattern", scores.masked_fill(~mask, hidden).softmax(dim=1))
        return trace("z", pattern @ value), pattern
