"""Populations for tests: some that are made up row by row, and a small one that is really trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import torch

from transformer.experiments.populations.carry_out import carry_out, in_batches
from transformer.experiments.populations.plan import Member, Sweep, planned
from transformer.experiments.populations.table import Population, Row, write_table

SMALL = {"length": "3", "n-heads": "1,2", "d-model": "16", "max-steps": "4"}


def trained(folder: Path, seeds: str = "0-2", settings: Mapping[str, str] = SMALL) -> Population:
    """A population of tiny models, each trained for a few steps."""
    *_, last = carry_out(planned(seeds, settings), folder, partial(in_batches, device=torch.device("cpu")))
    return last


def made_up(folder: Path, seeds: str, settings: Mapping[str, str], row: Callable[[Member], Row | None]) -> Sweep:
    """A population with these rows; None is a member that has not ended."""
    folder.mkdir(parents=True)
    sweep = planned(seeds, settings)
    sweep.save(folder)
    write_table(folder, sweep, [found for member in sweep.members() if (found := row(member))])
    return sweep


def ended(member: Member, steps: int | None, *, most: int = 60, right: int = 90, kinds: str = "mixed") -> Row:
    """A member that solved it after so many steps, or did not: 16 targets, `right` of 100 at each of the last nine."""
    heads = dict(zip(("decoder.0.self_attention.0", "decoder.1.self_attention.0"), ("mixed", kinds), strict=True))
    return Row(
        member=member.name,
        status="finished",
        step=most if steps is None else steps,
        reason="made up",
        solved=steps is not None,
        seconds=1.0,
        loss=0.5,
        sequences=100,
        exact=right,
        correct=(10,) * 7 + (right,) * 9,
        kinds=heads,
        shares={"decoder.0.self_attention.0": 0.2, "decoder.1.self_attention.0": 0.7},
    )
