"""Bring in a model that is not ours: what it is, all its heads on an input, and what sets each apart."""

import streamlit as st

from dashboard.app_pages.your_model.imported import opening, table, words
from dashboard.app_pages.your_model.imported.comparison import pick_reference, reference
from dashboard.figures.head_focus import View
from dashboard.models import imported
from dashboard.models.imported import Imported, Look
from dashboard.parts import imported as parts
from dashboard.parts.head_focus import draw_head, of_head
from dashboard.parts.heads import grid
from dashboard.parts.prose import orientation, show_code
from dashboard.parts.widgets import bound, late_title
from dashboard.view import imported as view
from dashboard.view import session
from transformer.analysis.findings import Head


def heads(model: Imported, seen: Look, head: Head, says: str) -> None:
    """All heads, and one of them large."""
    widest = max(len(attention.pattern) for attention in seen.attentions.values())
    left, right = st.container(key="heads-row").columns([1, 1.5 if widest <= 4 else 1], gap="medium")
    with left:
        help_ = "Off: colours go from 0 to 1. On: from 0 to the largest weight of each row."
        bound(st.toggle, "Scale each row", "by_row", help=help_)
        grid(seen.attentions, None, key="imported-heads", size=180, by_row=session.settings().by_row)
    with right:
        large(model, seen, head, says)
        pick_reference(seen, head)
        with of_head("explained"):
            st.caption(f"{orientation(head)} {words.called(seen, head)} {words.legend(seen, head)}")


def large(model: Imported, seen: Look, head: Head, says: str) -> None:
    """One head: its pattern with its arcs, ‖pattern · v‖ where values were seen, and the difference to another."""
    attention, detail = seen.attentions[head.site], seen.detail(head)
    pattern = attention.pattern[head.index]
    views = [View("pattern", "Pattern", pattern, 0.0, 1.0)]
    if detail is not None:
        written = detail.contribution(head.index)
        views.append(View("contribution", "Contribution: ‖pattern · v‖", written, 0.0, parts.most(written)))
    if other := reference(model, seen, head, says):
        difference = pattern - other.pattern
        most = parts.most(abs(difference))
        views.append(View("difference", f"Pattern − {other.words}", difference, -most, most))
    draw_head(seen.heads, head, detail or attention, views, key="head-pattern")


title = late_title()
chosen = view.chosen()
opening.bring_in(chosen)
if (foreign := parts.opened(chosen, title)) is not None:
    opening.facts(chosen, foreign)
    if (seen := parts.look(chosen, foreign, title)) is not None:
        measured = imported.metrics(chosen, view.asked(foreign.says))
        head = view.head(seen.heads, words.foremost(seen.heads, measured))
        with title, of_head("title"):
            st.title(words.headline(seen, measured, head), anchor=False)
        opening.unseen(seen)
        heads(chosen, seen, head, foreign.says)
        table.find_the_one(seen, measured, head)
        st.caption(words.LAWLESS)
        show_code("transformer.capturing.capture.capture", "transformer.capturing.metrics.measure")
