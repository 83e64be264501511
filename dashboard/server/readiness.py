"""Whether this server can be given people: the address `ready`, for whoever sends them here.

Streamlit's own `_stcore/health` says that the process lives: start it anew where that fails. This one says that a page
would open and a training would begin at once: send people elsewhere while it does not.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from dashboard.server import background, descriptors, roles
from transformer.training import runs

PATH = "/ready"
READY = "ready"


async def readiness(request: Request) -> Response:
    """200 and "ready", or 503 and one sentence on what is missing."""
    missing = await to_thread.run_sync(lacks)
    return PlainTextResponse(missing or READY, 503 if missing else 200, {"Cache-Control": "no-store"})


def lacks() -> str:
    """What is missing; empty when nothing is."""
    return _crowded() or _unwritable(runs.ROOT) or _cold()


def _crowded() -> str:
    """What is said while few more can come: before the next one is turned away."""
    few = descriptors.left() <= descriptors.SCARCE
    return "This server is nearly full: few file descriptors are left." if few else ""


def _unwritable(root: Path) -> str:
    """Why nothing can be kept in the folder of runs. Where all but the owner only look, it may be read-only."""
    if roles.asked() == "viewer":
        return "" if root.is_dir() else "The folder of runs is not there."
    try:
        with tempfile.TemporaryFile(dir=root) as file:
            file.write(b"ready")
    except OSError as error:
        return f"The folder of runs cannot be written: {error.strerror}."
    return ""


def _cold() -> str:
    """What this process still prepares, or cannot start."""
    if trouble := background.pool.trouble:
        return f"{trouble[0].upper()}{trouble[1:]}."
    if not any(worker.ready.is_set() for worker in list(background.pool.workers)):
        return "No training process is warm yet."
    return "" if background.torch() is not None else "PyTorch is not imported yet."
