"""What a health check looks at, and what it says: a small batch of the task, the model on it, and a finding."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from transformer.analysis.sample import observe_batch
from transformer.foundation.checks import UserError
from transformer.masks import parse
from transformer.network import Network
from transformer.observation import Observation, observe, tensors
from transformer.tasks import Batch, Question, Task
from transformer.trace import only

HEALTH_STREAM = 3
"""The batch comes from another stream of the seed than training (0), measuring (1) and surveys (2)."""
SEQUENCES, FEWEST_SEQUENCES = 8, 3
LONGEST = 16
"""Symbols in the longest sequence that is checked: the laws hold at every length, and patterns grow with its square."""
PASSES = 32
"""About so many times all sequences pass through the model."""
WORK = 2**33
"""Multiplications that a check may take: where the model is large, its batch is small."""
MOST_WEIGHTS = 2**28
"""A model with more is not checked: to read its weights alone would take long."""
ROUNDING = 1e-4
"""Logits that only rounding may tell apart differ by at most this share of the largest: float32 carries 6e-8."""

Cell = str | int | float


class HealthError(UserError):
    """A model that cannot be checked here; the message is one sentence."""


def amount(value: float) -> str:
    """A deviation, as a sentence writes it."""
    return "NaN" if math.isnan(value) else f"{value:,.0f}" if value >= 1000 else f"{value:.2g}"


@dataclass(frozen=True)
class Finding:
    """What one check came to."""

    holds: bool | None
    """None where the law says nothing about this model."""
    sentence: str
    """The evidence, in words."""
    worst: float = 0.0
    """The greatest deviation that was met; NaN where the model says NaN."""
    tolerance: float = 0.0
    table: Mapping[str, tuple[Cell, ...]] = field(default_factory=dict)
    """The evidence, column by column."""

    @property
    def deviation(self) -> str:
        """The greatest deviation, as it is written."""
        return amount(self.worst)


class Check(ABC):
    """A law that every healthy model keeps, and how one looks whether it does. One subclass a file of `checks/`.

    It reads the model in evaluation mode, through `observe`, so that a fault shows where it is.
    """

    order: ClassVar[int]
    """Its place among the others: where a law is broken, those after it may be for the same reason."""
    label: ClassVar[str]
    """As it is shown."""
    law: ClassVar[str]
    """In a sentence."""
    formula: ClassVar[str]
    """LaTeX."""

    @property
    def name(self) -> str:
        """As a link writes it."""
        return type(self).__module__.rsplit(".", 1)[-1].replace("_", "-")

    @abstractmethod
    def look(self, case: Case) -> Finding:
        """Does the model keep it? With the evidence."""


@dataclass(frozen=True)
class Checkup:
    """All findings about one model, and what they rest on."""

    findings: tuple[tuple[Check, Finding], ...]
    sequences: int
    tokens: int
    """In the longest sequence."""
    short: bool
    """Were the sequences shorter than the task's?"""

    @property
    def broken(self) -> list[tuple[Check, Finding]]:
        """The laws that do not hold, the likeliest cause first."""
        return [(check, finding) for check, finding in self.findings if finding.holds is False]

    @property
    def kept(self) -> int:
        """How many laws were checked and hold."""
        return sum(finding.holds is True for _, finding in self.findings)


@dataclass(frozen=True)
class Case:
    """A model, its task, and a small batch: whole sequences, and the same with some of them cut short and padded."""

    model: Network
    task: Task
    length: int
    """Symbols in each of the whole sequences."""
    whole: Batch
    mixed: Batch

    @classmethod
    def of(cls, model: Network, task: Task, question: Question | None = None, seed: int = 0) -> Case:
        """A batch drawn with the seed, small enough for the model; its first sequence begins like the `question`."""
        weights = sum(weight.numel() for weight in model.parameters())
        if weights > MOST_WEIGHTS:
            raise HealthError(f"to check {weights:,} weights would take too long here")
        tokens = WORK // (PASSES * weights)
        length = min(task.length, LONGEST, max(2, tokens // (2 * FEWEST_SEQUENCES)))
        sequences = max(FEWEST_SEQUENCES, min(SEQUENCES, tokens // len(task.target_names(length))))
        drawn = np.asarray(task.draw(np.random.default_rng([seed, HEALTH_STREAM]), sequences, length))
        sequences = len(drawn)
        if question is not None:
            drawn[0, : len(question)] = question[:length]
        sizes = np.linspace(length, max(1, length // 2), sequences).round().astype(int)
        mixed = [row[:size] for row, size in zip(drawn, sizes, strict=True)]
        return cls(model, task, length, task.encode(list(drawn)), task.encode(mixed))

    @cached_property
    def seen(self) -> Observation:
        """Everything inside the model while it reads the mixed batch."""
        return observe_batch(self.model, self.mixed)

    @cached_property
    def rounding(self) -> float:
        """How far rounding may put two logits apart."""
        finite = self.seen.logits[self.seen.logits.isfinite()].abs()
        return ROUNDING * max(1.0, float(finite.max()) if len(finite) else 0.0)

    def logits(
        self, tokens: Int[Tensor, "batch position"], source: Int[Tensor, "batch source"] | None
    ) -> Float[Tensor, "batch position d_vocab"]:
        """What the model says, in evaluation mode."""
        return observe(self.model, tokens, source=source, remember=only()).logits

    def tensors(self, batch: Batch) -> tuple[Int[Tensor, "batch position"], Int[Tensor, "batch source"] | None]:
        """Tokens and source, where the model lives."""
        return tensors(self.model, batch)

    def patterns(
        self,
    ) -> Iterator[tuple[str, Float[Tensor, "batch head query key"], Bool[Tensor, "batch 1 query key"]]]:
        """Each attention's site and pattern, and what its queries may see: by the config, not by what the model did."""
        for site in self.seen.attentions():
            pattern = self.seen[f"{site}.pattern"]
            may_see = torch.from_numpy(self._may_see(site)).to(pattern.device)
            yield site, pattern, may_see.expand(len(pattern), 1, *pattern.shape[-2:])

    def _may_see(self, site: str) -> Bool[np.ndarray, "batch 1 #query key"]:
        batch = self.mixed
        of_source = batch.source is not None and (site.startswith("encoder") or site.endswith("cross_attention"))
        keys = batch.source if of_source and batch.source is not None else batch.tokens
        visible = (keys != self.task.padding)[:, None, None, :]
        return visible if of_source else visible & parse(self.model.config.mask).matrix(keys.shape[1])

    def of_slots(self, slots: Int[Tensor, "batch slot"], width: int) -> Float[Tensor, "batch position d_vocab"]:
        """What the model says to slots: `width` source tokens, where there is a source, and then the tokens."""
        return self.logits(slots[:, width:], slots[:, :width] if width else None)

    def names(self, values: Int[np.ndarray, "token"]) -> tuple[str, ...]:
        """What tokens are called."""
        return tuple(self.task.vocabulary[value] for value in values)
