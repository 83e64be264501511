"""Positional encodings that are right, each written in another way."""

import math

import numpy as np
import torch
from torch import nn


def sinusoidal_table(n_positions, d_model):
    position = torch.arange(n_positions).unsqueeze(1)
    rate = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
    table = torch.zeros(n_positions, d_model)
    table[:, 0::2] = torch.sin(position * rate)
    table[:, 1::2] = torch.cos(position * rate)
    return table


def get_angles_in_numpy(position, d_model):
    angle = np.arange(position)[:, np.newaxis] / np.power(10000, 2 * (np.arange(d_model) // 2)[np.newaxis] / d_model)
    angle[:, 0::2] = np.sin(angle[:, 0::2])
    angle[:, 1::2] = np.cos(angle[:, 1::2])
    return angle[np.newaxis, ...]


def encoding_in_halves(length, depth):
    half = depth // 2
    angle = torch.arange(length)[:, None] * 10000.0 ** (-torch.arange(half) / half)
    return torch.cat([angle.sin(), angle.cos()], dim=-1)


def add_positions(x):
    return x + sinusoidal_table(x.shape[1], x.shape[2])


class PositionalEncoding(nn.Module):
    """[batch, position, d_model], with dropout, as in "The Annotated Transformer"."""

    def __init__(self, d_model, dropout, max_len=5000):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        self.register_buffer("pe", sinusoidal_table(max_len, d_model).unsqueeze(0))

    def forward(self, x):
        return self.dropout(x + self.pe[:, : x.size(1)].requires_grad_(False))


class PositionsFirst(nn.Module):
    """[position, batch, d_model], as in PyTorch's tutorial."""

    def __init__(self, d_model, dropout=0.1, max_len=5000):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        self.register_buffer("pe", sinusoidal_table(max_len, d_model).unsqueeze(1))

    def forward(self, x):
        return self.dropout(x + self.pe[: x.size(0)])


class ScaledPositions(PositionalEncoding):
    def __init__(self, d_model, max_len=100):
        super().__init__(d_model, 0.0, max_len)
        self.d_model = d_model

    def forward(self, x):
        return super().forward(x * math.sqrt(self.d_model))


class LearnedPositions(nn.Module):
    def __init__(self, max_len, d_model):
        super().__init__()
        self.embedding = nn.Embedding(max_len, d_model)

    def forward(self, x):
        return x + self.embedding(torch.arange(x.shape[1]))


def apply_rotary(x):
    half = x.shape[-1] // 2
    angle = torch.arange(x.shape[-2])[:, None] * 10000.0 ** (-torch.arange(half) / half)
    one, two = x.chunk(2, dim=-1)
    return torch.cat([one * angle.cos() - two * angle.sin(), two * angle.cos() + one * angle.sin()], dim=-1)


def rope_of_both(q, k):
    def turned(x):
        angle = torch.arange(x.shape[-2])[:, None] * 10000.0 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
        even, odd = x[..., 0::2], x[..., 1::2]
        return torch.stack(
            [even * angle.cos() - odd * angle.sin(), even * angle.sin() + odd * angle.cos()], -1
        ).flatten(-2)

    return turned(q), turned(k)
