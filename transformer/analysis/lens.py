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
from transformer.observation import Observation
from transformer.tasks import Question, Task

RESIDUALS = ("resid_mid", "resid_cross", "resid_post")


@dataclass(frozen=True)
class Lens:
    """One question, read through the lens. Tokens are numbers; `vocabulary` names them."""

    stages: tuple[str, ...]
    """The sites, in the order of the data's way: "decoder.0.resid_pre", "decoder.0.resid_mid" …"""
    vocabulary: tuple[str, ...]
    read: Int[np.ndarray, "position"]
    targets: Int[np.ndarray, "position"]
    probabilities: Float[np.ndarray, "stage position d_vocab"]

    @property
    def likeliest(self) -> Int[np.ndarray, "stage position"]:
        return self.probabilities.argmax(axis=-1)

    @property
    def right(self) -> Bool[np.ndarray, "stage position"]:
        """Is the likeliest token the right one?"""
        return self.likeliest == self.targets

    @property
    def of_target(self) -> Float[np.ndarray, "stage position"]:
        """The probability of the right token."""
        return np.take_along_axis(self.probabilities, self.targets[None, :, None], axis=-1)[..., 0]

    @property
    def rank(self) -> Int[np.ndarray, "stage position"]:
        """How many tokens are at least as likely as the right one: 1 where it leads alone."""
        return (self.probabilities >= self.of_target[..., None]).sum(axis=-1)

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
    return torch.stack([model.unembedding(model.final_norm(seen[site])) for site in stages(seen)])


def lens(model: Transformer, task: Task, question: Question, *, said: Question | None = None) -> Lens:
    """Read one question through the lens. `said`, if given, is read in place of the right answer, as in `sample`."""
    batch = lay_out(task, question, said=said)
    seen = observe_batch(model, batch)
    probabilities = logit_lens(model, seen)[:, 0].softmax(dim=-1).cpu().numpy()
    return Lens(stages(seen), task.vocabulary, batch.tokens[0], batch.targets[0], probabilities)
