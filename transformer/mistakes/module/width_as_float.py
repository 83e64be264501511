"""The width of a head is a float."""

import torch

from transformer.mistakes import Comparison, Demonstration, Mistake, attempted, shape_of


class WidthAsFloat(Mistake):
    """`right(x, n_heads)` gives x [batch, position, d_model] cut into heads: [batch, head, position, d_head]."""

    title = "The width of a head is a float"
    hidden = "The number is right: 16 / 4 prints as 4.0, and in math.sqrt(d_head) it does no harm."
    exposes = "A TypeError, where the number is first used as a size and far from where it was made."
    mend = "Divide whole numbers with //."
    met = "a lecture notebook"
    trains = False
    stage = "split"
    function = "split"

    @staticmethod
    def right(x, n_heads):
        batch, length, d_model = x.shape
        d_head = d_model // n_heads
        return x.view(batch, length, n_heads, d_head).transpose(1, 2)

    @staticmethod
    def wrong(x, n_heads):
        batch, length, d_model = x.shape
        d_head = d_model / n_heads
        return x.view(batch, length, n_heads, d_head).transpose(1, 2)

    @classmethod
    def demonstrate(cls):
        x = torch.zeros(2, 8, 16)
        wrong, right = (attempted(shape_of, split, x, 4) for split in (cls.wrong, cls.right))
        return Demonstration(
            f"The right code cuts 2 × 8 × 16 into {right}. The wrong code is an error: {str(wrong).split(':')[0]}.",
            (Comparison("shape of the heads", wrong, right),),
        )
