"""How fast a text goes on: `python benchmarks/generation.py [--device cuda] [--save]`; --save writes GENERATION.md.

A decoder goes on from one token with a key-value cache and without, in turns within the same minute, so that a busy
neighbour slows all alike; the ratios are taken turn by turn. "All again" is a plain forward pass over the whole text
for each token. "All again, one unembedded" is the same, but only the last position goes through the unembedding, which
with a vocabulary of words is most of the work: the fairer rival.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import torch
from kit.pages import device_option, load, machine, options, page, spread, table
from torch import Tensor

from transformer.config import ModelConfig
from transformer.generation import generate
from transformer.model import Transformer
from transformer.sampling import Sampling
from transformer.trace import Trace

PAGE = "GENERATION.md"
D_VOCAB, N_CTX = 9_700, 512
SHAPE = ModelConfig(architecture="decoder", mask="causal", n_layers=4, n_heads=4, d_model=128, d_ff=512)
LENGTHS = (64, 256, 512)
TURNS = 5


class Last(Trace):
    """After the last block, the last position alone."""

    def __init__(self, layer: str, here: str = "") -> None:
        self.layer, self.here = layer, here

    def __call__(self, name: str, value: Tensor) -> Tensor:
        return value[:, -1:] if (self.here, name) == (self.layer, "resid_post") else value

    def within(self, scope: str | int) -> Last:
        return Last(self.layer, str(scope))


@torch.no_grad()
def one_unembedded(model: Transformer, prompt: Tensor) -> Iterator[int]:
    """The likeliest token and nothing else about it: less work than `generate` does for each."""
    tokens, trace = prompt[None], Last(str(model.config.n_layers - 1))
    while True:
        logits = model(tokens, trace=trace)[0, -1]
        token = logits[:-1].argmax()
        tokens = torch.cat([tokens, token.view(1, 1)], dim=1)
        yield int(token)


def ways(model: Transformer) -> dict[str, Callable[[int], list[int]]]:
    """Each gives the likeliest text of that many tokens."""
    prompt, greedy = torch.zeros(1, dtype=torch.long, device=model.visible.device), Sampling(temperature=0)
    return {
        "with the cache": lambda most: [said.token for said in generate(model, prompt, most, greedy)],
        "all again": lambda most: [said.token for said in generate(model, prompt, most, greedy, cached=False)],
        "all again, one unembedded": lambda most: list(islice(one_unembedded(model, prompt), most)),
    }


def measure(model: Transformer, lengths: Sequence[int], turns: int) -> None:
    writers = ways(model)
    for write in writers.values():
        write(16)  # warms up
    table("tokens", "", "tokens a second, median", "least to most", "cache ÷ it, median", "least to most")
    for length in lengths:
        rates: dict[str, list[float]] = {name: [] for name in writers}
        for _ in range(turns):
            texts = []
            for name, write in writers.items():
                began = time.perf_counter()
                texts.append(write(length))
                rates[name].append(length / (time.perf_counter() - began))
            assert texts[0] == texts[1] == texts[2]
        for name, found in rates.items():
            ratios = [cached / its for cached, its in zip(rates["with the cache"], found, strict=True)]
            print(f"| {length} | {name} | {spread(found, 0)} | {spread(ratios, 1)} |", flush=True)


def main() -> None:
    parser = options(__doc__, PAGE)
    device_option(parser)
    arguments = parser.parse_args()
    lengths, turns = ((16,), 1) if arguments.quick else (LENGTHS, TURNS)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Transformer(SHAPE, d_vocab=D_VOCAB, n_ctx=N_CTX).to(arguments.device).eval()
    with page(PAGE, "Times of writing", save=arguments.save):
        print(
            f"{machine(arguments.device, load())}, one thread used. An untrained decoder of {SHAPE.n_layers} "
            f"layers, {SHAPE.n_heads} heads, d_model {SHAPE.d_model}, {D_VOCAB:,} tokens in the "
            f"vocabulary, {N_CTX} in the context; {turns} turns, batch 1."
        )
        measure(model, lengths, turns)


if __name__ == "__main__":
    main()
