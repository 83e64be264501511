"""Which heads are removed, and what removing each of them alone does to the model's own output."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from dashboard.app_pages.your_model.ablation import words
from dashboard.app_pages.your_model.ablation.settings import AblationSettings
from dashboard.components.plot import coloured, plot
from dashboard.figures.effects import cost_heatmap
from dashboard.models import imported
from dashboard.models.imported import Imported, Input, Look
from dashboard.parts import waiting
from dashboard.parts.prose import labels_of
from dashboard.parts.widgets import bound, controlled
from dashboard.view import session
from transformer.analysis.findings import Head

QUICK = 10.0
"""Seconds up to which every head is removed unasked."""


def chosen(seen: Look) -> tuple[Head, ...]:
    """The heads that the view removes; what it names in vain is left out, with a notice."""
    text = session.mine(AblationSettings).removed
    names = {str(head): head for head in seen.heads}
    wanted = [name for name in text.split(",") if name]
    known = [names[name] for name in wanted if name in names]
    if len(known) < len(wanted):
        session.notice("This model has no head of a name that the link removes; that one is left out.")
        _remove(known)
    return tuple(known)


def _remove(heads: Sequence[Head]) -> None:
    session.update(removed=",".join(map(str, dict.fromkeys(heads))))


def toggle(removed: Sequence[Head], head: Head) -> None:
    """Remove a head, or bring it back."""
    _remove([each for each in removed if each != head] if head in removed else [*removed, head])


def section(model: Imported, asked: Input, seen: Look, removed: Sequence[Head]) -> None:
    """The menu of heads, and the map of what each one's removal does."""
    labels = dict(zip(seen.heads, labels_of(seen.heads), strict=True))

    def picked(heads: list[Head]) -> None:
        _remove(heads)

    controlled(
        st.multiselect,
        "Removed heads",
        list(seen.heads),
        key="control-removed",
        value=list(removed),
        picked=picked,
        format_func=labels.__getitem__,
        placeholder="Choose heads",
        help="A removed head’s result is zero, before the heads are joined.",
    )
    if seen.answer is None:
        return
    seconds = imported.seconds_of(model, asked) * len(seen.heads)
    if seconds > QUICK and not bound(
        st.toggle,
        "Remove each head in turn",
        "removal",
        help=f"Takes about {seconds:.0f} s here: {len(seen.heads)} passes.",
    ):
        return
    work = imported.removals(model, asked)
    if (found := waiting.background.ready(work.future)) is None:
        waiting.until(
            work.future.done,
            lambda: st.progress(work.share, f"Removing head after head: {work.done} of {work.total} …"),
            news=lambda: (work.done, work.future.done()),
        )
        return
    _map(seen, found, removed)


def _map(seen: Look, costs: np.ndarray, removed: Sequence[Head]) -> None:
    """What each head's removal does, float [head], as a map; a click removes a head, or brings it back."""
    sites = list(seen.attentions)
    widest = max(len(attention.pattern) for attention in seen.attentions.values())
    table = np.full((len(sites), widest), np.nan)
    gone = np.zeros_like(table, dtype=bool)
    for head, cost in zip(seen.heads, costs, strict=True):
        table[sites.index(head.site), head.index] = cost
        gone[sites.index(head.site), head.index] = head in removed
    assert seen.answer is not None
    unit, meaning = words.MEASURE[seen.answer.kind]
    said = words.removal_sentence(labels_of(seen.heads), costs, unit)
    key = "imported-removal"

    def clicked() -> None:
        click = st.session_state[key]["click"] or {}
        row, column = click.get("row"), click.get("column")
        names = {str(head): head for head in seen.heads}
        if row is not None and column is not None and row < len(sites):
            head = names.get(f"{sites[row]}.{column}")
            if head is not None:
                toggle(removed, head)

    single = len({head.kind for head in seen.heads}) == 1
    rows = [
        f"layer {Head(site, 0).layer}" if single else f"{Head(site, 0).kind} {Head(site, 0).layer}" for site in sites
    ]
    figure = coloured(
        cost_heatmap, table, rows, gone, (f"{{}} {unit}", f"{{}} {unit}"), limit=float(np.nanmax(costs)) or 1.0
    )
    st.markdown(f"**{said}**")
    plot(figure, key=key, alt=said, height=min(620, 110 + 40 * len(sites)), on_click=clicked)
    st.caption(
        f"{meaning[0].upper()}{meaning[1:]}. A large change says that the output depends on this head here, not that "
        "it is better with it. Click a cell to remove that head, or to bring it back (✕ = removed)."
    )
