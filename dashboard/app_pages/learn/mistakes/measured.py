"""A mistake and the right code, both trained behind the page, and what is measured and drawn of each; cached.

PyTorch is imported when the first of it is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dashboard.components.head_grid import heads_of
from dashboard.models.cache import cached
from dashboard.models.on_the_spot import quick_training
from dashboard.models.on_the_spot.quick_training import Lesson
from dashboard.parts import waiting
from dashboard.view import permission
from transformer.analysis.findings import Attention, Head

if TYPE_CHECKING:
    from torch import Tensor

    from transformer.config import RunConfig
    from transformer.mistakes import Demonstration, Mistake, Signature
    from transformer.network import Network
    from transformer.training.quick import Answer as Trained


@dataclass(frozen=True, eq=False)
class Measured:
    """One trained model, measured."""

    signature: Signature
    losses: np.ndarray
    """Of each step's batch in nats, float [step]."""
    attentions: dict[str, Attention]
    """Every head on the task's example."""
    said: np.ndarray
    """Its answer to the example, while it reads its own words: int [answer]."""


@dataclass(frozen=True)
class Pair:
    """The two trainings of a mistake, from the same seed."""

    mistake: type[Mistake]
    wrong: Lesson
    right: Lesson

    @property
    def lessons(self) -> tuple[Lesson, Lesson]:
        return self.wrong, self.right

    @property
    def done(self) -> bool:
        return all(each.done for each in self.lessons)

    @property
    def problem(self) -> str:
        """Why one of them broke off, if one did."""
        return next((each.problem for each in self.lessons if each.problem), "")

    def measured(self) -> tuple[Measured, Measured]:
        """What both look like, once they are trained: with the mistake, and with the right code."""
        wrong, right = self.wrong.config, self.right.config
        return (
            _measured(self.wrong.result(), wrong, self.mistake.name),
            _measured(self.right.result(), right, ""),
        )


def pair(mistake: type[Mistake], seed: int) -> Pair | None:
    """Both trainings, begun when they are first asked for; None where this visitor may not begin one.

    A viewer sees what somebody else has trained.
    """
    config = mistake.config(seed)
    begun = quick_training.is_kept(config, mistake.name) and quick_training.is_kept(config)
    if not (begun or permission.may_train()):
        return None
    wrong = waiting.lesson("mistake", config, mistake=mistake.name)
    return Pair(mistake, wrong, waiting.lesson("mistake-right", config))


def sequences() -> int:
    """How many fresh sequences stand behind each number."""
    from transformer.mistakes import SEQUENCES

    return SEQUENCES


@cached(36)
def demonstration(name: str) -> Demonstration | None:
    """What a mistake does where no model has it; None where a model shows it."""
    from transformer.mistakes import MISTAKES

    return MISTAKES[name].demonstrate()


@cached(96, "Measuring what the mistake does …")
def _measured(_found: Trained, config: RunConfig, name: str) -> Measured:
    """The same mistake with the same config is always the same model, so a measurement may outlive it."""
    import torch

    from transformer.mistakes import MISTAKES, Mistake, measure

    mistake = MISTAKES[name] if name else Mistake
    task, model = config.build_task(), _found.model
    tokens = torch.from_numpy(task.encode([task.example]).tokens)
    with torch.no_grad():
        said = model.continue_greedily(tokens[:, : task.length + 1], task.length)[0].numpy()
    return Measured(
        signature=measure(mistake, _found, right=not name),
        losses=np.array([step.loss for step in _found.steps]),
        attentions=_attentions(model, tokens, tuple(task.vocabulary[token] for token in tokens[0].tolist())),
        said=said,
    )


def _attentions(model: Network, tokens: Tensor, names: tuple[str, ...]) -> dict[str, Attention]:
    """Every head on one sequence. A cell of the future is shown as forbidden where no head of the layer uses it."""
    from transformer.observation import observe

    seen, found = observe(model, tokens), {}
    causal = np.tril(np.ones((len(names), len(names)), dtype=bool))
    for site in seen.attentions():
        pattern, scores = (seen[f"{site}.{kind}"][0].numpy() for kind in ("pattern", "scores"))
        used = causal | (pattern > 0).any(axis=0)
        found[site] = Attention(site, scores, used, pattern, names, names)
    return found


def foremost(found: Measured, expected: np.ndarray) -> Head:
    """The head that looks most at the tokens to be written, bool [query, key], on the example."""
    return max(heads_of(found.attentions), key=lambda head: share_on(found, head, expected))


def share_on(found: Measured, head: Head, expected: np.ndarray) -> float:
    """The mean weight that a head puts on the tokens to be written, bool [query, key]."""
    pattern = found.attentions[head.site].pattern[head.index]
    return float((pattern * expected).sum(axis=1)[expected.any(axis=1)].mean())
