"""What a mistake looks like from outside: a model is trained with it, and what it does is measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from transformer.analysis.accuracy.by_position import EVALUATION_STREAM
from transformer.analysis.accuracy.ceilings import ceiling
from transformer.foundation.checks import UserError
from transformer.mistakes._base import Mistake
from transformer.model import Transformer, build
from transformer.observation import observe
from transformer.trace import only
from transformer.training.loop import Step, Training
from transformer.training.quick import Answer, answer

SEQUENCES = 512
"""Fresh sequences behind each number of a signature."""
NOTHING = 1e-4
"""Differences between logits up to this are rounding."""


@dataclass(frozen=True)
class Signature:
    """What was measured of one trained model, over `SEQUENCES` fresh sequences."""

    accuracy: Float[np.ndarray, "target"]
    """By position, while the right tokens are read."""
    ceiling: Float[np.ndarray, "target"]
    """The best accuracy by position of a model that cannot see later tokens."""
    first_half: float
    """Accuracy on the question's own symbols, which are random."""
    second_half: float
    """Accuracy on the answer."""
    free_running: float
    """Accuracy on the answer, while the model reads what it said itself."""
    chance: float
    """Accuracy of guessing a symbol."""
    loss: float
    """Mean cross-entropy in nats of the targets it was taught."""
    floor: float
    """The smallest loss of a model that cannot see later tokens."""
    future: float
    """The weight that lies on later tokens: mean over queries, heads and layers."""
    row_sums: tuple[float, float]
    """The smallest and the greatest sum of a row of a pattern."""
    moved: Float[np.ndarray, "position"]
    """The largest change of a logit when only the last token changes."""
    batch: float
    """The largest change of a logit when only the order of the batch changes."""
    differs: Float[np.ndarray, "position"]
    """The largest difference of a logit to the right code with the same weights."""

    @property
    def probe(self) -> float:
        """The largest change of an earlier logit when only the last token changes."""
        return float(self.moved[:-1].max())

    @property
    def reference(self) -> float:
        """The largest difference of any logit to the right code with the same weights."""
        return float(self.differs.max())

    def exposed_by(self) -> tuple[str, ...]:
        """The detectors that say that something is wrong."""
        return tuple(name for name, says in DETECTORS.items() if says(self))


DETECTORS: dict[str, Callable[[Signature], bool]] = {
    "second half": lambda seen: seen.second_half < 0.95,
    "first half": lambda seen: seen.first_half > seen.chance + 0.05,
    "floor": lambda seen: seen.loss < seen.floor - 0.05,
    "free running": lambda seen: seen.free_running < 0.5,
    "future": lambda seen: seen.future > 0.01,
    "row sums": lambda seen: seen.row_sums[0] < 0.99 or seen.row_sums[1] > 1.01,
    "probe": lambda seen: seen.probe > NOTHING,
    "batch": lambda seen: seen.batch > NOTHING,
    "reference": lambda seen: seen.reference > NOTHING,
}
"""What can be asked of a trained model, and when the answer says that something is wrong."""


def trained(
    mistake: type[Mistake], seed: int = 0, *, right: bool = False, go_on: Callable[[Step], bool] = lambda step: True
) -> Answer:
    """A model trained with a mistake, or from the same weights on the same sequences with the right code.

    It takes the same number of steps on any machine: two to three seconds of one core. `go_on` is told of each step,
    and may break it off. Raises UserError where there is no model that has the mistake.
    """
    if not (mistake.trains or right):
        raise UserError(f"no model has the mistake {mistake.name}: it is shown by numbers")
    config = mistake.config(seed)
    model = build(config)
    assert isinstance(model, Transformer)
    training = Training(model if right else mistake.mistaken(model), config)
    if not right:
        training.task = mistake.taught(training.task)
    return answer(config, go_on, training)


def signature(mistake: type[Mistake], seed: int = 0, *, right: bool = False) -> Signature:
    """Train with a mistake, or with the right code, and measure."""
    return measure(mistake, trained(mistake, seed, right=right), right=right)


@torch.no_grad()
def measure(mistake: type[Mistake], answer: Answer, *, right: bool = False) -> Signature:
    """What `trained` gave, measured on fresh sequences. The model is in evaluation mode."""
    config, model = answer.config, answer.model
    task = config.build_task()
    questions = task.draw(np.random.default_rng([config.training.seed, EVALUATION_STREAM]), SEQUENCES, task.length)
    batch = task.encode(questions)
    tokens, targets = torch.from_numpy(batch.tokens), torch.from_numpy(batch.targets)
    seen = observe(model, tokens, remember=only("*.pattern"))
    correct = (seen.logits.argmax(dim=-1) == targets).numpy()
    groups, best = np.array(task.groups(task.length)), ceiling(config)
    patterns = torch.stack([seen[f"{name}.pattern"] for name in seen.attentions()])
    later = torch.ones(patterns.shape[-2:]).triu(1)
    sums = patterns.sum(dim=-1)
    taught = task if right else mistake.taught(task)
    learned = torch.from_numpy(taught.encode(questions).targets)
    changed = tokens.clone()
    changed[:, -1] = (changed[:, -1] + 1) % task.symbols
    reference = build(config)
    reference.load_state_dict(model.state_dict())
    said = model.continue_greedily(tokens[:, : task.length + 1], task.length)
    return Signature(
        accuracy=correct.mean(axis=0),
        ceiling=best.accuracy,
        first_half=float(correct[:, groups == task.parts[0]].mean()),
        second_half=float(correct[:, groups == task.part].mean()),
        free_running=float((said == targets[:, task.length :]).float().mean()),
        chance=task.chance,
        loss=float(functional.cross_entropy(seen.logits.flatten(0, 1), learned.flatten())),
        floor=float(best.nats.mean()),
        future=float((patterns * later).sum(dim=-1).mean()),
        row_sums=(float(sums.min()), float(sums.max())),
        moved=_largest(model(changed) - seen.logits),
        batch=float(_largest(model(tokens.flip(0)).flip(0) - seen.logits).max()),
        differs=_largest(reference(tokens) - seen.logits),
    )


def _largest(
    differences: Float[Tensor, "sequence position symbol"],
) -> Float[np.ndarray, "position"]:
    """Over all sequences and symbols."""
    largest: np.ndarray = differences.abs().amax(dim=(0, 2)).numpy()
    return largest
