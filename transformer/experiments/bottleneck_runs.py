"""The three runs of the bottleneck: a GRU, a GRU with attention and a transformer of one size. No PyTorch here.

Each is a run like any other; `transformer.experiments.bottleneck_measure` measures the three together.
"""

from __future__ import annotations

from dataclasses import replace

from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig

STEPS = 3000
TASK = TaskConfig(task="reverse-translate", min_length=4, length=32)
MODELS = {
    "gru": ModelConfig(architecture="gru", attention="none", n_layers=1, d_model=72),
    "gru-attention": ModelConfig(architecture="gru", attention="dot", n_layers=1, d_model=64),
    "transformer": ModelConfig(architecture="encoder-decoder", n_layers=1, d_model=48, d_ff=160),
}
"""Some 64,000 parameters each; a transformer needs a feed-forward layer to tell places from the end."""
FOLDERS = {
    "gru": "bottleneck-gru",
    "gru-attention": "bottleneck-gru-attention",
    "transformer": "bottleneck-transformer",
}
"""The shipped ones."""


def plan(steps: int = STEPS, seed: int = 0) -> dict[str, RunConfig]:
    """The three runs: the same sequences and as many steps for each, never stopped early; each at its own rate.

    The best of those that were tried: 0.002, 0.005 and 0.01 for the GRU; 0.005 and 0.01, with scaled dots, plain dots
    and additive scores, for the one with attention; 0.005 without feed-forward and 0.003 with, for the transformer.
    """
    shared = TrainingConfig(
        seed=seed, device="cpu", max_steps=steps, batch_size=64, evaluate_every=max(1, steps // 60), solved_at=2.0
    )
    rates = {
        "gru": replace(shared, learning_rate=1e-2, decay_after=max(1, steps // 6)),
        "gru-attention": replace(shared, learning_rate=5e-3, decay_after=max(1, steps // 4)),
        "transformer": replace(shared, learning_rate=3e-3, decay_after=max(1, steps // 8), warmup_steps=steps // 30),
    }
    return {kind: RunConfig(task=TASK, model=MODELS[kind], training=rates[kind]) for kind in MODELS}
