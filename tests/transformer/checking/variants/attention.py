"""Attention functions that are right, each written in another way."""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


def textbook(query, key, value, mask=None):
    d_k = query.size(-1)
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(d_k)
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    p_attn = scores.softmax(dim=-1)
    return torch.matmul(p_attn, value), p_attn


def true_is_hidden(q, k, v, mask=None):
    scores = q @ k.mT * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores.masked_fill(mask, float("-inf"))
    return F.softmax(scores, dim=-1) @ v


def added_mask(q, k, v, mask=None):
    q = q / math.sqrt(q.shape[-1])
    scores = q @ k.transpose(-2, -1)
    if mask is not None:
        scores = scores + mask
    return torch.softmax(scores, -1) @ v


def ones_and_zeros(q, k, v, mask):
    scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / q.shape[-1] ** 0.5
    scores = scores - 1e9 * (1 - mask)
    return torch.einsum("bhqk,bhkd->bhqd", scores.softmax(-1), v)


def hidden_as_numbers(Q, K, V, attn_mask=None):
    scores = torch.matmul(Q, K.transpose(-1, -2)) / np.sqrt(Q.shape[-1])
    if attn_mask is not None:
        scores += attn_mask * -1e9
    return torch.matmul(nn.Softmax(dim=-1)(scores), V)


def softmax_by_hand(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = torch.where(mask, scores, torch.full_like(scores, torch.finfo(scores.dtype).min))
    scores = (scores - scores.amax(-1, keepdim=True)).exp()
    return scores / scores.sum(-1, keepdim=True) @ v


def fused(query, key, value, attn_mask=None):
    return F.scaled_dot_product_attention(query, key, value, attn_mask)


def three_axes(q, k, v, mask=None):
    scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.size(2))
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return torch.bmm(torch.softmax(scores, dim=2), v)


def sequence_first(q, k, v, mask=None):
    scores = torch.einsum("qbd,kbd->bqk", q, k) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    return torch.einsum("bqk,kbd->qbd", scores.softmax(dim=-1), v)


def heads_behind_positions(q, k, v, mask=None):
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    return torch.einsum("bhqk,bkhd->bqhd", scores.softmax(dim=-1), v)


def one_matrix(q, k, v, mask=None):
    d = q.shape[1]
    scores = q @ k.T / math.sqrt(d)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return torch.softmax(scores, dim=1) @ v


def in_numpy(q, k, v, mask=None):
    q, k, v = (np.asarray(each) for each in (q, k, v))
    scores = q @ k.swapaxes(-2, -1) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = np.where(np.asarray(mask), scores, -1e9)
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    return scores / scores.sum(-1, keepdims=True) @ v


def without_a_mask(q, k, v):
    return (q @ k.transpose(-2, -1) / math.sqrt(k.shape[-1])).softmax(-1) @ v


def both_scaled(q, k, v, mask=None):
    root = q.shape[-1] ** 0.25
    scores = (q / root) @ (k / root).transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(mask.logical_not(), -1e30)
    return scores.softmax(-1) @ v


def causal_by_itself(q, k, v):
    later = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).triu(1)
    return F.softmax((q @ k.mT / q.shape[-1] ** 0.5).masked_fill(later, -1e9), -1) @ v


def causal_unless_told(query, key, value, is_causal=True):
    scores, ahead = (
        torch.einsum("...qd,...kd->...qk", query, key) / query.shape[-1] ** 0.5,
        key.shape[-2] - query.shape[-2],
    )
    if is_causal:
        scores = scores + torch.full(scores.shape[-2:], -math.inf).triu(1 + ahead)
    return scores.softmax(-1) @ value


def causal_only_where_told(q, k, v, mask=None, is_causal=False, need_weights=False):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if is_causal:
        scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -1e9)
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    weights = scores.softmax(-1)
    return (weights @ v, weights) if need_weights else weights @ v


def causal_beside_a_mask_that_is_never_read(q, k, v, mask=None):
    return causal_by_itself(q, k, v)


class ScaledDotProductAttention(nn.Module):
    def __init__(self, temperature, attn_dropout=0.1):
        super().__init__()
        self.temperature = temperature
        self.dropout = nn.Dropout(attn_dropout)

    def forward(self, q, k, v, mask=None):
        attn = torch.matmul(q / self.temperature, k.transpose(2, 3))
        if mask is not None:
            attn = attn.masked_fill(mask == 0, -1e9)
        attn = self.dropout(F.softmax(attn, dim=-1))
        return torch.matmul(attn, v), attn
