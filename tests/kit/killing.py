"""Trains a run in children that are killed in each phase, looking at the folder after each: see test_kills.py.

`python -m tests.kit.killing FOLDER SEED`. A program of its own, because a process is forked here again and again,
so that each training starts warm.
"""

import json
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

import torch

from transformer import checkpoints
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.training.exchange.inspection import faults
from transformer.training.recording import develop, record, snapshot_steps
from transformer.training.runs import Run

CONFIG = RunConfig(
    task=TaskConfig(length=4),
    model=ModelConfig(n_layers=1, n_heads=2, d_model=16, d_ff=16, dropout=0.1),
    training=TrainingConfig(max_steps=150, solved_at=2, device="cpu"),
)
"""With dropout, so that a generator that is not restored would show."""
MEASURING, FILMING = 150, 151
KILLS = (0, 0, 1, 20, 60, 100, 140, MEASURING, MEASURING, MEASURING, FILMING, FILMING)
"""The steps from which on a child may be killed; at 0 at once, after the last it measures, and then makes the film."""
LONGEST = 0.05
"""Seconds that it lives on at most."""


def look(run: Run) -> int:
    """Check everything that is in the folder after a kill; the step from which training will go on."""
    state = run.state
    ended = len(run.metrics()) == CONFIG.training.max_steps
    assert state.status == "lost" or (state.status == "finished" and ended), state
    assert (run.folder / "state.json").stat().st_size, "an empty state"
    *lines, _unfinished = (run.folder / "metrics.jsonl").read_text().split("\n") if run.metrics() else [""]
    steps = [json.loads(line)["step"] for line in lines]
    assert steps == list(range(1, len(steps) + 1)), steps
    for path in run.snapshots().values():
        checkpoints.load(path)
    # Half a line at the end of the metrics is what an unbuffered kill leaves; all else is whole.
    wrong = [each for each in faults(run) if not each.startswith("its metrics.jsonl cannot be used: line")]
    assert not wrong, wrong
    last = max(run.snapshots(), default=0)
    assert len(steps) >= last, (last, steps[-1:])
    missing = [step for step in snapshot_steps(150) if step < last and step not in run.snapshots()]
    assert not missing, missing
    return last


def begin_again(run: Run) -> None:
    for path in run.folder.glob("**/*.*"):
        if path.is_file() and path.name != "run.json":
            path.unlink()
    run.set_state("queued", 0)


def live(run: Run, told: int) -> None:
    """Go on with a run from where it was left, and tell each step to a pipe."""

    def tell(step: int) -> None:
        os.write(told, f"{step}\n".encode())

    if run.state.status != "finished":
        tell(max(run.snapshots(), default=0))
        for step in record(run):
            tell(step.step)
            # Slow enough to be killed in the midst of everything, also of the measurements at the end.
            time.sleep(0.001)
    tell(FILMING)
    develop(run)


def killed(run: Run, step: int, after: float) -> bool:
    """Whether a child was killed so many seconds after it had come so far; False where it came to its end before."""
    heard, told = os.pipe()
    child = os.fork()
    if not child:
        live(run, told)
        os._exit(0)
    os.close(told)
    with os.fdopen(heard) as steps:
        if not step or any(int(each) >= step for each in steps):
            time.sleep(after)
            os.kill(child, signal.SIGKILL)
        _, how = os.waitpid(child, 0)
    return os.WIFSIGNALED(how)


def main() -> None:
    torch.set_num_threads(1)
    # What is imported with the first step takes longer than all steps: it is imported before a child is forked.
    with tempfile.TemporaryDirectory() as folder:
        for _ in record(Run.create(Path(folder) / "warm", CONFIG)):
            pass
    run = Run.create(Path(sys.argv[1]), CONFIG)
    rng, last = random.Random(int(sys.argv[2])), 0
    for step in KILLS:
        while not killed(run, step, rng.uniform(0, LONGEST)):
            begin_again(run)
            last = 0
        if run.state.status != "queued":
            now = look(run)
            assert now >= last, f"the snapshot of step {last} is lost"
            last = now
    with open(os.devnull, "w") as nowhere:
        live(run, nowhere.fileno())
    print(len(KILLS))


if __name__ == "__main__":
    main()
