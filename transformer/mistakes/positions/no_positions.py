"""Nothing is added: the tokens are a bag."""

import torch

from transformer.mistakes import PositionsMistake
from transformer.positions.sinusoidal import sinusoids


class NoPositions(PositionsMistake):
    title = "Positions are not added"
    hidden = "The pattern is causal, the rows sum to 1 and the probe is 0."
    exposes = "The second half is not right, and the picture of the encoding is empty."
    mend = "Add the encoding to the embeddings before the first block."
    met = "bug reports in public repositories"

    @staticmethod
    def right(x):
        return sinusoids(torch.arange(x.shape[1]), x.shape[2]).to(x)

    @staticmethod
    def wrong(x):
        return torch.zeros(x.shape[1:]).to(x)
