"""The examination of a model's health: does it keep every law that a healthy model keeps, whatever its weights?

A perfect-looking attention map and an accuracy of 1 prove nothing: a model masked after its softmax has both.
"""

from __future__ import annotations

from transformer.analysis.health.case import Case, Checkup
from transformer.analysis.health.checks import checks
from transformer.network import Network
from transformer.tasks import Question, Task


def examine(model: Network, task: Task, question: Question | None = None, seed: int = 0) -> Checkup:
    """The findings of every check about a model, on a small batch drawn with the seed that begins with the question.

    The model is left as it was. Raises HealthError when it is too large to be checked while somebody waits.
    """
    case = Case.of(model, task, question, seed)
    sequences, tokens = case.whole.tokens.shape
    findings = tuple((check, check.look(case)) for check in checks())
    return Checkup(findings, sequences, tokens, tokens < len(task.target_names(task.length)))
