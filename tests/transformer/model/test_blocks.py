"""With the same weights, the modules compute what PyTorch's own modules compute."""

import pytest
import torch
from torch import nn

from transformer.attention import MultiHeadAttention
from transformer.blocks import Block
from transformer.config import ModelConfig
from transformer.trace import Recorder

D_MODEL, N_HEADS, D_FF = 12, 3, 20
CLOSE = {"atol": 1e-5, "rtol": 0}


@pytest.fixture(autouse=True)
def _seeded():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    parts = zip(theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.chunk(3), strict=True)
    for linear, (weight, bias) in zip((ours.query, ours.key, ours.value), parts, strict=True):
        linear.load_state_dict({"weight": weight, "bias": bias})
    ours.out.load_state_dict(theirs.out_proj.state_dict())


def copy_norm(ours, theirs: nn.LayerNorm, where: str) -> None:
    (ours.before if where == "pre" else ours.after).load_state_dict(theirs.state_dict())


def shaken(module: nn.Module) -> nn.Module:
    """Every weight random, so that no bias of 0 and no gain of 1 hides a mistake."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return module.eval()


def some_mask(n_query: int, n_key: int):
    """A random mask as ours read it (batch, head, query, key), and as PyTorch's do: there True is NOT allowed."""
    mask = torch.rand(n_query, n_key) < 0.6
    mask[:, 0] = True
    return mask[None, None], ~mask


@pytest.mark.parametrize("masked", ["", "mask", "padding"])
@pytest.mark.parametrize("cross", [False, True])
def test_attention_is_pytorchs(cross, masked):
    theirs = shaken(nn.MultiheadAttention(D_MODEL, N_HEADS, batch_first=True))
    ours = MultiHeadAttention(D_MODEL, N_HEADS).eval()
    copy_attention(ours, theirs)
    looking = torch.randn(2, 5, D_MODEL)
    looked_at = torch.randn(2, 7, D_MODEL) if cross else looking
    mask, hidden = some_mask(5, looked_at.shape[1]) if masked == "mask" else (None, None)
    padding = torch.zeros(looked_at.shape[:2], dtype=torch.bool)
    if masked == "padding":
        padding[0, 3:] = True
        mask = ~padding[:, None, None, :]
    recorder = Recorder()
    out = ours(looking, looked_at, mask, trace=recorder)
    expected, patterns = theirs(
        looking, looked_at, looked_at, key_padding_mask=padding, attn_mask=hidden, average_attn_weights=False
    )
    torch.testing.assert_close(out, expected, **CLOSE)
    torch.testing.assert_close(recorder.sites["pattern"], patterns, **CLOSE)


def copied_block(theirs, norm: str, *, cross: bool) -> Block:
    config = ModelConfig(d_model=D_MODEL, n_heads=N_HEADS, d_ff=D_FF, norm=norm)
    ours = Block(config, cross=cross).eval()
    copy_attention(ours.self_attention, theirs.self_attn)
    copy_norm(ours.around_self, theirs.norm1, norm)
    if cross:
        copy_attention(ours.cross_attention, theirs.multihead_attn)
        copy_norm(ours.around_cross, theirs.norm2, norm)
    ours.feed_forward.up.load_state_dict(theirs.linear1.state_dict())
    ours.feed_forward.down.load_state_dict(theirs.linear2.state_dict())
    copy_norm(ours.around_feed_forward, theirs.norm3 if cross else theirs.norm2, norm)
    return ours


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("cross", [False, True])
def test_a_block_is_pytorchs_encoder_layer_and_with_a_memory_its_decoder_layer(norm, cross):
    kind = nn.TransformerDecoderLayer if cross else nn.TransformerEncoderLayer
    theirs = shaken(kind(D_MODEL, N_HEADS, D_FF, dropout=0.0, batch_first=True, norm_first=norm == "pre"))
    ours = copied_block(theirs, norm, cross=cross)
    x, memory = torch.randn(2, 6, D_MODEL), torch.randn(2, 4, D_MODEL)
    (mask, hidden), (memory_mask, memory_hidden) = some_mask(6, 6), some_mask(6, 4)
    if cross:
        expected = theirs(x, memory, tgt_mask=hidden, memory_mask=memory_hidden)
        torch.testing.assert_close(ours(x, mask, memory, memory_mask), expected, **CLOSE)
    else:
        torch.testing.assert_close(ours(x, mask), theirs(x, src_mask=hidden), **CLOSE)


def test_without_norm_a_block_is_two_plain_residual_sums():
    block = Block(ModelConfig(d_model=D_MODEL, n_heads=N_HEADS, d_ff=D_FF, norm="none")).eval()
    x = torch.randn(2, 6, D_MODEL)
    middle = x + block.self_attention(x, x)
    torch.testing.assert_close(block(x), middle + block.feed_forward(middle))
