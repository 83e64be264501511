"""The batch size is hard-coded to 1."""

import torch

from transformer.attention import MultiHeadAttention, scaled_dot_product_attention
from transformer.foundation.drawing import drawing
from transformer.mistakes import Comparison, Demonstration, ModuleMistake, attempted, shape_of
from transformer.trace import UNTRACED


class BatchOfOne(ModuleMistake):
    title = "The batch size is hard-coded to 1"
    hidden = "It is right for one sequence, and one sequence is what people try."
    exposes = "A batch of two sequences is a shape error."
    mend = "Read the batch size from the input: batch, length, d_model = x.shape."
    met = "a lecture notebook"
    trains = False
    stage = "split"

    @staticmethod
    def right(attention, x, mask, trace=UNTRACED):
        batch, length, d_model = x.shape
        cut = (batch, length, attention.n_heads, attention.d_head)
        query = trace("query", attention.query(x).view(cut).transpose(1, 2))
        key = trace("key", attention.key(x).view(cut).transpose(1, 2))
        value = trace("value", attention.value(x).view(cut).transpose(1, 2))
        z, _ = scaled_dot_product_attention(query, key, value, mask, trace=trace)
        return attention.out(z.transpose(1, 2).reshape(batch, length, d_model))

    @staticmethod
    def wrong(attention, x, mask, trace=UNTRACED):
        _, length, d_model = x.shape
        cut = (1, length, attention.n_heads, attention.d_head)
        query = trace("query", attention.query(x).view(cut).transpose(1, 2))
        key = trace("key", attention.key(x).view(cut).transpose(1, 2))
        value = trace("value", attention.value(x).view(cut).transpose(1, 2))
        z, _ = scaled_dot_product_attention(query, key, value, mask, trace=trace)
        return attention.out(z.transpose(1, 2).reshape(1, length, d_model))

    @classmethod
    def demonstrate(cls):
        with drawing(0):
            attention, sequences = MultiHeadAttention(16, 4), torch.randn(2, 8, 16)
        mask = torch.ones(8, 8, dtype=torch.bool).tril()
        found = []
        for batch in (1, 2):
            x = sequences[:batch]
            wrong, right = (attempted(shape_of, of, attention, x, mask) for of in (cls.wrong, cls.right))
            found.append(Comparison(f"shape of the output, batch of {batch}", wrong, right))
        return Demonstration(
            f"For one sequence both give an output of {found[0].wrong}. For two sequences the right code gives "
            f"{found[1].right}, and the wrong code is an error.",
            tuple(found),
        )
