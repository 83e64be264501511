"""A norm by the root mean square with one gain for all dimensions."""

from transformer.norms import Norm


class OneGain(Norm):
    """Divides by the quadratic mean, then scales all numbers alike."""

    title = "ScalarNorm"
    sign = "SN"
    description = "divides by the quadratic mean, then scales all numbers alike"
    formula = r"\mathrm{SN}(x)_i = g\,\frac{x_i}{\sqrt{m^2 + \varepsilon}}"
    centres = False
    shifts = False
    gains = "one"
    size_name = "quadratic mean"
    size_short = "m"
    size_sign = "m"
    size_formula = r"m = \sqrt{\frac1d\sum_i x_i^2}"

    def size(self, x):
        return x.square().mean(dim=-1, keepdim=True).sqrt()

    def forward(self, x, gain, shift, epsilon):
        return gain * x / (self.size(x).square() + epsilon).sqrt()
