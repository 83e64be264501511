"""Coroutines from tests that have no event loop, or somebody else's; and what an application answers."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def to_its_end(answer: Coroutine[Any, Any, None]) -> None:
    """In a thread of its own: where a browser is driven, this one has an event loop already."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, answer).result()


def messages(application: Any, scope: dict[str, Any], **headers: str) -> list[dict[str, Any]]:
    """What an application sends to a request without a body, whose headers are written with _ for -."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(dict(message))

    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    asked = {"path": "/", "query_string": b"", "headers": raw} | ({"method": "GET"} if scope["type"] == "http" else {})
    to_its_end(application(asked | scope, receive, send))
    return sent


def answer(application: Any, scope: dict[str, Any], **headers: str) -> tuple[int, dict[str, str], bytes]:
    """The same as status, headers and body."""
    start, *rest = messages(application, {"type": "http"} | scope, **headers)
    found = {name.decode(): value.decode() for name, value in start["headers"]}
    return start["status"], found, b"".join(each.get("body", b"") for each in rest)
