"""Attention that nobody watches: the fused kernel gives what the formula gives, in every case that it knows."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional

from transformer import attention, masks
from transformer.attention import fused_attention, scaled_dot_product_attention
from transformer.config import ModelConfig
from transformer.model import Transformer
from transformer.observation import observe
from transformer.trace import Recorder

N = 24
MASKS = [
    "none",
    "causal",
    "anti-causal",
    "full",
    "padding",
    "sliding-window:3",
    "prefix:4",
    "block:5",
    "hide:3",
    "random:30:1",
]


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


def drawn(requires_grad=False, size=N):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(2, 3, size, 4, generator=generator).requires_grad_(requires_grad) for _ in range(3)]


def slopes(size=N):
    place = torch.arange(size)
    return -torch.tensor([1.0, 0.25, 0.0])[:, None, None] * (place[:, None] - place[None, :]).abs()


def padded(name, size=N):
    """The mask of a batch of two, the second a few tokens shorter."""
    if name == "none":
        return None
    mask = torch.from_numpy(masks.parse(name).matrix(size)).repeat(2, 1, 1, 1)
    mask[1, :, :, size - 5 :] = False
    return mask


@pytest.mark.parametrize("biased", [False, True], ids=["", "ALiBi"])
@pytest.mark.parametrize("name", MASKS)
def test_is_the_formula_and_so_are_its_gradients(name, biased):
    """anti-causal, with its end padded, has rows that see nothing: zeros, as in the formula."""
    mask, bias = padded(name), slopes() if biased else None
    ours, theirs = drawn(requires_grad=True), drawn(requires_grad=True)
    out, (expected, _) = fused_attention(*ours, mask, bias=bias), scaled_dot_product_attention(*theirs, mask, bias=bias)
    assert np.allclose(out.detach().numpy(), written_out(*ours, mask, bias), atol=1e-5)
    out.square().sum().backward()
    expected.square().sum().backward()
    for one, other in zip(ours, theirs, strict=True):
        assert one.grad.isfinite().all()
        torch.testing.assert_close(one.grad, other.grad, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("biased", [False, True], ids=["", "ALiBi"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
def test_who_may_see_nothing_gets_zeros_and_finite_gradients(biased, dtype):
    inputs = [x.to(dtype).detach().requires_grad_() for x in drawn()]
    mask = torch.ones(2, 1, N, N, dtype=torch.bool).tril()
    mask[0, :, 7] = False
    mask[1] = False
    out = fused_attention(*inputs, mask, bias=slopes().to(dtype) if biased else None)
    assert (out[0, :, 7] == 0).all()
    assert (out[1] == 0).all()
    assert (out[0, :, 8] != 0).all()
    out.float().square().sum().backward()
    assert all(x.grad.isfinite().all() for x in inputs)


@pytest.mark.parametrize("size", [attention.FUSED - 1, attention.FUSED, attention.FUSED + 1])
def test_only_what_nobody_watches_and_is_long_takes_the_kernel(size, monkeypatch):
    taken = []
    monkeypatch.setattr(
        functional, "scaled_dot_product_attention", lambda q, k, v, m: taken.append(len(q)) or torch.zeros_like(q)
    )
    layer, stream = attention.MultiHeadAttention(8, 2), torch.zeros(1, size, 8)
    layer(stream, stream)
    assert bool(taken) == (size >= attention.FUSED)
    taken.clear()
    layer(stream, stream, trace=Recorder([]))
    assert not taken


@pytest.mark.parametrize("positions", ["rotary", "alibi", "learned", "none"])
@pytest.mark.parametrize("mask", ["causal", "full", "anti-causal", "sliding-window:9"])
def test_a_long_input_is_read_alike_whether_somebody_watches_or_not(positions, mask):
    n = attention.FUSED + 4
    shape = {"n_layers": 2, "n_heads": 2, "d_model": 16, "d_ff": 16, "tied": True}
    config = ModelConfig(architecture="decoder", positions=positions, mask=mask, **shape)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = Transformer(config, d_vocab=12, n_ctx=n).eval()
    tokens = torch.randint(0, 11, (2, n), generator=torch.Generator().manual_seed(0))
    tokens[1, -20:] = 11  # padding
    with torch.no_grad():
        plain = model(tokens)
    watched = observe(model, tokens)
    torch.testing.assert_close(plain, watched.logits, atol=1e-4, rtol=0)
    assert any(site.endswith("pattern") for site in watched.sites)


@pytest.mark.parametrize("positions", ["rotary", "alibi"])
def test_a_long_input_in_half_precision_is_nearly_the_same(positions):
    n = attention.FUSED
    config = ModelConfig(architecture="decoder", positions=positions, mask="causal", n_layers=1, n_heads=2, d_model=16)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = Transformer(config, d_vocab=12, n_ctx=n)
    tokens = torch.randint(0, 11, (1, n), generator=torch.Generator().manual_seed(0))
    with torch.autocast("cpu", torch.bfloat16):
        half = model(tokens).float()
    half.square().sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())
    with torch.no_grad():
        torch.testing.assert_close(half.detach(), model(tokens), atol=0.15, rtol=0)
