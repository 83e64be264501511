"""The base of the wavelengths is 1000 in place of 10000."""

import torch

from transformer.mistakes import PositionsMistake


class Base1000(PositionsMistake):
    title = "The base is 1000"
    hidden = (
        "The positions of a short input are told apart all the same: accuracy, loss, pattern and probe are those "
        "of a right model."
    )
    exposes = (
        "Nothing in its behaviour does. In the picture of the encoding the slowest wave is nine times as fast; "
        "the difference to the reference shows it too."
    )
    silent = True
    mend = "Use 10000 (Attention Is All You Need, section 3.5)."
    met = "a lecture notebook"

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
        angle = place / 1_000 ** (i / d_model)
        added = torch.empty(length, d_model)
        added[:, 0::2], added[:, 1::2] = angle.sin(), angle.cos()
        return added
