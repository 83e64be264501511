"""Training as a generator of steps: `for step in train(model, config): ...`"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from transformer.analysis.accuracy import EVALUATION_STREAM, predictions
from transformer.analysis.ceilings import ceiling
from transformer.config import PROBE_SEQUENCES, RunConfig, TrainingConfig
from transformer.model import Transformer
from transformer.tasks import Batch, Task

TRAINING_STREAM = 0


class TrainingError(RuntimeError):
    """Training cannot go on; the message is one sentence that says why."""


@dataclass(frozen=True)
class Step:
    """One step of training."""

    step: int
    loss: float
    learning_rate: float
    gradient_norm: float
    seconds: float
    """Since the first step began."""
    accuracy: Float[np.ndarray, "target"] | None = None
    """By position, on fresh sequences of the greatest length; on the steps on which it was measured."""
    solved: bool = False


def weighted_loss(
    logits: Float[Tensor, "batch position d_vocab"],
    targets: Int[Tensor, "batch position"],
    weights: Float[Tensor, "batch position"],
) -> Float[Tensor, ""]:
    """Cross-entropy in nats, averaged over targets by their weights."""
    nats = functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
    return (nats * weights.flatten()).sum() / weights.sum()


def target_weights(batch: Batch, config: TrainingConfig) -> Float[np.ndarray, "batch position"]:
    """1 for the answer, `prompt_weight` for the question's own tokens, 0 for padding."""
    return (batch.is_target * np.where(batch.is_answer, 1.0, config.prompt_weight)).astype(np.float32)


def learning_rate(config: TrainingConfig, step: int) -> float:
    """A linear rise over the warm-up, then constant. Steps count from 1."""
    return config.learning_rate * min(1.0, step / max(1, config.warmup_steps))


def train(model: Transformer, config: RunConfig) -> Iterator[Step]:
    """Take steps until the task is solved or `max_steps` is reached, yielding each one.

    AdamW, a linear warm-up, gradient clipping. Solved means: the accuracy over the answers that the mask lets be known
    is at least `solved_at`, twice in a row on fresh sequences. The model is in training mode between steps and in
    evaluation mode when the generator is done. Raises TrainingError when the loss is no longer a number.
    """
    settings, task = config.training, config.build_task()
    device = next(model.parameters()).device
    rng = np.random.default_rng([settings.seed, TRAINING_STREAM])
    probe_rng = np.random.default_rng([settings.seed, EVALUATION_STREAM])
    knowable = (ceiling(config).accuracy == 1) & np.array([name[0] == "y" for name in task.target_names(task.length)])
    optimiser = torch.optim.AdamW(
        model.parameters(),
        lr=settings.learning_rate,
        betas=(0.9, 0.95),
        weight_decay=settings.weight_decay,
        fused=device.type in ("cpu", "cuda"),
    )
    model.train()
    in_a_row = 0
    began = time.perf_counter()
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(settings.seed)  # dropout draws from it
        for step in range(1, settings.max_steps + 1):
            rate = learning_rate(settings, step)
            for group in optimiser.param_groups:
                group["lr"] = rate
            loss, norm = _take_step(model, optimiser, task.batch(rng, settings.batch_size), settings)
            if not math.isfinite(loss):
                raise TrainingError(
                    f"the loss is no longer a number at step {step}, learning rate {rate:g}: try a smaller rate"
                )
            accuracy = None
            if step == 1 or step % settings.evaluate_every == 0 or step == settings.max_steps:
                accuracy = probe(model, task, probe_rng)
                enough = bool(knowable.any() and accuracy[knowable].mean() >= settings.solved_at)
                in_a_row = in_a_row + 1 if enough else 0
            yield Step(step, loss, rate, norm, time.perf_counter() - began, accuracy, solved=in_a_row == 2)
            if in_a_row == 2:
                break
    model.eval()


def probe(model: Transformer, task: Task, rng: np.random.Generator) -> Float[np.ndarray, "target"]:
    """Accuracy by position on a few hundred fresh sequences of the greatest length."""
    batch = task.batch(rng, PROBE_SEQUENCES, task.length)
    model.eval()
    right = predictions(model, batch) == batch.targets
    model.train()
    return right.mean(axis=0)


def _take_step(
    model: Transformer, optimiser: torch.optim.Optimizer, batch: Batch, settings: TrainingConfig
) -> tuple[float, float]:
    """Forward, backward, clip, update: the loss before the update, and the gradient's norm before clipping."""
    device = next(model.parameters()).device
    tokens, targets = (torch.from_numpy(array).to(device) for array in (batch.tokens, batch.targets))
    weights = torch.from_numpy(target_weights(batch, settings)).to(device)
    source = None if batch.source is None else torch.from_numpy(batch.source).to(device)
    loss = weighted_loss(model(tokens, source), targets, weights)
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip or math.inf)
    optimiser.step()
    return float(loss.detach()), float(norm)
