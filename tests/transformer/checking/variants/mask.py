"""Masks that are right, each written in another way."""

import numpy as np
import torch


def causal_mask(n):
    return torch.tril(torch.ones(n, n, dtype=torch.bool))


def look_ahead_mask(size):
    return torch.triu(torch.ones(size, size), diagonal=1)


def subsequent_mask(size):
    shape = (1, size, size)
    return torch.from_numpy(np.triu(np.ones(shape), k=1).astype("uint8")) == 0


def generate_square_subsequent_mask(sz):
    return torch.triu(torch.full((sz, sz), float("-inf")), diagonal=1)


def causal_mask_for_heads(seq_len, device=None):
    return torch.ones(seq_len, seq_len, device=device).tril()[None, None].bool()


def padding_mask(tokens, pad):
    return (tokens != pad).unsqueeze(1).unsqueeze(2)


def create_padding_mask(seq):
    return (seq == 0)[:, None, None, :].float()


def make_std_mask(tgt, pad):
    tgt_mask = (tgt != pad).unsqueeze(-2)
    return tgt_mask & subsequent_mask(tgt.size(-1)).type_as(tgt_mask.data)
