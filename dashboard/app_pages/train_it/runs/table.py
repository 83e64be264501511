"""The table of runs, and what can be done with one: open, rename, delete and have back, carry away and bring in."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.app_pages.train_it.runs import rows
from dashboard.app_pages.train_it.runs.comparison import part_of
from dashboard.app_pages.train_it.runs.figures.curves import MOST_RUNS
from dashboard.models import menu
from dashboard.parts.prose import plain
from dashboard.parts.tables import ticked_table
from dashboard.parts.widgets import barred, controlled
from dashboard.view import clicks, permission, session, training
from transformer.foundation.checks import UserError
from transformer.training import library
from transformer.training.exchange import archive
from transformer.training.library import LibraryError, changes
from transformer.training.listing import Entry
from transformer.training.runs import Run, RunError

DONE, FAILED = "done", "failed"
"""Where it is said what an action came to."""
LETTER, WIDEST = 7, 1200
"""Pixels of a letter in the table, and of its widest column."""
LARGEST = archive.MOST_BYTES // 2**20
"""Megabytes of the largest file that is read."""


def table(runs: Sequence[Entry], compared: Sequence[str], choose: Callable[[list[str]], None]) -> None:
    """All runs, the newest first, or a page of them; those that are ticked are compared."""
    every, part = frame_of(runs), part_of(run.config.task for run in runs)
    page = rows.chosen_page(every, part)
    frame, names = page.frame, list(page.frame["name"])
    elsewhere = [name for name in compared if name not in names]

    def ticked(found: list[str]) -> None:
        kept = [name for name in compared if name in found or name in elsewhere]
        wanted = [*kept, *(name for name in found if name not in kept)]
        if len(wanted) > MOST_RUNS:
            session.notice(f"At most {MOST_RUNS} runs can be compared. Untick one first.")
        choose(wanted)

    ticked_table(
        frame,
        names,
        compared,
        ticked,
        key="runs-table",
        mode="multi-row",
        placeholder="",
        column_config={
            "name": st.column_config.TextColumn("Run", width=190),
            "changed": st.column_config.TextColumn(
                "Changed", width=_room(every["changed"]), help="What differs from the run before it with the same task"
            ),
            "accuracy": st.column_config.NumberColumn(
                part.capitalize(), format="%.3f", help=f"Accuracy of the {part}, on 4,096 fresh sequences"
            ),
            "perplexity": st.column_config.NumberColumn(
                "Perplexity",
                format="localized",
                help="Of a run that reads a text: measured on all of the text that was held out",
            ),
            "solved": st.column_config.NumberColumn(
                "Solved at",
                format="localized",
                help="The step at which a run had right all that can be known under its mask, in the share that its "
                "settings ask for (“solved at”). Where lengths vary or an answer can be known in part, that is "
                "measured against the best guess.",
            ),
            "steps": st.column_config.NumberColumn("Steps", format="localized"),
            "seconds": st.column_config.NumberColumn("Seconds", format="%.1f", help="Spent on training"),
            "device": st.column_config.TextColumn("Device", width=110),
            "status": st.column_config.TextColumn("Status"),
            "created": st.column_config.DatetimeColumn("Created", format="YYYY-MM-DD HH:mm", width=150),
        },
        alt=page.words if page.is_part else f"Table of {len(names)} runs.",
    )
    rows.turn_pages(page)
    if elsewhere:
        st.caption(f"Compared as well, but not among these rows: {plain(', '.join(elsewhere))}.")
    st.caption(
        f"Tick up to {MOST_RUNS} runs to compare them. “Changed” is what differs from the run before it with the same "
        "task."
    )


def _room(texts: Sequence[str]) -> int:
    """Pixels for a column of texts: the longest is not cut, up to WIDEST."""
    return min(WIDEST, 40 + LETTER * max(map(len, texts), default=0))


def frame_of(runs: Sequence[Entry]) -> pd.DataFrame:
    """What the table shows, the newest run first; to be read only."""
    return _frame_of(tuple(runs), tuple(run.metrics_version() for run in runs))


@lru_cache(maxsize=8)
def _frame_of(runs: tuple[Entry, ...], metrics: tuple[object, ...]) -> pd.DataFrame:
    found: list[dict[str, Any]] = []
    before: dict[str, Entry] = {}
    for run, version in sorted(zip(runs, metrics, strict=True), key=lambda each: (each[0].created, each[0].name)):
        found.append(_row(run, before.get(run.config.task.task), version))
        before[run.config.task.task] = run
    names = [
        "name",
        "accuracy",
        "perplexity",
        "solved",
        "steps",
        "seconds",
        "device",
        "status",
        "created",
        "changed",
    ]
    frame = pd.DataFrame(found[::-1], columns=names)
    return frame.astype(
        {"solved": "Int64", "steps": "Int64", "accuracy": "float64", "perplexity": "float64", "seconds": "float64"}
    )


@lru_cache(maxsize=2**13)
def _row(run: Entry, before: Entry | None, metrics: object) -> dict[str, Any]:
    """What the table says of a run, its metrics being of this version, beside the run before it; to be read only."""
    config, last = run.config, run.run.last()
    changed = None if before is None else ", ".join(changes(config, before.config)) or "nothing"
    return {
        "name": run.name,
        "changed": changed or "first of its task",
        "accuracy": None if config.task.text else _number(run.second_half),
        "perplexity": _number(run.perplexity, 1),
        "solved": _number(last.get("step") if last.get("solved") else None),
        "steps": _number(last.get("step", 0)),
        "seconds": _number(last.get("seconds", 0.0)),
        "device": run.device,
        "status": run.state.status,
        "created": _when(run.created),
    }


def _number(value: Any, digits: int | None = None) -> float | int | None:
    """What a run folder says, to so many digits, if it is a number at all."""
    good = isinstance(value, int | float) and math.isfinite(value)
    return None if not good else value if digits is None else round(value, digits)


def _when(created: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(created)
    except (ValueError, OverflowError, OSError):
        return None


def actions(runs: Sequence[Entry], compared: Sequence[str], choose: Callable[[list[str]], None]) -> None:
    """What can be done with one run, and a way back from deleting it."""
    names = [run.name for run in reversed(runs)]
    if names:
        key = "shelf-run"
        # Said in every rerun: one that overtakes the first would leave the browser with the first of the names.
        wanted = (st.session_state.get(key), session.settings().run)
        st.session_state[key] = next((name for name in wanted if name in names), names[0])
        left, right = st.columns(2, gap="medium", vertical_alignment="bottom")
        name = left.selectbox("Run", names, key=key)
        run = next(each.run for each in runs if each.name == name)
        _rename(right, run, compared, choose)
        _buttons(run, compared, choose)
    _undo()
    _said()
    _upload()


def _rename(place: Any, run: Run, compared: Sequence[str], choose: Callable[[list[str]], None]) -> None:
    def renamed(typed: str) -> None:
        name = typed.strip()
        if not run.folder.is_dir():
            return  # it has moved: the browser may send a field once more that has just gone
        guest = menu.guest_of(run)
        if guest:  # whose runs are found by its own name at their end
            name = f"{name.removesuffix(f'@{guest}').replace('@', '')}@{guest}"
        try:
            permission.require(permission.to_change(run))
            new = library.rename(run, name)
        except UserError as error:
            _tell(f"{run.name} was not renamed: {error}.", FAILED)
            return
        if new == run:
            return
        st.session_state["shelf-run"] = new.name
        if session.settings().run == run.name:
            session.update(run=new.name)
        choose([new.name if each == run.name else each for each in compared])
        _forget(run, new.name)
        _tell(f"{run.name} is now called {new.name}.", DONE)

    controlled(
        place.text_input,
        "Rename it",
        key=f"shelf-name-{run.name}",
        value=run.name,
        picked=renamed,
        disabled=bool(_busy(run)),
        help="Press Enter to rename it",
    )


def _buttons(run: Run, compared: Sequence[str], choose: Callable[[list[str]], None]) -> None:
    busy, missing = _busy(run), "" if run.snapshots() else f"{run.name} has no weights yet"

    def opened() -> None:
        session.open_run(run.name)
        _tell(f"Every page shows {run.name} now.", DONE)

    def deleted() -> None:
        try:
            permission.require(permission.to_change(run))
            library.delete(run)
        except UserError as error:
            _tell(f"{run.name} was not deleted: {error}.", FAILED)
            return
        choose([name for name in compared if name != run.name])
        _forget(run, None)

    one, two, three, four = st.columns(4, gap="small")
    one.button(
        "Open", icon=":material/visibility:", on_click=opened, disabled=bool(missing), width="stretch", key="open"
    )
    packable = archive.obstacle(run)
    two.download_button(
        "Download",
        lambda: archive.pack(run),
        f"{run.name}{archive.SUFFIX}",
        "application/zip",
        on_click="ignore",
        icon=":material/download:",
        disabled=bool(packable),
        width="stretch",
        help="The whole run as one file",
        key="download",
    )
    three.button(
        "Delete", icon=":material/delete:", on_click=deleted, disabled=bool(busy), width="stretch", key="delete"
    )
    if run.state.live:
        four.button(
            "Stop it",
            icon=":material/stop:",
            on_click=training.stop,
            args=(run,),
            width="stretch",
            key="stop-it",
            **barred(permission.to_change(run)),
        )
    for reason in dict.fromkeys(filter(None, (busy, packable, missing))):
        st.caption(f":material/info: {plain(reason)}.")


def _undo() -> None:
    """The way back from the newest deletion, for as long as the trash has it."""
    someone = permission.visitor()
    folders = [menu.folder_of(someone.name)] if someone.name or someone.role == "owner" else []
    if someone.role == "owner":  # who deletes a guest's, too
        folders += menu.folders_of_guests()
    found = [trashed for folder in folders for trashed in library.trash(folder)]
    if not found:
        return
    newest = max(found, key=lambda trashed: trashed.deleted)

    def undone() -> None:
        try:
            run = library.restore(newest)
        except LibraryError as error:
            _tell(f"It could not be brought back: {error}.", FAILED)
            return
        st.session_state["shelf-run"] = run.name
        _tell(f"{run.name} is back.", DONE)

    words, button = st.columns([3, 1], vertical_alignment="center")
    words.caption(f":material/delete: {plain(newest.name)} was deleted {ago(time.time() - newest.deleted)}.")
    button.button("Undo", icon=":material/undo:", on_click=undone, width="stretch", key="undo")


def _upload() -> None:
    """A box for a packed run, folded away: Streamlit's own has a role that a screen reader stumbles over."""
    folded = st.expander("Add a run from a file", icon=":material/upload:", on_change="rerun", key="bring-in")
    if not folded.open:
        return
    why = permission.for_the_owner("add runs from a file")
    count = st.session_state.setdefault("uploads", 0)
    key = f"shelf-upload-{count}"

    def uploaded() -> None:
        file = st.session_state[key]
        if file is None or st.session_state.uploads != count:
            return  # nothing, or sent once more
        st.session_state.uploads = count + 1  # an empty box for the next one
        if why:
            return
        try:
            run = archive.unpack(file, menu.ROOT, archive.name_of(file.name))
        except (LibraryError, RunError) as error:
            _tell(f"{file.name} was not added: {error}.", FAILED)
            return
        st.session_state["shelf-run"] = run.name
        _tell(f"{run.name} was added.", DONE)

    folded.file_uploader(
        f"One {archive.SUFFIX} file",
        type="zip",
        key=key,
        on_change=uploaded,
        max_upload_size=LARGEST,
        disabled=bool(why),
    )
    if why:
        folded.caption(f":material/info: {why}")
        return
    folded.caption(f"At most {LARGEST} MB. A larger run travels as a folder: copy it into the folder of runs.")


def _busy(run: Run) -> str:
    """Why a run is to be left alone now; empty when it may be moved."""
    if why := permission.to_change(run):
        return why.removesuffix(".")
    return f"{run.name} is {run.state.status}: stop it first" if run.under_way else ""


def _forget(run: Run, name: str | None) -> None:
    """Let nothing in this session go on looking for a folder that has moved."""
    for key in ("watched", "found", "taken_over", "awaited"):
        if st.session_state.get(key) == run.name:
            if name is None:
                st.session_state.pop(key)
            else:
                st.session_state[key] = name


def ago(seconds: float) -> str:
    """How long ago, in words."""
    for unit, length in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= length:
            count = int(seconds // length)
            return f"{count} {unit}{'s' * (count > 1)} ago"
    return "just now"


def _tell(text: str, place: str) -> None:
    session.notice(text, place)
    clicks.touch()


def _said() -> None:
    """What the last action came to."""
    for text in session.notices(DONE):
        st.success(plain(text), icon=":material/check_circle:")
    for text in session.notices(FAILED):
        st.error(plain(text), icon=":material/error:")
