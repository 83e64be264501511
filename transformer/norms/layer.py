"""LayerNorm: "Layer Normalization" (Ba, Kiros and Hinton, 2016), section 3, equations 3 and 4."""

from transformer.norms import Norm


class LayerNorm(Norm):
    """Each vector is brought to mean 0 and variance 1; then each number is scaled and shifted as was learned."""

    title = "LayerNorm"
    sign = "LN"
    description = "takes off the mean, divides by the spread, then scales and shifts"
    formula = r"\mathrm{LN}(x)_i = g_i\,\frac{x_i - \mu}{\sqrt{\sigma^2 + \varepsilon}} + b_i"
    centres = True
    shifts = True
    size_name = size_short = "spread"
    size_sign = "σ"
    size_formula = r"\sigma = \sqrt{\frac1d\sum_i (x_i-\mu)^2}"

    def size(self, x):
        return x.std(dim=-1, keepdim=True, correction=0)

    def forward(self, x, gain, shift, epsilon):
        from torch.nn import functional

        return functional.layer_norm(x, x.shape[-1:], gain, shift, epsilon)
