"""How long learning takes: `python benchmarks/training.py [--seeds 5] [--device cuda] [--save]`.

One thread, one process, after a warm-up; only the click is measured in a process of its own, as it happens in the
dashboard. What is compared is taken in turns within the same minute, so that a busy neighbour slows all alike.
Quiet the machine first: the load is printed with the numbers. --save writes RESULTS.md.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import torch
from kit.clicks import after_the_click, free, wait, warm_worker, with_seed
from kit.pages import device_option, load, machine, options, page, spread, table
from kit.rivals import CONVENTIONAL, MAKERS, make, steps_of, until_solved

from transformer.config import RunConfig
from transformer.model import build
from transformer.presets import PRESETS, Preset
from transformer.training.loop import Training, train
from transformer.training.queue.pool import Worker
from transformer.training.queue.worker import warm_up
from transformer.training.quick import answer, small

PAGE = "RESULTS.md"
ROUNDS, STEPS = 15, 20
"""Turns of each model, and steps in a turn, when several are compared."""
MOST = 400
"""Steps after which a model that is compared has failed."""


def until_each(presets: Sequence[Preset], seeds: int, device: str, most: int | None) -> None:
    """Steps and seconds until each preset says that it is solved; measurements are part of the seconds."""
    print("\n## Until it is solved")
    table("preset", "steps, median", "least to most", "seconds, median", "least to most", "solved")
    for preset in presets:
        ends = []
        for seed in range(seeds):
            config = with_seed(preset.config, seed, device)
            *_, last = islice(train(build(config).to(device), config), most)
            ends.append(last)
        steps = spread([float(end.step) for end in ends], 0)
        seconds = spread([end.seconds for end in ends], 2)
        print(f"| {preset.name} | {steps} | {seconds} | {sum(end.solved for end in ends)} of {seeds} |", flush=True)


def clicks(presets: Sequence[Preset], seeds: int, device: str) -> None:
    """From handing a warm worker its run to its first line of metrics, and to the one that says solved."""
    print("\n## After the click\n\nThrough the warm worker, from handing over the run to what a page can read.")
    table("", "first step, s, median", "least to most", "solved, s, median", "least to most")
    with warm_worker() as (worker, folder):
        for preset in presets:
            found = [after_the_click(worker, with_seed(preset.config, seed, device), folder) for seed in range(seeds)]
            first, solved = zip(*found, strict=True)
            print(f"| {preset.name} | {spread(first, 2)} | {spread(solved, 2)} |", flush=True)
        table("the default, asked while it is trained", "seconds, median", "least to most")
        found = [obeyed(worker, with_seed(RunConfig(), seed, device), folder) for seed in range(seeds)]
        asked = ("until it is paused", "until it goes on", "until it has stopped")
        for name, values in zip(asked, zip(*found, strict=True), strict=True):
            print(f"| {name} | {spread(values, 3)} |", flush=True)


def obeyed(worker: Worker, config: RunConfig, folder: Path) -> tuple[float, float, float]:
    """Seconds from a wish in the folder to its being obeyed: pause, resume, stop."""
    run = free(worker, replace(config, training=replace(config.training, solved_at=2.0)), folder)
    wait(lambda: len(run.metrics()) > 20)
    run.ask(pause_at=0)
    paused = wait(lambda: run.state.status == "paused")
    step = run.state.step
    run.ask(pause_at=None)
    resumed = wait(lambda: len(run.metrics()) > step)
    run.ask(stop=True)
    return paused, resumed, wait(lambda: run.state.status in ("measuring", "stopped"))


def answers(seeds: int) -> None:
    """The one-layer model, trained within an interaction, from the click to the trained model."""
    print("\n## An answer to a click\n\nOne layer, one head, trained in the page's own process.")
    config = small(RunConfig())
    seconds = []
    for seed in range(seeds):
        began = time.perf_counter()
        found = answer(with_seed(config, seed, "cpu"))
        seconds.append(time.perf_counter() - began)
        assert found.solved
    table("", "seconds, median", "least to most")
    print(f"| asked, trained and solved | {spread(seconds, 3)} |")


def speed(device: str, rounds: int, steps: int) -> None:
    """Steps a second of three models of one shape, turn by turn."""
    config = with_seed(RunConfig(), 0, device)
    config = replace(config, training=replace(config.training, max_steps=10**6))
    runs = {name: steps_of(make(name, config).to(device), config) for name in MAKERS}
    rates: dict[str, list[float]] = {name: [] for name in MAKERS}
    for turn in range(rounds + 1):
        for name, run in runs.items():
            began = time.perf_counter()
            for _ in range(steps):
                next(run)
            if turn:  # the first one warms up
                rates[name].append(steps / (time.perf_counter() - began))
    print(
        f"\n## Steps a second\n\nThe default shape, same optimiser, batches and loss, {steps} steps each in turn, "
        f"{rounds} turns; the ratio is taken turn by turn."
    )
    table("", "steps a second, median", "least to most", "ours ÷ it, median", "least to most")
    for name, found in rates.items():
        ratios = [ours / its for ours, its in zip(rates["ours"], found, strict=True)]
        print(f"| {name} | {spread(found, 0)} | {spread(ratios, 2)} |", flush=True)


def against(seeds: int, most: int) -> None:
    """Time until 99.9 %: ours by our recipe, the others by a conventional one and by ours."""
    print(
        "\n## Until 99.9 %, beside others\n\nReversal at length 8, measurements left out, seed by seed in turn. "
        f"Conventional: batch {CONVENTIONAL.batch_size}, rate {CONVENTIONAL.learning_rate:g}, "
        f"{CONVENTIONAL.warmup_steps} steps of warm-up."
    )
    recipes = {"our recipe": RunConfig().training, "conventional": CONVENTIONAL}
    entries = [(name, recipe) for name in MAKERS for recipe in recipes]
    found: dict[tuple[str, str], list] = {entry: [] for entry in entries}
    for seed in range(seeds):
        for name, recipe in entries:
            config = with_seed(RunConfig(training=recipes[recipe]), seed, "cpu")
            found[name, recipe].append(until_solved(name, config, most))
    table(
        "",
        "recipe",
        "steps, median",
        "seconds, median",
        "least to most",
        "its time ÷ ours, median",
        "least to most",
        "solved",
    )
    best = found["ours", "our recipe"]
    for (name, recipe), ends in found.items():
        solved = [end.steps for end in ends if end.steps]
        steps = f"{statistics.median(solved):.0f}" if solved else "–"
        ratios = [its.seconds / ours.seconds for its, ours in zip(ends, best, strict=True)]
        print(
            f"| {name} | {recipe} | {steps} | {spread([end.seconds for end in ends], 2)} | {spread(ratios, 1)} "
            f"| {len(solved)} of {seeds} |",
            flush=True,
        )


def graph(device: str) -> None:
    """The captured step beside the same step, eager."""
    config = with_seed(RunConfig(), 0, device)
    training = Training(build(config).to(device), config)
    training.take_step()
    print(f"\n## One step on the GPU\n\n{training.stepping}.")


def main() -> None:
    parser = options(__doc__, PAGE)
    device_option(parser)
    parser.add_argument("--seeds", type=int, default=5, help="how many seeds, from 0 on")
    arguments = parser.parse_args()
    if arguments.seeds < 1:
        parser.error("at least one seed")
    quick, device, busy = arguments.quick, str(arguments.device), load()
    seeds = 1 if quick else arguments.seeds
    print(f"measuring, {seeds} seeds; {busy}", file=sys.stderr)
    torch.set_num_threads(1)
    warm_up()

    with page(PAGE, "Training times", save=arguments.save):
        print(f"{machine(arguments.device, busy)}, one thread used; seeds 0 to {seeds - 1}.")
        until_each(PRESETS[:1] if quick else PRESETS, seeds, device, 10 if quick else None)
        clicks(PRESETS[: 1 if quick else 3], seeds, device)
        if device == "cpu":
            answers(seeds)
            against(seeds, 10 if quick else MOST)
        else:
            graph(device)
        speed(device, *((1, 2) if quick else (ROUNDS, STEPS)))


if __name__ == "__main__":
    main()
