"""LayerNorm divides by std + eps, with the unbiased estimator of the deviation."""

import copy

from torch import nn

from transformer.mistakes import DecoderMistake


class NormByStd(DecoderMistake):
    """`right(x, gain, offset, eps)` gives x [batch, position, d_model], each vector normalised (Ba et al., 2016)."""

    title = "The norm divides by the unbiased deviation"
    hidden = (
        "With d_model = 64 a vector is too short by 0.8 %: accuracy, loss, pattern and probe are those of a right"
        " model."
    )
    exposes = (
        "Nothing in its behaviour does. The difference to the reference, torch.nn.LayerNorm, shows it, and more "
        "with a small d_model."
    )
    silent = True
    mend = "Divide by the root of the biased variance plus eps, or use torch.nn.LayerNorm."
    met = "a lecture notebook"
    function = "layer_norm"

    @staticmethod
    def right(x, gain, offset, eps):
        centred = x - x.mean(dim=-1, keepdim=True)
        variance = (centred**2).mean(dim=-1, keepdim=True)
        return gain * centred / (variance + eps).sqrt() + offset

    @staticmethod
    def wrong(x, gain, offset, eps):
        centred = x - x.mean(dim=-1, keepdim=True)
        return gain * centred / (x.std(dim=-1, keepdim=True) + eps) + offset

    @classmethod
    def mistaken(cls, model):
        other = copy.deepcopy(model)
        for module in other.modules():
            for name, norm in module.named_children():
                if isinstance(norm, nn.LayerNorm):
                    setattr(module, name, _OtherNorm(norm))
        return other


class _OtherNorm(nn.LayerNorm):
    """The wrong norm with the gain and the offset of a right one."""

    def __init__(self, own):
        super().__init__(own.normalized_shape, own.eps)
        self.weight, self.bias = own.weight, own.bias

    def forward(self, x):
        return NormByStd.wrong(x, self.weight, self.bias, self.eps)
