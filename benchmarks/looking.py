"""A large vocabulary where only patterns are looked at: `python benchmarks/looking.py [--device cuda] [--save]`.

Many sequences are observed whole, and with one logit a token in place of the vocabulary's (`of_few_words`), in turns
within the same minute, so that a busy neighbour slows both alike; the ratios are taken turn by turn. --save writes
LOOKING.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from contextlib import nullcontext, redirect_stdout
from datetime import date
from pathlib import Path

import numpy as np
import torch
from tables import spread, table

from transformer.analysis.heads import in_parts
from transformer.config import ModelConfig
from transformer.model import Transformer
from transformer.network import of_few_words
from transformer.tasks import Batch
from transformer.training.device import describe_device, resolve_device

HERE = Path(__file__).resolve().parent
SHAPE = ModelConfig(architecture="decoder", mask="causal", n_layers=4, n_heads=4, d_model=128, d_ff=512)
D_VOCAB, LENGTHS, TOKENS, TURNS = 9_700, (64, 256, 512), 2**13, 7
PATTERNS = ("*.pattern", "*.mask")


def measure(model: Transformer) -> None:
    few, rng = of_few_words(model), np.random.default_rng(0)
    table("tokens", "", "tokens a second, median", "least to most", "it ÷ whole, median", "least to most")
    for length in LENGTHS:
        tokens = rng.integers(0, D_VOCAB - 1, (TOKENS // length, length))
        batch = Batch(tokens, tokens, np.ones(tokens.shape, dtype=bool), np.ones(tokens.shape, dtype=bool))
        rates: dict[str, list[float]] = {"whole": [], "one logit": []}
        for turn in range(TURNS + 1):
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
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--device", default="cpu", help="cpu, cuda …")
    parser.add_argument("--save", action="store_true", help="write benchmarks/LOOKING.md in place of the screen")
    arguments = parser.parse_args()
    device = resolve_device(arguments.device)
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Transformer(SHAPE, d_vocab=D_VOCAB, n_ctx=max(LENGTHS)).to(device).eval()
    with (HERE / "LOOKING.md").open("w") if arguments.save else nullcontext(sys.stdout) as out, redirect_stdout(out):
        print("# Looking without logits\n")
        print("Made by `python benchmarks/looking.py --save`; what is measured stands there.\n")
        print(
            f"{date.today()}: {describe_device(device)} ({platform.machine()}), one thread used, load average {load} "
            f"at the beginning; Python {platform.python_version()}, torch {torch.__version__}. An untrained decoder of "
            f"{SHAPE.n_layers} layers, {SHAPE.n_heads} heads, d_model {SHAPE.d_model}, {D_VOCAB:,} tokens in the "
            f"vocabulary; every pattern of {TOKENS:,} tokens, {TURNS} turns."
        )
        measure(model)


if __name__ == "__main__":
    main()
