"""The heads are cut out and merged by the shape alone."""

from transformer.attention import scaled_dot_product_attention
from transformer.mistakes import ModuleMistake
from transformer.trace import UNTRACED


class HeadsNeverTransposed(ModuleMistake):
    title = "Heads are split and merged without a transpose"
    hidden = "The shapes fit, the pattern is causal, its rows sum to 1, and the probe is 0."
    exposes = (
        "The second half is not right: each of 4 heads holds only a quarter of the sequence, so the token it "
        "needs is out of reach."
    )
    mend = (
        "Cut each token's vector into heads, bring the heads to the front with transpose(1, 2), and back before "
        "they are merged."
    )
    met = "bug reports in public repositories"
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
        batch, length, d_model = x.shape
        cut = (batch, attention.n_heads, length, attention.d_head)
        query = trace("query", attention.query(x).view(cut))
        key = trace("key", attention.key(x).view(cut))
        value = trace("value", attention.value(x).view(cut))
        z, _ = scaled_dot_product_attention(query, key, value, mask, trace=trace)
        return attention.out(z.reshape(batch, length, d_model))
