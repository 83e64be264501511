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
from tests.kit.rooms.asgi import to_its_end
from tests.kit.waiting import PATIENCE

KNOWN = [
    "localhost",
    "localhost:8501",
    "LOCALHOST:1",
    "lab.localhost:8501",
    "localhost.",
    "127.0.0.1:8501",
    "192.168.7.3",
    "[::1]:8501",
    "[fe80::1]",
    socket.gethostname(),
]
FOREIGN = [
    "",
    "evil.test",
    "evil.test:8501",
    "localhost.evil.test",
    "127.0.0.1.evil.test",
    "evil.test@localhost",
    "localhost@evil.test",
    "localhost:port",
    "localhost:99999",
    "localhost/evil",
    "localhost?x",
    "localhost#x",
    "[::1",
    "999.1.1.1",
    "evil test",
    "\udcff",
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


@pytest.mark.parametrize(
    ("origin", "own"),
    [
        ("http://localhost:8501", True),
        ("https://LOCALHOST:8501", True),
        ("http://localhost:8502", False),
        ("http://localhost", False),
        ("http://evil.test", False),
        ("http://localhost:8501.evil.test", False),
        ("null", False),
        ("", False),
        ("http://[", False),
    ],
)
def test_only_its_own_origin_is_its_own(origin: str, own: bool):
    assert guard.is_own(origin, "localhost:8501") is own


def test_an_origin_can_be_added_for_a_proxy_that_changes_the_host(monkeypatch: pytest.MonkeyPatch):
    added = {"server.corsAllowedOrigins": ["https://lab.example.org/"]}
    monkeypatch.setattr(st, "get_option", lambda name: added.get(name))
    assert guard.is_own("https://lab.example.org", "10.0.0.7:8501")
    assert not guard.is_own("https://lab.example.com", "10.0.0.7:8501")


def asked(kind: str = "http", method: str = "GET", path: str = "/", **headers: str) -> list[dict[str, Any]]:
    """What the guard answers by itself; nothing where it lets a request in."""
    sent: list[dict[str, Any]] = []

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        sent.append({"type": "let in"})

    async def send(message: Any) -> None:
        sent.append(dict(message))

    async def receive() -> Any:
        return {"type": "http.request"}

    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": kind, "path": path, "headers": raw, "query_string": b""} | ({"method": method} if method else {})
    to_its_end(guard.Guard(inner)(scope, receive, send))
    return [] if sent == [{"type": "let in"}] else sent


OWN = {"host": "localhost:8501", "origin": "http://localhost:8501"}


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE"])
def test_its_own_pages_are_let_in(method: str):
    assert not asked(method=method, **OWN)
    assert not asked(method=method, host="localhost")
    assert not asked("websocket", method="", **OWN)


@pytest.mark.parametrize("origin", ["http://evil.test", "http://localhost:8502", "null"])
def test_pages_from_elsewhere_may_follow_a_link_and_nothing_else(origin: str):
    headers = {"host": "localhost:8501", "origin": origin}
    assert not asked(method="GET", **headers)
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        start, body = asked(method=method, **headers)
        assert start["status"] == 403
        assert body["body"] == guard.FOREIGN_PAGE.encode()
    (closed,) = asked("websocket", method="", **headers)
    assert closed == {"type": "websocket.close", "code": 1008, "reason": guard.FOREIGN_PAGE}


def test_under_a_foreign_name_nothing_is_served_at_all():
    start, body = asked(host="evil.test")
    assert start["status"] == 403
    assert "“evil.test”" in body["body"].decode()
    assert len(asked(host="x" * 5000)[1]["body"]) < 400
    (closed,) = asked("websocket", method="", host="evil.test", origin="http://evil.test")
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
    "%zz%",
    "%ff%fe",
    "%ed%a0%80",
    "..%2f..%2fetc%2fpasswd",
    "a%5c..%5cb",
    "/etc/passwd",
    "~root",
    "C:%5Cx",
    "\xe9",
]
"""What could be one, and is none."""


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("folder", ["/", "/lab/_stcore/bidi-components/attention-lab.plot/"])
def test_what_can_be_no_address_is_not_found(folder: str, odd: str):
    path = unquote(f"{folder}{ODD[odd]}")
    for method in ("GET", "POST", "PUT"):
        start, _ = asked(method=method, path=path, host="localhost")
        assert start["status"] == 404
    (closed,) = asked("websocket", method="", path=path, host="localhost")
    assert closed["type"] == "websocket.close"


@pytest.mark.parametrize("path", ["/", "/heads", "/lab/room/K7WQ/document/a.json", f"/{'x' * 255}", "/naïve 中"])
def test_everything_else_may_be_one(path: str):
    assert not asked(path=path, host="localhost")


FOLDERS = {
    "Streamlit's core": ["/_stcore/", "/_stcore/stream/", "/_stcore/agent/", "/_stcore/upload_file/a/"],
    "components": ["/_stcore/bidi-components/", "/_stcore/bidi-components/attention-lab.plot/", "/component/x/"],
    "files": ["/media/", "/app/static/", "/static/", "/static/js/", "/assets/", "/presenter/", "/reader/"],
    "pages": ["/", "/heads/", "/ready/", "/rooms/", "/room/", "/room/K7WQ/document/"],
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    """The port of the very server, and its log."""
    log = tmp_path_factory.mktemp("served") / "log"
    with dashboard(log=log) as address:
        yield urlsplit(address).port or 0, log


@pytest.mark.nightly
@pytest.mark.parametrize("folders", FOLDERS)
def test_no_address_ends_in_an_error_of_the_server(folders: str, served: tuple[int, Path]):
    """Below every folder that the server answers for, every odd name, as bytes on a socket."""
    port, log = served
    for method in ("GET", "PUT", "POST"):
        for name in [each for each in ODD.values() if each.isprintable()] + STRANGE:
            for target in (f"{folder}{name}" for folder in FOLDERS[folders]):
                lines = [f"{method} {target} HTTP/1.1", f"Host: localhost:{port}", "Content-Length: 0"]
                with socket.create_connection(("127.0.0.1", port), timeout=60) as wire:
                    wire.sendall(("\r\n".join([*lines, "Connection: close"]) + "\r\n\r\n").encode("latin-1"))
                    status = wire.recv(4096).split(b" ")[1]
                assert status < b"500", (method, target)
    assert "Traceback" not in log.read_text(errors="replace")


def test_the_policy_names_the_sockets_of_this_host_only():
    policy = dict(part.split(" ", 1) for part in http.content_security_policy("localhost:8501").split("; "))
    assert policy["connect-src"].split() == ["'self'", "ws://localhost:8501", "wss://localhost:8501", "data:", "blob:"]
    policy = dict(part.split(" ", 1) for part in http.content_security_policy("evil.test; script-src *").split("; "))
    assert policy["connect-src"].split() == ["'self'", "data:", "blob:"]


def handshake(port: int, host: str, origin: str | None, path: str = "/_stcore/stream") -> str:
    """The status line that answers a WebSocket handshake (RFC 6455, section 4)."""
    lines = [
        f"GET {path} HTTP/1.1",
        f"Host: {host}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version: 13",
        *([f"Origin: {origin}"] if origin else []),
    ]
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as wire:
        wire.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        return wire.recv(4096).decode(errors="replace").splitlines()[0]


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


@pytest.mark.nightly
def test_the_server_opens_its_socket_to_its_own_page_alone_and_asks_nobody_outside(tmp_path: Path):
    """The very server; a module that Python loads before anything else writes down whom it connects to."""
    log = tmp_path / "asked.jsonl"
    (tmp_path / "sitecustomize.py").write_text(SPY.format(log=str(log)))
    with dashboard(PYTHONPATH=str(tmp_path)) as address:
        port = urlsplit(address).port
        assert port is not None
        here = f"localhost:{port}"
        assert "101" in handshake(port, here, f"http://{here}")
        assert "101" in handshake(port, f"127.0.0.1:{port}", f"http://127.0.0.1:{port}")
        for host, origin in (
            (here, "http://evil.test"),
            (here, f"http://localhost:{port + 1}"),
            (here, "null"),
            (f"evil.test:{port}", f"http://evil.test:{port}"),
            (f"evil.test:{port}", None),
        ):
            assert "403" in handshake(port, host, origin), (host, origin)
    outside = {json.loads(line) for line in log.read_text().splitlines()}  # one line at least says that it was loaded
    assert outside <= {"127.0.0.1", "::1", "localhost"}
