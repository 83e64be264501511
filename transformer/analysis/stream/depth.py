"""What a stack of blocks does before it has learned anything: how much of the gradient and of the tokens gets through.

Why there are residual connections: "Deep Residual Learning" (He et al., 2016, section 3); that without them attention
makes all positions alike: "Attention is Not All You Need" (Dong et al., 2021, section 2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch.nn import functional

from transformer.analysis.batches import questions
from transformer.analysis.sample import observe_batch
from transformer.model import Transformer
from transformer.observation import tensors
from transformer.tasks import Task

SEQUENCES = 64


@dataclass(frozen=True)
class Depth:
    """One stack, layer by layer."""

    gradient: Float[np.ndarray, "layer"]
    """Norm of the gradient of the answers' loss with respect to all weights of a block."""
    kept: Float[np.ndarray, "boundary"]
    """Mean cosine between the stream at a place and its embedding; 1 at the first boundary, before any layer."""
    alike: Float[np.ndarray, "boundary"]
    """Mean cosine between the streams at two places of a sequence: 1 where they can no longer be told apart."""


def look_down(model: Transformer, task: Task, sequences: int = SEQUENCES, seed: int = 0) -> Depth:
    """The stack that predicts, on fresh sequences, as it is; nothing is left behind in the model."""
    stack = "encoder" if model.config.architecture == "encoder" else "decoder"
    batch, _ = questions(task, sequences, task.length, seed)
    seen = observe_batch(model, batch)
    boundaries = [seen[f"{stack}.0.resid_pre"]]
    boundaries += [seen[f"{stack}.{layer}.resid_post"] for layer in range(model.config.n_layers)]

    tokens, source = tensors(model, batch)
    targets, answers = (torch.from_numpy(each).to(tokens.device) for each in (batch.targets, batch.is_answer))
    loss = functional.cross_entropy(model(tokens, source)[answers], targets[answers])
    norms = []
    for block in getattr(model, stack):
        gradients = torch.autograd.grad(loss, list(block.parameters()), retain_graph=True)
        norms.append(float(torch.cat([gradient.ravel() for gradient in gradients]).norm()))
    units = [functional.normalize(boundary, dim=-1) for boundary in boundaries]
    return Depth(
        np.array(norms),
        np.array([float((unit * units[0]).sum(dim=-1).mean()) for unit in units]),
        np.array([_alike(unit) for unit in units]),
    )


def _alike(units: Float[torch.Tensor, "batch position d_model"]) -> float:
    """The mean cosine of two different places."""
    n = units.shape[1]
    cosines = units @ units.transpose(1, 2)
    off = cosines.sum(dim=(1, 2)) - cosines.diagonal(dim1=1, dim2=2).sum(dim=1)
    return float((off / max(1, n * (n - 1))).mean())
