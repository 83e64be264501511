"""Settings that are worth starting from: each is solved on every seed that was tried (benchmarks/RESULTS.md).

But one: a GRU without attention has to get all of its sequence through one vector, and shows how far that goes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from transformer.config import TEXT, ModelConfig, RunConfig, TaskConfig, TrainingConfig


@dataclass(frozen=True)
class Preset:
    """A run to start from, by a name for menus."""

    name: str
    description: str
    config: RunConfig

    def matches(self, config: RunConfig) -> bool:
        """Is it this preset, on whatever seed and device?"""
        own = self.config.training
        training = replace(config.training, seed=own.seed, device=own.device, max_steps=own.max_steps)
        return replace(config, training=training) == self.config


ONE_LAYER = ModelConfig(n_layers=1, n_heads=1, d_ff=0, query_key_gain=0.3)
"""A single head and nothing else: it is trained within the blink of a click."""
QUICK = TrainingConfig(learning_rate=1e-2, batch_size=16)
_ALIGNED = TaskConfig(task="reverse-aligned")


def _gru(attention: str) -> RunConfig:
    model = ModelConfig(architecture="gru", n_layers=1, attention=attention)
    training = TrainingConfig(batch_size=128)
    return RunConfig(task=TaskConfig(task="reverse-translate"), model=model, training=training)


PRESETS = (
    Preset("reverse", "say the sequence backwards, after it", RunConfig()),
    Preset("reverse, one head", "the smallest model that can", RunConfig(model=ONE_LAYER, training=QUICK)),
    Preset(
        "reverse, sinusoidal", "with the paper's own positions", RunConfig(model=ModelConfig(positions="sinusoidal"))
    ),
    Preset("reverse, length 16", "twice as long", RunConfig(task=TaskConfig(length=16))),
    Preset("reverse, length 32", "four times as long", RunConfig(task=TaskConfig(length=32))),
    Preset("reverse in place", "an encoder that sees everything", RunConfig(task=_ALIGNED)),
    Preset(
        "reverse in place, causal",
        "the second half can be known, the first cannot",
        RunConfig(task=_ALIGNED, model=ModelConfig(architecture="decoder")),
    ),
    Preset(
        "reverse as translation",
        "an encoder reads, a decoder writes",
        RunConfig(task=TaskConfig(task="reverse-translate")),
    ),
    Preset("GRU, one vector", "all of the sequence through the last state", _gru("none")),
    Preset("GRU with attention", "the decoder looks back at every state", _gru("scaled-dot")),
    Preset("copy", "say the sequence again", RunConfig(task=TaskConfig(task="copy"))),
)


# --- of a text

READING: dict[str, Any] = {"warmup_steps": 20, "decay": "linear", "decay_after": 20, "evaluate_every": 20}
"""How a text is learned wherever nobody says otherwise: the rate rises for a moment, and then falls to nothing."""
MANY_TIMES: dict[str, Any] = {
    "warmup_steps": 100,
    "decay": "linear",
    "decay_after": 100,
    "evaluate_every": 100,
    "weight_decay": 0.1,
}
"""How it is learned where it is read many times, lest it is learned by heart."""
DROPOUT = 0.1
"""The same, of the model."""


@dataclass(frozen=True)
class Reader:
    """A run to start from that reads Shakespeare, who may still have to be fetched: so it is no whole config yet."""

    name: str
    description: str
    task: TaskConfig
    model: ModelConfig
    training: TrainingConfig

    def matches(self, config: RunConfig) -> bool:
        """Is it this preset, on Shakespeare, on whatever seed and device?"""
        own = self.training
        return (
            config.task.text.rpartition("-")[0] == "shakespeare"
            and replace(config.task, text="") == self.task
            and config.model == self.model
            and replace(config.training, seed=own.seed, device=own.device) == own
        )


def _reader(name: str, description: str, split: str, layers: int, steps: int) -> Reader:
    return Reader(
        name,
        description,
        TaskConfig(task=TEXT, split=split, min_count=10, length=128),
        ModelConfig(
            architecture="decoder", n_layers=layers, d_model=128, d_ff=512, positions="rotary", mask="causal", tied=True
        ),
        TrainingConfig(max_steps=steps, batch_size=8, learning_rate=4e-3, **READING),
    )


READERS = (
    _reader("Shakespeare, words", "a word after a word", "words", 2, 400),
    _reader("Shakespeare, characters", "a letter after a letter", "characters", 3, 900),
)
"""Each writes readable verse after some 90 seconds of one core: at a held-out perplexity of 33, and of 5.8 a letter."""

GPU_READERS = (
    Reader(
        "Shakespeare, on a GPU",
        "the shape of the one that is here, sixteen windows at once, in 16 bits",
        TaskConfig(task=TEXT, split="words", length=512),
        ModelConfig(
            architecture="decoder",
            n_layers=4,
            d_model=128,
            d_ff=512,
            positions="rotary",
            mask="causal",
            tied=True,
            dropout=DROPOUT,
        ),
        TrainingConfig(max_steps=2400, batch_size=16, learning_rate=6e-3, precision="bfloat16", **MANY_TIMES),
    ),
)
"""Offered where there is a GPU: what takes a processor an hour takes it some 15 seconds (benchmarks/GPU.md)."""
