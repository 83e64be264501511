"""The causal mask with one diagonal too many."""

import torch

from transformer.mistakes import MaskMistake


class MaskSeesOneAhead(MaskMistake):
    title = "The mask sees one token ahead"
    hidden = "The pattern is a triangle, one cell too wide."
    exposes = (
        "The token ahead is the answer: the random first half is right, the loss lies below its floor and the "
        "probe is not 0."
    )
    mend = "Leave out what lies above the diagonal: tril(), or triu(diagonal=1) for what is hidden."
    met = "bug reports in public repositories"
    stage = "masked"

    @staticmethod
    def right(n):
        return torch.ones(n, n, dtype=torch.bool).tril()

    @staticmethod
    def wrong(n):
        return torch.ones(n, n, dtype=torch.bool).tril(diagonal=1)
