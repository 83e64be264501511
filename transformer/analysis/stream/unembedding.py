"""From the residual stream to words: the last norm, the unembedding, the softmax, the loss and its gradient.

"Attention Is All You Need" (Vaswani et al., 2017), section 3.4 (embeddings and softmax).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from transformer.analysis.sample import lay_out, observe_batch
from transformer.model import Transformer
from transformer.tasks import Answer, Question, Task
from transformer.trace import only


@dataclass(frozen=True)
class Output:
    """One output position of a pass, on its way from a vector to probabilities."""

    stream: Float[np.ndarray, "d_model"]
    """The residual stream behind the last block."""
    normed: Float[np.ndarray, "d_model"]
    """The same after the final norm; the stream itself where there is none."""
    logits: Float[np.ndarray, "d_vocab"]
    read: int
    """The token that was read there."""
    target: int | None
    """The right token; None where the position does not belong to the answer."""


@torch.no_grad()
def look_at_output(
    model: Transformer, task: Task, question: Question, place: int, *, said: Answer | None = None
) -> Output:
    """One output, its place counted from 0. `said` as in `sample`."""
    stack = "encoder" if model.config.architecture == "encoder" else "decoder"
    site = f"{stack}.{model.config.n_layers - 1}.resid_post"
    batch = lay_out(task, question, said=said)
    seen = observe_batch(model, batch, remember=only(site))
    stream = seen[site][0, place]
    return Output(
        stream.cpu().numpy().copy(),
        model.final_norm(stream).cpu().numpy().copy(),
        seen.logits[0, place].cpu().numpy().copy(),
        int(batch.tokens[0, place]),
        int(batch.targets[0, place]) if batch.is_answer[0, place] else None,
    )


def softmax(logits: Float[np.ndarray, "d_vocab"], temperature: float = 1.0) -> Float[np.ndarray, "d_vocab"]:
    """exp(z/T) over its sum, float64; the largest logit is taken off first, which changes no share."""
    scaled = logits.astype(np.float64) / temperature
    exponentials = np.exp(scaled - scaled.max())
    return exponentials / exponentials.sum()


def loss(logits: Float[np.ndarray, "d_vocab"], target: int) -> float:
    """What one token costs, in nats: minus the logarithm of the probability of the right one."""
    scaled = logits.astype(np.float64)
    largest = scaled.max()
    return float(largest + np.log(np.exp(scaled - largest).sum()) - scaled[target])


def loss_gradient(logits: Float[np.ndarray, "d_vocab"], target: int) -> Float[np.ndarray, "d_vocab"]:
    """The loss' gradient with respect to the logits: p - 1 at the right token, p at every other; its sum is 0."""
    gradient = softmax(logits)
    gradient[target] -= 1
    return gradient
