"""Any model's attention is seen where it calls PyTorch, the model and its results are left as they are."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from tests.kit.foreign.modules import ByHand, Causal, Fused, Mine, left_as_it_was
from tests.kit.runs import tiny
from transformer import capture
from transformer.attention import masked_softmax
from transformer.model import build
from transformer.observation import observe


def by_hand(query: Tensor, key: Tensor, mask: Tensor, scale: float) -> Tensor:
    """One query at a time, one head at a time: softmax over the keys it may see."""
    pattern = torch.zeros(*query.shape[:-1], key.shape[-2])
    for b, h, i in torch.cartesian_prod(*(torch.arange(n) for n in query.shape[:3])).tolist():
        seen = mask[b, h, i].nonzero().flatten()
        powers = [math.exp(float(query[b, h, i] @ key[b, h, j]) * scale) for j in seen]
        pattern[b, h, i, seen] = torch.tensor([each / sum(powers) for each in powers])
    return pattern


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 3), st.sampled_from([(2, 2), (4, 2), (4, 1)]), st.integers(1, 5), st.integers(1, 5), st.data())
def test_the_pattern_of_a_fused_call_is_the_softmax_by_hand(batch, heads, queries, keys, data) -> None:
    torch.manual_seed(data.draw(st.integers(0, 99)))
    many, few = heads
    query, key, value = (torch.randn(batch, head, n, 4) for head, n in ((many, queries), (few, keys), (few, keys)))
    kind = data.draw(st.sampled_from(["none", "causal", "bool", "float"]))
    scale = data.draw(st.sampled_from([None, 0.3]))
    allowed = torch.rand(batch, 1, queries, keys) < 0.7
    asked = {
        "none": {},
        "causal": {"is_causal": True},
        "bool": {"attn_mask": allowed},
        "float": {"attn_mask": torch.zeros(allowed.shape).masked_fill(~allowed, -torch.inf)},
    }[kind]
    seen = capture(
        functional.scaled_dot_product_attention, query, key, value, scale=scale, enable_gqa=many != few, **asked
    )
    mask = {"none": torch.ones_like(allowed), "causal": torch.ones(queries, keys, dtype=torch.bool).tril()}
    mask = mask.get(kind, allowed).expand(batch, many, queries, keys)
    expected = by_hand(query, key.repeat_interleave(many // few, 1), mask, scale or 1 / math.sqrt(4))
    torch.testing.assert_close(seen["attention.pattern"], expected, atol=1e-6, rtol=1e-5)
    told = masked_softmax(seen["attention.scores"], seen.sites.get("attention.mask"))
    torch.testing.assert_close(told, seen["attention.pattern"])
    torch.testing.assert_close(seen["attention.z"].nan_to_num(), seen.output.nan_to_num(), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("low", [-1e4, -1e9, torch.finfo(torch.float32).min, -torch.inf])
def test_a_mask_of_low_numbers_is_a_mask_and_the_pattern_is_what_the_kernel_computes(low: float) -> None:
    """A row of low numbers alone is divided among its keys; one of minus infinity gets nothing."""
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 1, 2, 4, 8)
    allowed = torch.ones(4, 4, dtype=torch.bool).tril()
    allowed[2] = False
    added = torch.zeros(4, 4).masked_fill(~allowed, low)
    seen = capture(functional.scaled_dot_product_attention, query, key, value, attn_mask=added)
    assert torch.equal(seen["attention.mask"], allowed.expand(1, 2, 4, 4))
    expected = (query @ key.transpose(-2, -1) / math.sqrt(8) + added).softmax(-1).nan_to_num()
    torch.testing.assert_close(seen["attention.pattern"], expected)
    torch.testing.assert_close(seen["attention.z"], seen.output.nan_to_num())
    scores = functional.softmax(seen["attention.scores"].masked_fill(~allowed, low), -1)
    torch.testing.assert_close(scores[..., [0, 1, 3], :], expected[..., [0, 1, 3], :])


@pytest.mark.parametrize("kind", [Fused, ByHand])
def test_results_are_the_same_to_the_bit_and_nothing_is_left_behind(kind: type[Mine]) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(kind(), kind())
    model[0].eval()  # one part frozen, the other in training
    x = torch.randn(3, 5, 8)
    with left_as_it_was(model):
        seen = capture(model, x)
    assert seen.attentions() == ("0", "1")
    assert not seen.unseen
    with torch.no_grad():
        assert torch.equal(seen.output, model.eval()(x))


def test_two_ways_to_write_one_attention_are_seen_alike() -> None:
    torch.manual_seed(0)
    fused, written = Causal(), ByHand(torch.ones(5, 5, dtype=torch.bool).tril())
    written.load_state_dict(fused.state_dict())
    x = torch.randn(3, 5, 8)
    one, other = capture(fused, x), capture(written, x)
    torch.testing.assert_close(one["Causal.pattern"], other["ByHand.pattern"])


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True:UserWarning")
@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
def test_pytorchs_own_encoder_and_decoder_are_seen(grad: bool, batch_first: bool) -> None:
    """The pattern is what each layer's own attention answers when it is asked for its weights."""
    torch.manual_seed(0)
    model = nn.Transformer(8, 2, 2, 2, 16, batch_first=batch_first)
    source, target = torch.randn(3, 5, 8), torch.randn(3, 4, 8)
    if not batch_first:
        source, target = source.transpose(0, 1), target.transpose(0, 1)
    later = nn.Transformer.generate_square_subsequent_mask(4)
    with torch.set_grad_enabled(grad):
        seen = capture(model, source, target, tgt_mask=later)
    names = [f"encoder.layers.{i}.self_attn" for i in (0, 1)]
    names += [f"decoder.layers.{i}.{which}" for i in (0, 1) for which in ("self_attn", "multihead_attn")]
    assert seen.attentions() == tuple(names)
    assert not seen.unseen
    with torch.no_grad():
        model.eval()
        torch.testing.assert_close(seen.output, model(source, target, tgt_mask=later))
        _, first = model.encoder.layers[0].self_attn(source, source, source, average_attn_weights=False)
        torch.testing.assert_close(seen[f"{names[0]}.pattern"], first)
    for name in names:
        pattern, value = seen[f"{name}.pattern"], seen[f"{name}.value"]
        torch.testing.assert_close(pattern @ value, seen[f"{name}.z"])
        torch.testing.assert_close(pattern.sum(-1), torch.ones(pattern.shape[:-1]))
    assert torch.equal(seen["decoder.layers.0.self_attn.pattern"].triu(1), torch.zeros(3, 2, 4, 4))
    scores = seen[f"{names[0]}.scores"]
    torch.testing.assert_close(scores.softmax(-1), seen[f"{names[0]}.pattern"])


def test_multi_head_attention_with_everything_it_offers() -> None:
    torch.manual_seed(0)
    model = nn.MultiheadAttention(8, 2, kdim=6, vdim=4, add_bias_kv=True, add_zero_attn=True, batch_first=True)
    query, key, value = torch.randn(2, 3, 8), torch.randn(2, 5, 6), torch.randn(2, 5, 4)
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    seen = capture(model, query, key, value, key_padding_mask=padding)
    with torch.no_grad():
        output, expected = model.eval()(query, key, value, key_padding_mask=padding, average_attn_weights=False)
    assert torch.equal(seen["MultiheadAttention.pattern"], expected)
    torch.testing.assert_close(seen.output[0], output)
    assert expected.shape == (2, 2, 3, 7)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
def test_x_transformers_are_seen() -> None:
    from x_transformers import Decoder, TransformerWrapper  # it warns while it is imported

    torch.manual_seed(0)
    model = TransformerWrapper(num_tokens=10, max_seq_len=8, attn_layers=Decoder(dim=16, depth=2, heads=2)).eval()
    tokens = torch.randint(0, 10, (2, 6))
    seen = capture(model, tokens)
    with torch.no_grad():
        logits, between = model(tokens, return_intermediates=True)
    assert torch.equal(seen.output, logits)
    patterns = [seen[f"{name}.pattern"] for name in seen.attentions()]
    for pattern, each in zip(patterns, between.attn_intermediates, strict=True):
        torch.testing.assert_close(pattern, each.post_softmax_attn)


def test_ours_are_seen_by_their_trace() -> None:
    model = build(tiny())
    tokens = torch.tensor([[1, 2, 3]])
    seen, expected = capture(model, tokens), observe(model, tokens)
    assert seen.attentions() == expected.attentions()
    assert all(torch.equal(seen[site], expected[site]) for site in expected.sites)
    assert torch.equal(seen.output, expected.logits)


def test_one_head_of_three_axes_is_seen_where_a_class_is_named_so() -> None:
    class Head(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.softmax(x @ x.transpose(-2, -1), -1) @ x

    class Classifier(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.softmax(-1)

    x = torch.randn(2, 3, 4)
    assert capture(Head(), x)["Head.pattern"].shape == (2, 1, 3, 3)
    assert capture(nn.Sequential(Head(), Classifier()), x).attentions() == ("0",)


def test_a_module_that_is_called_twice_is_seen_twice() -> None:
    one = Fused()
    seen = capture(nn.Sequential(one, one), torch.randn(1, 3, 8))
    assert seen.attentions() == ("0", "0#2")


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_what_cannot_be_seen_is_named() -> None:
    class KernelAttention(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.cumsum(1)

    seen = capture(nn.Sequential(Fused(), KernelAttention()), torch.randn(1, 3, 8))
    assert seen.attentions() == ("0",)
    (sentence,) = seen.unseen
    assert sentence.startswith("1 (KernelAttention): no attention was seen in it.")
    ragged = torch.nested.nested_tensor([torch.randn(3, 2, 4), torch.randn(5, 2, 4)], layout=torch.jagged)
    three = [ragged.transpose(1, 2)] * 3
    (sentence,) = capture(functional.scaled_dot_product_attention, *three).unseen
    assert "nested tensors" in sentence


def test_an_exception_leaves_nothing_behind() -> None:
    class Breaks(Fused):
        def forward(self, x: Tensor) -> Tensor:
            super().forward(x)
            raise ZeroDivisionError("theirs")

    model = Breaks().train()
    with left_as_it_was(model), pytest.raises(ZeroDivisionError, match="theirs"):
        capture(model, torch.randn(1, 3, 8))


def test_half_precision_is_opened_in_single() -> None:
    query = torch.randn(1, 2, 4, 8, dtype=torch.bfloat16)
    seen = capture(functional.scaled_dot_product_attention, query, query, query)
    assert seen.output.dtype == torch.bfloat16
    assert seen["attention.pattern"].dtype == torch.float32
    torch.testing.assert_close(seen["attention.pattern"].sum(-1), torch.ones(1, 2, 4))
