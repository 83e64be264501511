"""Dropout: one input passed several times in training mode and in evaluation mode, and one vector dropped many times.

Srivastava et al. (2014), "Dropout: A Simple Way to Prevent Neural Networks from Overfitting"; where it stands in a
transformer: "Attention Is All You Need" (Vaswani et al., 2017), section 5.4.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from transformer.analysis.sample import lay_out, observe_batch
from transformer.foundation.drawing import drawing
from transformer.model import Transformer
from transformer.observation import tensors
from transformer.tasks import Answer, Question, Task
from transformer.trace import only


@dataclass(frozen=True)
class Passes:
    """One input, passed several times in each mode."""

    rate: float
    """With which probability a number was dropped in training mode."""
    predicted: Int[np.ndarray, "position"]
    """The likeliest token of each output in evaluation mode."""
    training: Float[np.ndarray, "pass position"]
    """The probability of that token in each pass in training mode."""
    evaluation: Float[np.ndarray, "pass position"]
    """The same in evaluation mode."""
    changed: Int[np.ndarray, "position"]
    """In how many passes in training mode another token is the likeliest."""
    training_alike: bool
    """Are the logits of all passes in training mode the same, bit for bit?"""
    evaluation_alike: bool
    """The same of evaluation mode."""


def with_dropout(model: Transformer, rate: float) -> Transformer:
    """A copy with the same weights and another dropout rate; the model itself stays as it is."""
    other = copy.deepcopy(model)
    for module in other.modules():
        if isinstance(module, nn.Dropout):
            module.p = rate
    return other


@torch.no_grad()
def repeat_passes(
    model: Transformer,
    task: Task,
    question: Question,
    *,
    rate: float,
    passes: int = 10,
    seed: int = 0,
    said: Answer | None = None,
) -> Passes:
    """Pass one question so many times in each mode, with one dropout rate. `said` as in `sample`.

    A copy is passed through, on the CPU: nothing of it is left in the model. The seed decides what is dropped.
    """
    batch, tried = lay_out(task, question, said=said), with_dropout(model, rate).cpu()
    tokens, source = tensors(tried, batch)

    def go(training: bool) -> tuple[Float[Tensor, "pass position"], Int[Tensor, "pass position"], bool]:
        """In each pass: the probability of what was predicted, what is likeliest now, and whether all are alike."""
        tried.train(training)
        first, shares, likeliest, alike = None, [], [], True
        for _ in range(passes):
            logits = tried(tokens, source)[0]
            first = logits if first is None else first
            alike &= torch.equal(logits, first)
            shares.append(logits.softmax(dim=-1).gather(-1, predicted[:, None])[:, 0])
            likeliest.append(logits.argmax(dim=-1))
        return torch.stack(shares), torch.stack(likeliest), alike

    predicted = tried.eval()(tokens, source)[0].argmax(dim=-1)
    evaluation, _, evaluation_alike = go(training=False)
    with drawing(seed):
        training, likeliest, training_alike = go(training=True)
    return Passes(
        rate,
        predicted.numpy(),
        training.numpy(),
        evaluation.numpy(),
        (likeliest != predicted).sum(dim=0).numpy(),
        training_alike,
        evaluation_alike,
    )


def drop(
    vector: Float[np.ndarray, "d_model"], rate: float, copies: int, seed: int = 0
) -> Float[np.ndarray, "copy d_model"]:
    """So many dropped copies of one vector: each number is 0 with probability p, and else 1/(1-p) times itself."""
    with drawing(seed):
        many = torch.from_numpy(vector).expand(copies, -1)
        return functional.dropout(many, rate, training=True).numpy()


def sublayer_output(
    model: Transformer, task: Task, question: Question, place: int, *, said: Answer | None = None
) -> Float[np.ndarray, "d_model"]:
    """What dropout meets first in a block: the output of the first self-attention at one place, counted from 0."""
    stack = "encoder" if model.config.architecture == "encoder" else "decoder"
    site = f"{stack}.0.self_attention.out"
    seen = observe_batch(model, lay_out(task, question, said=said), remember=only(site))
    return seen[site][0, place].cpu().numpy().copy()
