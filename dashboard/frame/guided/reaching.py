"""To another page together with another view: a step of a lecture and an exercise stand on a page of their own."""

from __future__ import annotations

import time

import streamlit as st

from dashboard.view.pages import PAGES, Page

LATE = 2.0
"""Seconds after a page was reached in which a request may still name the one before."""


def ask(address: str, *, held: bool = False) -> None:
    """Let the next rerun go to a page. It can be `held` for a while where keys lead from page to page."""
    st.session_state.wanted_page = address, None
    st.session_state.page_is_held = held


def reach(page: Page) -> None:
    """Go to the page that was asked for last, unless this is it.

    The browser names the page before with each request until it has heard of the new one. A live view's request on its
    way would bring that page back, also shortly after the new one was reached: so a page is held. Whoever goes
    elsewhere at once is kept there for that long.
    """
    if "wanted_page" not in st.session_state:
        return
    wanted, reached = st.session_state.wanted_page
    if wanted == page.address:
        if not st.session_state.page_is_held:
            del st.session_state["wanted_page"]
        elif reached is None:
            st.session_state.wanted_page = wanted, time.monotonic()
    elif reached is None or time.monotonic() - reached < LATE:
        st.switch_page(PAGES[wanted].script)
    else:
        del st.session_state["wanted_page"]
