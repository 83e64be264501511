"""The tabs of the pages that share one place in the menus, above the title of each."""

from __future__ import annotations

import streamlit as st

from dashboard.view import session
from dashboard.view.pages import Page


def strip(page: Page) -> None:
    """Draw a link to each of the pages that share this one's place; none for a page alone, and none in a lecture."""
    if len(page.tabs) == 1 or session.settings().lecture:
        return
    with st.container(horizontal=True, gap="small", key="tabs"):
        for each in page.tabs:
            st.page_link(each.script, label=each.title, icon=f":material/{each.icon}:", width="content")
