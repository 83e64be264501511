"""An entry of the model menu: a run, and what one reads of it before it is opened."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.passages import known
from transformer.config import RunConfig
from transformer.text.perplexity import said
from transformer.training.runs import State

COMPILED = "compiled"


@dataclass(frozen=True)
class Choice:
    """An entry of the model menu."""

    name: str
    config: RunConfig
    state: State
    accuracy: float | None
    """Second half of the answer, as measured when it was trained."""
    snapshots: tuple[int, ...]
    perplexity: float | None = None
    """Of what was held out of the text that it reads."""

    def label(self) -> str:
        """For the menu: the name, the step, and how often it is right; of a reader, the perplexity."""
        if self.name == COMPILED:
            return "compiled by hand · exact"
        accuracy = "" if self.accuracy is None else f" · {self.accuracy:.3f}"
        if self.config.task.text:
            accuracy = "" if self.perplexity is None else f" · perplexity {said(self.perplexity)}"
        return f"{self.name}{accuracy} · step {self.state.step}"

    def description(self) -> str:
        """For the line below: the task, the shape, the encoding, the mask."""
        model, task = self.config.model, self.config.task
        length = f"{task.min_length} to {task.length}" if task.min_length else str(task.length)
        rest = "" if model.recurrent else f" · {model.positions} positions · mask {model.mask_label}"
        shape = f"{model.shape}, d_model {model.d_model}{rest}"
        if task.text:
            read = "" if self.perplexity is None else " · perplexity of all that was held out"
            name = task.text.rpartition("-")[0]
            return f"{name}, {known(self.config.build_task())}, {length} tokens at a time · {shape}{read}"
        return f"{task.task}, length {length}, {known(self.config.build_task())} · {shape}"
