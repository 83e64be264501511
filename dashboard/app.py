"""What `attention-lab run` and `streamlit run dashboard/app.py` start: the server. The pages begin in frame/main.py."""

import asyncio
import os
import sys
import time
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
from anyio import to_thread
from starlette.middleware import Middleware

from dashboard.components import scripts
from dashboard.components.documents import pages
from dashboard.frame import first_page
from dashboard.frame.style import style
from dashboard.models import menu
from dashboard.server import descriptors, entrance, http, news, roles, rooms, streamlit_private
from dashboard.server.sockets import answer_at_once
from dashboard.view.pages import OVERVIEW
from transformer.foundation.checks import ConfigError
from transformer.training.runs import ROOT

SWEEP = 3600.0
"""Seconds between two looks for folders of guests that nobody uses any more."""

try:
    rooms.place()
    others = roles.others_at_best()
    owners_link = "" if others == "owner" else f"{http.own_address()}/?token={roles.token()}"
except ConfigError as error:
    print(error, file=sys.stderr)
    raise SystemExit(2) from None


@asynccontextmanager
async def lifespan(app: Any) -> AsyncIterator[dict[str, Any]]:
    """Pay for PyTorch while nobody waits, keep a warm training process at hand, and mend what serves."""
    answer_at_once()
    streamlit_private.mend()
    descriptors.raise_limit()
    descriptors.leave_the_last_ones()
    first_page.make_ready()
    background.start()
    print(f"  Runs are kept in {ROOT}.", flush=True)
    if owners_link:
        print(f"  Others are {others}s here. The owner's link: {owners_link}", flush=True)
    sweeping = asyncio.create_task(forget_guests())
    async with rooms.running(rooms.place()):
        yield {}
    sweeping.cancel()
    background.stop()


async def forget_guests() -> None:
    """Delete what guests have left, again and again."""
    while True:
        await to_thread.run_sync(menu.forget_guests, time.time())
        await asyncio.sleep(SWEEP)


app = st.App(
    "frame/main.py",
    routes=[
        *http.routes(OVERVIEW.address),
        *pages.routes(),
        *news.routes(http.base()),
        *rooms.routes(http.base(), rooms.place(), pages.live_page, entrance.is_owner),
    ],
    middleware=[*http.middleware(style()), Middleware(scripts.Scripts, base=http.base())],
    lifespan=lifespan,
)
