"""What a GPU gives: `python benchmarks/gpu.py [--save] [--part NAME …] [--nanogpt FOLDER]`.

A step of the default reversal in each way in which it can be taken, in turns within the same minute. A click on a warm
worker, and the command line, until all is written. A text read at several sizes of batch, and how soon the preset for
a GPU comes to a perplexity. Populations, whose members are as many as is said. nanoGPT's own training of characters of
Shakespeare, as its README gives it (a checkout of it is named; nothing of it is here), beside ours of the same shape on
the same text. Without a GPU it says so. --save writes GPU.md. --quick takes the smallest sizes.
"""

from __future__ import annotations

import math
import os
import pickle
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from kit.clicks import after_the_click, wait, with_seed
from kit.pages import give_up, load, machine, options, page, spread, table

from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.experiments.populations.together import Together
from transformer.model import build
from transformer.presets import GPU_READERS, READING
from transformer.text import shelf
from transformer.training.loop import Training
from transformer.training.queue.pool import Worker

PAGE = "GPU.md"
ENDLESS = {"solved_at": 2.0, "max_steps": 10**6, "evaluate_every": 10**6}
TURNS, STEPS = 7, 60
MEMBERS = (1, 8, 64, 256)
LENGTH = 256
"""Characters that are read at once, as nanoGPT does."""


def ready(config: RunConfig, eagerly: bool = False) -> Training:
    """A training on the GPU that has taken the steps that are slow only once."""
    training = Training(build(config).to("cuda"), config)
    if eagerly and training.capture is not None:
        training.capture.failure = "asked for"
    for _ in range(3):
        training.take_step()
    return training


def milliseconds(act: Callable[[], int]) -> float:
    """How long each of the steps takes that `act` takes and counts."""
    torch.cuda.synchronize()
    began = time.perf_counter()
    count = act()
    torch.cuda.synchronize()
    return 1000 * (time.perf_counter() - began) / count


def together(training: Training, steps: int) -> int:
    """Take steps, as many for each wait as it wants; how many they were."""
    last = training.step + steps
    while training.step < last:
        for _ in training.take_steps(last - training.step):
            pass
    return steps


def replay(graph: torch.cuda.CUDAGraph, times: int) -> int:
    """Launch a graph, as often as is said."""
    for _ in range(times):
        graph.replay()
    return times


def a_step(turns: int, steps: int) -> float:
    """The default reversal's step, taken in each way; the milliseconds of the quickest."""
    default = RunConfig(training=TrainingConfig(solved_at=2.0, max_steps=10**6, device="cuda"))
    endless = RunConfig(training=TrainingConfig(**ENDLESS, device="cuda"))
    measured, plain, eager = ready(default), ready(endless), ready(endless, eagerly=True)
    ways: dict[str, Callable[[], int]] = {
        "eager, waited for each time": lambda: len([eager.take_step() for _ in range(steps)]),
        "captured, waited for each time": lambda: len([plain.take_step() for _ in range(steps)]),
        "captured, several for each wait": lambda: together(plain, steps),
        "the same, measured on fresh sequences after every five": lambda: together(measured, steps),
    }
    if plain.capture is not None and plain.capture.graph is not None:
        ways["the graph alone"] = partial(replay, plain.capture.graph, steps)
    took: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(turns + 1):
        for name, way in ways.items():
            found = milliseconds(way)
            if turn:
                took[name].append(found)
    print(f"\n## One step of the default reversal\n\n{plain.stepping[0].upper()}{plain.stepping[1:]}.")
    table("", "ms, median", "least to most", "eager ÷ it, median", "least to most")
    for name, each in took.items():
        ratios = [first / second for first, second in zip(took["eager, waited for each time"], each, strict=True)]
        print(f"| {name} | {spread(each, 3)} | {spread(ratios, 1)} |", flush=True)
    return statistics.median(took["captured, several for each wait"])


def clicks(seeds: int) -> None:
    """A worker from its start, and runs that it is given once it is warm."""
    print("\n## From a click\n\nFrom handing a run to a warm worker to what a page can read.", flush=True)
    table("", "seconds, median", "least to most")
    with tempfile.TemporaryDirectory() as folder:
        worker = Worker()
        try:
            print(f"| from its start until it takes runs | {spread([wait(worker.ready.is_set)], 2)} |", flush=True)
            after_the_click(worker, with_seed(RunConfig(), 0, "cuda"), Path(folder))  # the GPU may still warm up
            for device in ("cuda", "cpu"):
                config = RunConfig()
                found = [
                    after_the_click(worker, with_seed(config, seed, device), Path(folder)) for seed in range(seeds)
                ]
                for what, values in zip(("first step", "solved"), zip(*found, strict=True), strict=True):
                    print(f"| {device}: {what} | {spread(values, 3)} |", flush=True)
        finally:
            worker.dismiss()
            worker.ended.wait(60)


def command_line(turns: int) -> None:
    """`train` in a process of its own, until it has ended."""
    print("\n## `train` with 300 steps, from its start to its end, all files written")
    table("", "seconds, median", "least to most")
    for device in ("cuda", "cpu"):
        took = []
        for _ in range(turns):
            with tempfile.TemporaryDirectory() as folder:
                words = ["--max-steps", "300", "--solved-at", "2", "--device", device, "--out", f"{folder}/run"]
                began = time.perf_counter()
                done = subprocess.run(
                    [sys.executable, "-m", "transformer", "train", *words], capture_output=True, text=True
                )
                took.append(time.perf_counter() - began)
                if done.returncode:
                    give_up(f"train ended with code {done.returncode}: {done.stderr.strip()}")
        print(f"| {device} | {spread(took, 2)} |", flush=True)


def reader(text: str, **settings: object) -> RunConfig:
    """A run of the preset for a GPU, with other settings of the training."""
    preset = GPU_READERS[0]
    training = replace(preset.training, device="cuda", **settings)  # type: ignore[arg-type]
    return RunConfig(task=replace(preset.task, text=text), model=preset.model, training=training)


def reading(text: str, turns: int, sizes: Sequence[int]) -> None:
    """Tokens a second of the shape of the shipped reader."""
    print("\n## Reading Shakespeare: tokens a second, the shape of the shipped reader, dropout included", flush=True)
    table("sequences in a batch", "", "tokens a second, median", "least to most", "MiB at most")
    for size in sizes:
        for precision in ("float32", "bfloat16"):
            torch.cuda.reset_peak_memory_stats()
            config = reader(text, batch_size=size, precision=precision, max_steps=10**6, evaluate_every=10**6)
            training = ready(config)
            steps = max(10, 400 // size)
            tokens = size * config.task.length
            rates = [1000 * tokens / milliseconds(partial(together, training, steps)) for _ in range(turns)]
            peak = torch.cuda.max_memory_allocated() / 2**20
            how = precision if training.stepping.startswith("captured") else f"{precision}, {training.stepping}"
            print(f"| {size} | {how} | {spread(rates, 0)} | {peak:,.0f} |", flush=True)
            del training


def until_perplexity(text: str, seconds: float, quick: bool) -> None:
    """Held-out perplexity by time: building, capturing and measuring are counted."""
    print("\n## Held-out perplexity by time, from the first line of the training on")
    table("", "steps", "perplexity 21 after, s", "after 9 s", "after 15 s", "at the end", "s in all")
    preset = reader(text)
    bare = replace(preset, model=replace(preset.model, dropout=0.0))
    ways = {
        "the preset for a GPU": preset,
        "the same in 2,000 steps": reader(text, max_steps=2000),
        "the same without dropout and weight decay": replace(
            bare, training=replace(bare.training, max_steps=2000, **READING)
        ),
        "the shipped run's recipe, batch 4": reader(text, batch_size=4, learning_rate=4e-3, max_steps=3600),
    }
    for name, config in [*ways.items()][: 1 if quick else None]:
        began = time.perf_counter()
        training = Training(build(config).to("cuda"), config)
        reached, last = math.nan, math.nan
        by = {9: math.nan, 15: math.nan}
        while not training.done and time.perf_counter() - began < seconds:
            for step in training.take_steps(10**6):
                if step.held_out_loss is not None:
                    now, last = time.perf_counter() - began, math.exp(step.held_out_loss)
                    reached = now if math.isnan(reached) and last <= 21 else reached
                    by = {limit: last if now <= limit else before for limit, before in by.items()}
        cells = [f"{value:.2f}" if math.isfinite(value) else "not reached" for value in (reached, *by.values(), last)]
        took = time.perf_counter() - began
        print(f"| {name} | {training.step} | {' | '.join(cells)} | {took:.1f} |", flush=True)


def populations(members: Sequence[int], turns: int, alone: float) -> None:
    """A step of many members as one graph, their batches drawn and their losses read."""
    print("\n## A step of a population, batches and losses included", flush=True)
    table("members", "", "ms, median", "least to most", "÷ a captured step of one, median", "least to most")
    for count in members:
        settings = [TrainingConfig(**ENDLESS, seed=seed, device="cuda") for seed in range(count)]
        configs = [RunConfig(training=each) for each in settings]
        batch = Together([Training(build(config).to("cuda"), config) for config in configs])
        for _ in range(3):
            batch.take_steps(1)

        def several(batch: Together = batch) -> int:
            return len(batch.take_steps(10)[batch.members[0]])

        took = [milliseconds(several) for _ in range(turns)]
        ratios = [each / alone for each in took]
        print(f"| {count} | with their batches | {spread(took, 2)} | {spread(ratios, 1)} |", flush=True)
        if batch.capture is not None and batch.capture.graph is not None:
            took = [milliseconds(partial(replay, batch.capture.graph, 10)) for _ in range(turns)]
            ratios = [each / alone for each in took]
            print(f"| {count} | the graph alone | {spread(took, 2)} | {spread(ratios, 1)} |", flush=True)
        del batch


def beside_nanogpt(folder: Path, text: str, steps: int, seconds: float) -> None:
    """Seconds to held-out losses of characters: nanoGPT's own program, and ours of the same shape."""
    print("\n## Characters of Shakespeare, beside nanoGPT", flush=True)
    task = TaskConfig(task="text", split="characters", length=LENGTH, text=text)
    settings = READING | {"warmup_steps": 100, "decay_after": 100, "evaluate_every": 250}
    config = RunConfig(
        task=task,
        model=ModelConfig(
            architecture="decoder", n_layers=6, n_heads=6, d_model=384, d_ff=1536, dropout=0.2, positions="learned",
            mask="causal", tied=True,
        ),
        training=TrainingConfig(
            batch_size=64, learning_rate=1e-3, weight_decay=0.1, precision="bfloat16", device="cuda",
            max_steps=steps, **settings,
        ),
    )  # fmt: skip
    known = shelf.corpus(text, "characters", task.min_count)
    theirs = _nanogpt(folder, known, steps, seconds)
    ours = []
    began = time.perf_counter()
    training = Training(build(config).to("cuda"), config)
    while not training.done and time.perf_counter() - began < seconds:
        for step in training.take_steps(10**6):
            if step.held_out_loss is not None:
                ours.append((step.step, time.perf_counter() - began, step.held_out_loss))
    print(
        f"Both read {LENGTH} characters at once, 64 times a step, in six layers of six heads, 384 wide, with dropout "
        f"0.2, in bfloat16, for at most {steps} steps or {seconds:.0f} s; held out is the same excerpt. The seconds of "
        "both include what is slow only once: theirs compiles, ours captures."
    )
    table("", "least held-out loss", "at step", "after, s", "s in all", *(f"{loss} after, s" for loss in LOSSES))
    for name, found in (("nanoGPT", theirs), ("ours", ours)):
        if not found:
            print(f"| {name} | 0 steps were measured |")
            continue
        step, after, loss = min(found, key=lambda each: each[2])
        when = [next((f"{at:.1f}" for _, at, value in found if value <= aim), "–") for aim in LOSSES]
        print(f"| {name} | {loss:.4f} | {step} | {after:.1f} | {found[-1][1]:.1f} | {' | '.join(when)} |", flush=True)


LOSSES = (1.6, 1.5, 1.4, 1.35, 1.3)


def _nanogpt(folder: Path, known: shelf.Corpus, steps: int, seconds: float) -> list[tuple[int, float, float]]:
    """Train as its README says, on our text: step, seconds since its start and held-out loss of each measurement."""
    data = folder / "data" / "shakespeare_char"
    data.mkdir(parents=True, exist_ok=True)
    for name, works in (("train", known.train), ("val", known.excerpt.held_out)):
        np.concatenate(list(works)).astype(np.uint16).tofile(data / f"{name}.bin")
    size = len(known.excerpt.vocabulary.tokens) + 1
    (data / "meta.pkl").write_bytes(pickle.dumps({"vocab_size": size, "itos": {}, "stoi": {}}))
    began = time.perf_counter()
    words = [f"--max_iters={steps}", f"--lr_decay_iters={steps}"]
    process = subprocess.Popen(
        [sys.executable, "-u", "train.py", "config/train_shakespeare_char.py", *words],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    found, said = [], ""
    assert process.stdout is not None
    for line in process.stdout:
        said = line
        measured = re.match(r"step (\d+): train loss [\d.]+, val loss ([\d.]+)", line)
        if measured:
            found.append((int(measured[1]), time.perf_counter() - began, float(measured[2])))
        if time.perf_counter() - began > seconds:
            process.kill()
    process.wait()
    if not found:
        print(f"nanoGPT ended with code {process.returncode}: {said.strip()}")
    return found


def main() -> None:
    parser = options(__doc__, PAGE)
    parser.add_argument("--part", nargs="*", default=["step", "click", "cli", "reading", "perplexity", "population"])
    parser.add_argument("--nanogpt", type=Path, help="a checkout of nanoGPT, trained for comparison")
    parser.add_argument("--text", default="shakespeare-b6a92296", help="the key of the text that is read")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        give_up("there is no GPU here")
    quick, busy, parts = arguments.quick, load(), arguments.part
    torch.set_num_threads(1)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    turns = 1 if quick else TURNS
    with page(PAGE, "On a GPU", save=arguments.save):
        print(f"{machine(torch.device('cuda'), busy)}; the processor's part on one thread.")
        alone = a_step(turns, 5 if quick else STEPS) if {"step", "population"} & {*parts} else math.nan
        if "click" in parts:
            clicks(1 if quick else 5)
        if "cli" in parts:
            command_line(1 if quick else 3)
        if "reading" in parts:
            reading(arguments.text, 1 if quick else 5, (4,) if quick else (4, 16, 32))
        if "perplexity" in parts:
            until_perplexity(arguments.text, 2.0 if quick else 25.0, quick)
        if "population" in parts:
            populations(MEMBERS[:1] if quick else MEMBERS, turns, alone)
        if arguments.nanogpt:
            beside_nanogpt(arguments.nanogpt, arguments.text, 20 if quick else 5000, 55.0)


if __name__ == "__main__":
    main()
