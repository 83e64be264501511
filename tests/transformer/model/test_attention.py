"""The formula: against PyTorch's own, against numbers worked out by hand, and where a query may see nothing."""

import math

import hypothesis
import pytest
import torch
from hypothesis import strategies as st
from torch.nn import functional

from transformer.attention import MultiHeadAttention, masked_softmax, scaled_dot_product_attention

SIZE = st.integers(1, 5)
LEADING = st.lists(st.integers(1, 3), max_size=3)


def draw(seed, leading, n_query, n_key, d_k, d_v):
    generator = torch.Generator().manual_seed(seed)
    shapes = ((n_query, d_k), (n_key, d_k), (n_key, d_v))
    return [torch.randn(*leading, *shape, generator=generator) for shape in shapes]


@hypothesis.given(LEADING, SIZE, SIZE, SIZE, SIZE, st.sampled_from(["none", "whole", "shared"]), st.integers(0, 99))
def test_is_what_pytorch_computes(leading, n_query, n_key, d_k, d_v, masked, seed):
    query, key, value = draw(seed, leading, n_query, n_key, d_k, d_v)
    mask = None
    if masked != "none":
        shape = (*leading, n_query, n_key) if masked == "whole" else (n_query, n_key)
        mask = torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < 0.6
        mask[..., 0] = True  # PyTorch's answer for a row that sees nothing is not ours to match
    out, pattern = scaled_dot_product_attention(query, key, value, mask)
    expected = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    assert out.shape == (*leading, n_query, d_v)
    assert pattern.shape == (*leading, n_query, n_key)
    torch.testing.assert_close(out, expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(pattern.sum(-1), torch.ones(*leading, n_query), atol=1e-5, rtol=0)
    if mask is not None:
        assert (pattern[~mask.expand_as(pattern)] == 0).all()


def test_two_by_two_by_hand():
    """Scores Q Kᵀ / √4 are [[ln 3, 0], [0, ln 4]], so the rows are (3/4, 1/4) and (1/5, 4/5)."""
    query = 2 * torch.tensor([[math.log(3), 0, 0, 0], [0, math.log(4), 0, 0]])
    key = torch.tensor([[1.0, 0, 0, 0], [0, 1, 0, 0]])
    value = torch.tensor([[20.0, 0, 4], [0, 40, 8]])
    out, pattern = scaled_dot_product_attention(query, key, value)
    torch.testing.assert_close(pattern, torch.tensor([[0.75, 0.25], [0.2, 0.8]]))
    torch.testing.assert_close(out, torch.tensor([[15.0, 10, 5], [4, 32, 7.2]]))


def test_the_bias_is_added_after_the_scale():
    """With queries of zero the bias alone decides: softmax(0, ln 4) is (1/5, 4/5), whatever d_k is."""
    query, key, value = torch.zeros(1, 16), torch.randn(2, 16), torch.eye(2)
    _, pattern = scaled_dot_product_attention(query, key, value, bias=torch.tensor([[0.0, math.log(4)]]))
    torch.testing.assert_close(pattern, torch.tensor([[0.2, 0.8]]))


def test_the_mask_hides_before_the_softmax():
    """(3/4, 1/4) with the second key hidden is (1, 0), not (3/4, 0); and True is what may be seen."""
    scores = torch.tensor([[math.log(3), 0.0]])
    pattern = masked_softmax(scores, torch.tensor([[True, False]]))
    assert pattern.tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_query_that_sees_nothing_says_nothing_and_gradients_stay_finite(dtype):
    query, key, value = (part.to(dtype).requires_grad_() for part in draw(0, (2,), 3, 4, 5, 6))
    mask = torch.ones(3, 4, dtype=torch.bool)
    mask[1] = False
    out, pattern = scaled_dot_product_attention(query, key, value, mask)
    assert (pattern[:, 1] == 0).all()
    assert (out[:, 1] == 0).all()
    assert (pattern[:, [0, 2]].sum(-1) - 1).abs().max() < 0.02
    (out.sum() + (pattern**2).sum()).backward()
    for part in (query, key, value):
        assert part.grad is not None
        assert part.grad.isfinite().all()
    assert (query.grad[:, 1] == 0).all()
    assert query.grad[:, 0].abs().max() > 0


def test_huge_scores_do_not_overflow():
    scores = torch.tensor([[3e38, -3e38, 3e38]])
    assert masked_softmax(scores, torch.tensor([[True, True, False]])).tolist() == [[1.0, 0.0, 0.0]]


def test_heads_must_share_the_width_evenly():
    with pytest.raises(ValueError, match=r"d_model \(10\) must be divisible by n_heads \(4\)"):
        MultiHeadAttention(10, 4)


def test_heads_are_slices_of_the_width_in_order():
    """Head h reads and writes dimensions h·d_head to (h+1)·d_head: with identity weights heads stay apart."""
    attention = MultiHeadAttention(6, 3)
    with torch.no_grad():
        for linear in (attention.query, attention.key, attention.value, attention.out):
            linear.weight.copy_(torch.eye(6))
            linear.bias.zero_()
    x = torch.randn(2, 5, 6, generator=torch.Generator().manual_seed(0))
    whole = attention(x, x)
    for head in range(3):
        part = x[..., 2 * head : 2 * head + 2]
        alone, _ = scaled_dot_product_attention(part, part, part)
        torch.testing.assert_close(whole[..., 2 * head : 2 * head + 2], alone)
