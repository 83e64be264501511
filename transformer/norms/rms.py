"""RMSNorm: "Root Mean Square Layer Normalization" (Zhang and Sennrich, 2019), section 4, equation 4; without a bias."""

from transformer.norms import Norm


class RMSNorm(Norm):
    """Each vector is divided by the root of its mean square, then scaled. No mean is taken off and nothing is added."""

    title = "RMSNorm"
    sign = "RMSNorm"
    description = "divides by the root mean square, then scales"
    formula = r"\mathrm{RMSNorm}(x)_i = g_i\,\frac{x_i}{\sqrt{\mathrm{RMS}^2 + \varepsilon}}"
    centres = False
    shifts = False
    size_name = "root mean square"
    size_short = size_sign = "RMS"
    size_formula = r"\mathrm{RMS} = \sqrt{\frac1d\sum_i x_i^2}"

    def size(self, x):
        return x.square().mean(dim=-1, keepdim=True).sqrt()

    def forward(self, x, gain, shift, epsilon):
        from torch.nn import functional

        # Where products are taken in 16 bits x may be of 16 while the gain is of 32: PyTorch's kernel wants both alike.
        return functional.rms_norm(x.to(gain.dtype), x.shape[-1:], gain, epsilon)
