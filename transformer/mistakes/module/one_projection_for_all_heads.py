"""All heads share one small matrix for queries, one for keys, one for values."""

from transformer.attention import scaled_dot_product_attention
from transformer.mistakes import ModuleMistake
from transformer.trace import UNTRACED


class OneProjectionForAllHeads(ModuleMistake):
    title = "One projection for all heads"
    hidden = (
        "Each head still reads a part of the vector of its own: accuracy, loss, pattern and probe are those of a "
        "right model."
    )
    exposes = (
        "Nothing in its behaviour does. It uses a sixteenth of the weights with 4 heads, and the difference to "
        "the reference shows it."
    )
    silent = True
    mend = "Give each head its own matrices, which read the whole vector: d_model × d_head."
    met = "a lecture notebook"
    stage = "projected"

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
        d_head = attention.d_head
        x = x.view(batch, length, attention.n_heads, d_head).transpose(1, 2)
        query = trace("query", x @ attention.query.weight[:d_head, :d_head].T)
        key = trace("key", x @ attention.key.weight[:d_head, :d_head].T)
        value = trace("value", x @ attention.value.weight[:d_head, :d_head].T)
        z, _ = scaled_dot_product_attention(query, key, value, mask, trace=trace)
        return attention.out(z.transpose(1, 2).reshape(batch, length, d_model))
