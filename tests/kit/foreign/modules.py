"""Attention of somebody's own, small and random: the ways in which people write it, and what a test does with it."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH, HEADS = 8, 2


class Mine(nn.Module):
    """Attention with a residual connection and dropout; each kind attends in another way."""

    def __init__(self, mask: Tensor | None = None) -> None:
        super().__init__()
        self.qkv, self.out, self.dropout = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH), nn.Dropout(0.5)
        self.mask = mask

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.qkv(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        return self.dropout(x + self.out(self.attend(query, key, value).transpose(1, 2).flatten(2)))

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        raise NotImplementedError


class Fused(Mine):
    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(query, key, value, self.mask)


class Causal(Mine):
    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(query, key, value, is_causal=True)


class Grouped(Mine):
    """One key and one value for all heads."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(query, key[:, :1], value[:, :1], self.mask, enable_gqa=True)


class ByHand(Mine):
    """The fused one, written out."""

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
        if self.mask is not None:
            scores = scores.masked_fill(~self.mask, -1e9)
        return scores.softmax(dim=-1) @ value


@contextmanager
def left_as_it_was(model: nn.Module) -> Iterator[None]:
    """Afterwards every attribute of every module, each mode, hook, part and weight is what it was before."""

    def state() -> dict[str, dict[str, Any]]:
        return {
            name: dict(vars(module)) | {"_modules": dict(module._modules)} for name, module in model.named_modules()
        }

    before, weights = state(), {name: value.clone() for name, value in model.state_dict().items()}
    yield
    assert state() == before
    assert all(torch.equal(value, weights[name]) for name, value in model.state_dict().items())
    assert torch.overrides._get_current_function_mode() is None


def at_once(jobs: list[Callable[[], Any]], times: int = 10) -> list[list[Any]]:
    """What each job returns, done so often in a thread of its own, all of them together."""
    found: list[list[Any]] = [[] for _ in jobs]
    together = threading.Barrier(len(jobs))

    def work(number: int) -> None:
        together.wait()
        for _ in range(times):
            found[number].append(jobs[number]())

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(each) for each in found] == [times] * len(jobs)
    return found
