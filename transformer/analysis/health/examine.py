"""Health: eight laws that every healthy model keeps, whatever its weights, in one list.

A perfect-looking attention map and an accuracy of 1 prove nothing: a model masked after its softmax has both.
"""

from __future__ import annotations

from transformer.analysis.health import laws
from transformer.analysis.health.case import Case, Check, Checkup
from transformer.network import Network
from transformer.tasks import Question, Task

CHECKS = (
    Check(
        "finite",
        "No NaN",
        "Every weight and every number that the model computes is finite.",
        r"|w| < \infty",
        laws.finite,
    ),
    Check(
        "evaluation",
        "Evaluation mode",
        "Dropout is off, and the same input always gives the same output, bit for bit.",
        r"f(x) = f(x)",
        laws.evaluation_mode,
    ),
    Check(
        "rows",
        "Rows sum to 1",
        "A query's attention is a share of 1: every row of every pattern sums to 1, or to 0 where it may see nothing.",
        r"\sum_k A_{qk} = 1",
        laws.rows,
    ),
    Check(
        "forbidden",
        "Forbidden is 0",
        "A hidden key is not read at all: the attention on it is exactly 0.",
        r"A_{qk} = 0 \;\text{ where }\; M_{qk} = 0",
        laws.forbidden,
    ),
    Check(
        "probe",
        "No hidden influence",
        "A token that the mask hides from an output cannot influence it: changing the token leaves the output’s logits "
        "the same, bit for bit.",
        r"f(x')_q = f(x)_q \;\text{ where }\; x' = x \text{ at all that reaches } q",
        laws.probe,
    ),
    Check(
        "padding",
        "Padding ignored",
        "The output does not depend on how much padding follows, so sequences of any length may share a batch.",
        r"f([x, \mathrm{PAD}, \dots])_{1 \dots n} = f(x)",
        laws.padding,
    ),
    Check(
        "batch",
        "Sequences independent",
        "The sequences of a batch do not influence each other: reordering the batch only reorders the output, "
        "and leaving "
        "some out changes nothing for the others.",
        r"f(X_{\pi}) = f(X)_{\pi}",
        laws.batch,
    ),
    Check(
        "free",
        "One by one = one pass",
        "Producing tokens one by one gives the same logits as one pass over the same tokens (teacher forcing).",
        r"f(x_{1 \dots t})_t = f(x_{1 \dots n})_t",
        laws.free_running,
    ),
)
"""In this order they are shown: where a law is broken, those after it may be for the same reason."""


def examine(model: Network, task: Task, question: Question | None = None, seed: int = 0) -> Checkup:
    """Look at a model with every detector, on a small batch drawn with the seed that begins with the question.

    The model is left as it was. Raises HealthError when it is too large to be checked while somebody waits.
    """
    case = Case.of(model, task, question, seed)
    sequences, tokens = case.whole.tokens.shape
    findings = tuple((check, check.look(case)) for check in CHECKS)
    return Checkup(findings, sequences, tokens, tokens < len(task.target_names(task.length)))
