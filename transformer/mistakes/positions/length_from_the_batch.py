"""The sequence length is read from the batch axis."""

import torch

from transformer.mistakes import Comparison, Demonstration, Mistake, attempted, vectors_in
from transformer.positions.sinusoidal import sinusoids


class LengthFromTheBatch(Mistake):
    """`right(x)` gives x [batch, position, d_model] plus its encoding."""

    title = "The length is read from the batch axis"
    hidden = "It is right for input [position, batch, d_model], and there is no error where batch and length are equal."
    exposes = "A batch of one gets the same vector at all positions; other sizes of the batch are a shape error."
    mend = "Read the length where it stands: x.shape[1] for input [batch, position, d_model]."
    met = "a lecture notebook"
    trains = False
    function = "placed"

    @staticmethod
    def right(x):
        encoding = sinusoids(torch.arange(1000), x.shape[2]).to(x)
        return x + encoding[: x.shape[1]]

    @staticmethod
    def wrong(x):
        encoding = sinusoids(torch.arange(1000), x.shape[2]).to(x)
        return x + encoding[: x.shape[0]]

    @classmethod
    def demonstrate(cls):
        found = []
        for batch in (8, 1, 2):
            x = torch.zeros(batch, 8, 16)
            wrong, right = (attempted(vectors_in, place, x) for place in (cls.wrong, cls.right))
            found.append(Comparison(f"different vectors at 8 positions, batch of {batch}", wrong, right))
        return Demonstration(
            f"A batch of 8 sequences of 8 tokens gets {found[0].wrong} different vectors, as it should. "
            f"A batch of one gets {found[1].wrong}, and a batch of 2 is an error.",
            tuple(found),
        )
