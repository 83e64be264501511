"""Sine on even and on odd dimensions."""

import torch

from transformer.mistakes import PositionsMistake


class SineEverywhere(PositionsMistake):
    title = "Odd dimensions are sines too"
    hidden = "No two positions have the same vector. The pattern is causal, its rows sum to 1 and the probe is 0."
    exposes = (
        "In the picture of the encoding each dimension is there twice. The difference to the reference shows it too."
    )
    silent = True
    mend = "Put the cosine on odd dimensions: with both, a shift of positions is a rotation."
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
        angle = place / 10_000 ** (i / d_model)
        added = torch.empty(length, d_model)
        added[:, 0::2], added[:, 1::2] = angle.sin(), angle.sin()
        return added
