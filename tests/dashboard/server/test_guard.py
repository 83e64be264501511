"""Who is let in: by the name that a request is for, and by the page that sends it."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
import streamlit as st

from dashboard.server import guard, http
from tests.kit.driving import dashboard
from tests.kit.rooms.asgi import messages
from tests.kit.waiting import PATIENCE

KNOWN = [
    *("localhost", "localhost:8501", "LOCALHOST:1", "lab.localhost:8501", "localhost.", socket.gethostname()),
    *("127.0.0.1:8501", "192.168.7.3", "[::1]:8501", "[fe80::1]"),
]
FOREIGN = [
    *("", "evil.test", "evil.test:8501", "localhost.evil.test", "127.0.0.1.evil.test", "999.1.1.1", "[::1"),
    *("evil.test@localhost", "localhost@evil.test", "localhost:port", "localhost:99999", "localhost/evil"),
    *("localhost?x", "localhost#x", "evil test", "\udcff"),
]


def test_it_answers_to_itself_and_to_numbers_and_to_no_other_name():
    assert [host for host in (*KNOWN, *FOREIGN) if guard.is_known(host)] == KNOWN


@pytest.mark.parametrize(
    ("pattern", "host", "known"),
    [
        ("lab.example.org", "lab.example.org:443", True),
        ("lab.example.org", "other.example.org", False),
        ("*.example.org", "lab.example.org", True),
        ("*.example.org", "example.org", False),
        ("*.example.org", "evilexample.org", False),
        ("*", "anything", True),
    ],
)
def test_names_can_be_added(pattern: str, host: str, known: bool, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(st, "get_option", lambda name: [pattern] if name == "server.allowedHosts" else None)
    assert guard.is_known(host) is known


def test_only_its_own_origin_is_its_own():
    own = ["http://localhost:8501", "https://LOCALHOST:8501"]
    others = ["http://localhost:8502", "http://localhost", "http://evil.test", "http://localhost:8501.evil.test"]
    found = [each for each in (*own, *others, "null", "", "http://[") if guard.is_own(each, "localhost:8501")]
    assert found == own


def test_an_origin_can_be_added_for_a_proxy_that_changes_the_host(monkeypatch: pytest.MonkeyPatch):
    added = {"server.corsAllowedOrigins": ["https://lab.example.org/"]}
    monkeypatch.setattr(st, "get_option", lambda name: added.get(name))
    assert guard.is_own("https://lab.example.org", "10.0.0.7:8501")
    assert not guard.is_own("https://lab.example.com", "10.0.0.7:8501")


def asked(kind: str = "http", method: str = "GET", path: str = "/", **headers: str) -> list[dict[str, Any]]:
    """What the guard answers by itself; nothing where it lets a request in."""

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "let in"})

    sent = messages(
        guard.Guard(inner), {"type": kind, "path": path} | ({"method": method} if kind == "http" else {}), **headers
    )
    return [] if sent == [{"type": "let in"}] else sent


OWN = {"host": "localhost:8501", "origin": "http://localhost:8501"}


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE"])
def test_its_own_pages_are_let_in(method: str):
    assert not asked(method=method, **OWN)
    assert not asked(method=method, host="localhost")
    assert not asked("websocket", **OWN)


@pytest.mark.parametrize("origin", ["http://evil.test", "http://localhost:8502", "null"])
def test_pages_from_elsewhere_may_follow_a_link_and_nothing_else(origin: str):
    headers = {"host": "localhost:8501", "origin": origin}
    assert not asked(method="GET", **headers)
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        start, body = asked(method=method, **headers)
        assert start["status"] == 403
        assert body["body"] == guard.FOREIGN_PAGE.encode()
    (closed,) = asked("websocket", **headers)
    assert closed == {"type": "websocket.close", "code": 1008, "reason": guard.FOREIGN_PAGE}


def test_under_a_foreign_name_nothing_is_served_at_all():
    start, body = asked(host="evil.test")
    assert start["status"] == 403
    assert "“evil.test”" in body["body"].decode()
    assert len(asked(host="x" * 5000)[1]["body"]) < 400
    (closed,) = asked("websocket", host="evil.test", origin="http://evil.test")
    assert closed["type"] == "websocket.close"
    assert len(closed["reason"].encode()) <= 123, "more does not fit into the frame (RFC 6455, section 5.5)"


def test_metrics_are_closed_unless_asked_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(guard.ASKED_FOR, raising=False)
    assert asked(path="/lab/_stcore/metrics", host="localhost")[0]["status"] == 404
    assert not asked(path="/_stcore/health", host="localhost")
    monkeypatch.setenv(guard.ASKED_FOR, "1")
    assert not asked(path="/_stcore/metrics", host="localhost")


ODD = {
    "a name of 256 letters": "x" * 256,
    "a name of 4,000 letters": "x" * 4_000,
    "a name of many bytes": "%E4%B8%AD" * 100,
    "too many folders": "x/" * 300,
    "many long names": "/".join(["x" * 250] * 20),
    "NUL": "a%00b",
    "a line break": "a%0D%0Ab",
    "a line separator": "%E2%80%A8",
    "half of a pair": "\ud800",
}
"""What no address has, by what is odd about it, as a browser writes it."""
STRANGE = [
    *("%zz%", "%ff%fe", "%ed%a0%80", "\xe9"),
    *("..%2f..%2fetc%2fpasswd", "a%5c..%5cb", "/etc/passwd", "~root", "C:%5Cx"),
]
"""What could be one, and is none."""


@pytest.mark.parametrize("odd", ODD)
def test_what_can_be_no_address_is_not_found(odd: str):
    for folder in ("/", "/lab/_stcore/bidi-components/attention-lab.plot/"):
        path = unquote(f"{folder}{ODD[odd]}")
        for method in ("GET", "PUT"):
            start, _ = asked(method=method, path=path, host="localhost")
            assert start["status"] == 404
        (closed,) = asked("websocket", path=path, host="localhost")
        assert closed["type"] == "websocket.close"


def test_everything_else_may_be_one():
    for path in ("/", "/heads", "/lab/room/K7WQ/document/a.json", f"/{'x' * 255}", "/naïve 中"):
        assert not asked(path=path, host="localhost"), path


def test_the_policy_names_the_sockets_of_this_host_only():
    policy = dict(part.split(" ", 1) for part in http.content_security_policy("localhost:8501").split("; "))
    assert policy["connect-src"].split() == ["'self'", "ws://localhost:8501", "wss://localhost:8501", "data:", "blob:"]
    policy = dict(part.split(" ", 1) for part in http.content_security_policy("evil.test; script-src *").split("; "))
    assert policy["connect-src"].split() == ["'self'", "data:", "blob:"]


# --- the very server

FOLDERS = [
    *("/_stcore/", "/_stcore/stream/", "/_stcore/agent/", "/_stcore/upload_file/a/", "/_stcore/bidi-components/"),
    *("/_stcore/bidi-components/attention-lab.plot/", "/component/x/", "/media/", "/app/static/", "/static/"),
    *("/static/js/", "/assets/", "/presenter/", "/reader/"),
    *("/", "/heads/", "/ready/", "/rooms/", "/room/", "/room/K7WQ/document/"),
]
"""Of Streamlit's core, of components, of files, and of pages."""


def status(port: int, request: str, *headers: str) -> str:
    """What the first line of an answer says, of a request that is sent as bytes on a socket."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as wire:
        wire.sendall("\r\n".join([f"{request} HTTP/1.1", *headers, "", ""]).encode("latin-1"))
        return wire.recv(4096).decode(errors="replace").split(" ")[1]


def handshake(port: int, host: str, origin: str | None) -> str:
    """The status that answers a WebSocket handshake (RFC 6455, section 4)."""
    headers = [f"Host: {host}", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"]
    headers += ["Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", *([f"Origin: {origin}"] if origin else [])]
    return status(port, "GET /_stcore/stream", *headers)


SPY = """
import json, socket, sys
connect = socket.socket.connect
def watched(self, address):
    if self.family in (socket.AF_INET, socket.AF_INET6):
        with open({log!r}, "a") as file:
            file.write(json.dumps(str(address[0])) + "\\n")
    return connect(self, address)
socket.socket.connect = watched
open({log!r}, "a").write('"localhost"\\n')
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path, Path]]:
    """The port of the very server, what it prints, and whom it connects to, as a module says that is loaded first."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "sitecustomize.py").write_text(SPY.format(log=str(folder / "asked.jsonl")))
    with dashboard(log=folder / "log", PYTHONPATH=str(folder)) as address:
        yield urlsplit(address).port or 0, folder / "log", folder / "asked.jsonl"


@pytest.mark.nightly
def test_no_address_ends_in_an_error_of_the_server(served: tuple[int, Path, Path]):
    """Below every folder that the server answers for, every odd name."""
    port, log, _ = served
    for method in ("GET", "PUT", "POST"):
        for name in [each for each in ODD.values() if each.isprintable()] + STRANGE:
            for target in (f"{folder}{name}" for folder in FOLDERS):
                headers = [f"Host: localhost:{port}", "Content-Length: 0", "Connection: close"]
                assert status(port, f"{method} {target}", *headers) < "500", (method, target)
    assert "Traceback" not in log.read_text(errors="replace")


@pytest.mark.nightly
def test_the_server_opens_its_socket_to_its_own_page_alone_and_asks_nobody_outside(served: tuple[int, Path, Path]):
    port, _, asked = served
    here, evil = f"localhost:{port}", f"evil.test:{port}"
    assert handshake(port, here, f"http://{here}") == "101"
    assert handshake(port, f"127.0.0.1:{port}", f"http://127.0.0.1:{port}") == "101"
    refused = [(here, "http://evil.test"), (here, f"http://localhost:{port + 1}"), (here, "null")]
    for host, origin in [*refused, (evil, f"http://{evil}"), (evil, None)]:
        assert handshake(port, host, origin) == "403", (host, origin)
    outside = {json.loads(line) for line in asked.read_text().splitlines()}  # one line at least says that it was loaded
    assert outside <= {"127.0.0.1", "::1", "localhost"}
