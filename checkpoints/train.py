"""Train the shipped runs anew: `make checkpoints`. Same seeds, same settings, on the CPU, the same weights.

They train a little longer than a run in the dashboard does: until not one answer in 512 sequences is wrong, twice in a
row. Each keeps its whole film, but the weights of a few of its steps only, for the repository's sake. The three of the
bottleneck take as many steps as each other instead, and what is measured of them together is a file of its own. Of the
population, 320 trainings, no weights are kept: a member is trained again where it is looked at.

`python checkpoints/train.py --thin` trains nothing: it makes the runs that are there as small as the shipped ones.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

from transformer.analysis.film.film import Film, thinned
from transformer.checkpoints import load, save, save_initial, weights_hash
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.experiments.bottleneck_measure import compare
from transformer.experiments.bottleneck_runs import FOLDERS, plan
from transformer.experiments.populations.carry_out import carry_out, side_by_side
from transformer.experiments.populations.plan import planned
from transformer.experiments.populations.scenes import SCENES, packed, scenes
from transformer.experiments.populations.table import Population, write_table
from transformer.foundation.atomic_files import write_whole
from transformer.model import build
from transformer.text import shelf
from transformer.text.corpus import TextError
from transformer.training.device import resolve_device
from transformer.training.recording import details, develop, examine, record
from transformer.training.runs import Run

HERE = Path(__file__).resolve().parent
TRAINING = TrainingConfig(seed=0, device="cpu", solved_at=1.0, evaluate_every=10)

SHIPPED = {
    "reverse": RunConfig(training=TRAINING),
    "reverse-any": RunConfig(
        task=TaskConfig(min_length=1), training=replace(TRAINING, learning_rate=2e-3, batch_size=128)
    ),
    "reverse-sinusoidal": RunConfig(model=ModelConfig(positions="sinusoidal"), training=TRAINING),
    "reverse-aligned": RunConfig(task=TaskConfig(task="reverse-aligned"), training=TRAINING),
    "reverse-aligned-causal": RunConfig(
        task=TaskConfig(task="reverse-aligned"), model=ModelConfig(architecture="decoder"), training=TRAINING
    ),
    "reverse-translate": RunConfig(task=TaskConfig(task="reverse-translate"), training=TRAINING),
}


READER = "shakespeare"
SINGLE = ("loss", "gradient_norm", "held_out_loss")
"""What float32 is measured in."""
BETWEEN = {"reverse": (13, 20)}
"""The steps between the first and the last whose weights are kept: models that have learned a part."""
LONG = 400
"""Steps beyond which the metrics keep one line in EVERY, those with an accuracy, and the last TIMED."""
EVERY = 25
FULL = 200
"""Of the reader the accuracy is kept every so many steps."""
TIMED = 20
"""The last steps of which it is kept how long each took: the dashboard says their median."""


POPULATION, SEEDS, ENCODINGS, MOST_STEPS = (
    "encodings",
    "0-63",
    ("learned", "sinusoidal", "rotary", "alibi", "none"),
    600,
)
"""The default reversal from many seeds with each of these."""
FRAMES = 8
"""Of the working heads' pictures, so many are shipped."""
COARSE, COARSE_ARRAYS, BITS = ("bottleneck-transformer", "shakespeare"), ("/scores", "/mean"), 16
"""The largest examples keep so many significant bits of their scores and mean patterns, of the 24 of float32: each
number is right to 16 millionths of itself."""
PICTURES = {"bottleneck-transformer": 10, "shakespeare": 8}
"""Of the frames of these films, so many keep their patterns."""
ROUNDED = (
    "reverse-translate",
    "reverse-sinusoidal",
    "reverse-aligned",
    "reverse-aligned-causal",
    *FOLDERS.values(),
)
"""Whose last weights are rounded to 16 bits as well, and measured as they are then, for room."""


def thin(run: Run) -> None:
    """Leave out of a run what no page reads.

    The first weights are those that the seed draws, so their file holds no numbers. Those of the last step stay, and
    those `BETWEEN`, rounded to 16 bits. Losses and norms are float32, and are written with the digits that such a
    number has.
    """
    snapshots, config = run.snapshots(), run.config
    for step, path in snapshots.items():
        if step in BETWEEN.get(run.name, ()):
            save(path, *load(path), half=True)
        elif step not in (0, max(snapshots)):
            path.unlink()
    first = snapshots.get(0)
    if first is not None and weights_hash(load(first)[0]) == weights_hash(build(config)):
        save_initial(first, config)
    lines = run.metrics()
    early, late = [*map(untimed, lines[:-TIMED])], lines[-TIMED:]
    if run.state.step > LONG:
        early = [line for line in early if line["step"] % EVERY == 0 or line["step"] == 1 or "accuracy" in line]
    lines = [*early, *late]
    if run.name == READER:
        lines = [line if line["step"] % FULL in (0, 1) else without_accuracy(line) for line in lines]
    write_metrics(run, lines)
    evaluation = run.folder / "evaluation.json"
    if evaluation.is_file():
        write_whole(evaluation, json.dumps(json.loads(evaluation.read_bytes()), separators=(",", ":")).encode())
    shutil.rmtree(run.folder / "tensorboard", ignore_errors=True)
    for name in ("lock", "resume.safetensors", "control.json"):
        (run.folder / name).unlink(missing_ok=True)
    if run.name in PICTURES and run.film is not None:
        run.set_film(with_pictures(run.film, PICTURES[run.name]).pack())
    for path in run.folder.glob("*.npz"):
        squeeze(path, coarse=run.name in COARSE and path.stem == "example")


def with_pictures(film: Film, most: int) -> Film:
    """The film with the patterns of so many of its frames at the most; what was counted stays of every frame."""
    kept = thinned(len(film.pictured), most)
    readings = {site: replace(each, levels=each.levels[kept]) for site, each in film.readings.items()}
    return replace(film, pictured=film.pictured[kept], readings=readings)


def untimed(line: dict) -> dict:
    """A line of the metrics without the time of its own step; `seconds` has the sum of all."""
    return {name: value for name, value in line.items() if name != "milliseconds"}


def without_accuracy(line: dict) -> dict:
    """A line of the metrics without the accuracy, a number for each of 512 positions; its losses stay."""
    return {name: value for name, value in line.items() if name not in ("accuracy", "probed")}


def write_metrics(run: Run, lines: Iterable[dict]) -> None:
    """Write these lines in place of all, in as few characters as tell the same numbers."""
    text = "".join(json.dumps(short(line), separators=(",", ":")) + "\n" for line in lines)
    write_whole(run.folder / "metrics.jsonl", text.encode())


def short(line: dict) -> dict:
    """A line of the metrics with its float32 numbers in the digits of one: 2.503782, not 2.503782033920288."""
    numbers = {name: float(str(np.float32(line[name]))) for name in SINGLE if name in line}
    return line | numbers


def squeeze(path: Path, *, coarse: bool = False) -> None:
    """Pack the arrays of a file as small as the format can; of a `coarse` one the last bits are rounded away."""
    with np.load(path, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.save(content, rounded(array) if coarse and name.endswith(COARSE_ARRAYS) else array)
            file.writestr(zipfile.ZipInfo(f"{name}.npy"), content.getvalue(), zipfile.ZIP_DEFLATED, compresslevel=9)
    path.write_bytes(packed.getvalue())


def rounded(numbers: np.ndarray) -> np.ndarray:
    """Float32 numbers to BITS significant bits each; 0, 1, infinity and nan stay what they are."""
    away = 24 - BITS
    kept = (np.atleast_1d(numbers).view(np.uint32) + (1 << (away - 1))) >> away << away
    return kept.view(np.float32).reshape(numbers.shape)


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
    if name in ROUNDED:
        round_last(run)
    develop(run)
    thin(run)
    print(f"{name}: {run.evaluation['verdict']} ({run.state.reason})")


def round_last(run: Run) -> None:
    """Round the last weights to 16 bits, and measure those; a film is yet to be taken."""
    path = run.snapshot()
    save(path, *load(path), half=True)
    examine(run, load(path)[0])
    (run.folder / "film.npz").unlink(missing_ok=True)


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
    """Round the last weights to 16 bits, and let the others and most lines of the metrics go."""
    round_last(run)
    develop(run)
    for other in run.snapshots().values():
        if other != run.snapshot():
            other.unlink()
    write_metrics(run, [line for line in run.metrics() if "accuracy" in line or line["step"] % 20 == 0])
    thin(run)
    print(f"{run.name}: {run.evaluation['verdict']} ({run.state.reason})")


def ship_population() -> None:
    """The default reversal with every encoding from 64 seeds: what became of each, and no weights."""
    with tempfile.TemporaryDirectory(prefix="attention-lab-") as place:
        whole = Path(place) / POPULATION
        sweep = planned(SEEDS, {"positions": ",".join(ENCODINGS), "max_steps": str(MOST_STEPS), "device": "cpu"})
        for found in carry_out(sweep, whole, partial(side_by_side, processes=os.cpu_count() or 1)):
            print(f"{POPULATION}: {len(found.rows)} of {found.planned}")
        bare(whole)


def bare(whole: Path) -> None:
    """Ship a population that was trained in another folder: its plan, its table, and its working heads' scenes."""
    found, folder = Population.load(whole), HERE / POPULATION
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    found.sweep.save(folder)
    write_table(folder, found.sweep, found.rows.values())
    seen = [scenes(whole, found, settings) for settings in found.sweep.settings()]
    write_whole(folder / SCENES, packed([each for each in seen if each is not None], FRAMES))
    squeeze(folder / SCENES)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the shipped runs anew.")
    parser.add_argument("--thin", action="store_true", help="train nothing: leave out of the runs what no page reads")
    torch.set_num_threads(1)
    if parser.parse_args().thin:
        for name in (*SHIPPED, *FOLDERS.values(), READER):
            thin(Run(HERE / name))
        return
    for name, config in SHIPPED.items():
        ship(name, config)
    for kind, config in plan().items():
        ship(FOLDERS[kind], config)
    ship_reader()
    ship_population()
    compare([Run(HERE / name) for name in FOLDERS.values()]).save(HERE / "bottleneck.json")


if __name__ == "__main__":
    main()
