"""What `streamlit run dashboard/app.py` starts: the server. The dashboard itself begins in main.py."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from dashboard.server import background

# One thread for PyTorch, in this process and its workers: for models of this size a second one gains nothing, and
# beside a busy core it loses everything (measured: 0.24 s became 4.5 s). It has to be said before torch is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Before any page: Plotly looks at pandas wherever it finds it, even half imported by the page of another session.
import pandas  # noqa: F401
import streamlit as st

from dashboard.components.documents import pages
from dashboard.server import http, rooms
from dashboard.server.sockets import answer_at_once
from dashboard.server.streamlit_private import let_one_run_at_the_state, send_nothing_into_a_block_that_was_dropped
from dashboard.view.pages import OVERVIEW
from transformer.foundation.checks import ConfigError

try:
    rooms.place()
except ConfigError as error:
    print(error, file=sys.stderr)
    raise SystemExit(2) from None


@asynccontextmanager
async def lifespan(app: Any) -> AsyncIterator[dict[str, Any]]:
    """Pay for PyTorch while nobody waits, keep a warm training process at hand, and mend what serves."""
    answer_at_once()
    let_one_run_at_the_state()
    send_nothing_into_a_block_that_was_dropped()
    background.start()
    async with rooms.running(rooms.place()):
        yield {}
    background.stop()


app = st.App(
    "main.py",
    routes=[
        *http.routes(OVERVIEW.address),
        *pages.routes(),
        *rooms.routes(http.base(), rooms.place(), pages.live_page),
    ],
    middleware=http.middleware(),
    lifespan=lifespan,
)
