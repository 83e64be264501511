"""The shipped configurations of nginx and Caddy, each before two real dashboards under /lab, with TLS, on loopback.

Only names, ports and the certificate's place are put in. Where a proxy is not installed its tests are skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPResponse, HTTPSConnection
from pathlib import Path

import pytest

from dashboard.server.rooms.rooms import LETTERS
from tests.kit.driving import ROOT, browser_of_a_test, free_port, headline, serving, watch
from tests.kit.rooms.house import packed
from tests.kit.runs import playing
from tests.kit.waiting import PATIENCE, wait_for

pytestmark = pytest.mark.nightly
NAME, TOKEN = "lab.test", "a-token-for-this-test"
READY = (200, "ready")
SOON = 10.0
"""Seconds within which a step reaches who follows a room; a buffer would hold it until the stream's next word, 15 s."""


@dataclass
class Replicas:
    """Two dashboards on one folder of runs."""

    ports: list[int]
    processes: list[subprocess.Popen[bytes]]
    runs: Path


@dataclass
class Browser:
    """Somebody behind the proxy: with cookies, and without the patience to follow a redirect."""

    kind: str
    """Of the proxy: nginx or caddy."""
    port: int
    certificate: Path
    cookies: dict[str, str] = field(default_factory=dict)
    source: str = "127.0.0.1"
    """The address from which it asks."""
    said: str = ""
    """The cookies of the last answer, as they came."""

    @contextmanager
    def asking(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Iterator[HTTPResponse]:
        """An answer while it comes."""
        wire = HTTPSConnection(NAME, self.port, timeout=PATIENCE)
        context = ssl.create_default_context(cafile=str(self.certificate))
        wire.sock = context.wrap_socket(
            socket.create_connection(("127.0.0.1", self.port), source_address=(self.source, 0)), server_hostname=NAME
        )
        wire.sock.settimeout(PATIENCE)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookies:
            named["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        with closing(wire):
            wire.request(method, path, body, named)
            with wire.getresponse() as answer:
                given = answer.headers.get_all("set-cookie") or []
                self.said = "\n".join(given)
                self.cookies |= {each.partition("=")[0]: each.partition(";")[0].partition("=")[2] for each in given}
                yield answer

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, str, str]:
        """Status, words, and where it leads."""
        with self.asking(method, path, body, **headers) as answer:
            return answer.status, answer.read().decode(), answer.headers.get("location", "")

    def handshake(self, path: str = "_stcore/stream") -> int:
        """The status that answers the request for a WebSocket, Streamlit's or that of news."""
        key = {"Sec_WebSocket_Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec_WebSocket_Version": "13"}
        origin = f"https://{NAME}:{self.port}"
        wanted = {"Upgrade": "websocket", "Connection": "Upgrade", "Origin": origin}
        with self.asking("GET", f"/lab/{path}", None, **wanted, **key) as answer:
            return answer.status


@pytest.fixture(scope="module")
def replicas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    runs = tmp_path_factory.mktemp("runs")
    shutil.copytree(ROOT / "checkpoints" / "reverse", runs / "reverse")
    environment = os.environ | {
        "ATTENTION_LAB_RUNS": str(runs),
        "ATTENTION_LAB_ROLE": "guest",
        "ATTENTION_LAB_TOKEN": TOKEN,
        "STREAMLIT_SERVER_BASE_URL_PATH": "lab",
        "STREAMLIT_SERVER_ALLOWED_HOSTS": NAME,
        "STREAMLIT_SERVER_HEADLESS": "true",
    }
    command = [sys.executable, "-m", "streamlit", "run", "dashboard/app.py", "--server.port"]
    ports = [free_port(), free_port()]
    with ExitStack() as stack:
        addresses = [f"http://localhost:{port}/lab" for port in ports]
        processes = [
            stack.enter_context(serving([*command, str(port)], address, cwd=ROOT, env=environment))
            for port, address in zip(ports, addresses, strict=True)
        ]
        for address in addresses:
            wait_for("the replica is ready", lambda address=address: readiness_of(address), lambda said: said == READY)
        yield Replicas(ports, processes, runs)


def readiness_of(address: str) -> tuple[int, str]:
    """Whether a replica would be given people; meanwhile it says why not."""
    try:
        with urllib.request.urlopen(f"{address}/ready", timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            said = refused.code, refused.read().decode()
            assert said in ((503, "No training process is warm yet."), (503, "PyTorch is not imported yet."))
            return said


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed: there is no certificate")
    folder = tmp_path_factory.mktemp("tls")
    files = ["-keyout", str(folder / "privkey.pem"), "-out", str(folder / "fullchain.pem")]
    kind = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", f"/CN={NAME}"]
    name = ["-addext", f"subjectAltName=DNS:{NAME}"]
    subprocess.run(["openssl", "req", *kind, *files, *name], check=True, capture_output=True)
    return folder / "fullchain.pem"


@contextmanager
def proxy(
    kind: str, certificate: Path, replicas: Replicas, folder: Path, *, port: int | None = None, forbids: bool = False
) -> Iterator[Browser]:
    """A proxy from its shipped configuration, and somebody before it. It may forbid the WebSocket of news."""
    program = installed(kind)
    assert program is not None
    port, plain = port or free_port(), free_port()
    arguments = ARGUMENTS[kind](folder, certificate, replicas.ports, port, plain)
    if forbids:
        written = folder / {"nginx": "nginx.conf", "caddy": "Caddyfile"}[kind]
        written.write_text(put_in(written.read_text(), FORBIDS[kind]))
    homes = {"XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([program, *arguments], env=os.environ | homes, stdout=log, stderr=log)
    try:
        somebody = Browser(kind, port, certificate)

        def through_it() -> tuple[int, str] | str:
            """What the replica says through the proxy; the proxy's log while nobody answers."""
            log = (folder / "log").read_text()
            assert process.poll() is None, log
            try:
                return somebody.ask("GET", "/lab/ready")[:2]
            except OSError:
                return log

        wait_for("a replica is ready, seen through the proxy", through_it, lambda said: said == READY)
        yield somebody
    finally:
        process.terminate()
        process.wait(PATIENCE)


def installed(kind: str) -> str | None:
    return shutil.which(kind) or shutil.which(kind, path="/usr/sbin:/usr/local/sbin")


@pytest.fixture(scope="module", params=["nginx", "caddy"])
def browser(
    request: pytest.FixtureRequest, certificate: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Browser]:
    """Somebody before one proxy after the other."""
    if installed(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    replicas: Replicas = request.getfixturevalue("replicas")
    with proxy(request.param, certificate, replicas, tmp_path_factory.mktemp(request.param)) as somebody:
        yield somebody


def put_in(text: str, *pairs: tuple[str, str]) -> str:
    """A configuration with other names and ports; each has to be there."""
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


def nginx(folder: Path, certificate: Path, ports: list[int], port: int, plain: int) -> list[str]:
    own = [f"{name}_temp_path {folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")]
    text = put_in(
        (ROOT / "deploy" / "nginx.conf").read_text(),
        ("http {\n", "\n".join(["http {", "access_log off;", *own, ""])),
        ("lab1:8501", f"127.0.0.1:{ports[0]}"),
        ("lab2:8501", f"127.0.0.1:{ports[1]}"),
        ("listen 80;", f"listen 127.0.0.1:{plain};"),
        ("listen 443 ", f"listen 127.0.0.1:{port} "),
        ("lab.example.org", NAME),
        ("/etc/nginx/tls", str(certificate.parent)),
    )
    (folder / "nginx.conf").write_text(text)
    alone = f"daemon off; master_process off; pid {folder}/pid;"
    return ["-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", "stderr", "-g", alone]


def caddy(folder: Path, certificate: Path, ports: list[int], port: int, plain: int) -> list[str]:
    tls = f"tls {certificate} {certificate.with_name('privkey.pem')}"
    text = put_in(
        (ROOT / "deploy" / "Caddyfile").read_text(),
        ("lab1:8501 lab2:8501", " ".join(f"127.0.0.1:{each}" for each in ports)),
        ("\n{\n", f"\n{{\n\tadmin off\n\thttp_port {plain}\n\tdefault_bind 127.0.0.1\n"),
        ("\nlab.example.org {", f"\n{NAME}:{port} {{\n\t{tls}"),
    )
    (folder / "Caddyfile").write_text(text)
    return ["run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]


ARGUMENTS: dict[str, Callable[[Path, Path, list[int], int, int], list[str]]] = {"nginx": nginx, "caddy": caddy}


FORBIDS = {
    "nginx": ("location /lab/ {", "location = /lab/news { return 403; }\nlocation /lab/ {"),
    "caddy": ("\thandle /lab/* {", "\thandle /lab/news {\n\t\trespond 403\n\t}\n\thandle /lab/* {"),
}
"""What is put where by whoever forbids it."""


def anew(browser: Browser, **cookies: str) -> Browser:
    """Somebody else."""
    return Browser(browser.kind, browser.port, browser.certificate, dict(cookies))


def owner(browser: Browser) -> Browser:
    """Somebody who followed the owner's link."""
    somebody = anew(browser)
    assert somebody.ask("GET", f"/lab/?token={TOKEN}&run=reverse") == (303, "", "./?run=reverse")
    return somebody


def test_page_health_and_readiness_stand_under_the_base_path(browser: Browser) -> None:
    guest = anew(browser)
    status, page, _ = guest.ask("GET", "/lab/")
    assert (status, "<title>Streamlit</title>" in page) == (200, True)
    (name,) = [line for line in guest.said.splitlines() if line.startswith("attention-lab-guest-")]
    assert {"Path=/lab", "HttpOnly", "Secure", "SameSite=Lax"} <= set(name.split("; "))
    assert guest.ask("GET", "/lab")[::2] == (308, "/lab/")
    assert guest.ask("GET", "/lab/_stcore/health")[:2] == (200, "ok")
    assert guest.ask("GET", "/lab/ready")[:2] == (200, "ready")
    assert guest.ask("GET", "/lab/presenter/")[0] == 200
    assert guest.ask("GET", "/lab/assets/plotly.min.js")[0] == 200


def test_the_owners_link_becomes_a_cookie_for_this_path_and_for_tls_only(browser: Browser) -> None:
    somebody = owner(browser)
    (name,) = [line for line in somebody.said.splitlines() if line.startswith("attention-lab-owner-")]
    assert {"Path=/lab", "HttpOnly", "Secure", "SameSite=Lax"} <= set(name.split("; "))
    assert anew(browser).ask("GET", "/lab/?token=another-token-for-this")[0] == 403
    assert anew(browser).ask("POST", "/lab/rooms")[0] == 403


def test_a_browser_stays_with_its_replica_and_both_have_some(browser: Browser) -> None:
    """A room lives in one replica here, so who is asked for it tells who answers. The socket goes the same way."""
    lecturer = owner(browser)
    status, opened, _ = lecturer.ask("POST", "/lab/rooms")
    assert status == 201
    address = f"/lab/room/{json.loads(opened)['code']}/address"
    route = {"lab_route": lecturer.cookies["lab_route"]}
    assert {anew(browser, **route).ask("GET", address)[0] for _ in range(6)} == {200}
    seen: set[int] = set()
    for _ in range(40):  # chance would show one side of a coin only
        seen.add(anew(browser).ask("GET", address)[0])
        if len(seen) == 2:
            break
    assert seen == {200, 404}
    for socket_of in ("_stcore/stream", "news"):
        assert anew(browser, **route).handshake(socket_of) == 101
        assert anew(browser).handshake(socket_of) == 101


def test_a_step_of_a_room_is_not_held_up(browser: Browser) -> None:
    lecturer = owner(browser)
    opened = json.loads(lecturer.ask("POST", "/lab/rooms")[1])
    room = f"/lab/room/{opened['code']}"
    follower = anew(browser, lab_route=lecturer.cookies["lab_route"])
    with follower.asking("GET", f"{room}/events") as stream:
        assert stream.status == 200
        assert b"retry" in stream.readline()
        begun = time.monotonic()
        status, shown, _ = lecturer.ask("PUT", f"{room}/document?question=q", packed("shown"), X_Room_Key=opened["key"])
        assert status == 200
        name = json.loads(shown)["document"]
        while name.encode() not in stream.readline():
            pass
        assert time.monotonic() - begun < SOON
    told = json.loads(lecturer.ask("GET", f"{room}/address")[1])["address"]
    assert told == f"https://{NAME}:{browser.port}{room}", "followers are sent through the proxy, with TLS"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has all of 127.0.0.0/8")
def test_each_address_before_the_proxy_counts_for_itself(browser: Browser) -> None:
    """A room's wrong codes slow who sends them, whatever they write into X-Forwarded-For, and nobody else."""
    guest = anew(browser)
    guest.ask("GET", "/lab/ready")
    somebody, other = anew(browser, **guest.cookies), anew(browser, **guest.cookies)
    somebody.source, other.source = "127.0.0.2", "127.0.0.3"
    found = []
    for number, letter in enumerate(LETTERS):
        with somebody.asking(
            "GET", f"/lab/room/222{letter}/address", None, X_Forwarded_For=f"198.51.100.{number}"
        ) as answer:
            found.append(answer.status)
        if found[-1] != 404:
            break
    assert found[:20] == [404] * 20
    assert found[-1] == 429, "so slow a machine forgives a code while the next are tried"
    assert other.ask("GET", "/lab/room/3333/address")[0] == 404


def test_too_large_a_file_is_refused(browser: Browser) -> None:
    """By nginx before it is sent; Caddy lets the dashboard answer first, which refuses it by its own limit."""
    if browser.kind != "nginx":
        pytest.skip("Caddy counts while the dashboard reads")
    somebody = owner(browser)
    with somebody.asking("PUT", "/lab/_stcore/upload_file/a/b", None, Content_Length=str(110 * 2**20)) as answer:
        assert answer.status == 413


@pytest.mark.parametrize("kind", ["nginx", "caddy"])
def test_a_page_hears_of_news_through_a_proxy_again_after_its_restart_and_asks_by_the_clock_where_that_is_forbidden(
    kind: str, certificate: Path, replicas: Replicas, tmp_path: Path
) -> None:
    if installed(kind) is None:
        pytest.skip(f"{kind} is not installed")
    with ExitStack() as stack:
        training = stack.enter_context(playing(replicas.runs / f"played-{kind}"))
        chromium = stack.enter_context(browser_of_a_test(f"--host-resolver-rules=MAP {NAME} 127.0.0.1"))
        page = stack.enter_context(chromium.new_context(ignore_https_errors=True)).new_page()
        page.set_default_timeout(1000 * PATIENCE)
        with proxy(kind, certificate, replicas, tmp_path) as somebody:
            port = somebody.port
            heard = watch(page, f"https://{NAME}:{port}/lab", training.steps, f"&token={TOKEN}")
            headline(page, training.step())
            told = heard.told
            headline(page, training.step())
            assert heard.told > told
            assert heard.open == 1
        with proxy(kind, certificate, replicas, tmp_path, port=port):
            headline(page, training.step())
            wait_for("the socket is open again", lambda: page.wait_for_timeout(10) or heard.open, (1).__eq__)
            told = heard.told
            headline(page, training.step())
            assert heard.told > told
        with proxy(kind, certificate, replicas, tmp_path, port=port, forbids=True):
            told = heard.told
            for _ in range(2):
                headline(page, training.step())
            assert (heard.told, heard.open) == (told, 0)


def test_the_other_replica_serves_when_one_is_gone(
    request: pytest.FixtureRequest, certificate: Path, tmp_path: Path
) -> None:
    """The last of these tests: before both proxies at once, one replica dies."""
    kinds = [kind for kind in ARGUMENTS if installed(kind)]
    if not kinds:
        pytest.skip("neither nginx nor caddy is installed")
    replicas: Replicas = request.getfixturevalue("replicas")
    with ExitStack() as stack:
        browsers = []
        for kind in kinds:
            (tmp_path / kind).mkdir()
            browsers.append(stack.enter_context(proxy(kind, certificate, replicas, tmp_path / kind)))
        guests = [anew(browser) for browser in browsers for _ in range(6)]
        assert {guest.ask("GET", "/lab/")[0] for guest in guests} == {200}
        replicas.processes[0].kill()
        replicas.processes[0].wait(PATIENCE)
        assert {guest.ask("GET", "/lab/")[0] for guest in guests} == {200}, "its cookie holds there, too"
        assert {guest.handshake() for guest in guests} == {101}
