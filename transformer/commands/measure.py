"""Commands that train many small models and measure them, for the pages that show what was found."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Group, Parameter

from transformer.config import ConfigError
from transformer.corners import CornerConfig
from transformer.experiments.lengths import SEEDS
from transformer.training.runs import ROOT

TRAINING = Group("The training")
WALKER = CornerConfig()
FEW = f"{SEEDS[0]}-{SEEDS[-1]}"


def lengths(
    *,
    out: Path = ROOT / "lengths-own.json",
    length: int = 8,
    steps: int | None = None,
    seeds: str = FEW,
) -> int:
    """Train with each positional encoding on short sequences, and measure on sequences three times as long.

    Three seeds of each take a minute or two on two cores, 64 seeds twenty minutes. The dashboard
    shows the result on “What positions buy”.

    Parameters
    ----------
    out
        The file for the results. It is written after every training; compressed if its name ends with .xz.
    length
        Symbols in the longest training sequence.
    steps
        Steps of each training. Default: as many as in the shipped file.
    seeds
        From which seeds each encoding is trained: numbers and spans, such as 0-63 or 0,3,5-7.
    """
    if not 1 <= length <= 64:
        raise ConfigError(f"length must be between 1 and 64, not {length}")

    import torch

    from transformer.experiments.lengths_measure import STEPS, carry_out, plan
    from transformer.experiments.populations.plan import seeds_of
    from transformer.training.loop import TrainingError

    planned = plan(length, STEPS if steps is None else steps, seeds_of(seeds))
    torch.set_num_threads(1)
    try:
        for found in carry_out(planned, out, min(2, os.cpu_count() or 1)):
            last = found.trials[-1]
            kept = found.exact(last.positions)[-1][length - 1]
            print(
                f"{len(found.trials):>2} of {found.planned}  {last.positions}, seed {last.seed}: "
                f"{kept:.2f} of length {length}, {last.seconds:.1f} s",
                flush=True,
            )
    except TrainingError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def corners(
    *,
    out: Path | None = None,
    config: Annotated[CornerConfig, Parameter(name="*", group=TRAINING)] = WALKER,
) -> int:
    """Train a GRU on square corners with five probabilities of teacher forcing, and measure its errors.

    Five seeds each take half a minute on two cores. The dashboard shows the result on “Square corners”.

    Parameters
    ----------
    out
        The file for the results. It is written after every training. Default: where the dashboard looks for it.
    """
    import torch

    from transformer.experiments.teacher_forcing import file_name, shared
    from transformer.experiments.teacher_forcing_measure import carry_out, plan

    if config != shared(config):
        raise ConfigError("this command varies teacher_forcing and seed itself: leave them out")
    torch.set_num_threads(1)
    out = ROOT / file_name(config) if out is None else out
    for found in carry_out(plan(config), out, min(2, os.cpu_count() or 1)):
        last = found.trials[-1]
        print(
            f"{len(found.trials):>2} of {found.planned}  teacher forcing {last.chance:g}, seed {last.seed}: "
            f"error {last.error:.3f}, {last.seconds:.1f} s",
            flush=True,
        )
    return 0


def scaling(*, out: Path = ROOT / "scaling-own.json") -> int:
    """Train models of five widths with and without the division by the root of d_head, and measure them on the way.

    A hundred trainings take two minutes on two cores. The gallery of mistakes shows the shipped result.

    Parameters
    ----------
    out
        The file for the results. It is written after every training.
    """
    import torch

    from transformer.experiments.scaling_measure import carry_out, plan

    torch.set_num_threads(1)
    for found in carry_out(plan(), out, min(2, os.cpu_count() or 1)):
        last = found.trials[-1]
        code = "with" if last.scaled else "without"
        print(
            f"{len(found.trials):>3} of {found.planned}  width {last.width}, {code} the scale, rate {last.rate:g}, "
            f"seed {last.seed}: {last.accuracy[-1]:.2f} right",
            flush=True,
        )
    return 0
