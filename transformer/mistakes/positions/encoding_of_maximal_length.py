"""The encoding is built for the longest input, not for this one."""

import torch

from transformer.mistakes import Comparison, Demonstration, Mistake, attempted, vectors_in
from transformer.positions.sinusoidal import sinusoids


class EncodingOfMaximalLength(Mistake):
    """`right(x, longest)` gives x [batch, position, d_model] plus its encoding; `longest` positions are the most."""

    title = "The encoding is as long as the longest input"
    hidden = "For an input of the maximal length it is right."
    exposes = "A shorter input is a shape error. With a maximal length of 1 all positions get the same vector."
    mend = "Build the encoding for the length of the input, or cut it to that: encoding[: x.shape[1]]."
    met = "a lecture notebook"
    trains = False
    function = "placed"

    @staticmethod
    def right(x, longest):
        encoding = sinusoids(torch.arange(x.shape[1]), x.shape[2]).to(x)
        return x + encoding

    @staticmethod
    def wrong(x, longest):
        encoding = sinusoids(torch.arange(longest), x.shape[2]).to(x)
        return x + encoding

    @classmethod
    def demonstrate(cls):
        x, found = torch.zeros(2, 8, 16), []
        for longest in (8, 16, 1):
            wrong, right = (attempted(vectors_in, place, x, longest) for place in (cls.wrong, cls.right))
            found.append(Comparison(f"different vectors at 8 positions, maximal length {longest}", wrong, right))
        return Demonstration(
            f"With a maximal length of 8, an input of 8 tokens gets {found[0].wrong} different vectors, as it should. "
            f"With 16 it is an error; with 1 it gets {found[2].wrong}.",
            tuple(found),
        )
