"""Training as a generator of steps: `for step in train(model, config): ...`"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from transformer.analysis.accuracy.aim import CLOSE, FIRST_LOOK, Aim
from transformer.analysis.accuracy.by_position import EVALUATION_STREAM, predictions
from transformer.analysis.accuracy.reading import READ, reading
from transformer.config import PROBE_SEQUENCES, RunConfig, TrainingConfig
from transformer.foundation.drawing import drawing
from transformer.network import Network
from transformer.tasks import Batch, Task
from transformer.training.stepping import CAPTURED, UNCAPTURED, AdamW, CudaGraph, EagerStep, Inputs, why_eager
from transformer.training.team import ALONE, Team

TRAINING_STREAM = 0
LATENCY = 0.03
"""Seconds for which a GPU is left alone at most: a wish is heard after them, and what was learned is seen."""


class TrainingError(RuntimeError):
    """Training cannot go on; the message is one sentence that says why."""


@dataclass(frozen=True)
class Step:
    """One step of training, and what was measured at it."""

    step: int
    """Counted from 1."""
    loss: float
    """Cross-entropy of the batch in nats: the mean over its targets, weighted as `prompt_weight` says."""
    learning_rate: float
    gradient_norm: float
    """Before clipping."""
    seconds: float
    """Of steps and measurements since the first step began; pauses and pace left out."""
    milliseconds: float
    """Of this step, its measurement left out; of several that were waited for together, their mean."""
    accuracy: Float[np.ndarray, "target"] | None = None
    """By position, on fresh sequences of the greatest length. None on steps at which it was not measured."""
    held_out_loss: float | None = None
    """Mean cross-entropy on them, in nats, where they are of a text."""
    probed: int = 0
    """On how many sequences it was measured."""
    solved: bool = False


def learning_rate(config: TrainingConfig, step: int) -> float:
    """A linear rise over the warm-up, then constant, then falling: as 1/step, or in a line. Steps count from 1."""
    after, last = config.decay_after, config.max_steps
    fall = after / step if after else 1.0
    if after and config.decay == "linear":
        fall = (last - step + 1) / (last - after + 1) if after <= last else 1.0
    return config.learning_rate * min(1.0, step / max(1, config.warmup_steps), fall)


def steps_together(config: TrainingConfig, step: int, most: int, pace: float) -> int:
    """How many steps after `step` a GPU is left alone with, at `pace` seconds each: none after one that is measured."""
    due = 1 if step == 0 else config.evaluate_every - step % config.evaluate_every
    return max(1, min(most, due, config.max_steps - step, int(LATENCY / pace)))


def train(model: Network, config: RunConfig) -> Iterator[Step]:
    """Train a model, step by step, until the task is solved or `max_steps` is reached: `for step in train(…)`.

    The model is changed in place. It is in training mode between steps and in evaluation mode when all are done. Raises
    TrainingError when the loss is no longer a number.
    """
    training = Training(model, config)
    while not training.done:
        yield training.take_step()
    model.eval()


class Training:
    """A training between two steps: all that the next one depends on.

    AdamW, gradient clipping, a rate that may rise first and fall later. Solved means: what can be known of the answers
    is right in `solved_at` of all cases (`Aim`), twice in a row on fresh sequences. Nothing here draws from a global
    generator, so a training that is paused, or written down and restored (`transformer.training.resume`), takes the
    very same steps.
    """

    def __init__(self, model: Network, config: RunConfig, team: Team = ALONE) -> None:
        settings = config.training
        self.model, self.config, self.team = model, config, team
        self.task = config.build_task()
        self.device = next(model.parameters()).device
        self.step, self.seconds, self.in_a_row, self.last_norm = 0, 0.0, 0, math.nan
        self.rng = np.random.default_rng([settings.seed, TRAINING_STREAM])
        self.probe_rng = np.random.default_rng([settings.seed, EVALUATION_STREAM])
        self.noise = fresh_noise(self.device, settings.seed + team.rank)
        """State of the generator that dropout draws from."""
        self.aim = Aim(config)
        self._why_eager = why_eager(self.device, team)
        captured = not self._why_eager
        self.optimiser = AdamW(model.parameters(), settings)
        self._eager = EagerStep(team.wrap(model, self.device), self.optimiser, settings)
        self.capture = CudaGraph(self._eager, self.device, self.optimiser) if captured else None
        looks = captured and self.task.lawful and not config.model.recurrent
        self._look = CudaGraph(self._say, self.device) if looks else None
        # Shapes that vary would be captured anew each time, and make a GPU's memory grow.
        varies = self.device.type == "cuda" and config.task.min_length not in (None, config.task.length)
        self._pad_to = config.task.length if varies else None
        self._pace = 0.0
        """Seconds that each of the steps took that were waited for last."""

    @property
    def solved(self) -> bool:
        return self.in_a_row >= 2

    @property
    def done(self) -> bool:
        return self.solved or self.step >= self.config.training.max_steps

    @property
    def due(self) -> bool:
        """Is the step that was taken last one after which it is measured?"""
        settings = self.config.training
        return self.step == 1 or self.step % settings.evaluate_every == 0 or self.step == settings.max_steps

    def require_number(self, loss: float, rate: float) -> None:
        """Raises TrainingError when the loss of the present step is no longer a number."""
        if not math.isfinite(loss):
            before = f" (the gradient's norm was {self.last_norm:.3g} the step before)" if self.step > 1 else ""
            raise TrainingError(
                f"the loss is no longer a number at step {self.step}, learning rate {rate:g}{before}: "
                "try a smaller rate"
            )

    @property
    def stepping(self) -> str:
        """How steps are taken: captured in a CUDA graph, or eagerly, and why."""
        if self.capture is not None and self.capture.failure:
            return f"{UNCAPTURED} ({self.capture.failure})"
        return self._why_eager or CAPTURED

    def take_step(self) -> Step:
        """The next step, measured where it is its turn. Raises TrainingError when the loss is no longer a number."""
        return next(self.take_steps(1))

    def take_steps(self, most: int) -> Iterator[Step]:
        """The next steps, one on a CPU, and on a GPU up to `most` that are waited for together.

        They end with the one that is measured, or when `LATENCY` has passed; the model is that after the last of them
        when the first is yielded. Raises TrainingError once the loss is no longer a number.
        """
        settings, began = self.config.training, time.perf_counter()
        if not self.model.training:  # walking a model's modules takes as long as some operations on a GPU
            self.model.train()
        rates = [learning_rate(settings, self.step + 1 + i) for i in range(self._together(most))]
        losses, norms = self._update(rates)
        took = (time.perf_counter() - began) / len(rates)
        self._pace = took
        steps: list[Step] = []
        for rate, loss, norm in zip(rates, losses, norms, strict=True):
            self.step += 1
            try:
                self.require_number(loss, rate)
            except TrainingError:
                yield from steps
                raise
            self.last_norm = norm
            self.seconds += took
            steps.append(Step(self.step, loss, rate, norm, self.seconds, 1000 * took, solved=self.solved))
        if self.due:
            began = time.perf_counter()
            accuracy, probed, nats = self.measure()
            self.seconds += time.perf_counter() - began
            last = replace(steps[-1], accuracy=accuracy, held_out_loss=nats, probed=probed)
            steps[-1] = replace(last, seconds=self.seconds, solved=self.solved)
        yield from steps

    def _together(self, most: int) -> int:
        """How many steps are waited for together."""
        if self.device.type == "cpu" or self.team.size > 1 or not self._pace:
            return 1
        return steps_together(self.config.training, self.step, most, self._pace)

    def _update(self, rates: Sequence[float]) -> tuple[list[float], list[float]]:
        """Learn from a fresh batch at each rate: the losses, and the gradients' norms. Here alone a GPU is waited for.

        It computes while the next batch is drawn.
        """
        with self._own_noise():
            found = torch.stack([self._learn(self._draw(), rate) for rate in rates])
        losses, norms = found.T.tolist()
        return losses, norms

    def _draw(self) -> Batch:
        """The next batch."""
        padded = {} if self._pad_to is None else {"pad_to": self._pad_to}
        return self.task.batch(self.rng, self.config.training.batch_size, **padded)

    def _learn(self, batch: Batch, rate: float) -> Float[Tensor, "2"]:
        """Take a step with a batch: the loss, and the gradient's norm, where the model is."""
        settings = self.config.training
        if self.capture is not None:
            return self.capture(Inputs.of(batch, settings, torch.device("cpu")), rate)
        self.optimiser.rate = rate
        loss, norm = self._eager(Inputs.of(batch, settings, self.device, self.team))
        return torch.stack([self.team.mean(loss), norm])

    def measure(self) -> tuple[Float[np.ndarray, "target"], int, float | None]:
        """Accuracy by position on fresh sequences, on how many, and of a text the loss on them; is it solved?"""
        if not self.task.lawful:
            return read(self.model, self.task)
        return self.measure_on(self.fresh())

    def fresh(self) -> Batch:
        """The sequences of the next measurement, of the greatest length."""
        return self.task.fresh(self.probe_rng, PROBE_SEQUENCES, self.task.length)

    def measure_on(
        self, batch: Batch, said: Int[np.ndarray, "few position"] | None = None
    ) -> tuple[Float[np.ndarray, "target"], int, None]:
        """The same on sequences that were drawn; `said` is what it says to the first of them, or all, where known."""
        if said is None and self._look is not None:
            self.model.eval()
            said = self._look(Inputs.of(batch, self.config.training, torch.device("cpu"))).cpu().numpy()
        reached = False

        def may_be_solved(accuracy: Float[np.ndarray, "target"]) -> bool:
            nonlocal reached
            near = self.team.agree(int(self.aim.near(accuracy, FIRST_LOOK, CLOSE)))
            reached = bool(near and self.team.agree(int(self.aim.reached(self.model, self.probe_rng))))
            return reached

        accuracy, probed = probe(self.model, batch, may_be_solved, said)
        enough = reached and self.team.agree(int(self.aim.near(accuracy, probed)))
        self.in_a_row = self.in_a_row + 1 if enough else 0
        return accuracy, probed, None

    @torch.no_grad()
    def _say(self, inputs: Inputs) -> Int[Tensor, "few position"]:
        """The likeliest token at each position."""
        return self.model(inputs.tokens, inputs.source).argmax(dim=-1)

    @contextlib.contextmanager
    def _own_noise(self) -> Iterator[None]:
        """Let dropout, and the teacher's help, draw from this training's own generator."""
        if self.config.model.dropout == 0 and self.config.training.teacher_forcing == 1:
            yield
            return
        with drawing(device=self.device):
            _set_noise(self.device, self.noise)
            yield
            self.noise = _noise(self.device)


def probe(
    model: Network,
    batch: Batch,
    go_on: Callable[[Float[np.ndarray, "target"]], bool],
    said: Int[np.ndarray, "few position"] | None = None,
) -> tuple[Float[np.ndarray, "target"], int]:
    """Accuracy by position on sequences of one length, and on how many.

    A few are looked at first; `go_on`, asked with their accuracy, says whether the others are worth it. What is `said`
    to the first of them, or to all, may be known. All were drawn, so that measuring changes no later draw.
    """
    model.eval()
    few, others = slice(FIRST_LOOK), slice(FIRST_LOOK, None)
    said = predictions(model, batch.part(few)) if said is None else said
    right = said[few] == batch.targets[few]
    if go_on(right.mean(axis=0)):
        rest = said[others] if len(said) == len(batch.tokens) else predictions(model, batch.part(others))
        right = np.concatenate([right, rest == batch.targets[others]])
    model.train()
    return right.mean(axis=0), len(right)


def read(model: Network, task: Task) -> tuple[Float[np.ndarray, "target"], int, float]:
    """Let a model read some of what was held out, the same at each step: accuracy by position, windows, mean nats."""
    batch = task.fresh(np.random.default_rng(EVALUATION_STREAM), max(1, READ // task.n_ctx), task.length)
    model.eval()
    found = reading(model, batch)
    model.train()
    return found.right.mean(axis=0), len(found.right), float(found.nats.mean())


def fresh_noise(device: torch.device, seed: int) -> Tensor:
    """The state of a device's generator that begins with a seed."""
    with drawing(seed, device):
        return _noise(device)


def _noise(device: torch.device) -> Tensor:
    if device.type == "mps":
        return torch.mps.get_rng_state()
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()


def _set_noise(device: torch.device, state: Tensor) -> None:
    if device.type == "mps":
        torch.mps.set_rng_state(state)
    elif device.type == "cuda":
        torch.cuda.set_rng_state(state, device)
    else:
        torch.set_rng_state(state)
