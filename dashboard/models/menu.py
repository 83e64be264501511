"""The model menu: the runs of the folder, and what is read of each before it is opened."""

from __future__ import annotations

import contextlib
import re
import shutil
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from dashboard.models.on_the_spot import hidden, members
from dashboard.models.passages import known
from transformer.compiled import compiled_config
from transformer.config import RunConfig
from transformer.foundation.words import counted
from transformer.text.perplexity import said
from transformer.training.listing import Entry, Listing, entry_of, listing
from transformer.training.runs import ROOT, Run, State, folder_called, note_change

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
    """Of the part that its task is judged by, as measured when it was trained."""
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
        title = "no" if model.encoding.told == "nowhere" else model.encoding.title
        norm = f" · {model.other_norm}" if model.other_norm else ""
        rest = "" if model.recurrent else f" · {title} positions · mask {model.mask_label}{norm}"
        trained = f" · {counted(self.state.step, 'step')}" if self.name != COMPILED else ""
        shape = f"{model.shape}, d_model {model.d_model}{rest}{trained}"
        if task.text:
            read = "" if self.perplexity is None else " · perplexity of all that was held out"
            name = task.text.rpartition("-")[0]
            return f"{name}, {known(self.config.build_task())}, {length} tokens at a time · {shape}{read}"
        return f"{task.task}, length {length}, {known(self.config.build_task())} · {shape}"


FIRST = "reverse"
"""The run that is shown when a link names none."""
OPENING = "reverse-any"
"""The run on which the first page opens where no link is given, if it is there: it answers whatever one types."""


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


def of_guests() -> list[Entry]:
    """The runs of all guests, oldest first."""
    return [entry for folder in folders_of_guests() for entry in listing(folder).readable]


def forget_guests(now: float) -> None:
    """Delete the folders of guests in which nothing has changed for a day."""
    for folder in folders_of_guests():
        with contextlib.suppress(OSError):  # another server has just deleted it
            if now - max([folder.stat().st_mtime, *(each.state.heartbeat for each in listing(folder).readable)]) > DAY:
                shutil.rmtree(folder, ignore_errors=True)
                note_change()


def folders_of_guests() -> list[Path]:
    """Where guests' runs lie."""
    return sorted(path for path in (ROOT / GUESTS).glob("*") if path.is_dir())


def menu(guest: str = "", named: str = "", may_train: bool = True) -> dict[str, Choice]:
    """The model menu: the first of the shipped runs, the others, newest first, and the one compiled by hand.

    A guest's own stand among them, and the one that a link names, whosever it is, or a member of a population. One with
    a hidden mistake is there for whoever `may_train` it, or if somebody has.
    """
    found = dict(_choices(tuple(listing(root) for root in _roots(guest))))
    if named not in found and (OF_GUEST.fullmatch(named) or members.NAME.fullmatch(named)):
        entry = entry_of(run_called(named))
        choice = _choice(entry, named) if entry.steps else None
        member = bare_member(named)
        if choice is None and member is not None and members.may_be_seen(member, may_train):
            choice = _bare_choice(named, member)
        if choice is not None:
            found = _in_order(found | {named: choice})
    elif (number := hidden_number(named)) and hidden.may_be_seen(number, may_train):
        config = hidden.config(number)
        steps = config.training.max_steps
        found = _in_order(found | {named: Choice(named, config, State("finished", step=steps), None, (steps,))})
    return found | {COMPILED: Choice(COMPILED, compiled_config(), State("finished"), 1.0, (0,))}


@lru_cache(maxsize=64)
def _choices(looked: tuple[Listing, ...]) -> dict[str, Choice]:
    """The entries of the runs that can be looked at; made anew when one of them has changed."""
    entries = [entry for each in looked for entry in each.readable if entry.steps]
    return _in_order({entry.name: _choice(entry) for entry in entries})


def _in_order(found: dict[str, Choice]) -> dict[str, Choice]:
    """The first of the shipped runs, and the others, newest first."""
    order = sorted(found.items(), key=lambda item: (item[0] != FIRST, -item[1].state.heartbeat))
    return dict(order)


def with_weights(guest: str = "") -> list[str]:
    """The names of the runs that the menu is made of, by alphabet."""
    return sorted(name for each in _roots(guest) for name in _choices((listing(each),)))


def under_way(guest: str = "") -> list[Run]:
    """The readable trainings of the folder and a guest, also those without weights yet: the queued ones come last."""
    entries = (entry for root in _roots(guest) for entry in listing(root).entries)
    live = [entry for entry in entries if not entry.fault and entry.state.live and entry.run.under_way]
    return [entry.run for entry in sorted(live, key=lambda entry: entry.state.status == "queued")]


def _roots(guest: str) -> list[Path]:
    """The folders of a guest's menu: that of all, and the guest's own."""
    return [ROOT, *([folder_of(guest)] if guest else [])]


def _choice(entry: Entry, name: str = "") -> Choice:
    """A run's entry in the menu, by its folder's name or another."""
    return Choice(name or entry.name, entry.config, entry.state, entry.second_half, entry.steps, entry.perplexity)


def _bare_choice(name: str, member: members.Bare) -> Choice:
    """The entry of a population's member whose weights are not kept."""
    task, row = member.config.build_task(), member.row
    groups = task.groups(task.length)
    counted_of = [count for count, group in zip(row.correct, groups, strict=True) if group == task.part]
    share = sum(counted_of) / (len(counted_of) * row.sequences) if counted_of and row.sequences else None
    return Choice(name, member.config, State("finished", step=row.step), share, (row.step,))
