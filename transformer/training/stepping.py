"""One step of training: forward, backward, clip, update. Eagerly, or replayed from a CUDA graph."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from transformer.config import RunConfig, TrainingConfig
from transformer.tasks import Batch
from transformer.training.team import ALONE, Team

CAPTURED = "captured in a CUDA graph"
UNCAPTURED = "eager: the step could not be captured"
"""How it begins to say that a capture failed. It may leave CUDA in this process unable to capture another one."""
WARM_UP = 3
"""Steps on a side stream before a capture, as PyTorch's notes on CUDA graphs ask for."""


def weighted_loss(
    logits: Float[Tensor, "batch position d_vocab"],
    targets: Int[Tensor, "batch position"],
    weights: Float[Tensor, "batch position"],
    total: Float[Tensor, ""] | None = None,
) -> Float[Tensor, ""]:
    """Cross-entropy in nats, averaged over targets by their weights; `total` is their sum when there are more."""
    nats = functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
    return (nats * weights.flatten()).sum() / (weights.sum() if total is None else total)


def target_weights(batch: Batch, config: TrainingConfig) -> Float[np.ndarray, "batch position"]:
    """1 for the answer, `prompt_weight` for the question's own tokens, 0 for padding."""
    return (batch.is_target * np.where(batch.is_answer, 1.0, config.prompt_weight)).astype(np.float32)


@dataclass(frozen=True)
class Inputs:
    """What a step reads, on the device: this process's share of the batch."""

    tokens: Int[Tensor, "batch position"]
    targets: Int[Tensor, "batch position"]
    weights: Float[Tensor, "batch position"]
    total: Float[Tensor, ""]
    """The weights of everybody's shares, by the number of processes: their gradients are averaged."""
    source: Int[Tensor, "batch source"] | None

    @classmethod
    def of(cls, batch: Batch, config: TrainingConfig, device: torch.device, team: Team = ALONE) -> Inputs:
        weights = torch.from_numpy(target_weights(batch, config))
        part = team.share(len(batch.tokens))
        return cls(
            tokens=torch.from_numpy(batch.tokens[part]).to(device),
            targets=torch.from_numpy(batch.targets[part]).to(device),
            weights=weights[part].to(device),
            total=(weights.sum() / team.size).to(device),
            source=None if batch.source is None else torch.from_numpy(batch.source[part]).to(device),
        )


class EagerStep:
    """Each operation is launched as it comes."""

    def __init__(self, network: nn.Module, optimiser: torch.optim.Optimizer, config: TrainingConfig) -> None:
        self.network, self.optimiser, self.config = network, optimiser, config

    def __call__(self, inputs: Inputs) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
        """The loss before the update, and the gradient's norm before clipping."""
        half = self.config.precision == "bfloat16"
        with torch.autocast(inputs.tokens.device.type, torch.bfloat16, enabled=half):
            logits = self.network(inputs.tokens, inputs.source)
        loss = weighted_loss(logits.float(), inputs.targets, inputs.weights, inputs.total)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.network.parameters(), self.config.clip or math.inf)
        self.optimiser.step()
        return loss.detach(), norm


class CapturedStep:
    """The whole step as one CUDA graph: launched at once, where a toy's operations are shorter than their launches.

    The optimiser must be capturable. Raises RuntimeError when the step cannot be captured; the weights and the
    optimiser are then as they were.
    """

    def __init__(self, eager: EagerStep, inputs: Inputs) -> None:
        self.inputs = inputs
        before = _State(eager)
        try:
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(WARM_UP):
                    eager(inputs)
            torch.cuda.current_stream().wait_stream(side)
            before.put_back()
            eager.optimiser.zero_grad(set_to_none=True)
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.results = eager(inputs)
        finally:
            before.put_back()

    def __call__(self, inputs: Inputs) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
        for place, new in zip(_tensors(self.inputs), _tensors(inputs), strict=True):
            place.copy_(new, non_blocking=True)
        self.graph.replay()
        return self.results


class _State:
    """The weights and the optimiser's moments, to be put back in place: a graph keeps their addresses."""

    def __init__(self, step: EagerStep) -> None:
        self.step = step
        self.weights = [weight.detach().clone() for weight in step.network.parameters()]
        self.moments = {
            weight: {name: value.clone() for name, value in state.items()}
            for weight, state in step.optimiser.state.items()
        }

    @torch.no_grad()
    def put_back(self) -> None:
        for place, kept in zip(self.step.network.parameters(), self.weights, strict=True):
            place.copy_(kept)
        for weight, state in self.step.optimiser.state.items():
            for name, moment in state.items():
                before = self.moments.get(weight, {}).get(name)
                moment.zero_() if before is None else moment.copy_(before)


def why_eager(config: RunConfig, device: torch.device, team: Team = ALONE) -> str:
    """Why the steps of a run cannot be captured in a CUDA graph; empty when they can."""
    if device.type != "cuda":
        return f"eager: a {device.type.upper()} has no CUDA graphs"
    if config.task.min_length not in (None, config.task.length):
        return "eager: a CUDA graph needs batches of one shape, and the lengths vary"
    if config.model.recurrent:
        return "eager: a recurrent network takes one token after the other"
    if config.model.dropout > 0:
        return "eager: dropout draws anew at each step"
    return "eager: several processes share each step" if team.size > 1 else ""


def _tensors(inputs: Inputs) -> list[Tensor]:
    return [value for value in (getattr(inputs, name) for name in inputs.__dataclass_fields__) if value is not None]
