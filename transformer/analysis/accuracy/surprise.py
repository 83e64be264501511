"""Where a model is surprised: what each token of a passage cost it, and what it thought likelier; and whether more
context helps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int

from transformer.analysis.accuracy.reading import READ, reading
from transformer.analysis.accuracy.windows import ByPlace
from transformer.analysis.sample import observe_batch
from transformer.network import Network
from transformer.tasks import Question
from transformer.text.corpus import Excerpt
from transformer.text.task import Text
from transformer.trace import only

LIKELIEST = 5
STREAM = 7
"""Windows come from a stream of the seed that nothing else uses."""


@dataclass(frozen=True)
class Surprise:
    """One passage, and what each of its tokens cost."""

    nats: Float[np.ndarray, "token"]
    """Minus the logarithm of the probability that each token was given."""
    rank: Int[np.ndarray, "token"]
    """1 where it was the likeliest; equally likely ones share the better rank."""
    likeliest: Int[np.ndarray, "token likeliest"]
    """What was thought likeliest in its place."""
    probability: Float[np.ndarray, "token likeliest"]
    unread: Float[np.ndarray, "token"]
    """Nats that it costs somebody who only knows how common each token is."""

    @property
    def perplexity(self) -> float:
        """The exponential of the mean loss: of how many tokens, equally likely, one would be as unsure."""
        return float(np.exp(self.nats.mean()))


def surprise(model: Network, task: Text, passage: Question, before: int = 0) -> Surprise:
    """Let a model read a passage, and ask it for each token before it is read; not for those `before` it that lead up
    to it."""
    seen = observe_batch(model, task.encode([passage]), remember=only())
    said = seen.logits[0, before:].cpu().double().log_softmax(dim=-1)
    given = said.gather(-1, torch.tensor(passage[before:])[:, None])
    top = said.topk(min(LIKELIEST, said.shape[-1]), dim=-1)
    return Surprise(
        nats=-given[:, 0].numpy(),
        rank=1 + (said > given).sum(dim=-1).numpy(),
        likeliest=top.indices.numpy(),
        probability=top.values.exp().numpy(),
        unread=unread_nats(task.known)[passage[before:]],
    )


def unread_nats(excerpt: Excerpt) -> Float[np.ndarray, "symbol"]:
    """What each token costs by its count alone; one that never stood in the text is counted once."""
    counts = np.maximum(np.array(excerpt.vocabulary.counts, dtype=np.float64), 1)
    return -np.log(counts / counts.sum())


@dataclass(frozen=True)
class Growth:
    """The loss by place in a window: does having read more help?"""

    found: ByPlace
    unread: float
    """What the same tokens cost by their counts alone, nats a token."""
    length: int
    """Tokens of a window."""


def growth(model: Network, task: Text, *, seed: int = 0) -> Growth:
    """Read windows of what is held out, READ tokens or so in all, and average over places taken together."""
    many = max(2, READ // task.length)
    batch = task.fresh(np.random.default_rng([seed, STREAM]), many, task.length)
    read = reading(model, batch)
    unread = float(unread_nats(task.known)[batch.targets].mean())
    return Growth(ByPlace.of(read.nats, read.right), unread, task.length)
