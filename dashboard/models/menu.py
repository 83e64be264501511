"""The model menu: the runs of the folder, and what is read of each before it is opened."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.models.passages import known
from transformer.compiled import compiled_config
from transformer.config import RunConfig
from transformer.foundation.words import counted
from transformer.text.perplexity import said
from transformer.training.runs import ROOT, State, list_runs

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
        """For the menu: the name, and how often it is right; of a reader, the perplexity. It fits into the sidebar."""
        if self.name == COMPILED:
            return "compiled by hand · exact"
        accuracy = "" if self.accuracy is None else f" · {self.accuracy:.3f}"
        if self.config.task.text:
            accuracy = "" if self.perplexity is None else f" · perplexity {said(self.perplexity)}"
        return f"{self.name}{accuracy}"

    def description(self) -> str:
        """For the line below: the task, the shape, the encoding, the mask, how long it was trained."""
        model, task = self.config.model, self.config.task
        length = f"{task.min_length} to {task.length}" if task.min_length else str(task.length)
        rest = (
            ""
            if model.recurrent
            else f" · {'ALiBi' if model.positions == 'alibi' else model.positions} positions · mask {model.mask_label}"
        )
        trained = f" · {counted(self.state.step, 'step')}" if self.name != COMPILED else ""
        shape = f"{model.shape}, d_model {model.d_model}{rest}{trained}"
        if task.text:
            read = "" if self.perplexity is None else " · perplexity of all that was held out"
            name = task.text.rpartition("-")[0]
            return f"{name}, {known(self.config.build_task())}, {length} tokens at a time · {shape}{read}"
        return f"{task.task}, length {length}, {known(self.config.build_task())} · {shape}"


FIRST = "reverse"
"""The run that is shown when a link names none."""


def menu() -> dict[str, Choice]:
    """The model menu: the first of the shipped runs, the others, newest first, and the one compiled by hand."""
    found = {}
    for run in list_runs(ROOT):
        steps = tuple(run.snapshots())
        if steps:
            measured = run.evaluation or {}
            found[run.name] = Choice(
                run.name, run.config, run.state, measured.get("second_half"), steps, measured.get("perplexity")
            )
    first = {name: found.pop(name) for name in (FIRST,) if name in found}
    others = dict(sorted(found.items(), key=lambda item: item[1].state.heartbeat, reverse=True))
    compiled = Choice(COMPILED, compiled_config(), State("finished"), 1.0, (0,))
    return {**first, **others, COMPILED: compiled}
