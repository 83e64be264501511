"""The model menu: the runs of the folder, and what is read of each before it is opened."""

from __future__ import annotations

import contextlib
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from dashboard.models.on_the_spot import hidden, members
from dashboard.models.passages import known
from transformer.compiled import compiled_config
from transformer.config import RunConfig
from transformer.foundation.words import counted
from transformer.text.perplexity import said
from transformer.training.runs import ROOT, Run, RunError, State, folder_called, folders, list_runs

COMPILED = "compiled"
GUESTS = ".guests"
"""The folder, below that of the runs, in which each guest has one."""
OF_GUEST = re.compile(r"[^@/\\]+@([a-z0-9]{6})")
"""The name of a guest's run: it ends with the guest's own."""
DAY = 86_400.0
"""Seconds after its last change for which a guest's folder is kept."""


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
        if hidden_number(self.name):
            return "a hidden mistake"
        accuracy = "" if self.accuracy is None else f" · {self.accuracy:.3f}"
        if self.config.task.text:
            accuracy = "" if self.perplexity is None else f" · perplexity {said(self.perplexity)}"
        if OF_GUEST.fullmatch(self.name):  # whose name would leave no room for the accuracy
            return f"{self.name.rpartition('@')[0]}{accuracy} · guest's"
        if members.NAME.fullmatch(self.name):
            return f"{self.name.partition('/')[2]}{accuracy} · of a population"
        return f"{self.name}{accuracy}"

    def description(self) -> str:
        """For the line below: the task, the shape, the encoding, the mask, how long it was trained."""
        model, task = self.config.model, self.config.task
        length = f"{task.min_length} to {task.length}" if task.min_length else str(task.length)
        rest = (
            ""
            if model.recurrent
            else f" · {'ALiBi' if model.positions == 'alibi' else model.positions} positions · mask {model.mask_label}"
            f"{f' · {model.other_norm}' if model.other_norm else ''}"
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


def run_called(name: str) -> Run:
    """The run of a name, a guest's in the guest's folder; whether there is one is not asked."""
    found = OF_GUEST.fullmatch(name)
    if found is None or (ROOT / name).exists():
        return Run(folder_called(name, ROOT))
    return Run(folder_of(found[1]) / name)


def is_stored(name: str) -> bool:
    """Is a model of the menu a run in a folder, and not one that is made on the spot?"""
    return name != COMPILED and hidden_number(name) is None and bare_member(name) is None


def hidden_number(name: str) -> int | None:
    """The number of the hidden mistake that a name of the menu stands for; a run of this name comes first."""
    number = hidden.number_of(name)
    return None if number is None or (ROOT / name).exists() else number


def bare_member(name: str) -> members.Bare | None:
    """The member of a population that a name of the menu stands for, where its weights are not kept."""
    return members.bare(ROOT, name)


def folder_of(guest: str) -> Path:
    """Where the runs of a guest lie; of nobody in particular, where all others do."""
    return ROOT / GUESTS / guest if guest else ROOT


def guest_of(run: Run) -> str:
    """Which guest's a run is; empty where it is no guest's."""
    return run.folder.parent.name if run.folder.parent.parent == ROOT / GUESTS else ""


def runs_of_guests() -> list[Run]:
    """The runs of all guests, oldest first."""
    return [run for folder in folders_of_guests() for run in list_runs(folder)]


def forget_guests(now: float) -> None:
    """Delete the folders of guests in which nothing has changed for a day."""
    for folder in folders_of_guests():
        with contextlib.suppress(OSError):  # another server has just deleted it
            if now - max([folder.stat().st_mtime, *(run.state.heartbeat for run in list_runs(folder))]) > DAY:
                shutil.rmtree(folder, ignore_errors=True)


def folders_of_guests() -> list[Path]:
    """Where guests' runs lie."""
    return sorted(path for path in (ROOT / GUESTS).glob("*") if path.is_dir())


def menu(guest: str = "", named: str = "", may_train: bool = True) -> dict[str, Choice]:
    """The model menu: the first of the shipped runs, the others, newest first, and the one compiled by hand.

    A guest's own stand among them, and the one that a link names, whosever it is, or a member of a population. One with
    a hidden mistake is there for whoever `may_train` it, or if somebody has.
    """
    found = {}
    for run in [*list_runs(ROOT), *(list_runs(folder_of(guest)) if guest else ())]:
        if (choice := _choice(run)) is not None:
            found[run.name] = choice
    if named not in found and (OF_GUEST.fullmatch(named) or members.NAME.fullmatch(named)):
        try:
            choice = _choice(run_called(named), named)
        except RunError:
            choice = None
        member = bare_member(named)
        if choice is None and member is not None and members.may_be_seen(member, may_train):
            choice = _bare_choice(named, member)
        if choice is not None:
            found[named] = choice
    elif (number := hidden_number(named)) and hidden.may_be_seen(number, may_train):
        config = hidden.config(number)
        steps = config.training.max_steps
        found[named] = Choice(named, config, State("finished", step=steps), None, (steps,))
    first = {name: found.pop(name) for name in (FIRST,) if name in found}
    others = dict(sorted(found.items(), key=lambda item: item[1].state.heartbeat, reverse=True))
    compiled = Choice(COMPILED, compiled_config(), State("finished"), 1.0, (0,))
    return {**first, **others, COMPILED: compiled}


def with_weights(guest: str = "") -> list[str]:
    """The names of the runs that the menu is made of, by alphabet: a run is listed without being read."""
    return sorted(run.name for run in _runs(guest) if any((run.folder / "snapshots").glob("step-*.safetensors")))


def under_way(guest: str = "") -> list[Run]:
    """The readable trainings of the folder and a guest, also those without weights yet: the queued ones come last."""
    live = [run for run in _runs(guest) if run.under_way]  # mostly none, and then nothing is read
    readable = {run.folder for folder in {run.folder.parent for run in live} for run in list_runs(folder)}
    return sorted((run for run in live if run.folder in readable), key=lambda run: run.state.status == "queued")


def _runs(guest: str) -> list[Run]:
    """What lies in the folder and in a guest's own, whether it can be read or not."""
    roots = [ROOT, *([folder_of(guest)] if guest else [])]
    return [Run(folder) for root in roots for folder in sorted(folders(root))]


def _choice(run: Run, name: str = "") -> Choice | None:
    """A run's entry, by its folder's name or another; None as long as it has no weights. Raises RunError where it is
    none."""
    steps, measured = tuple(run.snapshots()), run.evaluation or {}
    if not steps:
        return None
    return Choice(
        name or run.name, run.config, run.state, measured.get("second_half"), steps, measured.get("perplexity")
    )


def _bare_choice(name: str, member: members.Bare) -> Choice:
    """The entry of a population's member whose weights are not kept."""
    task, row = member.config.build_task(), member.row
    half = [group == "second half" for group in task.groups(task.length)]
    counted_of = [count for count, chosen in zip(row.correct, half, strict=True) if chosen]
    share = sum(counted_of) / (len(counted_of) * row.sequences) if counted_of and row.sequences else None
    return Choice(name, member.config, State("finished", step=row.step), share, (row.step,))
