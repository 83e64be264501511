"""The hidden units of a feed-forward layer: which fire at one token, and how often each fires.

max(0, W₁ x + b₁) (Vaswani et al., 2017, section 3.3): a unit fires where that is above 0. Units that never fire are
"dead": Voita et al., "Neurons in Large Language Models" (2023), section 3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int

from transformer.analysis.batches import in_parts
from transformer.analysis.sample import lay_out, observe_batch
from transformer.blocks import FeedForward
from transformer.config import ConfigError
from transformer.model import Transformer
from transformer.network import of_few_words
from transformer.tasks import Batch, Question, Task
from transformer.trace import only

NONE = "this model has no feed-forward layers"


@dataclass(frozen=True, eq=False)
class Fired:
    """The hidden layer of one block at one token."""

    hidden: Float[np.ndarray, "d_ff"]
    """max(0, W₁ x + b₁), as the pass recorded it."""
    lengths: Float[np.ndarray, "d_ff"]
    """The Euclidean norm of what each unit adds to the output: its activation times its column of W₂."""
    out: Float[np.ndarray, "d_model"]

    @property
    def firing(self) -> int:
        """How many units fire here."""
        return int((self.hidden > 0).sum())


@dataclass(frozen=True, eq=False)
class Firing:
    """How often each hidden unit of one block fires, over many sequences."""

    counts: Int[np.ndarray, "d_ff"]
    positions: int
    """Over how many positions; padding is left out."""
    sequences: int

    @property
    def shares(self) -> Float[np.ndarray, "d_ff"]:
        return self.counts / self.positions

    @property
    def never(self) -> int:
        """How many units fired nowhere."""
        return int((self.counts == 0).sum())


@torch.no_grad()
def fire(
    model: Transformer,
    task: Task,
    question: Question,
    block: str,
    place: int,
    *,
    said: Int[np.ndarray, "answer"] | None = None,
) -> Fired:
    """The hidden units of `block` ("decoder.0") at one token, its place counted from 0.

    `said` is read in place of the right answer. Raises ConfigError for a model without feed-forward layers.
    """
    layer = _layer(model, block)
    seen = observe_batch(model, lay_out(task, question, said=said), (), only(f"{block}.feed_forward.*"))
    hidden = seen[f"{block}.feed_forward.hidden"][0, place]
    lengths = hidden * layer.down.weight.norm(dim=0)
    out = seen[f"{block}.feed_forward.out"][0, place]
    return Fired(*(each.cpu().numpy().copy() for each in (hidden, lengths, out)))


@torch.no_grad()
def count_firing(model: Transformer, batch: Batch, block: str) -> Firing:
    """How often each hidden unit of `block` fires, over all positions that the block reads.

    Raises ConfigError for a model without feed-forward layers.
    """
    _layer(model, block)
    site = f"{block}.feed_forward.hidden"
    read = batch.source if batch.source is not None and block.startswith("encoder") else batch.tokens
    assert read is not None
    real = torch.from_numpy(read != model.d_vocab - 1)
    few = of_few_words(model)
    parts = in_parts(few, batch, lambda part, seen: (seen[site] > 0)[real[part]].sum(dim=0), keep=[site])
    counts = torch.stack(parts).sum(dim=0).cpu().numpy()
    return Firing(counts, int(real.sum()), len(read))


def _layer(model: Transformer, block: str) -> FeedForward:
    if not model.config.d_ff:
        raise ConfigError(NONE)
    layer = model.get_submodule(f"{block}.feed_forward")
    assert isinstance(layer, FeedForward)
    return layer
