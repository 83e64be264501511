"""Train the sample of *Your model* anew, on a text of Project Gutenberg: `python checkpoints/train_sample.py TEXT`.

Of the windows that it learns from, a quarter say their first half twice: so that heads soon form that find what came
before again. The last tenth of the text is held out. Weights are rounded to 16 bits, and measured as they are then.
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor
from torch.nn import functional

from transformer.capturing.sample import WEIGHTS, WORDS
from transformer.capturing.sample.reader import TOKENS, WINDOW, Reader, Words
from transformer.foundation.atomic_files import write_whole
from transformer.positions.sinusoidal import sinusoids

STEPS, BATCH, RATE, SEED, HELD_OUT = 6000, 24, 3e-3, 0, 0.1


def cost(model: Reader, windows: Tensor) -> Tensor:
    """What a token costs on average, in nats, each given those before it in its window."""
    return functional.cross_entropy(model(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())


def train(tokens: Tensor, steps: int = STEPS) -> Reader:
    """The model after so many steps of AdamW on windows drawn from these tokens; the rate falls to nothing."""
    torch.manual_seed(SEED)
    model = Reader()
    with torch.no_grad():
        model.words.weight.mul_(0.3)
        model.places.weight.copy_(0.3 * sinusoids(torch.arange(WINDOW), model.places.weight.shape[1], WINDOW))
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps)
    for step in range(1, steps + 1):
        starts = torch.randint(len(tokens) - WINDOW, (BATCH, 1))
        optimizer.zero_grad()
        windows = tokens[starts + torch.arange(WINDOW)]
        windows[: BATCH // 4, WINDOW // 2 :] = windows[: BATCH // 4, : WINDOW // 2]
        loss = cost(model, windows)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 250 == 0:
            print(f"step {step}: {loss.item():.3f} nats a token", flush=True)
    return model.eval()


def main() -> None:
    """Train it, save it, and say what a token of the held-out text costs."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        raise SystemExit(2)
    cut = Words.cut(Path(sys.argv[1]).read_text(encoding="utf-8"))
    end = int(len(cut) * (1 - HELD_OUT))
    vocabulary = [token for token, _ in Counter(cut[:end]).most_common(TOKENS - 1)]
    words = Words(vocabulary)
    numbers = torch.tensor([words.encode(token)[0] for token in cut])
    model = train(numbers[:end])
    weights = {name: each.half().contiguous() for name, each in model.state_dict().items() if name != "head.weight"}
    write_whole(WEIGHTS, save(weights))
    write_whole(WORDS, json.dumps(vocabulary, ensure_ascii=False).encode())
    model.load_state_dict({name: each.half().float() for name, each in model.state_dict().items()})
    held_out = numbers[end:]
    windows = held_out[: len(held_out) // WINDOW * WINDOW].view(-1, WINDOW)[:400]
    with torch.no_grad():
        nats = cost(model, windows).item()
    print(f"{nats:.3f} nats a held-out token, perplexity {math.exp(nats):.1f}")


if __name__ == "__main__":
    main()
