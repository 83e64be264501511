"""The JSON files of a run: its card, its metrics line by line, its evaluation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from transformer.analysis.accuracy.result import Accuracy
from transformer.foundation.checks import reason
from transformer.foundation.failures import remembering_failures
from transformer.foundation.foreign import read_bytes, read_record, record, shortened
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


@remembering_failures
def card(path: Path) -> dict[str, Any]:
    """run.json, whose "config" is still to be read, and whose details may be anything. Raises ValueError when it is
    none of ours, and OSError."""
    found = read_record(path, MOST_CARD)
    version = found.get("format")
    expect(version == FORMAT, f"the run is of another version ({shortened(version)}); this program reads {FORMAT}")
    expect(isinstance(found["config"], dict), "its settings are no record")
    return found


def details(card: Mapping[str, Any]) -> None:
    """What else a card says: when the run was made, and on what. Raises ValueError where it is of the wrong kind."""
    number(card.get("created", 0), 0, LATEST)
    whole(card.get("processes", 1))
    for name in ("device", "why_there", "stepping", "noise"):
        text(card.get(name, ""))


def metrics(path: Path, task: Task) -> tuple[list[dict[str, Any]], list[str]]:
    """Every whole line of metrics.jsonl that can be used, and what is wrong with others, a few words each.

    A last line that is still being written is left out, and so is what follows the first MOST_FAULTS that cannot be
    used. Raises ValueError when there is too much of it, and OSError.
    """
    read = Lines(task)
    return read.add(read_bytes(path, MOST_METRICS)), read.faults


class Lines:
    """Lines of metrics.jsonl read in the order in which they were written, at once or as they come."""

    def __init__(self, task: Task) -> None:
        self.targets, self.last, self.place = len(task.target_names(task.length)), 0, 0
        self.faults: list[str] = []
        """What is wrong with lines that cannot be used, a few words each: MOST_FAULTS at most."""

    def add(self, written: bytes) -> list[dict[str, Any]]:
        """The lines of it that are whole and can be used; none once there have been too many others."""
        found, begins = [], 0
        while len(self.faults) < MOST_FAULTS and (ends := written.find(b"\n", begins)) >= 0:
            self.place += 1
            try:
                expect(ends - begins <= MOST_LINE, "it is too long")
                read = line(written[begins:ends], self.targets)
                expect(read["step"] > self.last, "it is out of order")
            except (KeyError, ValueError) as error:
                self.faults.append(f"line {self.place}: {reason(error)}")
            else:
                self.last = read["step"]
                found.append(read)
            begins = ends + 1
        return found


@lru_cache(maxsize=2**14)
def line(written: bytes, targets: int) -> dict[str, Any]:
    """One line of metrics.jsonl, of a task with so many targets; to be read only, for it is read once and kept.

    A page asks four times a second while a run trains, and reading a line anew takes 25 µs. Raises ValueError or
    KeyError for a line that cannot be used.
    """
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


@remembering_failures
def evaluation(path: Path, task: Task) -> dict[str, Any]:
    """evaluation.json. Raises ValueError or KeyError when it does not hold what was measured of such a task."""
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
