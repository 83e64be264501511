"""A norm that centres and divides, and has learned nothing."""

from transformer.norms import Norm


class NoGain(Norm):
    """Takes off the mean and divides by the standard deviation."""

    title = "PlainNorm"
    sign = "PN"
    description = "takes off the mean and divides by the standard deviation"
    formula = r"\mathrm{PN}(x)_i = \frac{x_i - \mu}{\sqrt{s^2 + \varepsilon}}"
    centres = True
    shifts = False
    gains = "none"
    size_name = "standard deviation"
    size_short = "s"
    size_sign = "s"
    size_formula = r"s = \sqrt{\frac1d\sum_i (x_i-\mu)^2}"

    def size(self, x):
        return x.std(dim=-1, keepdim=True, correction=0)

    def forward(self, x, gain, shift, epsilon):
        return self.centred(x) / (self.size(x).square() + epsilon).sqrt()
