"""The table of runs, and what can be done with one: open, rename, delete and have back, carry away and bring in."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.app_pages.training.runs import rows
from dashboard.app_pages.training.runs.columns import COLUMNS, Subject
from dashboard.app_pages.training.runs.comparison import part_of
from dashboard.app_pages.training.runs.figures.curves import MOST_RUNS
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
        column_config={name: each.config(part, every[name]) for name, each in COLUMNS.items()},
        alt=page.words if page.is_part else f"Table of {len(names)} runs.",
    )
    rows.turn_pages(page)
    if elsewhere:
        st.caption(f"Compared as well, but not among these rows: {plain(', '.join(elsewhere))}.")
    st.caption(
        f"Tick up to {MOST_RUNS} runs to compare them. “Changed” is what differs from the run before it with the same "
        "task."
    )


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
    frame = pd.DataFrame(found[::-1], columns=list(COLUMNS))
    return frame.astype({name: each.kind for name, each in COLUMNS.items() if each.kind})


@lru_cache(maxsize=2**13)
def _row(run: Entry, before: Entry | None, metrics: object) -> dict[str, Any]:
    """What the table says of a run, its metrics being of this version, beside the run before it; to be read only."""
    changed = "" if before is None else ", ".join(changes(run.config, before.config)) or "nothing"
    subject = Subject(run, run.run.last(), changed or "first of its task")
    return {name: each.value(subject) for name, each in COLUMNS.items()}


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
    for key in ("watched", "found", "taken_over", "awaited", "replay"):
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
