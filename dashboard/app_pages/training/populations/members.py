"""The members of a population: a table of them, and how one is opened on every page."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard.app_pages.training.populations.measured import Counted
from dashboard.app_pages.training.populations.words import setting_title, value_name
from dashboard.models import menu
from dashboard.parts.prose import plain
from dashboard.parts.tables import ticked_table
from dashboard.view import clicks, permission, session
from transformer.analysis.findings import Head
from transformer.experiments.populations.table import TABLE


def open_member(found: Counted, member: str, place: str) -> None:
    """Look at a member on every page, its working head in focus, and say so at a place; or why that cannot be."""
    name = f"{found.name}/{member}"
    if name in menu.menu(named=name, may_train=permission.may_train()):
        session.open_run(name, head=found.found.rows[member].working or "")
        again = "" if menu.is_stored(name) else " Its weights are not kept: it is trained again, from its seed."
        said = f"Every page shows {member} now.{again}"
    else:
        said = f"{member} cannot be opened: it has no weights."
        if not permission.may_train():
            said = f"{said} Somebody who may train has to open it first."
    session.notice(said, place)
    clicks.touch()


def told(place: str) -> None:
    """What the last click at a place came to."""
    for text in session.notices(place):
        st.info(plain(text), icon=":material/visibility:")


def table(found: Counted) -> None:
    """Every member that has ended, a row each; a tick opens it."""
    st.header("All members", anchor=False)
    frame = frame_of(found)
    if frame.empty:
        st.caption("No member has ended yet.")
        return
    names = list(frame["member"])
    opened = session.settings().run.removeprefix(f"{found.name}/")
    column = st.column_config
    ticked_table(
        frame,
        names,
        [opened],
        lambda ticked: open_member(found, ticked[0], TABLE) if ticked else None,
        key="members-table",
        mode="single-row",
        placeholder="",
        column_config={
            "member": None,
            "seed": column.NumberColumn("Seed", format="localized"),
            **{name: column.TextColumn(setting_title(name)) for name in found.varied},
            "status": column.TextColumn("Status"),
            "solved": column.CheckboxColumn("Solved"),
            "steps": column.NumberColumn("Steps", format="localized", help="Steps that were taken"),
            "exact": column.NumberColumn(
                "Exact match", format="%.3f", help="Share of whole answers right, on fresh sequences"
            ),
            "head": column.TextColumn(
                "Working head", help="The head that looks most at the token to say next, layer.head"
            ),
            "reason": column.TextColumn("How it ended"),
        },
        alt=f"Table of {len(names)} members.",
    )
    told(TABLE)
    st.caption(
        f"Tick a member to open it on every page. The same table, with every count, is the file {TABLE} in the folder "
        f"{plain(found.name)}."
    )


def frame_of(found: Counted) -> pd.DataFrame:
    """What the table shows, combination by combination, seed by seed."""
    rows = []
    for each in found.combinations:
        for row in each.rows:
            head = row.working
            rows.append(
                {
                    "member": row.member,
                    "seed": each.seeds[row.member],
                    **{name: value_name(name, value) for name, value in each.settings.items()},
                    "steps": row.step,
                    "solved": row.solved,
                    "exact": row.exact / row.sequences if row.sequences else None,
                    "head": Head.parse(head).short if head else "",
                    "status": row.status,
                    "reason": row.reason,
                }
            )
    columns = ["member", "seed", *found.varied, "steps", "solved", "exact", "head", "status", "reason"]
    return pd.DataFrame(rows, columns=columns).astype({"exact": "float64"})
