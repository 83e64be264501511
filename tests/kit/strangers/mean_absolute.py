"""A norm by the mean absolute value."""

from transformer.norms import Norm


class MeanAbsolute(Norm):
    """Divides by the mean absolute value, then scales."""

    title = "AbsNorm"
    sign = "AN"
    description = "divides by the mean absolute value, then scales"
    formula = r"\mathrm{AN}(x)_i = g_i\,\frac{x_i}{\sqrt{a^2 + \varepsilon}}"
    centres = False
    shifts = False
    size_name = "mean absolute value"
    size_short = "mean size"
    size_sign = "a"
    size_formula = r"a = \frac1d\sum_i |x_i|"

    def size(self, x):
        return x.abs().mean(dim=-1, keepdim=True)

    def forward(self, x, gain, shift, epsilon):
        return gain * x / (self.size(x).square() + epsilon).sqrt()
