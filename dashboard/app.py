"""What `streamlit run dashboard/app.py` starts: the server. The dashboard itself begins in main.py."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import streamlit as st

from dashboard import warm
from dashboard.assets import middleware, routes


@asynccontextmanager
async def lifespan(app: Any) -> AsyncIterator[dict[str, Any]]:
    """Pay for PyTorch while nobody waits: import it here, and keep a warm training process at hand."""
    warm.start()
    yield {}
    warm.stop()


app = st.App("main.py", routes=routes(), middleware=middleware(), lifespan=lifespan)
