"""Induction: heads that look for what came after the last occurrence of the present token, found on repeated text.

A sequence is [SEP, first block, second block], and the second block repeats the first. From a token of the repetition
an induction head looks at the token behind its first occurrence (prefix matching), and the loss falls on the repetition
(copying). Olsson et al., "In-context Learning and Induction Heads" (2022, arXiv 2209.11895), whose test text is random
too: nothing but the repetition helps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from transformer.analysis.batches import in_parts
from transformer.analysis.findings import Head
from transformer.analysis.heads.measure import heads_of
from transformer.analysis.heads.metrics import MARGIN, Estimate, Metric
from transformer.config import ConfigError
from transformer.network import Network
from transformer.observation import Observation
from transformer.tasks import Batch, Task

BLOCK, SHORTEST = 64, 4
"""Tokens of a block: as many as fit, from SHORTEST on."""
SEQUENCES = 32
COMMON = 1000
"""Random tokens are drawn from so many of the commonest: of a rare one a model knows nothing to copy by."""
LEAST = 0.4
"""Where the lower end of a share's interval must reach for a name."""
INDUCTION, PREVIOUS, NEITHER = "induction", "previous token", "neither"
STREAM = 5
"""Blocks come from a stream of the seed that nothing else uses."""
_SHARE = Metric("share", "share", "Share of a head's attention on one key")
_DROP = Metric("drop", "nats", "Loss on the first block less loss on the second", least=-np.inf, most=np.inf)


@dataclass(frozen=True)
class Repetition:
    """Every head, and the loss, on blocks that are read twice; beside it, what they do when another block follows."""

    heads: tuple[Head, ...]
    block: int
    sequences: int
    induction: Estimate
    """Share of attention that tokens of the repetition put on the token behind their first occurrence."""
    unrepeated: Estimate
    """The same, at the same distance, where the second block is another: what a head does by distance alone."""
    previous: Estimate
    """Share that the same tokens put on the token just before them."""
    even: Float[np.ndarray, "head"]
    """What a head would put on either that looks evenly at all it may see."""
    first: Float[np.ndarray, "sequence place"]
    """Nats that each token of the first block costs."""
    again: Float[np.ndarray, "sequence place"]
    """Of the second, a repetition."""
    another: Float[np.ndarray, "sequence place"]
    """Of the second, where it is another block."""

    def name(self, head: Head) -> str:
        """What this head is, where its interval clears LEAST and lies MARGIN above an even head's share; and for an
        induction head MARGIN above what it puts at that distance where nothing is repeated."""
        i = self.heads.index(head)
        rival = max(float(self.unrepeated.high[i]), float(self.even[i]))
        if self.induction.low[i] >= max(LEAST, rival + MARGIN):
            return INDUCTION
        if self.previous.low[i] >= max(LEAST, float(self.even[i]) + MARGIN):
            return PREVIOUS
        return NEITHER

    def drop(self) -> Estimate:
        """By how many nats a token of the repetition is cheaper than the first time, the first token of a block left
        out: nothing announces it."""
        return _drop(self.first, self.again)

    def drop_of_another(self) -> Estimate:
        """The same where the second block is another: what more context is worth without a repetition."""
        return _drop(self.first, self.another)


def find_induction(
    model: Network, task: Task, *, passages: bool = False, sequences: int = SEQUENCES, seed: int = 0
) -> Repetition:
    """Let a decoder read random blocks twice, or with `passages` stretches of the text that was held out.

    Raises ConfigError for what reads too few tokens, or does not say the next one.
    """
    block = longest_block(model, task)
    rng = np.random.default_rng([seed, STREAM])
    if passages:
        drawn = np.asarray(task.draw(rng, sequences, block))
        # The one before it may be its neighbour in the text, and goes on about the same; the one before that is not.
        return measure_repetition(model, task.separator, drawn, np.roll(drawn, 2, axis=0))
    both = _random(task, rng, 2 * sequences, block)
    return measure_repetition(model, task.separator, both[:sequences], both[sequences:])


def longest_block(model: Network, task: Task) -> int:
    """Tokens of a block that can be read twice, all different. Raises ConfigError where that is too few."""
    if model.config.architecture != "decoder":
        raise ConfigError("induction is looked for in decoders, which say the next token; this is none")
    block = min(BLOCK, model.n_ctx // 2, common_tokens(task))
    if block < SHORTEST:
        raise ConfigError(f"induction needs a block of {SHORTEST} different tokens twice, and here fit {block}")
    return block


def common_tokens(task: Task) -> int:
    """From how many tokens random blocks are drawn; the unknown token of a text is none of them."""
    return min(COMMON, task.symbols if task.lawful else task.symbols - 1)


def _drop(before: Float[np.ndarray, "sequence place"], after: Float[np.ndarray, "sequence place"]) -> Estimate:
    """The mean difference from the second place on, over sequences."""
    return Estimate.of((before - after)[:, 1:].mean(axis=1, keepdims=True), _DROP)


def _random(task: Task, rng: np.random.Generator, many: int, block: int) -> Int[np.ndarray, "sequence block"]:
    """Blocks of different tokens: what follows a token is then never in doubt. A text's commonest tokens come first."""
    return np.stack([rng.permutation(common_tokens(task))[:block] for _ in range(many)])


def measure_repetition(
    model: Network,
    separator: int,
    first: Int[np.ndarray, "sequence block"],
    other: Int[np.ndarray, "sequence block"],
) -> Repetition:
    """Read each first block twice, and once with another behind it."""
    sequences, block = first.shape
    again, another = (_read(model, separator, first, second) for second in (first, other))
    return Repetition(
        heads=heads_of(model),
        block=block,
        sequences=sequences,
        induction=Estimate.of(again.matched, _SHARE),
        unrepeated=Estimate.of(another.matched, _SHARE),
        previous=Estimate.of(again.previous, _SHARE),
        even=again.even.mean(axis=0),
        first=again.nats[:, :block],
        again=again.nats[:, block:],
        another=another.nats[:, block:],
    )


@dataclass(frozen=True)
class _Read:
    """What was found while two blocks were read."""

    matched: Float[np.ndarray, "sequence head"]
    previous: Float[np.ndarray, "sequence head"]
    even: Float[np.ndarray, "sequence head"]
    nats: Float[np.ndarray, "sequence target"]


def _read(
    model: Network, separator: int, first: Int[np.ndarray, "sequence block"], second: Int[np.ndarray, "sequence block"]
) -> _Read:
    block = first.shape[1]
    text = np.concatenate([first, second], axis=1)
    tokens = np.concatenate([np.full((len(text), 1), separator), text[:, :-1]], axis=1)
    each = np.ones_like(tokens, dtype=bool)
    queries = torch.arange(block + 1, 2 * block)  # tokens of the second block; what follows its last is not read

    def look(part: slice, seen: Observation) -> tuple[np.ndarray, ...]:
        patterns = [seen[f"{site}.pattern"] for site in seen.attentions()]
        masks = [seen[f"{site}.mask"] for site in seen.attentions()]
        evens = [
            (mask / mask.sum(dim=-1, keepdim=True).clamp(min=1)).expand_as(p)
            for mask, p in zip(masks, patterns, strict=True)
        ]
        found = (
            _shares(patterns, queries, block - 1),
            _shares(patterns, queries, 1),
            _shares(evens, queries, block - 1),
            _nats(seen.logits, torch.from_numpy(text[part])),
        )
        return tuple(each.cpu().double().numpy() for each in found)

    parts = in_parts(model, Batch(tokens, text, each, each), look, keep=("*.pattern", "*.mask"))
    return _Read(*(np.concatenate(values) for values in zip(*parts, strict=True)))


def _shares(
    patterns: list[Float[Tensor, "batch _head query key"]], queries: Int[Tensor, "asked"], back: int
) -> Float[Tensor, "batch heads"]:
    """Mean share of attention on the key so many places back, of the heads of all attentions one after the other."""
    return torch.cat([pattern[:, :, queries, queries - back].mean(dim=-1) for pattern in patterns], dim=1)


def _nats(
    logits: Float[Tensor, "batch position d_vocab"], targets: Int[Tensor, "batch position"]
) -> Float[Tensor, "batch position"]:
    """Cross-entropy of each target."""
    given = logits.float().log_softmax(dim=-1).gather(-1, targets.to(logits.device)[..., None])
    return -given[..., 0]
