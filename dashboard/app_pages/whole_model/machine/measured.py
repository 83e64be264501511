"""The plan of a model at each level, and the vectors of one token; cached."""

from __future__ import annotations

import numpy as np

from dashboard.models.cache import cached
from dashboard.models.model import Model, words_of
from transformer.analysis.findings import Head
from transformer.analysis.machine.plan import Plan, plan_block, plan_head, plan_model, size_of
from transformer.tasks import Question


def plan_of(model: Model, question: Question, level: str, block: str, head: Head | None) -> Plan:
    """The whole model, one of its blocks or one of its heads, with the shapes that this question gives."""
    config, size = model.config.model, size_of(model.task, question)
    if level == "block":
        return plan_block(config, size, block)
    if level == "head" and head is not None:
        return plan_head(config, size, head)
    return plan_model(config, size)


@cached(64)
def vectors(
    model: Model, question: Question, level: str, block: str, head: Head | None, place: int
) -> dict[str, np.ndarray]:
    """What leaves each box of that plan for the token at a place, counted from 0: float [number]."""
    from transformer.analysis.machine.vectors import vectors

    plan = plan_of(model, question, level, block, head)
    return vectors(model.network(), model.task, question, plan, place, said=words_of(model, question))


def step_before(model: Model) -> int | None:
    """The last step before this one whose weights are kept."""
    earlier = [] if model.run is None else [step for step in model.run.snapshots() if step < model.step]
    return max(earlier, default=None)


@cached(64)
def moved(model: Model, before: int, question: Question, level: str, block: str, head: Head | None) -> dict[str, float]:
    """How far each box of that plan moved from an earlier step to this one, as a share of its length."""
    from transformer.analysis.machine.movement import moved

    assert model.run is not None
    old = model.run.network(before)
    return moved(plan_of(model, question, level, block, head), old.state_dict(), model.network().state_dict())
