"""The causal mask without its diagonal."""

import torch

from transformer.mistakes import MaskMistake


class MaskHidesSelf(MaskMistake):
    title = "The mask hides the token itself"
    hidden = "Every query but the first sees only earlier tokens, and the second half is right, read or by itself."
    exposes = (
        "The first query may see nothing: all its scores are alike, so it looks at later tokens too and hands them"
        " on. The probe is not 0."
    )
    mend = "Leave the diagonal in: tril(), or triu(diagonal=1) for what is hidden."
    met = "bug reports in public repositories"
    stage = "masked"

    @staticmethod
    def right(n):
        return torch.ones(n, n, dtype=torch.bool).tril()

    @staticmethod
    def wrong(n):
        return torch.ones(n, n, dtype=torch.bool).tril(diagonal=-1)
