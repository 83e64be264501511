"""A large vocabulary where only patterns are looked at: `python benchmarks/looking.py [--device cuda] [--save]`.

Many sequences are observed whole, and with one logit a token in place of the vocabulary's (`of_few_words`), in turns
within the same minute, so that a busy neighbour slows both alike; the ratios are taken turn by turn. --save writes
LOOKING.md.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import torch
from kit.pages import device_option, load, machine, options, page, spread, table

from transformer.analysis.batches import in_parts
from transformer.config import ModelConfig
from transformer.model import Transformer
from transformer.network import of_few_words
from transformer.tasks import Batch

PAGE = "LOOKING.md"
SHAPE = ModelConfig(architecture="decoder", mask="causal", n_layers=4, n_heads=4, d_model=128, d_ff=512)
D_VOCAB, LENGTHS, TOKENS, TURNS = 9_700, (64, 256, 512), 2**13, 7
QUICK = (64,), 2**9, 1
PATTERNS = ("*.pattern", "*.mask")


def measure(model: Transformer, lengths: Sequence[int], size: int, turns: int) -> None:
    few, rng = of_few_words(model), np.random.default_rng(0)
    table("tokens", "", "tokens a second, median", "least to most", "it ÷ whole, median", "least to most")
    for length in lengths:
        tokens = rng.integers(0, D_VOCAB - 1, (size // length, length))
        batch = Batch(tokens, tokens, np.ones(tokens.shape, dtype=bool), np.ones(tokens.shape, dtype=bool))
        rates: dict[str, list[float]] = {"whole": [], "one logit": []}
        for turn in range(turns + 1):
            seen = []
            for name, network in zip(rates, (model, few), strict=True):
                began = time.perf_counter()
                parts = in_parts(
                    network, batch, lambda _, each: each["decoder.3.self_attention.pattern"].sum(0), keep=PATTERNS
                )
                seen.append(torch.stack(parts).sum(0))
                if turn:  # the first warms up
                    rates[name].append(tokens.size / (time.perf_counter() - began))
            torch.testing.assert_close(*seen)
        for name, found in rates.items():
            ratios = [its / whole for its, whole in zip(found, rates["whole"], strict=True)]
            print(f"| {length} | {name} | {spread(found, 0)} | {spread(ratios, 1)} |", flush=True)


def main() -> None:
    parser = options(__doc__, PAGE)
    device_option(parser)
    arguments = parser.parse_args()
    lengths, size, turns = QUICK if arguments.quick else (LENGTHS, TOKENS, TURNS)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Transformer(SHAPE, d_vocab=D_VOCAB, n_ctx=max(LENGTHS)).to(arguments.device).eval()
    with page(PAGE, "Looking without logits", save=arguments.save):
        print(
            f"{machine(arguments.device, load())}, one thread used. An untrained decoder of {SHAPE.n_layers} "
            f"layers, {SHAPE.n_heads} heads, d_model {SHAPE.d_model}, {D_VOCAB:,} tokens in the "
            f"vocabulary; every pattern of {size:,} tokens, {turns} turns."
        )
        measure(model, lengths, size, turns)


if __name__ == "__main__":
    main()
