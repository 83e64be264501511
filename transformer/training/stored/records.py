"""The JSON files of a run: its card, its metrics line by line, its evaluation."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformer.analysis.accuracy.result import Accuracy
from transformer.config import RunConfig
from transformer.foundation.checks import ConfigError, reason
from transformer.foundation.foreign import read_bytes, read_record, record, shortened
from transformer.foundation.versions import copied, read_once
from transformer.tasks import Task
from transformer.text.perplexity import COUNTING
from transformer.training.stored.checks import LATEST, expect, number, text, whole

FORMAT = "attention-lab-run/1"
MOST_CARD, MOST_EVALUATION = 2**18, 2**20
"""Bytes of run.json, in which a painted mask takes 44 kB, and of evaluation.json, with 4096 positions."""
MOST_METRICS = 512 * 2**20
"""Bytes of all lines of metrics.jsonl: over 2 million steps."""
MOST_LINE = 2**18
"""Bytes of one of them, with 4096 positions."""
MOST_FAULTS = 20
"""Lines that cannot be used, after which the rest is not read."""
LINE = (
    "step",
    "loss",
    "learning_rate",
    "gradient_norm",
    "seconds",
    "milliseconds",
    "solved",
    "held_out_loss",
    "accuracy",
    "probed",
)
"""What a line of the metrics holds; all else in it is not kept."""


def card(path: Path) -> dict[str, Any]:
    """run.json, whose "config" is still to be read, and whose details may be anything. Raises ValueError when it is
    none of ours, and OSError."""
    return copied(_card(path))


@read_once()
def _card(path: Path) -> dict[str, Any]:
    found = read_record(path, MOST_CARD)
    version = found.get("format")
    expect(version == FORMAT, f"the run is of another version ({shortened(version)}); this program reads {FORMAT}")
    expect(isinstance(found["config"], dict), "its settings are no record")
    return found


@read_once()
def config(path: Path) -> RunConfig:
    """The config of a card. Raises ValueError, and OSError; ConfigError where the text that it reads is not at hand."""
    values = _card(path)["config"]
    try:
        return RunConfig.from_dict(values)
    except ConfigError as error:
        task = values.get("task")
        if isinstance(task, dict) and task.get("text"):
            raise  # it may come later
        raise ValueError(str(error)) from None


def details(card: Mapping[str, Any]) -> None:
    """What else a card says: when the run was made, and on what. Raises ValueError where it is of the wrong kind."""
    number(card.get("created", 0), 0, LATEST)
    whole(card.get("processes", 1))
    for name in ("device", "why_there", "stepping", "noise"):
        text(card.get(name, ""))


@dataclass(frozen=True)
class Metrics:
    """What metrics.jsonl held when it was last read; shared, and to be read only."""

    lines: tuple[dict[str, Any], ...] = ()
    """Every whole line that can be used."""
    faults: tuple[str, ...] = ()
    """What is wrong with others, a few words each: MOST_FAULTS at most, after which the rest is not read."""
    counted: int = 0
    """Whole lines that were read."""
    place: int = 0
    """Bytes of the whole lines, …"""
    digest: bytes = b""
    """… and their BLAKE2 digest: while the file begins with them, only what follows is checked."""


@read_once(goes_on=True)
def metrics(path: Path, task: Task, before: Metrics | None = None) -> Metrics:
    """What metrics.jsonl holds; the lines that were there `before` are not checked again.

    A last line that is still being written is left out, and so is what follows the first MOST_FAULTS that cannot be
    used. Raises ValueError when there is too much of it, and OSError.
    """
    content = read_bytes(path, MOST_METRICS)
    if before is None or before.digest != _digest(content, before.place):
        before = Metrics()
    return _read_on(before, content, len(task.target_names(task.length)))


def _digest(content: bytes, length: int) -> bytes:
    return hashlib.blake2b(memoryview(content)[:length]).digest()


def _read_on(before: Metrics, content: bytes, targets: int) -> Metrics:
    """What the lines add that follow, of a task with so many targets."""
    last = before.lines[-1]["step"] if before.lines else 0
    lines, faults, counted, begins = list(before.lines), list(before.faults), before.counted, before.place
    while len(faults) < MOST_FAULTS and (ends := content.find(b"\n", begins)) >= 0:
        counted += 1
        try:
            expect(ends - begins <= MOST_LINE, "it is too long")
            read = line(content[begins:ends], targets)
            expect(read["step"] > last, "it is out of order")
        except (KeyError, ValueError) as error:
            faults.append(f"line {counted}: {reason(error)}")
        else:
            last = read["step"]
            lines.append(read)
        begins = ends + 1
    return Metrics(tuple(lines), tuple(faults), counted, begins, _digest(content, begins))


@read_once()
def last(path: Path, task: Task) -> dict[str, Any]:
    """The last line of metrics.jsonl without its accuracies, to be read only; nothing where there is none. Raises
    ValueError and OSError."""
    found = metrics(path, task).lines
    return {name: value for name, value in found[-1].items() if name != "accuracy"} if found else {}


def line(written: bytes, targets: int) -> dict[str, Any]:
    """One line of metrics.jsonl, of a task with so many targets. Raises ValueError or KeyError for a line that cannot
    be used."""
    found = record(written)
    whole(found["step"])
    for name in ("loss", "learning_rate", "gradient_norm", "seconds"):
        number(found[name])
    number(found.get("milliseconds", 0.0))
    number(found.get("held_out_loss", 0.0))
    expect(isinstance(found.get("solved", False), bool), "it is neither solved nor not")
    if "accuracy" in found:
        shares = found["accuracy"]
        expect(isinstance(shares, list) and len(shares) == targets, "it is of another task")
        for share in shares:
            number(share, 0, 1)
        expect(whole(found.get("probed", 1)) > 0, "it was measured on nothing")
    return {name: found[name] for name in LINE if name in found}


def evaluation(path: Path, task: Task) -> dict[str, Any]:
    """evaluation.json. Raises ValueError or KeyError when it does not hold what was measured of such a task."""
    return copied(_evaluation(path, task))


@read_once()
def _evaluation(path: Path, task: Task) -> dict[str, Any]:
    stored = read_record(path, MOST_EVALUATION)
    expect(whole(stored["sequences"]) > 0, "it was measured on nothing")
    expect(isinstance(stored["correct"], list), "it counts nothing")
    for count in stored["correct"]:
        expect(whole(count) <= stored["sequences"], "more is right than was measured")
    for name in ("exact_match", "second_half", "first_half"):
        if name != "first_half" or stored.get(name) is not None:  # a short answer may have no first half
            number(stored[name], 0, 1)
    measured = Accuracy.from_evaluation(stored, task)
    expect(measured.correct.shape == (len(measured.names),), "it is of another task")
    if len(task.parts) == 1 and stored.get("first_half") is not None:  # an earlier version told halves of any answer
        stored |= {"first_half": None, "second_half": measured.of(task.part)}
    if task.lawful:
        expect("perplexity" not in stored, "it is of another task")
    else:
        number(stored["perplexity"], 1, math.inf)
        number(stored["nats"], 0, math.inf)
        whole(stored["read"])
        if "baselines" in stored:
            expect(isinstance(stored["baselines"], dict), "its baselines are no record")
            for name in COUNTING:
                number(stored["baselines"][name], 1, math.inf)
    for name in ("verdict", "snapshot"):
        text(stored.get(name, ""))
    return stored
