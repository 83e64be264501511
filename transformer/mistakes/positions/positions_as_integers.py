"""The encoding is cast to integers."""

import torch

from transformer.mistakes import PositionsMistake
from transformer.positions.sinusoidal import sinusoids


class PositionsAsIntegers(PositionsMistake):
    title = "Positions are cast to integers"
    hidden = "The matrix has the right shape, and its first row is right."
    exposes = (
        "The second half is not right: every sine and every cosine below 1 has become 0, and only the first "
        "position is marked."
    )
    mend = "Keep the encoding in floating point."
    met = "a lecture notebook"

    @staticmethod
    def right(x):
        return sinusoids(torch.arange(x.shape[1]), x.shape[2]).to(x)

    @staticmethod
    def wrong(x):
        return sinusoids(torch.arange(x.shape[1]), x.shape[2]).long().to(x)
