"""Captured heads bear the names of ours: stack, layer, kind, and the tokens on both axes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.kit.foreign.hugging_face import given, made
from transformer import build, capture
from transformer.analysis.findings import Head
from transformer.analysis.heads.rollout import rollout
from transformer.capturing.heads import attentions, heads, modules
from transformer.capturing.record import Captured, CaptureError
from transformer.config import RunConfig, TaskConfig

TOKENS = tuple("abcdefghijkl")


def sites(stack: str, *kinds: str) -> list[str]:
    return [f"{stack}.{layer}.{kind}" for layer in (0, 1) for kind in kinds]


CROSSING = sites("decoder", "self_attention", "cross_attention")
OURS = {
    **dict.fromkeys(("GPT2LMHeadModel", "LlamaForCausalLM", "MistralForCausalLM"), sites("decoder", "self_attention")),
    **dict.fromkeys(("BertModel", "ViTModel"), sites("encoder", "self_attention")),
    "T5Model": sites("encoder", "self_attention") + CROSSING,
}


@pytest.mark.parametrize("kind", OURS)
def test_each_attention_of_hugging_faces_has_the_site_that_ours_would_have(kind: str) -> None:
    seen = capture(made(kind), **given(kind))
    assert list(modules(seen)) == OURS[kind]
    assert list(modules(seen).values()) == list(seen.attentions())
    decoded, sources = (TOKENS[:5], TOKENS) if kind == "T5Model" else (TOKENS, ())
    found = attentions(seen, decoded, sources)
    assert list(found) == OURS[kind]
    for site, name in modules(seen).items():
        each = found[site]
        assert each.site == site
        np.testing.assert_array_equal(each.pattern, seen[f"{name}.pattern"][0].numpy())
        np.testing.assert_array_equal(each.scores, seen[f"{name}.scores"][0].numpy())
        assert each.pattern.shape[1:] == (len(each.queries), len(each.keys)) == each.mask.shape
    np.testing.assert_allclose(rollout(found).sum(axis=-1), 1, atol=1e-5)
    assert heads(found) == tuple(Head(site, head) for site in OURS[kind] for head in range(4))
    assert heads(found)[5].short == "1.1"


def test_two_stacks_read_two_sequences() -> None:
    found = attentions(capture(made("T5Model"), **given("T5Model")), TOKENS[:5], TOKENS)
    axes = {site: (each.queries, each.keys) for site, each in found.items()}
    assert axes["encoder.1.self_attention"] == (TOKENS, TOKENS)
    assert axes["decoder.1.self_attention"] == (TOKENS[:5], TOKENS[:5])
    assert axes["decoder.1.cross_attention"] == (TOKENS[:5], TOKENS)
    assert Head("decoder.1.cross_attention", 0).kind == "cross-attention"


def test_masks_are_those_of_the_first_sequence() -> None:
    question = {name: each.flip(0) for name, each in given("MistralForCausalLM").items()}  # padding comes first
    mask = attentions(capture(made("MistralForCausalLM"), **question), TOKENS)["decoder.1.self_attention"].mask
    query, key = np.indices((12, 12))
    expected = (key <= query) & (key > query - 5) & (key < 9)
    np.testing.assert_array_equal(mask[:9], expected[:9])
    mask = attentions(capture(made("ViTModel"), **given("ViTModel")), TOKENS)["encoder.0.self_attention"].mask
    assert mask.all()


def test_positions_without_a_name_come_first_as_a_class_token_does() -> None:
    seen = capture(made("ViTModel"), **given("ViTModel"))  # 4 × 4 patches behind a class token
    patches = tuple(f"patch {number}" for number in range(16))
    assert attentions(seen, patches)["encoder.0.self_attention"].keys == ("+1", *patches)
    assert attentions(seen, patches[2:])["encoder.0.self_attention"].queries == ("+1", "+2", "+3", *patches[2:])
    assert attentions(seen, [*patches, "more", "yet more"])["encoder.0.self_attention"].keys == tuple(
        str(number) for number in range(1, 18)
    )


class Attend(nn.Module):
    def __init__(self, causal: bool = False, by_hand: bool = False) -> None:
        super().__init__()
        self.causal, self.by_hand = causal, by_hand

    def forward(self, x: Tensor, read: Tensor | None = None) -> Tensor:
        query, key = (each.unflatten(-1, (2, -1)).transpose(1, 2) for each in (x, x if read is None else read))
        if not self.by_hand:
            z = functional.scaled_dot_product_attention(query, key, key, is_causal=self.causal)
        else:
            scores = query @ key.transpose(-2, -1)
            if self.causal:
                scores = scores + torch.full(scores.shape[-2:], -1e4).triu(1)
            z = scores.softmax(-1) @ key
        return x + z.transpose(1, 2).flatten(2)


@pytest.mark.parametrize("by_hand", [True, False])
def test_where_no_name_says_the_stack_the_mask_does(by_hand: bool) -> None:
    x = torch.randn(2, 4, 8)
    causal = nn.Sequential(Attend(True, by_hand), Attend(True, by_hand))
    free = nn.Sequential(Attend(False, by_hand), Attend(False, by_hand))
    assert list(modules(capture(causal, x))) == ["decoder.0.self_attention", "decoder.1.self_attention"]
    assert list(modules(capture(free, x))) == ["encoder.0.self_attention", "encoder.1.self_attention"]
    assert list(modules(capture(causal, x[:, :1]))) == ["decoder.0.self_attention", "decoder.1.self_attention"]
    found = attentions(capture(causal, x), "abcd")["decoder.1.self_attention"]
    np.testing.assert_array_equal(found.mask, np.tri(4, dtype=bool))
    assert np.isnan(found.scores[:, ~found.mask]).all() == by_hand  # a mask in the scores hides them
    assert np.isfinite(found.scores[:, found.mask]).all()


@pytest.mark.parametrize(
    ("name", "site"),
    [
        ("cross_attn", "decoder.0.cross_attention"),
        ("encoder_attn", "decoder.0.cross_attention"),
        ("src_attn", "decoder.0.cross_attention"),
        ("encoder", "encoder.0.self_attention"),
        ("dec_block", "decoder.0.self_attention"),
        ("my_decoder", "decoder.0.self_attention"),
        ("codec", "encoder.0.self_attention"),
    ],
)
def test_a_modules_name_says_its_stack_and_its_kind(name: str, site: str) -> None:
    model = nn.Sequential()
    model.add_module(name, Attend())
    assert list(modules(capture(model, torch.randn(1, 4, 8)))) == [site]


def test_two_lengths_are_cross_attention_and_pytorchs_decoder_has_it_by_its_names() -> None:
    class Reads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.looks = Attend()

        def forward(self, x: Tensor, read: Tensor) -> Tensor:
            return self.looks(x, read)

    seen = capture(Reads(), torch.randn(1, 4, 8), torch.randn(1, 6, 8))
    assert list(modules(seen)) == ["decoder.0.cross_attention"]
    assert attentions(seen, "abcd", "uvwxyz")["decoder.0.cross_attention"].keys == tuple("uvwxyz")
    torch.manual_seed(0)
    layer = nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
    x = torch.randn(1, 4, 8)
    for read in (x, torch.randn(1, 4, 8)):
        seen = capture(nn.TransformerDecoder(layer, 2), x, read, tgt_mask=torch.ones(4, 4, dtype=torch.bool).triu(1))
        assert list(modules(seen)) == CROSSING
    np.testing.assert_array_equal(attentions(seen, "abcd")["decoder.0.self_attention"].mask, np.tri(4, dtype=bool))


def test_a_decoder_that_kept_earlier_keys_still_attends_to_itself() -> None:
    model, tokens = made("GPT2LMHeadModel"), given("GPT2LMHeadModel")["input_ids"]
    first = capture(model, tokens[:, :8], use_cache=True)
    seen = capture(model, tokens[:, 8:], past_key_values=first.output.past_key_values)
    found = attentions(seen, TOKENS[8:])["decoder.1.self_attention"]
    assert found.queries == TOKENS[8:]
    assert found.keys == (*(f"+{number}" for number in range(1, 9)), *TOKENS[8:])
    np.testing.assert_array_equal(found.mask, np.tri(12, dtype=bool)[8:])
    whole = attentions(capture(model, tokens), TOKENS)["decoder.1.self_attention"]
    np.testing.assert_allclose(found.pattern, whole.pattern[:, 8:], atol=1e-5)


def test_masks_of_pytorchs_own_attention_are_seen() -> None:
    model = nn.MultiheadAttention(8, 2, batch_first=True)
    x, padding = torch.randn(2, 4, 8), torch.tensor([[False, False, False, True], [False] * 4])
    later = torch.ones(4, 4, dtype=torch.bool).triu(1)
    expected = ~later & ~padding[0]
    per_head = torch.zeros(4, 4, 4).masked_fill(later, -torch.inf)  # [batch · head, query, key]
    for mask in (later, torch.zeros(4, 4).masked_fill(later, -torch.inf), per_head):
        kind = padding if mask.dtype == torch.bool else torch.zeros(2, 4).masked_fill(padding, -torch.inf)
        seen = capture(model, x, x, x, attn_mask=mask, key_padding_mask=kind)
        found = attentions(seen, "abcd")["decoder.0.self_attention"]
        np.testing.assert_array_equal(found.mask, expected.numpy())
        np.testing.assert_array_equal(found.pattern > 0, np.broadcast_to(expected.numpy(), (2, 4, 4)))
    assert attentions(capture(model, x, x, x), "abcd")["encoder.0.self_attention"].mask.all()


def test_ours_keep_their_own_sites() -> None:
    model = build(RunConfig(task=TaskConfig(task="reverse-translate", length=3)))
    seen = capture(model, torch.tensor([[1, 2, 3]]), source=torch.tensor([[1, 2, 3]]))
    assert {site: name for site, name in modules(seen).items() if site != name} == {}
    assert "decoder.0.cross_attention" in modules(seen)
    found = attentions(seen, "abc", "uvw")["decoder.0.cross_attention"]
    assert (found.queries, found.keys) == (tuple("abc"), tuple("uvw"))


def test_where_no_attention_was_seen_a_sentence_says_so() -> None:
    with pytest.raises(CaptureError, match=r"No attention was seen in this model\."):
        attentions(capture(nn.Linear(2, 2), torch.randn(1, 2)), "ab")
    seen = Captured({}, None, ("It has a kernel of its own.",))
    with pytest.raises(CaptureError, match=r"No attention was seen in this model\. It has a kernel of its own\."):
        modules(seen)
