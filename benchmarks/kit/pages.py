"""The benchmarks' pages: measured numbers in Markdown, on the screen or saved beside the programs."""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import torch

from transformer.config import ConfigError
from transformer.training.device import describe_device, resolve_device

HERE = Path(__file__).resolve().parents[1]


def options(doc: str | None, page: str) -> argparse.ArgumentParser:
    """The arguments of a benchmark, of which the first line of its docstring says what it measures: to begin with,
    whether its page is saved, or whether it is only tried out."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0] if doc else None)
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--save", action="store_true", help=f"write benchmarks/{page} in place of the screen")
    one.add_argument("--quick", action="store_true", help="the smallest sizes, one turn: to see that it runs")
    return parser


def give_up(reason: str) -> NoReturn:
    """End with exit code 2 and one line: this machine lacks what is measured with."""
    print(reason, file=sys.stderr)
    raise SystemExit(2)


def missing(*packages: str) -> str:
    """Which of these packages are not installed, in one line; empty when all are."""
    absent = [package for package in packages if find_spec(package) is None]
    return f"not installed: {', '.join(absent)} (benchmarks/requirements.txt says how)" if absent else ""


def device_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", type=_device, default="cpu", help="cpu, cuda …")


def _device(name: str) -> torch.device:
    try:
        return resolve_device(name)
    except ConfigError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


@contextmanager
def page(name: str, title: str, *, save: bool) -> Iterator[None]:
    """What is printed in here is the page of that name."""
    with (HERE / name).open("w") if save else nullcontext(sys.stdout) as out, redirect_stdout(out):
        print(f"# {title}\n")
        program = Path(sys.argv[0]).resolve().relative_to(HERE).as_posix()
        print(f"Made by `python benchmarks/{program} --save`; what is measured stands there.\n")
        yield


def load() -> str:
    """How busy the machine has been in the last minute."""
    return f"load average {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "load unknown"


def machine(device: torch.device, load: str) -> str:
    """When and where something is measured."""
    return (
        f"{date.today()}: {describe_device(device)} ({platform.machine()}), {load} at the beginning; "
        f"Python {platform.python_version()}, torch {torch.__version__}"
    )


def spread(values: Sequence[float], digits: int) -> str:
    """Median, least and most, as two cells of a table."""
    low, middle, high = (f"{f(values):,.{digits}f}" for f in (min, statistics.median, max))
    return f"{middle} | {low} to {high}"


def table(*columns: str) -> None:
    print(f"\n| {' | '.join(columns)} |")
    print(f"|---{'|---:' * (len(columns) - 1)}|")
