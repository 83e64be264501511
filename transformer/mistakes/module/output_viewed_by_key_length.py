"""The output is given the length of the keys and values where it has that of the queries."""

import torch

from transformer.foundation.drawing import drawing
from transformer.mistakes import Comparison, Demonstration, Mistake, attempted, shape_of


class OutputViewedByKeyLength(Mistake):
    """`right(pattern, value)` gives the merged output [batch, query, d_model] of all heads.

    pattern [batch, head, query, key]; value [batch, head, key, d_head].
    """

    title = "The output has the length of the values"
    hidden = "In self-attention there are as many queries as values, and it is right."
    exposes = "In cross-attention a source of another length than the target is a shape error."
    mend = "The output has a row a query: read its length from the queries."
    met = "a lecture notebook"
    trains = False
    function = "merged"

    @staticmethod
    def right(pattern, value):
        batch, heads, _, d_head = value.shape
        length = pattern.shape[-2]
        return (pattern @ value).transpose(1, 2).reshape(batch, length, heads * d_head)

    @staticmethod
    def wrong(pattern, value):
        batch, heads, length, d_head = value.shape
        return (pattern @ value).transpose(1, 2).reshape(batch, length, heads * d_head)

    @classmethod
    def demonstrate(cls):
        with drawing(0):
            pattern, value = torch.randn(2, 4, 8, 8).softmax(dim=-1), torch.randn(2, 4, 8, 4)
        found = []
        for queries in (8, 3):
            part = pattern[:, :, :queries]
            wrong, right = (attempted(shape_of, merge, part, value) for merge in (cls.wrong, cls.right))
            found.append(Comparison(f"shape of the output, {queries} queries and 8 keys", wrong, right))
        return Demonstration(
            f"With 8 queries and 8 keys both give {found[0].wrong}. With 3 queries the right code gives "
            f"{found[1].right}, and the wrong code is an error.",
            tuple(found),
        )
