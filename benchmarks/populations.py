"""How many members a second: `python benchmarks/populations.py [--device cuda] [--quick] [--save]`.

Members of the default reversal, each from a seed of its own, take as many steps each. One after the other by our own
loop, on one thread; the same loop with `torch.nn.TransformerEncoder` of the same shape; as one batch by
`torch.func.vmap`, on one thread and on all; and side by side in as many processes as there are cores, which were
started before. All take turns within the same minute, so that a busy neighbour slows all alike, and ratios are taken
turn by turn. What is left out: measuring them and keeping their files, which costs the same in every way. On a GPU
there is no pool. --save writes POPULATIONS.md.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from multiprocessing import get_context
from multiprocessing.pool import Pool

import torch
from kit.pages import device_option, load, machine, options, page, spread, table
from kit.rivals import make, steps_of

from transformer.config import RunConfig, TrainingConfig
from transformer.experiments.populations.together import Together
from transformer.model import build
from transformer.training.loop import Training

PAGE = "POPULATIONS.md"
MEMBERS, STEPS, TURNS = (8, 32), 40, 3
QUICK = (2,), 2, 1
LOOP = "one after the other"
Way = Callable[[list[RunConfig]], None]


def configs(members: int, steps: int, device: torch.device) -> list[RunConfig]:
    """So many trainings of the default reversal, never stopped early and hardly measured."""
    settings = TrainingConfig(device=device.type, max_steps=steps, solved_at=2.0, evaluate_every=1_000_000)
    return [RunConfig(training=replace(settings, seed=seed)) for seed in range(members)]


def train_alone(config: RunConfig) -> None:
    """One member by our own loop."""
    training = Training(build(config).to(config.training.device), config)
    while not training.done:
        for _ in training.take_steps(STEPS):
            pass


def one_by_one(found: list[RunConfig]) -> None:
    for config in found:
        train_alone(config)


def theirs(found: list[RunConfig]) -> None:
    """The same with PyTorch's own encoder."""
    for config in found:
        for _ in steps_of(make("torch.nn.TransformerEncoder", config).to(config.training.device), config):
            pass


def as_one_batch(found: list[RunConfig]) -> None:
    batch = Together([Training(build(config).to(config.training.device), config) for config in found])
    while batch.members:
        batch.take_steps(STEPS)


@contextlib.contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    yield
    torch.set_num_threads(before)


def seconds(way: Way, found: list[RunConfig], device: torch.device, count: int) -> float:
    """How long one way takes."""
    began = time.perf_counter()
    with threads(count):
        way(found)
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - began


def main() -> None:
    parser = options(__doc__, PAGE)
    device_option(parser)
    arguments = parser.parse_args()
    busy, device, cores = load(), arguments.device, os.cpu_count() or 1
    sizes, steps, turns = QUICK if arguments.quick else (MEMBERS, STEPS, TURNS)
    with contextlib.ExitStack() as stack:
        ways: dict[str, tuple[Way, int]] = {
            LOOP: (one_by_one, 1),
            "one after the other, torch.nn.TransformerEncoder": (theirs, 1),
            "as one batch, one thread": (as_one_batch, 1),
        }
        if device.type == "cpu":
            pool: Pool = stack.enter_context(get_context("spawn").Pool(cores, torch.set_num_threads, (1,)))
            ways[f"as one batch, {cores} threads"] = (as_one_batch, cores)
            ways[f"side by side in {cores} processes"] = (lambda found: pool.map(train_alone, found, 1) and None, 1)
        for way, count in ways.values():
            seconds(way, configs(min(2 * cores, max(sizes)), 2, device), device, count)  # whatever is slow once
        with page(PAGE, "Members a second", save=arguments.save):
            print(f"{machine(device, busy)}; {steps} steps each, {turns} turns, {cores} cores.")
            table("members", "", "members a second, median", "least to most", "÷ one after the other", "least to most")
            for members in sizes:
                found = configs(members, steps, device)
                took: dict[str, list[float]] = {name: [] for name in ways}
                for _ in range(turns):
                    for name, (way, count) in ways.items():
                        took[name].append(seconds(way, found, device, count))
                for name, each in took.items():
                    ratios = [first / second for first, second in zip(took[LOOP], each, strict=True)]
                    print(
                        f"| {members} | {name} | {spread([members / one for one in each], 2)} | {spread(ratios, 2)} |"
                    )


if __name__ == "__main__":
    main()
