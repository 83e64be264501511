"""The exponent uses 2i where i already steps over dimensions."""

import torch

from transformer.mistakes import PositionsMistake


class ExponentTwice(PositionsMistake):
    title = "The exponent is doubled"
    hidden = "Half of the dimensions still tell positions apart, and the task is learned."
    exposes = (
        "In the picture of the encoding half of the dimensions are nearly constant. The difference to the "
        "reference shows it too."
    )
    silent = True
    mend = "Use i / d_model where i is 0, 2, 4 …, or 2i / d_model where i is 0, 1, 2 …"
    met = "a lecture notebook and bug reports in public repositories"

    @staticmethod
    def right(x):
        _, length, d_model = x.shape
        place, i = torch.arange(length).double()[:, None], torch.arange(0, d_model, 2).double()
        angle = place / 10_000 ** (i / d_model)
        added = torch.empty(length, d_model)
        added[:, 0::2], added[:, 1::2] = angle.sin(), angle.cos()
        return added

    @staticmethod
    def wrong(x):
        _, length, d_model = x.shape
        place, i = torch.arange(length).double()[:, None], torch.arange(0, d_model, 2).double()
        angle = place / 10_000 ** (2 * i / d_model)
        added = torch.empty(length, d_model)
        added[:, 0::2], added[:, 1::2] = angle.sin(), angle.cos()
        return added
