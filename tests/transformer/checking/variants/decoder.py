"""Whole decoders that are right, each written in another way."""

import math

import torch
from torch import nn
from torch.nn import functional as F


class SelfAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.h = n_heads
        self.qkv, self.out = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (each.view(B, T, self.h, -1).transpose(1, 2) for each in self.qkv(x).chunk(3, -1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(torch.ones(T, T, dtype=torch.bool).triu(1), -1e9)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    def __init__(self, d_model, n_heads, post):
        super().__init__()
        self.attention, self.post = SelfAttention(d_model, n_heads), post
        self.feed_forward = nn.Sequential(nn.Linear(d_model, 4 * d_model), nn.GELU(), nn.Linear(4 * d_model, d_model))
        self.first, self.second = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x):
        if self.post:
            x = self.first(x + self.attention(x))
            return self.second(x + self.feed_forward(x))
        x = x + self.attention(self.first(x))
        return x + self.feed_forward(self.second(x))


class PreNorm(nn.Module):
    post = False

    def __init__(self, vocab_size, d_model, n_heads, n_layers, max_len=64):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab_size, d_model), nn.Embedding(max_len, d_model)
        self.blocks = nn.ModuleList(Block(d_model, n_heads, self.post) for _ in range(n_layers))
        self.norm, self.head = nn.LayerNorm(d_model), nn.Linear(d_model, vocab_size)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class PostNorm(PreNorm):
    post = True


class LogProbabilities(PreNorm):
    def forward(self, tokens):
        return super().forward(tokens).log_softmax(-1)


class GPT(nn.Module):
    """Settings in one object, the loss beside the logits, tied weights: as in nanoGPT."""

    def __init__(self, config):
        super().__init__()
        self.wte, self.wpe = (
            nn.Embedding(config.vocab_size, config.n_embd),
            nn.Embedding(config.block_size, config.n_embd),
        )
        self.h = nn.ModuleList(Block(config.n_embd, config.n_head, False) for _ in range(config.n_layer))
        self.ln_f, self.lm_head = nn.LayerNorm(config.n_embd), nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.wte.weight = self.lm_head.weight

    def forward(self, idx, targets=None):
        x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1]))
        for block in self.h:
            x = block(x)
        x = self.ln_f(x)
        if targets is None:
            return self.lm_head(x[:, [-1], :]), None
        logits = self.lm_head(x)
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


class TorchLayers(nn.Module):
    """PyTorch's encoder layers, and a mask that the caller hands over."""

    def __init__(self, ntoken, d_model, nhead, nlayers, dropout=0.5):
        super().__init__()
        layer = nn.TransformerEncoderLayer(d_model, nhead, 2 * d_model, dropout, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, nlayers, enable_nested_tensor=False)
        self.embedding, self.linear = nn.Embedding(ntoken, d_model), nn.Linear(d_model, ntoken)

    def forward(self, src, src_mask):
        return self.linear(self.layers(self.embedding(src) + torch.arange(src.shape[1])[:, None] / 10, src_mask))


class XTransformersDecoder(nn.Module):
    def __init__(self, num_tokens, max_seq_len, dim, depth, heads):
        super().__init__()
        from x_transformers import Decoder, TransformerWrapper

        layers = Decoder(dim=dim, depth=depth, heads=heads, attn_dim_head=dim // heads)
        self.inner = TransformerWrapper(num_tokens=num_tokens, max_seq_len=max_seq_len, attn_layers=layers)

    def forward(self, x):
        return self.inner(x)


class OursAsADecoder(nn.Module):
    def __init__(self, d_vocab, n_ctx, d_model, n_heads, n_layers):
        super().__init__()
        from transformer.config import ModelConfig
        from transformer.model import Transformer

        config = ModelConfig(
            architecture="decoder",
            mask="causal",
            d_model=d_model,
            n_heads=n_heads,
            n_layers=n_layers,
            positions="rotary",
        )
        self.inner = Transformer(config, d_vocab=d_vocab + 1, n_ctx=n_ctx)

    def forward(self, tokens):
        return self.inner(tokens)[..., :-1]


VOCABULARY, WIDTH, PLACES = 65, 32, 8


class LanguageModelOfItsOwnSize(PreNorm):
    """It is told nothing."""

    def __init__(self):
        super().__init__(VOCABULARY, WIDTH, 4, 1, PLACES)

    def forward(self, idx, targets=None):
        logits = super().forward(idx)
        return logits, None if targets is None else F.cross_entropy(logits.flatten(0, 1), targets.flatten())
