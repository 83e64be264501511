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
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from torch.nn import functional

from transformer.analysis.accuracy.aim import CLOSE, FIRST_LOOK
from transformer.config import RunConfig
from transformer.training.loop import Step, Training, TrainingError, learning_rate
from transformer.training.stepping import Inputs

MOMENTS = ("exp_avg", "exp_avg_sq")
"""What AdamW keeps of each weight, beside the number of steps."""


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
        self.optimiser = torch.optim.AdamW(
            self.weights.values(),
            lr=self.settings.learning_rate,
            betas=(0.9, 0.95),
            weight_decay=self.settings.weight_decay,
            fused=self.device.type in ("cpu", "cuda"),
        )
        if self.step:
            self._take_up_moments()

    def take_step(self) -> dict[Training, Step | TrainingError]:
        """The next step of every member: what it was like, or why its training cannot go on. Who is done leaves."""
        began = time.perf_counter()
        self.step += 1
        rate = learning_rate(self.settings, self.step)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        losses, norms = self._update()
        took = time.perf_counter() - began
        found: dict[Training, Step | TrainingError] = {}
        for member, loss in zip(self.members, losses, strict=True):
            member.step = self.step
            try:
                member.require_number(loss, rate)
            except TrainingError as error:
                found[member] = error
        going = [place for place, member in enumerate(self.members) if member not in found]
        measured = self._measure(going) if going and self.members[going[0]].due else {}
        passed = time.perf_counter() - began
        for place in going:
            member, (accuracy, probed) = self.members[place], measured.get(place, (None, 0))
            member.last_norm = norms[place]
            member.seconds += passed
            found[member] = Step(
                self.step,
                losses[place],
                rate,
                norms[place],
                member.seconds,
                1000 * took,
                accuracy,
                None,
                probed,
                member.solved,
            )
        self._let_go([place for place in going if not self.members[place].done])
        return found

    def settle(self, member: Training) -> None:
        """Give a member its weights and its optimiser's moments as they are now, as if it had been trained alone."""
        if member not in self.members:
            return
        place = self.members.index(member)
        state = {}
        with torch.no_grad():
            for number, (name, weight) in enumerate(member.model.named_parameters()):
                stacked = self.weights[name]
                weight.copy_(stacked[place])
                kept = self.optimiser.state[stacked]
                state[number] = {each: kept[each][place].clone() for each in MOMENTS} | {"step": kept["step"].clone()}
        member.optimiser.load_state_dict(member.optimiser.state_dict() | {"state": state})

    def _update(self) -> tuple[list[float], list[float]]:
        """Draw a batch for each member and learn from it: their losses, and their gradients' norms before clipping."""
        drawn = [each.task.batch(each.rng, self.settings.batch_size) for each in self.members]
        inputs = [Inputs.of(batch, self.settings, self.device) for batch in drawn]
        tokens = torch.stack([each.tokens for each in inputs])
        sources = [each.source for each in inputs if each.source is not None]
        losses = weighted_losses(
            self._logits(tokens, torch.stack(sources) if sources else None),
            torch.stack([each.targets for each in inputs]),
            torch.stack([each.weights for each in inputs]),
            torch.stack([each.total for each in inputs]),
        )
        self.optimiser.zero_grad(set_to_none=True)
        losses.sum().backward()
        norms = clip_each([weight.grad for weight in self.weights.values()], self.settings.clip or math.inf)
        self.optimiser.step()
        return losses.tolist(), norms.tolist()

    def _logits(
        self, tokens: Int[Tensor, "member batch position"], source: Int[Tensor, "member batch source"] | None
    ) -> Float[Tensor, "member batch position d_vocab"]:
        def one(weights: Mapping[str, Tensor], tokens: Tensor, source: Tensor | None) -> Tensor:
            logits: Tensor = functional_call(self.model, {**weights, **self.buffers}, (tokens, source))
            return logits

        logits: Tensor = vmap(one, in_dims=(0, 0, None if source is None else 0))(self.weights, tokens, source)
        return logits

    @torch.no_grad()
    def _measure(self, places: Sequence[int]) -> dict[int, tuple[Float[np.ndarray, "target"], int]]:
        """Accuracy of the members at these places, each on its own fresh sequences; near its aim it is asked more."""
        batches = {place: self.members[place].fresh() for place in places}
        firsts = [batches.get(place, batches[places[0]]).part(slice(FIRST_LOOK)) for place in range(len(self.members))]
        tokens = torch.from_numpy(np.stack([first.tokens for first in firsts])).to(self.device)
        source = None
        if firsts[0].source is not None:
            source = torch.from_numpy(np.stack([first.source for first in firsts if first.source is not None]))
            source = source.to(self.device)
        said = self._logits(tokens, source).argmax(dim=-1).cpu().numpy()
        found = {}
        for place, batch in batches.items():
            member = self.members[place]
            if member.aim.near((said[place] == firsts[place].targets).mean(axis=0), FIRST_LOOK, CLOSE):
                self._weigh(place)
            accuracy, probed, _ = member.measure_on(batch, said[place])
            found[place] = accuracy, probed
        return found

    def _weigh(self, place: int) -> None:
        """Give the member at a place its weights."""
        for name, weight in self.members[place].model.named_parameters():
            weight.copy_(self.weights[name][place])

    @torch.no_grad()
    def _let_go(self, staying: Sequence[int]) -> None:
        """Give those that leave what is theirs, and keep the others' rows."""
        if len(staying) == len(self.members):
            return
        for place, member in enumerate(self.members):
            if place not in staying:
                self.settle(member)
        rows = torch.tensor(staying, dtype=torch.int64, device=self.device)
        for weight in self.weights.values():
            state = self.optimiser.state[weight]
            for name in MOMENTS:
                state[name] = state[name][rows]
            weight.grad = None
            weight.data = weight.data[rows]
        self.members = [self.members[place] for place in staying]

    def _take_up_moments(self) -> None:
        """Stack the moments of members that were trained before."""
        states = [[*member.optimiser.state.values()] for member in self.members]
        for number, weight in enumerate(self.weights.values()):
            rows = [state[number] for state in states]
            self.optimiser.state[weight] = {name: torch.stack([row[name] for row in rows]) for name in MOMENTS}
            self.optimiser.state[weight]["step"] = rows[0]["step"].clone()


def weighted_losses(
    logits: Float[Tensor, "member batch position d_vocab"],
    targets: Int[Tensor, "member batch position"],
    weights: Float[Tensor, "member batch position"],
    totals: Float[Tensor, "member"],
) -> Float[Tensor, "member"]:
    """`stepping.weighted_loss` of each member, in nats."""
    nats = functional.cross_entropy(logits.flatten(0, 2), targets.flatten(), reduction="none")
    return (nats.view_as(weights) * weights).sum(dim=(1, 2)) / totals


def clip_each(gradients: Sequence[Tensor | None], most: float) -> Float[Tensor, "member"]:
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
