"""What capture costs beside a plain call: `python benchmarks/capture.py [--device cuda] [--save]`.

Models with random weights: GPT-2 by Hugging Face's transformers, PyTorch's encoder, and a decoder that calls PyTorch's
fused attention, or writes it out, or keeps its heads in the batch: there a pattern is followed until it weighs values,
and what it weighed until heads are joined. Each is called plainly and captured; GPT-2 is asked for its attentions as
well, by its own `output_attentions=True`, which needs the eager kernel. All this in turns within the same minute, so
that a busy neighbour slows all alike; ratios are taken turn by turn. --save writes CAPTURE.md.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from kit.pages import device_option, load, machine, options, page, spread, table
from torch import Tensor, nn
from torch.nn import functional
from transformers import GPT2Config, GPT2Model

from transformer import capture

PAGE = "CAPTURE.md"
LENGTHS, LAYERS, HEADS, WIDTH, TURNS = (64, 512), 12, 12, 768, 7
QUICK = (16,), 2, 2, 32, 1
Call = Callable[[], Any]
Attend = Callable[[Tensor, Tensor, Tensor], Tensor]


def fused(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return functional.scaled_dot_product_attention(query, key, value, is_causal=True)


def by_hand(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
    return scores.masked_fill(later, -torch.inf).softmax(dim=-1) @ value


def folded(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Heads in the batch, [batch · head, query, key], as fairseq has them."""
    return by_hand(*(each.flatten(0, 1) for each in (query, key, value))).unflatten(0, query.shape[:2])


class Block(nn.Module):
    """Attention by PyTorch's fused function or written out, then a feed-forward layer: pre-norm, causal."""

    def __init__(self, heads: int, width: int, attend: Attend) -> None:
        super().__init__()
        self.heads, self.attend = heads, attend
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.qkv(self.before(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        z = self.attend(query, key, value)
        x = x + self.out(z.transpose(1, 2).flatten(2))
        return x + self.down(functional.gelu(self.up(self.between(x))))


def calls(length: int, layers: int, heads: int, width: int, device: torch.device) -> dict[str, dict[str, Call]]:
    """The ways to call each model; the first of each is the plain call that the others are set against."""
    torch.manual_seed(0)
    x = torch.randn(1, length, width, device=device)
    tokens = torch.randint(0, 1000, (1, length), device=device)
    shape = GPT2Config(n_layer=layers, n_head=heads, n_embd=width, vocab_size=1000, bos_token_id=1, eos_token_id=1)
    theirs, eager = (GPT2Model(shape).to(device).eval() for _ in range(2))
    eager.set_attn_implementation("eager")
    layer = nn.TransformerEncoderLayer(width, heads, 4 * width, batch_first=True)
    encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).to(device).eval()
    decoders = {
        f"decoder, {name}": nn.Sequential(*(Block(heads, width, attend) for _ in range(layers))).to(device).eval()
        for name, attend in (("fused kernel", fused), ("written out", by_hand), ("heads in the batch", folded))
    }
    return {
        "GPT-2, fused kernel": {
            "plain": lambda: theirs(tokens),
            "eager, plain": lambda: eager(tokens),
            "eager, output_attentions": lambda: eager(tokens, output_attentions=True),
            "capture": lambda: capture(theirs, tokens),
        },
        "nn.TransformerEncoder": {"plain": lambda: encoder(x), "capture": lambda: capture(encoder, x)},
        **{
            name: {"plain": partial(decoder, x), "capture": partial(capture, decoder, x)}
            for name, decoder in decoders.items()
        },
    }


@torch.no_grad()
def measure(length: int, layers: int, heads: int, width: int, turns: int, device: torch.device) -> None:
    for model, ways in calls(length, layers, heads, width, device).items():
        took: dict[str, list[float]] = {way: [] for way in ways}
        for turn in range(turns + 1):
            for way, call in ways.items():
                began = time.perf_counter()
                call()
                if device.type != "cpu":
                    torch.cuda.synchronize()
                if turn:  # the first warms up
                    took[way].append(1000 * (time.perf_counter() - began))
        for way, found in took.items():
            ratios = [its / plain for its, plain in zip(found, took["plain"], strict=True)]
            print(f"| {length} | {model} | {way} | {spread(found, 1)} | {spread(ratios, 2)} |", flush=True)


def main() -> None:
    parser = options(__doc__, PAGE)
    device_option(parser)
    arguments = parser.parse_args()
    lengths, layers, heads, width, turns = QUICK if arguments.quick else (LENGTHS, LAYERS, HEADS, WIDTH, TURNS)
    with page(PAGE, "What capture costs", save=arguments.save):
        print(
            f"{machine(arguments.device, load())}. Random weights, {layers} layers, {heads} heads, width {width}, "
            f"one sequence; {turns} turns. Kept of every head: query, key, value, scores, mask, pattern, z."
        )
        table("tokens", "", "", "milliseconds, median", "least to most", "it ÷ plain, median", "least to most")
        for length in lengths:
            measure(length, layers, heads, width, turns, arguments.device)


if __name__ == "__main__":
    main()
