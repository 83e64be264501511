"""The logit lens: what the residual stream would say if the model stopped here, stage by stage.

nostalgebraist (2020), "interpreting GPT: the logit lens"; Belrose et al. (2023), "Eliciting Latent Predictions from
Transformers with the Tuned Lens", section 2. The lens asks an early stage in the words of the last: where a model
keeps an answer in other directions than its unembedding reads, the lens does not see it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from transformer.analysis.sample import lay_out, observe_batch
from transformer.model import Transformer
from transformer.network import Network
from transformer.observation import Observation
from transformer.tasks import Answer, Question, Task

LISTED = 16
"""Tokens of a stage and position that are kept with their probabilities: of a text's thousands, the likeliest."""
RESIDUALS = ("resid_mid", "resid_cross", "resid_post")


@dataclass(frozen=True)
class Lens:
    """One question, read through the lens. Tokens are numbers; `vocabulary` names them."""

    stages: tuple[str, ...]
    """The sites, in the order of the data's way: "decoder.0.resid_pre", "decoder.0.resid_mid" …"""
    vocabulary: tuple[str, ...]
    read: Int[np.ndarray, "position"]
    targets: Int[np.ndarray, "position"]
    tokens: Int[np.ndarray, "stage position listed"]
    """The likeliest tokens, the likeliest first; LISTED of them, or all."""
    shares: Float[np.ndarray, "stage position listed"]
    """Their probabilities."""
    of_target: Float[np.ndarray, "stage position"]
    """The probability of the right token."""
    rank: Int[np.ndarray, "stage position"]
    """How many tokens are at least as likely as the right one: 1 where it leads alone."""

    @property
    def likeliest(self) -> Int[np.ndarray, "stage position"]:
        return self.tokens[..., 0]

    @property
    def right(self) -> Bool[np.ndarray, "stage position"]:
        """Is the likeliest token the right one?"""
        return self.likeliest == self.targets

    def settled(self, position: int) -> int:
        """The stage from which on the likeliest token at a position is the one that is said in the end."""
        said = self.likeliest[:, position]
        other = np.flatnonzero(said != said[-1])
        return int(other[-1]) + 1 if len(other) else 0


def stages(seen: Observation) -> tuple[str, ...]:
    """The sites of the predicting stack's residual stream at which it has changed, in the order of the data's way.

    First what the embedding made, then what is there after each sub-layer. A block without a feed-forward layer adds
    nothing after its attention, so its `resid_post` is left out.
    """
    stack = "decoder" if "decoder.0.resid_pre" in seen.sites else "encoder"
    found = [f"{stack}.0.resid_pre"]
    for site in seen.sites:
        block, _, kind = site.rpartition(".")
        idle = kind == "resid_post" and f"{block}.feed_forward.out" not in seen.sites
        if site.startswith(f"{stack}.") and kind in RESIDUALS and not idle:
            found.append(site)
    return tuple(found)


@torch.no_grad()
def logit_lens(model: Transformer, seen: Observation) -> Float[Tensor, "stage batch position d_vocab"]:
    """The logits of every stage: unembedding(final_norm(residual)), the model's own last step taken early.

    Those of the last stage are the model's output. Where the norms stand after the sub-layers (post-norm) or nowhere,
    the final norm is the identity, and so it is here.
    """
    return torch.stack([_stopped(model, seen[site]) for site in stages(seen)])


def _stopped(
    model: Transformer, stream: Float[Tensor, "batch position d_model"]
) -> Float[Tensor, "batch position d_vocab"]:
    """What the model would say if this stream were its last."""
    logits: Tensor = model.unembedding(model.final_norm(stream))
    return logits


@torch.no_grad()
def lens(model: Transformer, task: Task, question: Question, *, said: Answer | None = None) -> Lens:
    """Read one question through the lens. `said`, if given, is read in place of the right answer, as in `sample`.

    One stage after the other: the words of a text are so many that all stages together weigh hundreds of megabytes.
    """
    batch = lay_out(task, question, said=said)
    seen = observe_batch(model, batch)
    targets = torch.from_numpy(batch.targets[0])[:, None]
    found = [_looked_at(_stopped(model, seen[site])[0].softmax(dim=-1).cpu(), targets) for site in stages(seen)]
    tokens, shares, of_target, rank = (torch.stack(parts).numpy() for parts in zip(*found, strict=True))
    return Lens(stages(seen), task.vocabulary, batch.tokens[0], batch.targets[0], tokens, shares, of_target, rank)


@torch.no_grad()
def alternatives(
    model: Network, task: Task, question: Question
) -> tuple[Int[np.ndarray, "position listed"], Float[np.ndarray, "position listed"]]:
    """The likeliest tokens at each position, the likeliest first, with probabilities; the right ones are read."""
    batch = lay_out(task, question)
    logits = observe_batch(model, batch, remember=lambda site, value: None).logits[0]
    tokens, shares, *_ = _looked_at(logits.softmax(dim=-1).cpu(), torch.from_numpy(batch.targets[0])[:, None])
    return tokens.numpy(), shares.numpy()


def _looked_at(
    probabilities: Float[Tensor, "position d_vocab"], targets: Int[Tensor, "position 1"]
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The likeliest tokens of one stage, their probabilities, that of the right one, and its rank."""
    if probabilities.shape[1] <= LISTED:  # equally likely ones in their order
        shares, tokens = probabilities.sort(dim=-1, descending=True, stable=True)
    else:
        shares, tokens = probabilities.topk(LISTED, dim=-1)
    of_target = probabilities.gather(-1, targets)
    return tokens, shares, of_target[:, 0], (probabilities >= of_target).sum(dim=-1)
