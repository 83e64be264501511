"""Train on square corners once for each probability of teacher forcing and each seed, and measure what comes of it.

A file is written after every training, so that whoever looks sees how far it is, and what is cut off is not lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch

from transformer.corners import CornerConfig
from transformer.experiments.teacher_forcing import Forcing, Trial, shared
from transformer.experiments.trials import carry_out_trials
from transformer.recurrent.corners import build_walker, train_corners
from transformer.training.recording import details

CHANCES = (0.0, 0.25, 0.5, 0.75, 1.0)
SEEDS = (0, 1, 2, 3, 4)
SEQUENCES = 4096


def plan(config: CornerConfig, chances: tuple[float, ...] = CHANCES, seeds: tuple[int, ...] = SEEDS) -> Forcing:
    """What will be trained; the probability and the seed of `config` itself do not count."""
    return Forcing(shared(config), chances, seeds, SEQUENCES, details(torch.device("cpu"))["versions"])


def carry_out(planned: Forcing, path: Path, processes: int = 1) -> Iterator[Forcing]:
    """Train and measure, each seed with all probabilities; the file and what is yielded grow, in this order always.

    Raises OSError when the file cannot be written.
    """
    jobs = [(planned, chance, seed) for seed in planned.seeds for chance in planned.chances]
    return carry_out_trials(replace(planned, trials=()), jobs, try_out, path, processes)


def try_out(job: tuple[Forcing, float, int]) -> Trial:
    """One training with this probability and this seed, and its errors at the end."""
    planned, chance, seed = job
    config = replace(planned.config, teacher_forcing=chance, seed=seed)
    *_, last = train_corners(build_walker(config), every=config.steps, fresh=planned.sequences)
    assert last.error is not None
    assert last.helped_error is not None
    return Trial(chance, seed, round(last.error, 5), round(last.helped_error, 5), round(last.seconds, 2))
