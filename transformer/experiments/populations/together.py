"""Models of one shape trained as one batch: every step is taken by all of them at once.

Each weight of the models is stacked into one tensor, and `torch.func.vmap` runs them side by side (Horace He and
Richard Zou, "functorch", 2021). A model alone is too small to keep a processor busy; many of them are not.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from torch.nn import functional

from transformer.analysis.accuracy.aim import CLOSE, FIRST_LOOK
from transformer.config import RunConfig
from transformer.training.loop import Step, Training, TrainingError, learning_rate, steps_together
from transformer.training.stepping import AdamW, CudaGraph, Inputs, why_eager


def why_alone(config: RunConfig) -> str:
    """Why a run cannot be trained in a batch of models; empty when it can."""
    model, task = config.model, config.task
    if model.recurrent:
        return "a recurrent network takes one token after the other"
    if task.text:
        return "a text is read by large models, which are slow for other reasons than their number"
    if task.min_length not in (None, task.length):
        return "its lengths vary, and a batch of models needs batches of one shape"
    if model.dropout > 0:
        return "dropout draws from a generator of the model's own"
    if config.training.precision != "float32":
        return "its products are rounded to 16 bits"
    return ""


def shape_of(config: RunConfig) -> RunConfig:
    """What models of one batch have in common: everything but the seed."""
    return replace(config, training=replace(config.training, seed=0))


class Together:
    """Trainings of one shape (`shape_of`), at the same step, that go on as one batch.

    Each member's numbers are those of its training alone, to rounding: it draws its own weights, batches and
    measurements from its own seed, its gradient is clipped by its own norm, and it leaves the batch when it is done.
    A member whose loss is no longer a number leaves it, too; the others go on. All are on one device.
    """

    def __init__(self, trainings: Sequence[Training]) -> None:
        if len({(shape_of(each.config), each.step) for each in trainings}) != 1:
            raise ValueError("models of one batch share all settings but their seeds, and stand at one step")
        self.members = list(trainings)
        first = self.members[0]
        self.step, self.device, self.settings = first.step, first.device, first.config.training
        self.model = copy.deepcopy(first.model).train()
        """How the weights are used; its own are not."""
        models = cast("list[nn.Module]", [each.model for each in self.members])
        self.weights: dict[str, Tensor] = stack_module_state(models)[0]
        self.buffers = dict(first.model.named_buffers())
        self._begin_to_learn()
        self._rows = [*range(len(self.members))]
        """Where in the stacked weights each member's stand: in a graph, who has left keeps his place for a while."""
        self._pace = 0.0
        if self.step:
            self._take_up_moments()

    def take_steps(self, most: int) -> dict[Training, list[Step | TrainingError]]:
        """The next steps of every member, and last, where its training cannot go on, why. Who is done leaves.

        One on a CPU; on a GPU up to `most` that are waited for together, and none after one that is measured.
        """
        began = time.perf_counter()
        rates = [learning_rate(self.settings, self.step + 1 + i) for i in range(self._together(most))]
        learned = [self._learn(rate) for rate in rates]
        results = torch.stack(learned).cpu()[..., self._rows].tolist()
        took = self._pace = (time.perf_counter() - began) / len(rates)
        self.step += len(rates)
        found: dict[Training, list[Step | TrainingError]] = {member: [] for member in self.members}
        for place, member in enumerate(self.members):
            for rate, (losses, norms) in zip(rates, results, strict=True):
                member.step += 1
                try:
                    member.require_number(losses[place], rate)
                except TrainingError as error:
                    found[member].append(error)
                    break
                member.last_norm = norms[place]
                member.seconds += took
                found[member].append(
                    Step(member.step, losses[place], rate, member.last_norm, member.seconds, 1000 * took)
                )
        going = [place for place, member in enumerate(self.members) if isinstance(found[member][-1], Step)]
        if going and self.members[going[0]].due:
            began = time.perf_counter()
            measured = self._measure(going)
            passed = time.perf_counter() - began
            for place, (accuracy, probed) in measured.items():
                member = self.members[place]
                member.seconds += passed
                last = cast("Step", found[member][-1])
                found[member][-1] = replace(
                    last, seconds=member.seconds, accuracy=accuracy, probed=probed, solved=member.solved
                )
        self._let_go([place for place in going if not self.members[place].done])
        return found

    def _together(self, most: int) -> int:
        """How many steps are waited for together."""
        if self.capture is None or not self._pace:
            return 1
        return steps_together(self.settings, self.step, most, self._pace)

    def settle(self, member: Training) -> None:
        """Give a member its weights and its optimiser's moments as they are now, as if it had been trained alone."""
        if member not in self.members:
            return
        row = self._rows[self.members.index(member)]
        with torch.no_grad():
            self._weigh(self.members.index(member))
            for name, kept in self.optimiser.moments.items():
                for place, stacked in zip(member.optimiser.moments[name], kept, strict=True):
                    place.copy_(stacked if name == "step" else stacked[row])

    @property
    def _height(self) -> int:
        """How many rows the stacked weights have: one for each member, and for some who have left."""
        return len(next(iter(self.weights.values())))

    def _learn(self, rate: float) -> Float[Tensor, "2 row"]:
        """Learn from a fresh batch for each row: their losses, and their gradients' norms before clipping."""
        inputs = self._draw()
        if self.capture is not None:
            return self.capture(inputs, rate)
        self.optimiser.rate = rate
        return self._take(inputs)

    def _draw(self) -> Inputs:
        """A fresh batch for each row, in main memory where a graph takes it; who has left reads the first member's."""
        task, size = self.members[0].task, self.settings.batch_size
        questions = [task.draw(member.rng, size, task.length) for member in self.members]
        device = self.device if self.capture is None else torch.device("cpu")
        batch = task.encode(np.concatenate(questions))  # all members' at once: one by one they take longer than a step
        inputs = Inputs.of(batch, self.settings, torch.device("cpu"))
        places = {row: place for place, row in enumerate(self._rows)}
        order = torch.tensor([places.get(row, 0) for row in range(self._height)])

        def each_row(rows: Shaped[Tensor, "all place"]) -> Shaped[Tensor, "row batch place"]:
            return rows.unflatten(0, (len(self.members), size))[order].to(device)

        weights = inputs.weights.unflatten(0, (len(self.members), size))
        total = weights.sum(dim=(1, 2))[order].to(device)
        source = None if inputs.source is None else each_row(inputs.source)
        return Inputs(each_row(inputs.tokens), each_row(inputs.targets), each_row(inputs.weights), total, source)

    def _take(self, inputs: Inputs) -> Float[Tensor, "2 row"]:
        losses = weighted_losses(
            self._logits(inputs.tokens, inputs.source), inputs.targets, inputs.weights, inputs.total
        )
        self.optimiser.zero_grad(set_to_none=True)
        losses.sum().backward()
        norms = clip_each([weight.grad for weight in self.weights.values()], self.settings.clip or math.inf)
        self.optimiser.step()
        return torch.stack([losses.detach(), norms])

    def _logits(
        self, tokens: Int[Tensor, "row batch position"], source: Int[Tensor, "row batch source"] | None
    ) -> Float[Tensor, "row batch position d_vocab"]:
        def one(weights: Mapping[str, Tensor], tokens: Tensor, source: Tensor | None) -> Tensor:
            logits: Tensor = functional_call(self.model, {**weights, **self.buffers}, (tokens, source))
            return logits

        logits: Tensor = vmap(one, in_dims=(0, 0, None if source is None else 0))(self.weights, tokens, source)
        return logits

    @torch.no_grad()
    def _measure(self, places: Sequence[int]) -> dict[int, tuple[Float[np.ndarray, "target"], int]]:
        """Accuracy of the members at these places, each on its own fresh sequences; near its aim it is asked more."""
        batches = {place: self.members[place].fresh() for place in places}
        measured = {self._rows[place]: batch for place, batch in batches.items()}
        rows = range(self._height)
        firsts = [measured.get(row, batches[places[0]]).part(slice(FIRST_LOOK)) for row in rows]
        tokens = torch.from_numpy(np.stack([first.tokens for first in firsts])).to(self.device)
        source = None
        if firsts[0].source is not None:
            source = torch.from_numpy(np.stack([first.source for first in firsts if first.source is not None]))
            source = source.to(self.device)
        said = self._logits(tokens, source).argmax(dim=-1).cpu().numpy()
        found = {}
        for place, batch in batches.items():
            member, row = self.members[place], self._rows[place]
            if member.aim.near((said[row] == firsts[row].targets).mean(axis=0), FIRST_LOOK, CLOSE):
                self._weigh(place)
            accuracy, probed, _ = member.measure_on(batch, said[row])
            found[place] = accuracy, probed
        return found

    def _weigh(self, place: int) -> None:
        """Give the member at a place its weights."""
        for name, weight in self.members[place].model.named_parameters():
            weight.copy_(self.weights[name][self._rows[place]])

    @torch.no_grad()
    def _let_go(self, staying: Sequence[int]) -> None:
        """Give those that leave what is theirs, and keep the others' rows."""
        if len(staying) == len(self.members):
            return
        for place, member in enumerate(self.members):
            if place not in staying:
                self.settle(member)
        self.members = [self.members[place] for place in staying]
        self._rows = [self._rows[place] for place in staying]
        # A new shape is a new graph, whose capture takes as long as some steps.
        if self.capture is None or 2 * len(self.members) <= self._height:
            self._close_ranks()

    def _close_ranks(self) -> None:
        """Keep the rows of the members alone."""
        rows = torch.tensor(self._rows, dtype=torch.int64, device=self.device)
        kept = self.optimiser.moments
        self.weights = {name: weight.detach()[rows].requires_grad_() for name, weight in self.weights.items()}
        self._begin_to_learn()
        for name, each in kept.items():
            self.optimiser.moments[name] = each if name == "step" else [stacked[rows] for stacked in each]
        self._rows = [*range(len(self._rows))]

    def _begin_to_learn(self) -> None:
        """Make an optimiser for the weights as they are stacked now, and on a GPU a graph."""
        self.optimiser = AdamW(self.weights.values(), self.settings)
        captured = not why_eager(self.device)
        self.capture = CudaGraph(self._take, self.device, self.optimiser) if captured else None

    def _take_up_moments(self) -> None:
        """Stack the moments of members that were trained before."""
        for name, kept in self.optimiser.moments.items():
            for number, place in enumerate(kept):
                rows = [member.optimiser.moments[name][number] for member in self.members]
                place.copy_(rows[0] if name == "step" else torch.stack(rows))


def weighted_losses(
    logits: Float[Tensor, "row batch position d_vocab"],
    targets: Int[Tensor, "row batch position"],
    weights: Float[Tensor, "row batch position"],
    totals: Float[Tensor, "row"],
) -> Float[Tensor, "row"]:
    """`stepping.weighted_loss` of each member, in nats."""
    nats = functional.cross_entropy(logits.flatten(0, 2), targets.flatten(), reduction="none")
    return (nats.view_as(weights) * weights).sum(dim=(1, 2)) / totals


def clip_each(gradients: Sequence[Tensor | None], most: float) -> Float[Tensor, "row"]:
    """Scale each member's gradients to a norm of `most` at the most, in place; their norms before that.

    What `torch.nn.utils.clip_grad_norm_` does for one model.
    """
    known = [gradient for gradient in gradients if gradient is not None]
    each = torch.stack([torch.linalg.vector_norm(gradient.flatten(1), dim=1) for gradient in known])
    norms = torch.linalg.vector_norm(each, dim=0)
    scale = (most / (norms + 1e-6)).clamp(max=1.0)
    for gradient in known:
        gradient.mul_(scale.view(-1, *[1] * (gradient.dim() - 1)))
    return norms
