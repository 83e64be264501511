"""LayerNorm divides by std + eps, with the unbiased estimator of the deviation."""

import copy

from torch import nn

from transformer.mistakes import DecoderMistake
from transformer.normalisation import NoNorm, Normalisation


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
        if model.config.norm_kind != "layer":
            raise ValueError(f"this mistake is shown in a LayerNorm, not in one of the kind {model.config.norm_kind}")
        other = copy.deepcopy(model)
        for module in other.modules():
            for name, norm in module.named_children():
                if isinstance(norm, Normalisation) and not isinstance(norm, NoNorm):
                    setattr(module, name, _OtherNorm(norm))
        return other


class _OtherNorm(Normalisation):
    """The wrong norm with the gain and the offset of a right one."""

    def __init__(self, own):
        nn.Module.__init__(self)
        self.kind, self.eps, self.weight, self.bias = own.kind, own.eps, own.weight, own.bias

    def divisor(self, at):
        return at.std(dim=-1, keepdim=True) + self.eps

    def forward(self, x):
        return NormByStd.wrong(x, self.weight, self.bias, self.eps)
