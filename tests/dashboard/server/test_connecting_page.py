"""The page that opens its socket without asking around, in our styles: which answers become it, which stay."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from typing import Any

import pytest
import streamlit as st

from dashboard.server import http
from dashboard.server.streamlit_private import served_page
from tests.kit.rooms.asgi import answer

HTML, STYLE = "text/html; charset=utf-8", "<style>h1 { color: red; }</style>"


def answered(body: bytes, kind: str = HTML, status: int = 200, **more: str) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body as they leave, of an answer that comes in two pieces, with `more` headers."""

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        headers = {"content-type": kind, "content-length": str(len(body)), "etag": '"old"', "last-modified": "then"}
        headers |= {name.replace("_", "-"): value for name, value in more.items()}
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": raw})
        await send({"type": "http.response.body", "body": body[:100], "more_body": True})
        await send({"type": "http.response.body", "body": body[100:]})

    return answer(http.OwnPage(inner, STYLE), {"path": "/heads"})


@pytest.mark.parametrize("packed", [False, True])
def test_the_page_says_where_its_server_is_and_who_may_talk_to_it(packed: bool) -> None:
    page = served_page().encode()
    given = {"content_encoding": "gzip"} if packed else {}
    status, headers, body = answered(gzip.compress(page) if packed else page, **given)
    script = re.findall(r"<script>(.*?)</script>", body.decode(), flags=re.DOTALL)[-1]
    config = json.loads(re.search(r"HOST_CONFIG: ({.*}) }", script)[1])  # type: ignore[index]
    assert config == {"allowedOrigins": st.get_option("client.allowedOrigins"), "useExternalAuthToken": False}
    assert 'BACKEND_BASE_URL: new URL("./", location.href).href' in script
    own = body.decode().replace(f"<script>{script}</script>", "").replace(STYLE, "")
    assert own == served_page()
    assert body.decode().index(STYLE) > body.decode().index("</head>"), "Streamlit's own styles come later and win"
    assert (status, int(headers["content-length"])) == (200, len(body))
    assert not {"etag", "last-modified"} & {*headers}, "a browser would keep the page without the script"
    assert "content-encoding" not in headers
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"'sha256-{digest}'" in http.content_security_policy("localhost:8501")


@pytest.mark.parametrize(
    "given",
    [
        {"body": b"<html><head></head>" + b"x" * 200},
        {"body": b""},
        {"body": served_page().encode(), "kind": "text/plain"},
        {"body": served_page().encode(), "status": 404},
        {"body": gzip.compress(b"<html>a room</html>" * 20), "content_encoding": "gzip"},
    ],
    ids=["another page", "no body", "no page", "not found", "another page, compressed"],
)
def test_everything_else_leaves_as_it_is(given: dict[str, Any]) -> None:
    status, headers, body = answered(**given)
    assert headers.get("content-encoding") == given.get("content_encoding")
    assert (status, body) == (given.get("status", 200), given["body"])
    assert headers["content-length"] == str(len(body))
    assert {"etag", "last-modified"} <= {*headers}
