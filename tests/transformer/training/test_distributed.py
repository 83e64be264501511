"""One training on two processes: the same run folder, and the curve of one process with the whole batch."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.kit.waiting import PATIENCE
from transformer.training.runs import Run

pytestmark = pytest.mark.nightly
ARGUMENTS = ["train", "--length", "4", "--min-length", "2", "--n-layers", "1", "--d-model", "16", "--d-ff", "16"]
ARGUMENTS += ["--batch-size", "7", "--max-steps", "15", "--solved-at", "2", "--device", "cpu"]


def trained(folder: Path, *launcher: str) -> Run:
    command = [sys.executable, *launcher, "-m", "transformer", *ARGUMENTS, "--out", str(folder)]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    assert ended.returncode == 0, ended.stderr
    return Run(folder)


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> tuple[Run, Run]:
    folder = tmp_path_factory.mktemp("runs")
    torchrun = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    return trained(folder / "one"), trained(folder / "two", *torchrun)


def test_two_processes_take_the_steps_of_one(runs):
    """The shares of a batch of 7 are of 3 and 4 sequences, of different lengths: a mean of means would be wrong."""
    one, two = ([(m["step"], m["loss"], m["gradient_norm"]) for m in run.metrics()] for run in runs)
    assert len(one) == 15
    np.testing.assert_allclose(np.array(two), np.array(one), rtol=2e-4)


def test_the_folder_is_like_any_other_and_says_how_many_trained_it(runs):
    one, two = runs
    assert (one.card["processes"], two.card["processes"]) == (1, 2)
    assert two.state.status == "finished"
    assert list(two.snapshots()) == list(one.snapshots())
    assert two.evaluation["accuracy_by_position"] == pytest.approx(one.evaluation["accuracy_by_position"], abs=0.01)


def test_a_batch_too_small_to_share_is_refused(tmp_path):
    environment = os.environ | {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    program = (
        "import sys\n"
        "from transformer.training import team\n"
        "team.Torchrun.__init__ = lambda self, device: setattr(self, 'size', 8)\n"
        "from transformer.__main__ import main\n"
        f"sys.exit(main({ARGUMENTS!r}))"
    )
    command = [sys.executable, "-c", program]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, env=environment, cwd=tmp_path, check=False
    )
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1] == "error: a batch of 7 cannot be shared by 8 processes"
