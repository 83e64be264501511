"""Rooms alone, as a process: `python -m tests.kit.rooms.server PORT`; they live where ATTENTION_LAB_ROOMS says."""

import sys

import uvicorn
from starlette.applications import Starlette

from dashboard.server import rooms

if __name__ == "__main__":
    app = Starlette(routes=rooms.routes("", rooms.place(), lambda: ""), lifespan=lambda _: rooms.running(rooms.place()))
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error", ws="none")
