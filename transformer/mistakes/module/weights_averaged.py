"""The weights of torch.nn.MultiheadAttention are taken for those of each head: they are their mean."""

import torch
from torch import nn

from transformer.foundation.drawing import drawing
from transformer.mistakes import Comparison, Demonstration, Mistake


class WeightsAveraged(Mistake):
    """`right(attention, x)` gives the pattern of every head [batch, head, query, key] of a torch.nn.MultiheadAttention.

    x [batch, position, d_model], with batch_first=True.
    """

    title = "The mean over heads is shown as if it were a head"
    hidden = "The picture is a matrix of queries and keys, and its rows sum to 1."
    exposes = "The weights have three dimensions in place of four, and look the same whichever head is asked for."
    mend = "Ask for every head: attention(x, x, x, average_attn_weights=False)."
    met = "a lecture notebook"
    trains = False
    function = "patterns"

    @staticmethod
    def right(attention, x):
        _, pattern = attention(x, x, x, average_attn_weights=False)
        return pattern

    @staticmethod
    def wrong(attention, x):
        _, pattern = attention(x, x, x)
        return pattern

    @classmethod
    @torch.no_grad()
    def demonstrate(cls):
        with drawing(0):
            attention, x = nn.MultiheadAttention(16, 4, batch_first=True), 3 * torch.randn(2, 8, 16)
        patterns = [look(attention, x) for look in (cls.wrong, cls.right)]
        shapes = [" × ".join(map(str, pattern.shape)) for pattern in patterns]
        greatest = [float(pattern.max()) for pattern in patterns]
        return Demonstration(
            f"With 4 heads the right code gives {shapes[1]} weights and the wrong code {shapes[0]}: the mean of the "
            f"heads. The greatest weight of a head is {greatest[1]:.2f}, of the mean {greatest[0]:.2f}.",
            (Comparison("shape of the weights", *shapes), Comparison("greatest weight", *greatest)),
        )
