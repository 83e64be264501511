"""Train the shipped runs anew: `make checkpoints`. Same seeds, same settings, on the CPU, the same weights.

They train a little longer than a run in the dashboard does: until not one answer in 512 sequences is wrong, twice in a
row. Each keeps its whole film, but the weights of a few of its steps only, for the repository's sake. The three of the
bottleneck take as many steps as each other instead, and what is measured of them together is a file of its own.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import torch

from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.training.bottleneck import compare
from transformer.training.device import resolve_device
from transformer.training.recording import details, develop, record
from transformer.training.runs import Run
from transformer.training.trio import FOLDERS, plan

HERE = Path(__file__).resolve().parent
TRAINING = TrainingConfig(seed=0, device="cpu", solved_at=1.0, evaluate_every=10)

SHIPPED = {
    "reverse": RunConfig(training=TRAINING),
    "reverse-sinusoidal": RunConfig(model=ModelConfig(positions="sinusoidal"), training=TRAINING),
    "reverse-aligned": RunConfig(task=TaskConfig(task="reverse-aligned"), training=TRAINING),
    "reverse-aligned-causal": RunConfig(
        task=TaskConfig(task="reverse-aligned"), model=ModelConfig(architecture="decoder"), training=TRAINING
    ),
    "reverse-translate": RunConfig(task=TaskConfig(task="reverse-translate"), training=TRAINING),
}


KEPT = {"reverse": 7, "bottleneck-transformer": 2}
"""How many snapshots a run keeps, where it is not three."""


def thin(run: Run, most: int) -> None:
    """Keep the first snapshot, the last, and those between that lie nearest to even parts of the way; no more files."""
    steps = list(run.snapshots())
    wanted = {min(steps, key=lambda step: abs(step - steps[-1] * i / (most - 1))) for i in range(most)}
    for step, path in run.snapshots().items():
        if step not in wanted:
            path.unlink()
    shutil.rmtree(run.folder / "tensorboard", ignore_errors=True)
    (run.folder / "lock").unlink(missing_ok=True)


def ship(name: str, config: RunConfig) -> None:
    """Train one of them anew, into its folder."""
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    run = Run.create(folder, config, **details(resolve_device("cpu")))
    for _ in record(run):
        pass
    develop(run)
    thin(run, KEPT.get(name, 3))
    print(f"{name}: {run.evaluation['verdict']} ({run.state.reason})")


def main() -> None:
    torch.set_num_threads(1)
    for name, config in SHIPPED.items():
        ship(name, config)
    for kind, config in plan().items():
        ship(FOLDERS[kind], config)
    compare([Run(HERE / name) for name in FOLDERS.values()]).save(HERE / "bottleneck.json")


if __name__ == "__main__":
    main()
