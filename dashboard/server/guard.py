"""Who may talk to the server: the names under which it answers, and the pages from which it takes messages.

A page of another site can have its reader's browser talk to a server on the reader's own machine: under the other
site's name, which is led here (DNS rebinding), or across sites, with the reader's rights. Streamlit checks neither by
default, lets every port of localhost open its socket, and asks an address outside for its own to decide on the rest.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from functools import cache
from urllib.parse import urlsplit

import streamlit as st
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from dashboard.server.streamlit_private import METRICS
from transformer.foundation.foreign import shortened

ASKED_FOR = "ATTENTION_LAB_METRICS"
"""The environment variable that opens it: 1."""
SAFE = ("GET", "HEAD", "OPTIONS")
"""Methods that change nothing (RFC 9110, section 9.2.1): whoever follows a link comes from elsewhere."""
LONGEST, LONGEST_NAME = 512, 255
"""Bytes of a path, and of a name in it. No file may have a longer name, and no path of this server is half as long."""
FOREIGN_PAGE = "Only pages of this server may ask for this."
NO_ADDRESS = "This server has no such address."
POLICY = 1008
"""The status with which a WebSocket is closed for breaking a rule (RFC 6455, section 7.4.1)."""

MOST = 123
"""Bytes in the reason for which one is closed (section 5.5)."""


class Guard:
    """ASGI middleware that turns away what comes under a foreign name or from a foreign page, before anything else."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        said, status = refusal(scope) if scope["type"] in ("http", "websocket") else ("", 0)
        if not said:
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await PlainTextResponse(said, status)(scope, receive, send)
        else:
            await send(
                {"type": "websocket.close", "code": POLICY, "reason": said.encode()[:MOST].decode(errors="ignore")}
            )


def refusal(scope: Scope) -> tuple[str, int]:
    """Why a request is turned away, and with which status; ("", 0) where it is let in."""
    headers = Headers(scope=scope)
    host = headers.get("host", "")
    if not is_known(host):
        return (
            f"This server does not answer to “{shortened(host)}”, only to localhost, to its addresses in numbers, to "
            "its own name, and to the names in the setting server.allowedHosts (see docs/serving.md).",
            403,
        )
    origin = headers.get("origin")
    changes = scope["type"] == "websocket" or scope["method"] not in SAFE
    if changes and origin is not None and not is_own(origin, host):
        return FOREIGN_PAGE, 403
    if scope["path"].endswith(METRICS) and os.environ.get(ASKED_FOR) != "1":
        return f"Metrics are not published. {ASKED_FOR}=1 publishes them.", 404
    if not is_address(scope["path"]):
        return NO_ADDRESS, 404
    return "", 0


def is_address(path: str) -> bool:
    """Can something lie at a decoded path? Not where it is too long for a file, or holds what nobody can read, as NUL.

    Streamlit looks for a file at whatever stands in a path, and an operating system refuses some of them.
    """
    if not path.isprintable():  # control characters, and half of a pair (U+D800), which no encoding has
        return False
    written = path.encode()
    return len(written) <= LONGEST and all(len(name) <= LONGEST_NAME for name in written.split(b"/"))


def is_known(host: str) -> bool:
    """Does the server answer to the name in a Host header, with or without a port?

    To an address in numbers always: whoever gets a browser to open that has it open this server as itself. To names,
    which anybody may lead anywhere, only if they are its own, or are named in `server.allowedHosts`.
    """
    try:
        parts = urlsplit(f"//{host}")
        name, _ = parts.hostname, parts.port
    except ValueError:
        return False
    if not name or parts.netloc != host or "@" in host:
        return False
    name = name.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost") or name in _own_names():
        return True
    for pattern in st.get_option("server.allowedHosts") or []:
        wanted = pattern.strip().lower().rstrip(".")
        if wanted in ("*", name) or (wanted.startswith("*.") and name.endswith(wanted[1:])):
            return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_own(origin: str, host: str) -> bool:
    """Is an Origin header (RFC 6454, section 7) that of this server, or one in `server.corsAllowedOrigins`?

    Behind a proxy that changes the Host header, the pages' own origin has to be named there.
    """
    if origin.rstrip("/") in [each.rstrip("/") for each in st.get_option("server.corsAllowedOrigins") or []]:
        return True
    try:
        return bool(host) and urlsplit(origin).netloc.lower() == host.lower()
    except ValueError:
        return False


@cache
def _own_names() -> frozenset[str]:
    """The machine's names in its network, and the address that the server is set to tell browsers."""
    name = socket.gethostname().lower()
    told = st.get_option("browser.serverAddress") or ""
    return frozenset({name, f"{name.partition('.')[0]}.local", told.lower()}) - {"", ".local"}
