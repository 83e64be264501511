"""A norm by the Euclidean length."""

from transformer.norms import Norm


class Euclidean(Norm):
    """Divides by the length, then scales."""

    title = "LengthNorm"
    sign = "EN"
    description = "divides by the length, then scales"
    formula = r"\mathrm{EN}(x)_i = g_i\,\frac{x_i}{\sqrt{\ell^2 + \varepsilon}}"
    centres = False
    shifts = False
    size_name = "length"
    size_short = "length"
    size_sign = "ℓ"
    size_formula = r"\ell = \sqrt{\sum_i x_i^2}"

    def size(self, x):
        return x.square().sum(dim=-1, keepdim=True).sqrt()

    def forward(self, x, gain, shift, epsilon):
        return gain * x / (self.size(x).square() + epsilon).sqrt()
