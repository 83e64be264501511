"""A norm that divides by the greatest number and learns a shift alone."""

from transformer.norms import Norm


class ShiftOnly(Norm):
    """Divides by the greatest size, then shifts."""

    title = "MaxNorm"
    sign = "MN"
    description = "divides by the greatest size, then shifts"
    formula = r"\mathrm{MN}(x)_i = \frac{x_i}{\sqrt{M^2 + \varepsilon}} + b_i"
    centres = False
    shifts = True
    gains = "none"
    size_name = "greatest size"
    size_short = "max"
    size_sign = "M"
    size_formula = r"M = \max_i |x_i|"

    def size(self, x):
        return x.abs().amax(dim=-1, keepdim=True)

    def forward(self, x, gain, shift, epsilon):
        return x / (self.size(x).square() + epsilon).sqrt() + shift
