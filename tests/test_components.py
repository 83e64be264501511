"""The Python side of the two web components, and what the server adds to Streamlit."""

import asyncio
import gzip
import json
import re
import tomllib
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import plotly
import plotly.graph_objects as go
import pytest
from starlette.applications import Starlette
from streamlit import config
from streamlit.testing.v1 import AppTest

from dashboard import assets
from dashboard.components import registration
from dashboard.components.head_grid import EXACT_CELLS, Panel, pack_panels
from dashboard.components.payload import pack, unpack
from dashboard.components.plot import pack_figure

COLOURS = np.arange(768, dtype=np.uint8).reshape(256, 3)
LOOKS = {
    "key": "heads",
    "focus": 0,
    "alt": "Patterns.",
    "dark": False,
    "colours": COLOURS,
    "forbidden": (200, 201, 202),
}


def panel(column: int = 0, queries: int = 3, keys: int = 4, masked: bool = True) -> Panel:
    random = np.random.default_rng(column)
    return Panel(
        name=f"0.{column}",
        group="decoder self-attention",
        row=0,
        column=column,
        pattern=random.random((queries, keys), dtype=np.float32),
        mask=np.tril(np.ones((queries, keys), dtype=bool)) if masked else None,
        queries=tuple(str(i) for i in range(queries)),
        keys=tuple(f"k{i}" for i in range(keys)),
    )


# Server


def run(answer: Coroutine[Any, Any, None]) -> None:
    """To its end, in a thread of its own: where a browser is driven, this one has an event loop already."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, answer).result()


def get(path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """The answer of the routes and middleware to a GET, without a server."""
    app = Starlette(routes=assets.routes(), middleware=assets.middleware())
    route, _, query = path.partition("?")
    scope = {
        "type": "http",
        "method": "GET",
        "path": route,
        "query_string": query.encode(),
        "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
    }
    messages: list[dict] = []

    async def receive() -> dict:
        return {"type": "http.request"}

    async def send(message: dict) -> None:
        messages.append(message)

    run(app(scope, receive, send))
    start, *rest = messages
    answer = {name.decode(): value.decode() for name, value in start["headers"]}
    return start["status"], answer, b"".join(message["body"] for message in rest)


def test_plotly_is_served_compressed_or_plain() -> None:
    status, headers, body = get(assets.PLOTLY_PATH, accept_encoding="br, gzip")
    assert (status, headers["content-encoding"], headers["vary"]) == (200, "gzip", "Accept-Encoding")
    assert headers["content-type"].startswith("text/javascript")
    status, plain, source = get(assets.PLOTLY_PATH, accept_encoding="gzip;q=0, identity")
    assert status == 200
    assert "content-encoding" not in plain
    assert gzip.decompress(body) == source
    assert len(body) < len(source) / 3
    assert headers["etag"] != plain["etag"]
    assert plotly.__version__ in plain["etag"]


def test_plotly_is_kept_for_a_year_under_its_version_and_asked_for_again_without() -> None:
    _, named, _ = get(f"{assets.PLOTLY_PATH}?v={plotly.__version__}")
    assert named["cache-control"] == "public, max-age=31536000, immutable"
    _, unnamed, _ = get(f"{assets.PLOTLY_PATH}?v=0")
    assert unnamed["cache-control"] == "no-cache"
    status, _, body = get(assets.PLOTLY_PATH, if_none_match=f'"other", W/{unnamed["etag"]}')
    assert (status, body) == (304, b"")


def test_the_route_stands_under_the_base_path() -> None:
    config.set_option("server.baseUrlPath", "/lab/")
    try:
        assert get(f"/lab{assets.PLOTLY_PATH}")[0] == 200
        assert get(assets.PLOTLY_PATH)[0] == 404
    finally:
        config.set_option("server.baseUrlPath", "")


@pytest.mark.parametrize(
    ("header", "allowed"),
    [("", False), ("gzip", True), ("*", True), ("*;q=0", False), ("gzip;q=0.0, *", False), ("GZIP; q=0.5", True)],
)
def test_accept_encoding_is_read_as_the_standard_says(header: str, allowed: bool) -> None:
    assert assets.accepts_gzip(header) is allowed


def test_every_answer_carries_the_security_headers() -> None:
    for path in (assets.PLOTLY_PATH, "/nothing-here"):
        _, headers, _ = get(path)
        policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
        assert policy["default-src"] == "'self'"
        assert policy["frame-ancestors"] == "'self'"
        assert "unsafe" not in policy["script-src"]
        assert "sha256-" in policy["script-src"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"


def test_websockets_pass_through_untouched() -> None:
    seen = []

    async def inner(scope: dict, receive: object, send: object) -> None:
        seen.extend([receive, send])

    receive, send = object(), object()
    run(assets.SecurityHeaders(inner)({"type": "websocket"}, receive, send))  # type: ignore[arg-type]
    assert seen == [receive, send]
