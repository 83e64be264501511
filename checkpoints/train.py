"""Train the shipped runs anew: `make checkpoints`. Same seeds, same settings, on the CPU, the same weights.

They train a little longer than a run in the dashboard does: until not one answer in 512 sequences is wrong, twice in a
row. Each keeps its whole film, but the weights of a few of its steps only, for the repository's sake. The three of the
bottleneck take as many steps as each other instead, and what is measured of them together is a file of its own.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import torch

from transformer.checkpoints import load, save
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.experiments.bottleneck_measure import compare
from transformer.experiments.bottleneck_runs import FOLDERS, plan
from transformer.foundation.atomic_files import write_whole
from transformer.text import shelf
from transformer.text.corpus import TextError
from transformer.training.device import resolve_device
from transformer.training.recording import details, develop, examine, record
from transformer.training.runs import Run

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


READER = "shakespeare"
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


def begin(name: str, config: RunConfig) -> Run:
    """An empty run in a folder of that name; what was there goes."""
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    return Run.create(folder, config, **details(resolve_device("cpu")))


def ship(name: str, config: RunConfig) -> None:
    """Train one of them anew, into its folder."""
    run = begin(name, config)
    for _ in record(run):
        pass
    develop(run)
    thin(run, KEPT.get(name, 3))
    print(f"{name}: {run.evaluation['verdict']} ({run.state.reason})")


def reader(text: str) -> RunConfig:
    """The one that reads Shakespeare: the paper's decoder, tied embeddings, four times through its works."""
    return RunConfig(
        task=TaskConfig(task="text", text=text, length=512, min_count=5),
        model=ModelConfig(n_layers=4, d_model=128, d_ff=512, positions="rotary", tied=True, dropout=0.1),
        training=TrainingConfig(
            device="cpu",
            max_steps=3600,
            batch_size=4,
            learning_rate=4e-3,
            warmup_steps=100,
            decay="linear",
            decay_after=100,
            weight_decay=0.1,
            evaluate_every=100,
        ),
    )


def ship_reader() -> None:
    """Train it anew, an hour on a core; nothing is done where the text is not here."""
    try:
        config = reader(shelf.resolve(READER))
    except TextError as error:
        print(f"{READER}: {error}")
        return
    run = begin(READER, config)
    for _ in record(run):
        pass
    bind(run)


def bind(run: Run) -> None:
    """Round the last weights to 16 bits, measure those, and let the others and most lines of the metrics go."""
    path = run.snapshot()
    model, config = load(path)
    save(path, model, config, half=True)
    examine(run, load(path)[0])
    (run.folder / "film.npz").unlink(missing_ok=True)
    develop(run)
    for other in run.snapshots().values():
        if other != path:
            other.unlink()
    lines = [line for line in run.metrics() if "accuracy" in line or line["step"] % 20 == 0]
    write_whole(run.folder / "metrics.jsonl", "".join(json.dumps(line) + "\n" for line in lines).encode())
    shutil.rmtree(run.folder / "tensorboard", ignore_errors=True)
    for name in ("lock", "resume.safetensors", "control.json"):
        (run.folder / name).unlink(missing_ok=True)
    print(f"{run.name}: {run.evaluation['verdict']} ({run.state.reason})")


def main() -> None:
    torch.set_num_threads(1)
    for name, config in SHIPPED.items():
        ship(name, config)
    for kind, config in plan().items():
        ship(FOLDERS[kind], config)
    ship_reader()
    compare([Run(HERE / name) for name in FOLDERS.values()]).save(HERE / "bottleneck.json")


if __name__ == "__main__":
    main()
