"""What `streamlit run dashboard/app.py` starts: the server. The dashboard itself begins in main.py."""

import os
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

from dashboard.server.http import middleware, routes
from dashboard.server.sockets import answer_at_once
from dashboard.view.pages import OVERVIEW


@asynccontextmanager
async def lifespan(app: Any) -> AsyncIterator[dict[str, Any]]:
    """Pay for PyTorch while nobody waits: import it here, and keep a warm training process at hand."""
    answer_at_once()
    background.start()
    yield {}
    background.stop()


app = st.App("main.py", routes=routes(OVERVIEW.address), middleware=middleware(), lifespan=lifespan)
