"""Multi-head attention modules that are right, each written in another way."""

import copy
import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


def attention(query, key, value, mask=None, dropout=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    weights = scores.softmax(dim=-1)
    if dropout is not None:
        weights = dropout(weights)
    return weights @ value, weights


class Annotated(nn.Module):
    """Four layers in a list, as in "The Annotated Transformer"."""

    def __init__(self, h, d_model, dropout=0.1):
        super().__init__()
        self.d_k, self.h = d_model // h, h
        self.linears = nn.ModuleList([copy.deepcopy(nn.Linear(d_model, d_model)) for _ in range(4)])
        self.dropout = nn.Dropout(p=dropout)

    def forward(self, query, key, value, mask=None):
        if mask is not None:
            mask = mask.unsqueeze(1)
        n = query.size(0)
        query, key, value = (
            layer(x).view(n, -1, self.h, self.d_k).transpose(1, 2)
            for layer, x in zip(self.linears, (query, key, value), strict=False)
        )
        x, self.attn = attention(query, key, value, mask, self.dropout)
        return self.linears[-1](x.transpose(1, 2).contiguous().view(n, -1, self.h * self.d_k))


class CausalSelfAttention(nn.Module):
    """One packed layer, settings in one object, the mask built in: as in nanoGPT."""

    def __init__(self, config):
        super().__init__()
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=config.bias)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)
        self.n_head, self.n_embd = config.n_head, config.n_embd
        mask = torch.tril(torch.ones(config.block_size, config.block_size))
        self.register_buffer("bias", mask.view(1, 1, config.block_size, config.block_size))

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
        k, q, v = (y.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for y in (k, q, v))
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        y = F.softmax(att, dim=-1) @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


class FusedCausal(CausalSelfAttention):
    """The same with PyTorch's fused kernel."""

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = (y.view(B, T, self.n_head, -1).transpose(1, 2) for y in self.c_attn(x).split(self.n_embd, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(B, T, C))


class Head(nn.Module):
    def __init__(self, n_embd, head_size, block_size, dropout):
        super().__init__()
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)
        self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size)))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        T = x.shape[1]
        k, q = self.key(x), self.query(x)
        wei = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
        wei = wei.masked_fill(self.tril[:T, :T] == 0, float("-inf"))
        return self.dropout(F.softmax(wei, dim=-1)) @ self.value(x)


class ListOfHeads(nn.Module):
    """Each head is a module of its own, as in nanoGPT's lecture."""

    def __init__(self, n_embd, num_heads, block_size=64, dropout=0.1):
        super().__init__()
        size = n_embd // num_heads
        self.heads = nn.ModuleList([Head(n_embd, size, block_size, dropout) for _ in range(num_heads)])
        self.proj = nn.Linear(n_embd, n_embd)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.dropout(self.proj(torch.cat([head(x) for head in self.heads], dim=-1)))


class Torch(nn.Module):
    """PyTorch's own, positions first: True is hidden."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.attention = nn.MultiheadAttention(embed_dim, num_heads)

    def forward(self, query, key, value, attn_mask=None):
        return self.attention(query, key, value, attn_mask=attn_mask)


class TorchBatchFirst(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.attention = nn.MultiheadAttention(d_model, n_heads, batch_first=True)

    def forward(self, x, mask=None):
        return self.attention(x, x, x, attn_mask=mask, need_weights=False)[0]


class XTransformers(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        from x_transformers import Attention

        self.attention = Attention(dim=dim, heads=heads, dim_head=dim // heads, causal=True)

    def forward(self, x):
        return self.attention(x)


class Einsum(nn.Module):
    """Weights with an axis of heads, as in TransformerLens."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        d_head = d_model // n_heads
        self.W_Q, self.W_K, self.W_V = (nn.Parameter(torch.randn(n_heads, d_model, d_head) / 5) for _ in range(3))
        self.W_O = nn.Parameter(torch.randn(n_heads, d_head, d_model) / 5)
        self.b_Q, self.b_K, self.b_V = (nn.Parameter(torch.zeros(n_heads, d_head)) for _ in range(3))
        self.b_O = nn.Parameter(torch.zeros(d_model))

    def forward(self, x, mask):
        q = torch.einsum("bpd,hdk->bphk", x, self.W_Q) + self.b_Q
        k = torch.einsum("bpd,hdk->bphk", x, self.W_K) + self.b_K
        v = torch.einsum("bpd,hdk->bphk", x, self.W_V) + self.b_V
        scores = torch.einsum("bqhk,bphk->bhqp", q, k) / k.shape[-1] ** 0.5
        pattern = scores.masked_fill(~mask, -1e5).softmax(-1)
        z = torch.einsum("bhqp,bphk->bqhk", pattern, v)
        return torch.einsum("bqhk,hkd->bqd", z, self.W_O) + self.b_O


class Rotary(nn.Module):
    """Queries and keys turned by their positions, as in Llama; keys and values shared by no heads."""

    def __init__(self, dim, n_heads):
        super().__init__()
        self.n_heads, self.head_dim = n_heads, dim // n_heads
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(dim, dim, bias=False) for _ in range(4))

    def turn(self, x):
        half = self.head_dim // 2
        rate = 10000.0 ** (-torch.arange(half, dtype=torch.float32) / half)
        angle = (torch.arange(x.shape[2])[:, None] * rate).to(x.dtype)
        one, two = x[..., :half], x[..., half:]
        return torch.cat([one * angle.cos() - two * angle.sin(), two * angle.cos() + one * angle.sin()], -1)

    def forward(self, x, mask=None):
        B, T, C = x.shape
        q, k, v = (layer(x).view(B, T, self.n_heads, -1).transpose(1, 2) for layer in (self.wq, self.wk, self.wv))
        scores = self.turn(q) @ self.turn(k).transpose(2, 3) / math.sqrt(self.head_dim)
        if mask is not None:
            scores = scores + mask
        return self.wo((scores.softmax(-1) @ v).transpose(1, 2).reshape(B, T, C))


class GroupedQueries(nn.Module):
    """All heads share one key and one value."""

    def __init__(self, d_model, n_heads, bias=True):
        super().__init__()
        self.h, self.d_k = n_heads, d_model // n_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, self.d_k, bias=bias)
        self.v_proj = nn.Linear(d_model, self.d_k, bias=bias)
        self.out_proj = nn.Linear(d_model, d_model, bias=bias)

    def forward(self, x, mask=None):
        B, T, C = x.shape
        q = self.q_proj(x).view(B, T, self.h, self.d_k).transpose(1, 2)
        k, v = self.k_proj(x).unsqueeze(1), self.v_proj(x).unsqueeze(1)
        return self.out_proj(attention(q, k, v, mask)[0].transpose(1, 2).reshape(B, T, C))


class PackedByHead(nn.Module):
    """Queries, keys and values packed head by head, as in GPT-NeoX; no last layer."""

    def __init__(self, hidden_size, num_heads):
        super().__init__()
        self.h = num_heads
        self.qkv = nn.Linear(hidden_size, 3 * hidden_size)

    def forward(self, hidden_states, mask=None):
        B, T, C = hidden_states.shape
        q, k, v = self.qkv(hidden_states).view(B, T, self.h, -1).transpose(1, 2).chunk(3, dim=-1)
        return attention(q, k, v, mask)[0].transpose(1, 2).reshape(B, T, C)


class Ours(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        from transformer.attention import MultiHeadAttention

        self.inner = MultiHeadAttention(d_model, n_heads)

    def forward(self, looking, looked_at, mask=None):
        return self.inner(looking, looked_at, mask)


class OneHead(nn.Module):
    """As in lecture notes: weights as parameters, no last layer, and a result of another width."""

    def __init__(self, d_in, d_out):
        super().__init__()
        self.W_q, self.W_k, self.W_v = (nn.Parameter(torch.rand(d_in, d_out)) for _ in range(3))

    def forward(self, x):
        scores = (x @ self.W_q) @ (x @ self.W_k).mT
        return torch.softmax(scores / self.W_k.shape[1] ** 0.5, dim=-1) @ (x @ self.W_v)


class EightHeadsOfItsOwn(nn.Module):
    """It is told its width alone."""

    def __init__(self, width):
        super().__init__()
        self.joint, self.last = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (8, -1)).transpose(1, 2) for part in self.joint(x).chunk(3, -1))
        return self.last((q @ k.mT / q.shape[-1] ** 0.5).softmax(-1).matmul(v).transpose(1, 2).flatten(2))


class WiderHeads(nn.Module):
    """Its heads together are wider than x."""

    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.fused, self.proj = heads, nn.Linear(dim, 3 * heads * 8), nn.Linear(heads * 8, dim)

    def forward(self, x, mask=None):
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.fused(x).chunk(3, -1))
        return self.proj(attention(q, k, v, mask)[0].transpose(1, 2).flatten(2))


class SharedHeadsInOneLayer(nn.Module):
    def __init__(self, d_model, n_heads, n_kv_heads):
        super().__init__()
        self.sizes = [d_model, *[n_kv_heads * d_model // n_heads] * 2]
        self.width, self.times = d_model // n_heads, n_heads // n_kv_heads
        self.qkv, self.proj = nn.Linear(d_model, sum(self.sizes)), nn.Linear(d_model, d_model)

    def forward(self, x, mask=None):
        q, k, v = (each.unflatten(-1, (-1, self.width)).transpose(1, 2) for each in self.qkv(x).split(self.sizes, -1))
        k, v = (each.repeat_interleave(self.times, 1) for each in (k, v))
        return self.proj(attention(q, k, v, mask)[0].transpose(1, 2).flatten(2))


class MaskOfPadding(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.inner, self.heads = nn.MultiheadAttention(embed_dim, num_heads, batch_first=True), num_heads

    def forward(self, hidden_states, attention_mask=None):
        hidden = None if attention_mask is None else attention_mask == 0
        if hidden is not None and hidden.dim() != 2:
            raise ValueError("the mask must be [batch, key]")
        return self.inner(hidden_states, hidden_states, hidden_states, key_padding_mask=hidden, need_weights=False)[0]


class NormAndResidualInside(GroupedQueries):
    """A norm before the layers, and the input added behind them."""

    def __init__(self, d_model, n_heads):
        super().__init__(d_model, n_heads)
        self.norm = nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        return x + super().forward(self.norm(x), mask)


class ConfiguredAsADict(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.inner = GroupedQueries(cfg["emb_dim"], cfg["n_heads"])

    def forward(self, x, mask=None):
        return self.inner(x, mask)


class CrossAttention(nn.Module):
    """What it looks at need not be given, and may be masked as padding."""

    def __init__(self, query_dim, context_dim=None, heads=8, dim_head=64):
        super().__init__()
        self.heads = heads
        self.to_q = nn.Linear(query_dim, heads * dim_head, bias=False)
        self.to_kv = nn.Linear(context_dim or query_dim, 2 * heads * dim_head, bias=False)
        self.to_out = nn.Linear(heads * dim_head, query_dim)

    def forward(self, x, context=None):
        k, v = self.to_kv(x if context is None else context).chunk(2, dim=-1)
        q, k, v = (each.unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in (self.to_q(x), k, v))
        return self.to_out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class TwoMasks(nn.Module):
    both = True

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(embed_dim, embed_dim) for _ in range(4))

    def looked_at(self, key, value):
        return self.k_proj(key), self.v_proj(value)

    def forward(self, query, key, value, key_padding_mask=None, attn_mask=None):
        k, v = self.looked_at(key, value)
        q, k, v = (each.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for each in (self.q_proj(query), k, v))
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        if key_padding_mask is not None:
            scores = scores.masked_fill(key_padding_mask[:, None, None], -1e9)
        if attn_mask is not None and (self.both or key_padding_mask is None):
            scores = scores.masked_fill(attn_mask, -1e9)
        return self.out_proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class SlidingWindow(GroupedQueries):
    def forward(self, x):
        place = torch.arange(x.shape[1])
        distance = place - place[:, None]
        return super().forward(x, ((distance <= 0) & (distance > -3))[None, None])


class BiasOfDistance(nn.Module):
    """A bias that is trained, for each head and each distance, as in T5."""

    def __init__(self, dim, heads=4, max_dist=64):
        super().__init__()
        self.heads, self.max_dist = heads, max_dist
        self.qkv, self.out = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim)
        self.relative = nn.Embedding(2 * max_dist + 1, heads)

    def forward(self, x):
        q, k, v = (each.unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in self.qkv(x).chunk(3, -1))
        place = torch.arange(x.shape[1])
        bias = self.relative(place - place[:, None] + self.max_dist).permute(2, 0, 1)
        return self.out(self.mixed(q, k, v, bias))

    def mixed(self, q, k, v, bias):
        return ((q @ k.mT / q.shape[-1] ** 0.5 + bias).softmax(-1) @ v).transpose(1, 2).flatten(2)


class NotDividedAsInT5(BiasOfDistance):
    """No root of d_head, and the heads' numbers merged side by side in the other order."""

    def mixed(self, q, k, v, bias):
        return ((q @ k.mT + bias).softmax(-1) @ v).permute(0, 2, 3, 1).flatten(2)


class PackedNumberByNumber(GroupedQueries):
    def __init__(self, dim, num_heads, qkv_bias=False):
        nn.Module.__init__(self)
        self.h, self.qkv, self.out_proj = num_heads, nn.Linear(dim, 3 * dim, bias=qkv_bias), nn.Linear(dim, dim)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (self.h, -1, 3)).permute(4, 0, 2, 1, 3)
        return self.out_proj(attention(q, k, v)[0].transpose(1, 2).flatten(2))


class NormsOnlyItself(CrossAttention):
    """What it looks at comes normalised already."""

    def __init__(self, query_dim, context_dim=None, heads=8, dim_head=64):
        super().__init__(query_dim, context_dim, heads, dim_head)
        self.norm = nn.LayerNorm(query_dim)

    def forward(self, x, context=None):
        return super().forward(self.norm(x), context)


class ToldItsWindow(GroupedQueries):
    def __init__(self, d_model, n_heads, window_size=128):
        super().__init__(d_model, n_heads)
        self.window_size = window_size

    def seen(self, distance):
        return (distance <= 0) & (distance > -self.window_size)

    def forward(self, x):
        place = torch.arange(x.shape[1])
        return super().forward(x, self.seen(place - place[:, None])[None, None])


WIDTH = 32


class SelfAttentionOfItsOwnSize(nn.Module):
    """It is told nothing, and has eight positions at most."""

    def __init__(self):
        super().__init__()
        self.qkv, self.last = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.register_buffer("later", torch.ones(8, 8, dtype=torch.bool).triu(1))

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (4, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(self.later[: x.shape[1], : x.shape[1]], -math.inf)
        return self.last((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


@dataclass
class Config:
    n_embd: int = 64
    n_head: int = 4
    share: int = 2

    @property
    def d_head(self):
        return self.n_embd // self.n_head


class ConfiguredByItsOwnClass(nn.Module):
    def __init__(self, config: Config = Config()):  # noqa: B008
        super().__init__()
        self.d_head, self.share = config.d_head, config.share
        self.q, self.o = nn.Linear(config.n_embd, config.n_embd), nn.Linear(config.n_embd, config.n_embd)
        self.kv = nn.Linear(config.n_embd, 2 * config.n_embd // config.share)

    def forward(self, x):
        q, k, v = (
            part.unflatten(-1, (-1, self.d_head)).transpose(1, 2) for part in (self.q(x), *self.kv(x).chunk(2, -1))
        )
        k, v = (part.repeat_interleave(self.share, 1) for part in (k, v))
        return self.o(attention(q, k, v)[0].transpose(1, 2).flatten(2))


class HandedRotations(Rotary):
    """As in Llama: complex numbers, and the place of the first token."""

    def turned(self, x, freqs_cis):
        pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
        return torch.view_as_real(pairs * freqs_cis).flatten(-2)

    def forward(self, x, start_pos, freqs_cis, mask=None):
        q, k, v = (layer(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for layer in (self.wq, self.wk, self.wv))
        q, k = self.turned(q, freqs_cis), self.turned(k, freqs_cis)
        scores = q @ k.mT / math.sqrt(self.head_dim)
        return self.wo(((scores if mask is None else scores + mask).softmax(-1) @ v).transpose(1, 2).flatten(2))


class HandedCosinesAndSines(HandedRotations):
    def turned(self, x, both):
        one, two = x.chunk(2, -1)
        return x * both[0] + torch.cat([-two, one], -1) * both[1]

    def forward(self, hidden_states, position_embeddings, attention_mask=None):
        return super().forward(hidden_states, 0, position_embeddings, attention_mask)


class KeepsItsPast(GroupedQueries):
    ahead = True

    def forward(self, x, past_key_value=None, use_cache=False):
        q = self.q_proj(x).unflatten(-1, (self.h, self.d_k)).transpose(1, 2)
        kept = k, v = [layer(x).unsqueeze(1) for layer in (self.k_proj, self.v_proj)]
        if past_key_value is not None:
            kept = k, v = [torch.cat(each, dim=2) for each in zip(past_key_value, kept, strict=True)]
        seen = torch.ones(q.shape[2], k.shape[2]).tril(k.shape[2] - q.shape[2] if self.ahead else 0)
        y = self.out_proj(attention(q, k, v, seen)[0].transpose(1, 2).flatten(2))
        return (y, tuple(kept)) if use_cache else y


class LooksAtItselfAsWell(NormsOnlyItself):
    """The other sequence has a norm of its own, and stands behind x."""

    def __init__(self, query_dim, context_dim=None, heads=8, dim_head=64):
        super().__init__(query_dim, context_dim, heads, dim_head)
        self.other = nn.LayerNorm(query_dim)

    def forward(self, x, context=None):
        read = self.norm(x)
        return CrossAttention.forward(
            self, read, None if context is None else torch.cat([read, self.other(context)], dim=1)
        )


class SwitchCalledMask(CrossAttention):
    def forward(self, x, causal_mask=False):
        k, v = self.to_kv(x).chunk(2, dim=-1)
        q, k, v = (each.unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in (self.to_q(x), k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=bool(causal_mask))
        return self.to_out(y.transpose(1, 2).flatten(2))


class AnMBesideAMask(GroupedQueries):
    """X looks at M."""

    def forward(self, X, M, mask):
        q = self.q_proj(X).unflatten(-1, (self.h, self.d_k)).transpose(1, 2)
        k, v = self.k_proj(M).unsqueeze(1), self.v_proj(M).unsqueeze(1)
        return self.out_proj(attention(q, k, v, mask)[0].transpose(1, 2).flatten(2))


class NormsQueriesAndKeys(nn.Module):
    """Queries and keys are normalised head by head, as in ViT-22B and timm; what follows is what others change."""

    def __init__(self, dim, num_heads):
        super().__init__()
        self.h, self.d = num_heads, dim // num_heads
        self.qkv, self.proj = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim)
        self.q_norm, self.k_norm = nn.LayerNorm(self.d), nn.LayerNorm(self.d)

    def changed(self, q, k, v):
        return self.q_norm(q), self.k_norm(k), v

    def scores(self, q, k):
        return q * self.d**-0.5 @ k.mT

    def mixed(self, scores, v):
        return scores.softmax(-1) @ v

    def forward(self, x):
        q, k, v = (each.unflatten(-1, (self.h, self.d)).transpose(1, 2) for each in self.qkv(x).chunk(3, -1))
        q, k, v = self.changed(q, k, v)
        return self.proj(self.mixed(self.scores(q, k), v).transpose(1, 2).flatten(2))


class CosineTimesTen(NormsQueriesAndKeys):
    def __init__(self, dim, num_heads):
        super().__init__(dim, num_heads)
        self.q_norm = self.k_norm = None

    def changed(self, q, k, v):
        return F.normalize(q, dim=-1), F.normalize(k, dim=-1), v

    def scores(self, q, k):
        return 10 * torch.einsum("bhid,bhjd->bhij", q, k)


class CosineWithATemperature(CosineTimesTen):
    """As in Swin v2."""

    def __init__(self, dim, num_heads):
        super().__init__(dim, num_heads)
        self.logit_scale = nn.Parameter(torch.log(10 * torch.ones(num_heads, 1, 1)))

    def scores(self, q, k):
        return q @ k.mT * self.logit_scale.clamp(max=math.log(100.0)).exp()


class TurnsWithAnotherBase(NormsQueriesAndKeys):
    """As in Llama 3."""

    base = 500000.0

    def turn(self, x, axis=2):
        rate = self.base ** (-torch.arange(0, self.d, 2, dtype=torch.float32) / self.d)
        angle = torch.arange(x.shape[axis], dtype=torch.float32)[:, None] * rate
        shape = [1, 1, 1, self.d // 2]
        shape[axis] = x.shape[axis]
        cos, sin = angle.cos().view(shape).to(x.dtype), angle.sin().view(shape).to(x.dtype)
        one, two = x.chunk(2, -1)
        return torch.cat([one * cos - two * sin, two * cos + one * sin], -1)

    def changed(self, q, k, v):
        return self.turn(q), self.turn(k), v


class NormsAndTurns(TurnsWithAnotherBase):
    """RMSNorm without gains and then a turn, behind the fused kernel: as in a fast nanoGPT."""

    def changed(self, q, k, v):
        return self.turn(F.rms_norm(q, (self.d,))), self.turn(F.rms_norm(k, (self.d,))), v

    def forward(self, x):
        q, k, v = self.changed(*(e.unflatten(-1, (self.h, -1)).transpose(1, 2) for e in self.qkv(x).chunk(3, -1)))
        return self.proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class NormsOverAllHeads(CrossAttention):
    """As in OLMo 2, and looking elsewhere."""

    def __init__(self, query_dim, context_dim=None, heads=8, dim_head=64):
        super().__init__(query_dim, context_dim, heads, dim_head)
        self.q_norm, self.k_norm = nn.RMSNorm(heads * dim_head), nn.RMSNorm(heads * dim_head)

    def looked_at(self, x, context):
        return x if context is None else context

    def forward(self, x, context=None):
        k, v = self.to_kv(self.looked_at(x, context)).chunk(2, dim=-1)
        made = (self.q_norm(self.to_q(x)), self.k_norm(k), v)
        q, k, v = (each.unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in made)
        return self.to_out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class RelativeVectors(NormsQueriesAndKeys):
    """A vector of each distance is a key more, and a value more, as in Shaw et al."""

    clip = 3

    def __init__(self, dim, num_heads):
        super().__init__(dim, num_heads)
        self.of_keys, self.of_values = (nn.Parameter(torch.randn(2 * self.clip + 1, self.d)) for _ in range(2))

    def distance(self, length):
        place = torch.arange(length)
        return (place - place[:, None]).clamp(-self.clip, self.clip) + self.clip

    def changed(self, q, k, v):
        return q, k, v

    def scores(self, q, k):
        far = torch.einsum("bhid,ijd->bhij", q, self.of_keys[self.distance(q.shape[2])])
        return (q @ k.mT + far) / self.d**0.5

    def mixed(self, scores, v):
        pattern = scores.softmax(-1)
        return pattern @ v + torch.einsum("bhij,ijd->bhid", pattern, self.of_values[self.distance(v.shape[2])])


class RelativeTable(NormsQueriesAndKeys):
    """A bias for each two places of a picture that are as far apart, as in Swin."""

    def __init__(self, dim, window_size, num_heads):
        super().__init__(dim, num_heads)
        height, width = window_size
        self.table = nn.Parameter(torch.randn((2 * height - 1) * (2 * width - 1), num_heads))
        place = torch.stack(torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")).flatten(1)
        apart = place[:, :, None] - place[:, None]
        self.register_buffer("index", (apart[0] + height - 1) * (2 * width - 1) + apart[1] + width - 1)

    def changed(self, q, k, v):
        return q, k, v

    def scores(self, q, k):
        return super().scores(q, k) + self.table[self.index].permute(2, 0, 1)


class SlidingWindowWiderThanTheCheck(ToldItsWindow):
    def __init__(self, d_model, n_heads):
        super().__init__(d_model, n_heads, window_size=64)


class Pooling(nn.Module):
    """One query that is trained."""

    def __init__(self, dim, num_heads):
        super().__init__()
        self.query, self.h = nn.Parameter(torch.randn(1, 1, dim)), num_heads
        self.q, self.k, self.v, self.proj = (nn.Linear(dim, dim) for _ in range(4))

    def queries(self, x):
        return self.query.expand(len(x), -1, -1)

    def mixed(self, q, k, v):
        return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v

    def forward(self, x):
        made = (self.q(self.queries(x)), self.k(x), self.v(x))
        z = self.mixed(*(each.unflatten(-1, (self.h, -1)).transpose(1, 2) for each in made))
        return self.proj(z.transpose(1, 2).flatten(2))[:, 0]


class ClassAttention(Pooling):
    """The first token looks at all, as in CaiT."""

    def __init__(self, dim, num_heads):
        super().__init__(dim, num_heads)
        del self.query

    def queries(self, x):
        return x[:, :1]


class AttentionPoolOfLayers(nn.Module):
    """A layer gives each position its score."""

    over = 1

    def __init__(self, d_model):
        super().__init__()
        self.score = nn.Linear(d_model, 1)

    def forward(self, x):
        return (self.score(x).softmax(self.over) * x).sum(1)


class AttentionPool2d(nn.Module):
    """The mean of a picture looks at it, as in CLIP."""

    def __init__(self, spacial_dim, embed_dim, num_heads, output_dim=None):
        super().__init__()
        self.places = nn.Parameter(torch.randn(spacial_dim**2 + 1, embed_dim) / 5)
        self.attention = nn.MultiheadAttention(embed_dim, num_heads)

    def forward(self, x):
        x = x.flatten(2).permute(2, 0, 1)
        x = torch.cat([x.mean(0, keepdim=True), x]) + self.places[:, None]
        return self.attention(x[:1], x, x, need_weights=False)[0][0]
