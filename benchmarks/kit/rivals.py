"""The default model from others' parts: same task, shapes and optimiser, for benchmarks/training.py."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn
from x_transformers import Decoder, TransformerWrapper

from transformer.config import PROBE_SEQUENCES, RunConfig, TrainingConfig
from transformer.model import build
from transformer.network import Network
from transformer.training.loop import EVALUATION_STREAM, TRAINING_STREAM, learning_rate, probe
from transformer.training.stepping import EagerStep, Inputs

CONVENTIONAL = TrainingConfig(device="cpu", batch_size=64, learning_rate=3e-3, warmup_steps=50)
"""A recipe as tutorials have it; the loss is on the answer, as ours is."""


class TorchEncoder(Network):
    """nn.TransformerEncoder, pre-norm, causal, between embeddings drawn from N(0, 1) and a linear layer."""

    def __init__(self, config: RunConfig) -> None:
        task, model = config.build_task(), config.model
        super().__init__(model, d_vocab=task.d_vocab, n_ctx=task.n_ctx)
        self.embedding = nn.Embedding(task.d_vocab, model.d_model)
        self.positions = nn.Parameter(torch.randn(task.n_ctx, model.d_model))
        layer = nn.TransformerEncoderLayer(
            model.d_model, model.n_heads, model.d_ff, dropout=0.0, batch_first=True, norm_first=True
        )
        self.stack = nn.TransformerEncoder(
            layer, model.n_layers, nn.LayerNorm(model.d_model), enable_nested_tensor=False
        )
        self.unembedding = nn.Linear(model.d_model, task.d_vocab)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(task.n_ctx))

    def forward(self, tokens: Tensor, source: None = None) -> Tensor:
        embedded = self.embedding(tokens) + self.positions[: tokens.shape[1]]
        return self.unembedding(self.stack(embedded, mask=self.mask, is_causal=True))


class XTransformer(Network):
    """x-transformers' Decoder with learned positions, as it comes."""

    def __init__(self, config: RunConfig) -> None:
        task, model = config.build_task(), config.model
        super().__init__(model, d_vocab=task.d_vocab, n_ctx=task.n_ctx)
        layers = Decoder(
            dim=model.d_model,
            depth=model.n_layers,
            heads=model.n_heads,
            attn_dim_head=model.d_head,
            ff_mult=model.d_ff // model.d_model,
        )
        self.whole = TransformerWrapper(num_tokens=task.d_vocab, max_seq_len=task.n_ctx, attn_layers=layers)

    def forward(self, tokens: Tensor, source: None = None) -> Tensor:
        return self.whole(tokens)


MAKERS: dict[str, Callable[[RunConfig], Network]] = {
    "ours": build,
    "torch.nn.TransformerEncoder": TorchEncoder,
    "x-transformers": XTransformer,
}


def make(name: str, config: RunConfig) -> Network:
    """A model by its name, its weights drawn with the run's seed."""
    torch.manual_seed(config.training.seed)
    return MAKERS[name](config)


def steps_of(model: nn.Module, config: RunConfig) -> Iterator[int]:
    """The same training for every model: batches, loss, clipping and AdamW as in `transformer.training.loop`."""
    task, settings = config.build_task(), config.training
    device = next(model.parameters()).device
    rng = np.random.default_rng([settings.seed, TRAINING_STREAM])
    optimiser = torch.optim.AdamW(
        model.parameters(), lr=settings.learning_rate, betas=(0.9, 0.95), weight_decay=0.0, fused=True
    )
    take = EagerStep(model, optimiser, settings)
    for step in range(1, settings.max_steps + 1):
        for group in optimiser.param_groups:
            group["lr"] = learning_rate(settings, step)
        take(Inputs.of(task.batch(rng, settings.batch_size), settings, device))
        yield step


@dataclass(frozen=True)
class Solved:
    """How long a model took, measurements left out; None when it was not solved."""

    steps: int | None
    seconds: float


def until_solved(name: str, config: RunConfig, most: int) -> Solved:
    """Train until 99.9 % of the answer is right on 512 fresh sequences, twice in a row, looking every five steps."""
    config = replace(config, training=replace(config.training, max_steps=most))
    model, task = make(name, config), config.build_task()
    probe_rng = np.random.default_rng([config.training.seed, EVALUATION_STREAM])
    answer = slice(task.length, None)
    row, seconds = 0, 0.0
    steps = steps_of(model, config)
    while True:
        began = time.perf_counter()
        step = next(steps, None)
        seconds += time.perf_counter() - began
        if step is None:
            return Solved(None, seconds)
        if step % 5 == 0:
            fresh = task.fresh(probe_rng, PROBE_SEQUENCES, task.length)
            accuracy, _ = probe(model, fresh, lambda few: True)
            row = row + 1 if accuracy[answer].mean() >= config.training.solved_at else 0
            if row == 2:
                return Solved(step, seconds)
