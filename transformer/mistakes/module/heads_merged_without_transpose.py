"""The heads' outputs are laid one after the other without being put beside each other first."""

from transformer.attention import scaled_dot_product_attention
from transformer.mistakes import ModuleMistake
from transformer.trace import UNTRACED


class HeadsMergedWithoutTranspose(ModuleMistake):
    title = "Heads are merged without the transpose"
    hidden = "The shapes fit, the pattern is a perfect causal one, and the accuracy is 100 %."
    exposes = (
        "The first half is right although it is random, and the loss lies below its floor: later tokens are mixed in."
    )
    mend = "Bring the heads behind the positions before they are merged: z.transpose(1, 2)."
    met = "bug reports in public repositories"
    stage = "merged"

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
        batch, length, d_model = x.shape
        cut = (batch, length, attention.n_heads, attention.d_head)
        query = trace("query", attention.query(x).view(cut).transpose(1, 2))
        key = trace("key", attention.key(x).view(cut).transpose(1, 2))
        value = trace("value", attention.value(x).view(cut).transpose(1, 2))
        z, _ = scaled_dot_product_attention(query, key, value, mask, trace=trace)
        return attention.out(z.reshape(batch, length, d_model))
