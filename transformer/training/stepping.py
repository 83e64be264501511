"""One step of training: forward, backward, clip, update. Eagerly, or replayed from a CUDA graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn
from torch.nn import functional

from transformer.config import TrainingConfig
from transformer.foundation.checks import reason
from transformer.tasks import Batch
from transformer.training.team import ALONE, Team

MOMENTS = ("exp_avg", "exp_avg_sq", "step")
"""What AdamW keeps of each weight, by PyTorch's names."""
CAPTURED = "captured in a CUDA graph"
UNCAPTURED = "eager: the step could not be captured"
"""How it begins to say that a capture failed. It may leave CUDA in this process unable to capture another one."""
WARM_UP = 1
"""Times on a stream of its own before a capture, as PyTorch's notes on CUDA graphs ask for: the optimiser makes its
moments then, and libraries their workspaces. Of a training they are its first steps."""


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
    """What a step reads, on the device: this process's share of the batch. Of several models each has a batch."""

    tokens: Int[Tensor, "*member batch position"]
    targets: Int[Tensor, "*member batch position"]
    weights: Float[Tensor, "*member batch position"]
    total: Float[Tensor, "*member"]
    """The weights of everybody's shares, by the number of processes: their gradients are averaged."""
    source: Int[Tensor, "*member batch source"] | None

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


Computation = Callable[[Inputs], Tensor]
"""What a GPU is asked for with some inputs: a step's loss and its gradient's norm, say."""


class AdamW:
    """Adam with decoupled weight decay, of all weights in one operation (Loshchilov and Hutter, 2019, algorithm 2).

    PyTorch's own kernel, which `torch.optim.AdamW(fused=True)` launches, so the numbers are the same to the bit. That
    class imports PyTorch's compiler with its first step, which takes longer than many a training here.
    """

    def __init__(self, weights: Iterable[Tensor], config: TrainingConfig) -> None:
        self.weights, self.decay = list(weights), config.weight_decay
        self.rate: float | Float[Tensor, ""] = config.learning_rate
        """A graph reads it from memory, where it is a tensor."""
        zeros = [torch.zeros_like(weight, memory_format=torch.preserve_format) for weight in self.weights]
        self.moments = {
            "exp_avg": zeros,
            "exp_avg_sq": [torch.zeros_like(each) for each in zeros],
            "step": [torch.zeros((), device=weight.device) for weight in self.weights],
        }
        """What it keeps of each weight: the running means of its gradient and of its square, and the steps so far."""

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        for weight in self.weights:
            weight.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Change each weight that has a gradient."""
        learned = {number: weight.grad for number, weight in enumerate(self.weights) if weight.grad is not None}
        means, squares, steps = ([self.moments[name][number] for number in learned] for name in MOMENTS)
        torch._foreach_add_(steps, 1)
        torch._fused_adamw_(
            [self.weights[number] for number in learned],
            [*learned.values()],
            means,
            squares,
            [],
            steps,
            lr=self.rate,
            beta1=0.9,
            beta2=0.95,
            weight_decay=self.decay,
            eps=1e-8,
            amsgrad=False,
            maximize=False,
        )


class Optimiser(Protocol):
    """What a step needs of an optimiser."""

    def zero_grad(self, set_to_none: bool = True) -> None: ...

    def step(self) -> object: ...


class EagerStep:
    """Each operation is launched as it comes."""

    def __init__(self, network: nn.Module, optimiser: Optimiser, config: TrainingConfig) -> None:
        self.network, self.optimiser, self.config = network, optimiser, config

    def __call__(self, inputs: Inputs) -> Float[Tensor, "2"]:
        """The loss before the update, and the gradient's norm before clipping."""
        half = self.config.precision == "bfloat16"
        with torch.autocast(inputs.tokens.device.type, torch.bfloat16, enabled=half):
            logits = self.network(inputs.tokens, inputs.source)
        loss = weighted_loss(logits.float(), inputs.targets, inputs.weights, inputs.total)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.network.parameters(), self.config.clip or math.inf)
        self.optimiser.step()
        return torch.stack([loss.detach(), norm])


class CudaGraph:
    """A computation as one CUDA graph: launched at once, where a toy's operations are shorter than their launches.

    The first times it is computed eagerly, on the stream on which the next one is captured; nothing is done while it is
    captured. All that it reads lies in two tensors of the GPU, the optimiser's rate included. Nobody waits for the GPU
    here.
    """

    def __init__(self, compute: Computation, device: torch.device, optimiser: AdamW | None = None) -> None:
        self.compute, self.device, self.optimiser = compute, device, optimiser
        self.stream = torch.cuda.Stream(device)
        self.times = 0
        self.failure = ""
        """Why it could not be captured, where that was tried: it is computed eagerly then."""
        self.graph: torch.cuda.CUDAGraph | None = None
        self._places: tuple[Tensor, Tensor] | None = None

    def __call__(self, inputs: Inputs, rate: float = 0.0) -> Shaped[Tensor, "..."]:
        """What `compute` gives, on the GPU, of inputs in main memory, which always have the same shapes.

        Raises RuntimeError where it can be computed in neither way.
        """
        here = torch.cuda.current_stream(self.device)
        self.stream.wait_stream(here)
        with torch.cuda.device(self.device), torch.cuda.stream(self.stream):
            whole, real = _pack(inputs, rate)
            if self._places is None:
                self._places = torch.empty_like(whole, device=self.device), torch.empty_like(real, device=self.device)
                self._inputs, where = _unpack(inputs, *self._places)
                if self.optimiser is not None:
                    self.optimiser.rate = where
            for place, new in zip(self._places, (whole, real), strict=True):
                place.copy_(new.pin_memory(), non_blocking=True)
            results = self._launch()
        here.wait_stream(self.stream)
        return results

    def _launch(self) -> Shaped[Tensor, "..."]:
        if self.graph is None and self.times >= WARM_UP and not self.failure:
            self._capture()
        self.times += 1
        if self.graph is None:
            return self.compute(self._inputs)
        self.graph.replay()
        return self._results.clone()

    def _capture(self) -> None:
        graph = torch.cuda.CUDAGraph()
        if self.optimiser is not None:
            self.optimiser.zero_grad(set_to_none=True)
        try:
            # Of this thread alone: another one may be copying the weights of an earlier step, to write them down.
            with torch.cuda.graph(graph, stream=self.stream, capture_error_mode="thread_local"):
                self._results = self.compute(self._inputs)
        except RuntimeError as error:
            self.failure = reason(error)
        else:
            self.graph = graph


def _pack(inputs: Inputs, rate: float) -> tuple[Int[Tensor, "whole"], Float[Tensor, "real"]]:
    """All whole numbers that a step reads, and all others, the rate last."""
    whole = [each.flatten() for each in (inputs.tokens, inputs.targets, inputs.source) if each is not None]
    return torch.cat(whole), torch.cat([inputs.weights.flatten(), inputs.total.flatten(), torch.tensor([rate])])


def _unpack(like: Inputs, whole: Int[Tensor, "whole"], real: Float[Tensor, "real"]) -> tuple[Inputs, Float[Tensor, ""]]:
    """Inputs that are views of what `_pack` made of inputs of the same shapes, and the rate."""
    rest, weights = 2 * like.tokens.numel(), like.weights.numel()
    tokens, targets = (part.view(like.tokens.shape) for part in whole[:rest].chunk(2))
    source = None if like.source is None else whole[rest:].view(like.source.shape)
    total = real[weights:-1].view(like.total.shape)
    return Inputs(tokens, targets, real[:weights].view(like.weights.shape), total, source), real[-1]


def why_eager(device: torch.device, team: Team = ALONE) -> str:
    """Why the steps of a run cannot be captured in a CUDA graph; empty when they can."""
    if device.type != "cuda":
        return f"eager: a {device.type.upper()} has no CUDA graphs"
    return "eager: several processes share each step" if team.size > 1 else ""
