"""The causal mask with its two axes exchanged."""

import torch

from transformer.mistakes import MaskMistake


class MaskTransposed(MaskMistake):
    title = "The mask is transposed"
    hidden = "The pattern has an empty triangle and the loss falls: it looks like a model that learns very well."
    exposes = (
        "Weight lies on later tokens, the random first half is right, the loss lies below its floor and the probe "
        "is not 0."
    )
    mend = "Keep the lower triangle, with a row a query: tril, not triu."
    met = "bug reports in public repositories"
    stage = "masked"

    @staticmethod
    def right(n):
        return torch.ones(n, n, dtype=torch.bool).tril()

    @staticmethod
    def wrong(n):
        return torch.ones(n, n, dtype=torch.bool).triu()
