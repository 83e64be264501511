"""The formula and the fused kernel: against PyTorch's own, against loops, and where a query may see nothing."""

import math

import hypothesis
import numpy as np
import pytest
import torch
from hypothesis import strategies as st
from torch.nn import functional

from transformer import attention, masks
from transformer.attention import MultiHeadAttention, fused_attention, masked_softmax, scaled_dot_product_attention
from transformer.config import ModelConfig
from transformer.model import Transformer
from transformer.observation import observe
from transformer.trace import Recorder

SIZE = st.integers(1, 5)
LEADING = st.lists(st.integers(1, 3), max_size=3)
N = 24
MASKS = ["none", "causal", "anti-causal", "full", "padding", "sliding-window:3", "prefix:4", "block:5", "random:30:1"]


@hypothesis.given(LEADING, SIZE, SIZE, SIZE, SIZE, st.sampled_from(["none", "whole", "shared"]), st.integers(0, 99))
def test_the_formula_is_what_pytorch_computes(leading, n_query, n_key, d_k, d_v, masked, seed):
    generator = torch.Generator().manual_seed(seed)
    shapes = ((n_query, d_k), (n_key, d_k), (n_key, d_v))
    query, key, value = (torch.randn(*leading, *shape, generator=generator) for shape in shapes)
    mask = None
    if masked != "none":
        shape = (*leading, n_query, n_key) if masked == "whole" else (n_query, n_key)
        mask = torch.rand(shape, generator=generator) < 0.6
        mask[..., 0] = True  # PyTorch's answer for a row that sees nothing is not ours to match
    out, pattern = scaled_dot_product_attention(query, key, value, mask)
    expected = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    assert out.shape == (*leading, n_query, d_v)
    assert pattern.shape == (*leading, n_query, n_key)
    torch.testing.assert_close(out, expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(pattern.sum(-1), torch.ones(*leading, n_query), atol=1e-5, rtol=0)
    if mask is not None:
        assert (pattern[~mask.expand_as(pattern)] == 0).all()


@pytest.mark.parametrize("scores", [[math.log(3), 0.0], [3e38, -3e38], [-3e38, 3e38]])
def test_the_mask_hides_before_the_softmax_and_huge_scores_do_not_overflow(scores):
    """(3/4, 1/4) with the second key hidden is (1, 0), not (3/4, 0); and True is what may be seen."""
    assert masked_softmax(torch.tensor([scores]), torch.tensor([[True, False]])).tolist() == [[1.0, 0.0]]


def test_heads_must_share_the_width_evenly():
    with pytest.raises(ValueError, match=r"d_model \(10\) must be divisible by n_heads \(4\)"):
        MultiHeadAttention(10, 4)


# --- the kernel beside the formula


def written_out(query, key, value, mask, bias):
    """softmax(Q Kᵀ / √d + bias) V in float64 NumPy, row by row over the keys that may be seen; of none, zeros."""
    q, k, v = (x.detach().double().numpy() for x in (query, key, value))
    out = np.zeros((*q.shape[:-1], v.shape[-1]))
    for batch, head, row in np.ndindex(q.shape[:-1]):
        seen = [c for c in range(k.shape[2]) if mask is None or mask[batch, 0, row, c]]
        if seen:
            scores = k[batch, head, seen] @ q[batch, head, row] / math.sqrt(q.shape[-1])
            scores = scores + (0 if bias is None else bias[head, row, seen].double().numpy())
            weights = np.exp(scores - scores.max())
            out[batch, head, row] = weights @ v[batch, head, seen] / weights.sum()
    return out


def drawn(dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(2, 3, N, 4, generator=generator).to(dtype).requires_grad_() for _ in range(3)]


def slopes(biased, dtype=torch.float32):
    place = torch.arange(N)
    bias = -torch.tensor([1.0, 0.25, 0.0])[:, None, None] * (place[:, None] - place[None, :]).abs()
    return bias.to(dtype) if biased else None


def padded(name):
    """The mask of a batch of two, the second a few tokens shorter."""
    if name == "none":
        return None
    mask = torch.from_numpy(masks.parse(name).matrix(N)).repeat(2, 1, 1, 1)
    mask[1, :, :, N - 5 :] = False
    return mask


def formula(*arguments, **options):
    return scaled_dot_product_attention(*arguments, **options)[0]


BIASED = pytest.mark.parametrize("biased", [False, True], ids=["", "ALiBi"])


@BIASED
@pytest.mark.parametrize("name", MASKS)
def test_formula_and_kernel_are_what_is_written_out_and_have_the_same_gradients(name, biased):
    """anti-causal, with its end padded, has rows that see nothing: zeros."""
    mask, bias = padded(name), slopes(biased)
    gradients = []
    for computed in (formula, fused_attention):
        inputs = drawn()
        out = computed(*inputs, mask, bias=bias)
        assert np.allclose(out.detach().numpy(), written_out(*inputs, mask, bias), atol=1e-5)
        out.square().sum().backward()
        gradients.append([each.grad for each in inputs])
    for one, other in zip(*gradients, strict=True):
        assert one.isfinite().all()
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


@BIASED
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("computed", [formula, fused_attention])
def test_who_may_see_nothing_gets_zeros_and_finite_gradients(computed, dtype, biased):
    inputs = drawn(dtype)
    mask = torch.ones(2, 1, N, N, dtype=torch.bool).tril()
    mask[0, :, 7] = False
    mask[1] = False
    out = computed(*inputs, mask, bias=slopes(biased, dtype))
    assert (out[0, :, 7] == 0).all()
    assert (out[1] == 0).all()
    assert (out[0, :, 8] != 0).all()
    out.float().square().sum().backward()
    assert all(x.grad.isfinite().all() for x in inputs)
    assert (inputs[0].grad[0, :, 7] == 0).all()
    assert inputs[0].grad[0, :, 8].abs().max() > 0


def test_only_what_nobody_watches_and_is_long_takes_the_kernel(monkeypatch):
    taken = []
    monkeypatch.setattr(
        attention, "fused_attention", lambda q, *_, **__: taken.append(q.shape[2]) or torch.zeros_like(q)
    )
    layer = MultiHeadAttention(8, 2)
    for size in (attention.FUSED - 1, attention.FUSED, attention.FUSED + 1):
        stream = torch.zeros(1, size, 8)
        layer(stream, stream)
        layer(stream, stream, trace=Recorder([]))
    assert taken == [attention.FUSED, attention.FUSED + 1]


def long_reader(positions, mask):
    config = ModelConfig(
        architecture="decoder", positions=positions, mask=mask, n_layers=2, n_heads=2, d_model=16, d_ff=16, tied=True
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return Transformer(config, d_vocab=12, n_ctx=attention.FUSED + 4).eval()


@pytest.mark.parametrize(
    ("positions", "mask"),
    [
        *(("rotary", "causal"), ("alibi", "causal"), ("alibi", "full"), ("alibi", "anti-causal")),
        *(("learned", "anti-causal"), ("none", "sliding-window:9")),
    ],
)
def test_a_long_input_is_read_alike_whether_somebody_watches_or_not_and_nearly_so_in_half_precision(positions, mask):
    model = long_reader(positions, mask)
    tokens = torch.randint(0, 11, (2, model.n_ctx), generator=torch.Generator().manual_seed(0))
    tokens[1, -20:] = 11  # padding
    with torch.no_grad():
        plain = model(tokens)
    watched = observe(model, tokens)
    torch.testing.assert_close(plain, watched.logits, atol=1e-4, rtol=0)
    assert any(site.endswith("pattern") for site in watched.sites)
    with torch.autocast("cpu", torch.bfloat16):
        half = model(tokens).float()
    half.square().sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())
    torch.testing.assert_close(half.detach(), plain, atol=0.15, rtol=0)
