"""Key heads that several heads share are repeated as a whole, and not each beside itself."""

import torch

from transformer.attention import scaled_dot_product_attention
from transformer.foundation.drawing import drawing
from transformer.mistakes import Comparison, Demonstration, Mistake


class KeyHeadsTiled(Mistake):
    """`right(shared, n_heads)` gives the keys, or the values, of all heads: [batch, n_heads, key, d_head].

    shared [batch, key head, key, d_head], with fewer key heads than heads; heads that are neighbours share one.
    """

    title = "Shared keys and values are tiled over the heads"
    hidden = (
        "The shapes fit, and every head has a key head. It is another order of the heads: trained from scratch, the "
        "model learns as well."
    )
    exposes = "With anybody else's weights most heads read keys and values that were not made for them."
    mend = "Repeat each key head beside itself: shared.repeat_interleave(times, dim=1)."
    met = "bug reports in public repositories"
    stage = "split"
    trains = False
    function = "spread_over_heads"

    @staticmethod
    def right(shared, n_heads):
        times = n_heads // shared.shape[1]
        return shared.repeat_interleave(times, dim=1)

    @staticmethod
    def wrong(shared, n_heads):
        times = n_heads // shared.shape[1]
        return shared.repeat(1, times, 1, 1)

    @classmethod
    def demonstrate(cls):
        with drawing(0):
            query, key, value = torch.randn(2, 4, 8, 4), torch.randn(2, 2, 8, 4), torch.randn(2, 2, 8, 4)
        order = [0, 2, 1, 3]  # heads 1 and 2 change places; the same order undoes it

        def attended(spread, query):
            return scaled_dot_product_attention(query, spread(key, 4), spread(value, 4))[0]

        def apart(output):
            return round(float((output - attended(cls.right, query)).abs().max()), 5)

        own, turned = (
            [apart(attended(spread, query)) for spread in (cls.wrong, cls.right)],
            [apart(attended(spread, query[:, order])[:, order]) for spread in (cls.wrong, cls.right)],
        )
        return Demonstration(
            f"4 heads share 2 key heads. With the same weights the wrong code's output differs by {own[0]:.2f}, the "
            f"right code's by {own[1]:g}. With heads 1 and 2 exchanged, from 0, the wrong code's differs by "
            f"{turned[0]:g} and the right code's by {turned[1]:.2f}: the two have another order of the heads.",
            (
                Comparison("largest difference to the right output, the same weights", *own),
                Comparison("largest difference to it, with heads 1 and 2 exchanged", *turned),
            ),
        )
