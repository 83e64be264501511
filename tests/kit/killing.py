"""Trains a run in children that are killed at random moments, looking at the folder after each: see test_kills.py.

`python -m tests.kit.killing FOLDER KILLS SEED`. A program of its own, because a process is forked here again and again,
so that each training starts warm.
"""

import json
import os
import random
import signal
import sys
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
LONGEST = 0.25
"""Seconds of the longest life."""


def look(run: Run, before: int) -> int:
    """Check everything that is in the folder after a kill; the step from which training will go on."""
    state = run.state
    assert state.status == "lost" or (state.status == "finished" and before), state
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


def main() -> None:
    torch.set_num_threads(1)
    run = Run.create(Path(sys.argv[1]), CONFIG)
    rng, last, kills = random.Random(int(sys.argv[3])), 0, 0
    while kills < int(sys.argv[2]):
        child = os.fork()
        if not child:
            for _ in record(run):
                # Slow enough to be killed in the midst of everything, also of the measurements at the end.
                time.sleep(0.001)
            develop(run)
            os._exit(0)
        time.sleep(rng.uniform(0, LONGEST))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            kills += 1
        elif kills < int(sys.argv[2]):  # it came to its end before: from the beginning
            for path in run.folder.glob("**/*.*"):
                if path.is_file() and path.name != "run.json":
                    path.unlink()
            run.set_state("queued", 0)
            last = 0
            continue
        if run.state.status != "queued":
            now = look(run, last)
            assert now >= last, f"the snapshot of step {last} is lost"
            last = now
    for _ in record(run):
        pass
    develop(run)
    print(kills)


if __name__ == "__main__":
    main()
