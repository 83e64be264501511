"""To another page together with another view: a step of a lecture and an exercise stand on a page of their own."""

from __future__ import annotations

import time

import streamlit as st

from dashboard.view.pages import PAGES, Page

LATE = 2.0
"""Seconds after a page was reached in which a request may still name the one before."""


def ask(address: str) -> None:
    """Let the next rerun go to a page."""
    st.session_state.wanted_page = address, None


def reach(page: Page) -> None:
    """Go to the page that was asked for last, unless this is it.

    The browser names the page before with each request until it has heard of the new one. A timer's request that was on
    its way would bring that page back, also shortly after the new one was reached.
    """
    wanted, reached = st.session_state.get("wanted_page", (page.address, None))
    if wanted == page.address:
        if reached is None and "wanted_page" in st.session_state:
            st.session_state.wanted_page = wanted, time.monotonic()
    elif reached is None or time.monotonic() - reached < LATE:
        st.switch_page(PAGES[wanted].script)
    else:
        del st.session_state["wanted_page"]
