"""Who somebody is to the server: by address, by the owner's link, by a signed cookie."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st
from starlette.responses import HTMLResponse

from dashboard.server import entrance, roles
from dashboard.server.entrance import Entrance
from dashboard.server.roles import OWNER, Visitor, visitor
from tests.kit.rooms.asgi import answer
from transformer.foundation.checks import ConfigError

HERE = {"host": "localhost:8501", "origin": "http://localhost:8501"}


@pytest.fixture(autouse=True)
def _own_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in (roles.ASKED, roles.TOKEN):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("transformer.training.runs.ROOT", tmp_path)
    roles._secret.cache_clear()
    yield
    roles._secret.cache_clear()


def listens_on(monkeypatch: pytest.MonkeyPatch, address: str | None) -> None:
    option = st.get_option
    monkeypatch.setattr(st, "get_option", lambda name: address if name == "server.address" else option(name))


@pytest.mark.parametrize(
    ("address", "headers", "role"),
    [
        ("127.0.0.1", HERE, "owner"),
        ("localhost", {"host": "127.0.0.1:8501"}, "owner"),
        ("::1", {"host": "[::1]:8501", "origin": "http://[::1]:8501"}, "owner"),
        ("0.0.0.0", HERE, "guest"),
        ("192.168.7.3", {"host": "192.168.7.3:8501"}, "guest"),
        (None, HERE, "guest"),
        ("", HERE, "guest"),
        # Through a proxy of this machine.
        ("127.0.0.1", {"host": "lab.example.org"}, "guest"),
        ("127.0.0.1", {"host": "127.0.0.1:8501", "origin": "https://lab.example.org"}, "guest"),
        ("127.0.0.1", {"host": "127.0.0.1:8501", "x-forwarded-for": "10.0.0.7"}, "guest"),
        ("127.0.0.1", {"host": "127.0.0.1:8501", "forwarded": "for=10.0.0.7"}, "guest"),
        ("127.0.0.1", {"host": "localhost.evil.test"}, "guest"),
        ("127.0.0.1", {"host": "[::1"}, "guest"),
        ("127.0.0.1", {"host": ""}, "guest"),
        ("127.0.0.1", {}, "guest"),
    ],
)
def test_on_this_machine_everybody_is_the_owner_and_elsewhere_a_guest(
    address: str | None, headers: dict[str, str], role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    listens_on(monkeypatch, address)
    assert visitor(headers, {}) == Visitor(role)  # type: ignore[arg-type]


def test_the_variable_says_who_everybody_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for role in roles.ROLES:
        monkeypatch.setenv(roles.ASKED, role)
        assert visitor({"host": "lab.example.org"}, {}).role == role
        assert visitor(HERE, {}).role == role
        assert visitor(HERE, {roles.cookie("owner"): roles.token()}) == OWNER


def test_what_cannot_be_meant_is_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(roles.ASKED, "admin")
    with pytest.raises(ConfigError, match="must be owner, guest or viewer, not 'admin'"):
        roles.asked()
    monkeypatch.setenv(roles.TOKEN, "short")
    with pytest.raises(ConfigError, match="must have at least 16 letters"):
        roles.token()


def test_a_guest_is_who_its_signed_cookie_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(roles.ASKED, "guest")
    name, proof = roles.new_guest()
    other, _ = roles.new_guest()
    assert roles.NAME.fullmatch(name)
    assert visitor({}, {roles.cookie("guest"): proof}) == Visitor("guest", name)
    for forged in (
        "",
        name,
        f"{name}.",
        proof.replace(name, other),
        proof[:-1],
        f"{proof}0",
        f"{name}.{roles.signature('owner')}",
        f"../../{proof}",
        "é.é",
    ):
        assert visitor({}, {roles.cookie("guest"): forged}) == Visitor("guest"), forged
    assert visitor({}, {roles.cookie("owner"): proof}) == Visitor("guest")
    assert visitor({}, {roles.cookie("owner"): ""}) == Visitor("guest")


def test_the_secret_outlives_a_restart_and_nobody_else_reads_it(tmp_path: Path) -> None:
    before = roles.token(), roles.signature("x")
    path = tmp_path / roles.SECRET
    assert path.stat().st_mode & 0o077 == 0
    assert [each.name for each in tmp_path.iterdir()] == [roles.SECRET]
    roles._secret.cache_clear()
    assert (roles.token(), roles.signature("x")) == before
    path.unlink()
    roles._secret.cache_clear()
    assert roles.token() != before[0]


def test_where_it_cannot_be_kept_it_is_of_this_process_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr("transformer.training.runs.ROOT", tmp_path / "file")
    first = roles.token()
    assert roles.token() == first
    roles._secret.cache_clear()
    assert roles.token() != first


# --- by HTTP


def asked(
    path: str, method: str = "GET", cookies: str = "", base: str = "", **headers: str
) -> tuple[int, dict[str, str], str]:
    """Status, headers and text of an answer; what is let through is an HTML page."""
    pathname, _, query = path.partition("?")
    scope = {"method": method, "path": pathname, "query_string": query.encode(), "scheme": "http"}
    named = {"host": "lab.example.org", "cookie": cookies}
    status, found, body = answer(Entrance(HTMLResponse("the page"), base), scope, **named, **headers)
    return status, found, body.decode()


def test_the_owner_s_link_becomes_a_cookie_and_leaves_the_address() -> None:
    status, headers, _ = asked(f"/lab/heads?run=reverse&token={roles.token()}&input=3+1&input=", base="/lab")
    assert status == 303
    assert headers["location"] == "./heads?run=reverse&input=3+1&input="
    assert headers["set-cookie"] == f"{roles.cookie('owner')}={roles.token()}; Path=/lab; HttpOnly; SameSite=Lax"
    assert headers["cache-control"] == "no-store"
    assert asked(f"/?token={roles.token()}")[1]["location"] == "./"
    assert asked(f"/?token={roles.token()}", x_forwarded_proto="https")[1]["set-cookie"].endswith("; Secure")


@pytest.mark.parametrize("token", ["", "wrong", "é"])
def test_another_token_is_refused_and_sets_nothing(token: str) -> None:
    status, headers, text = asked(f"/?token={token}")
    assert (status, text) == (403, entrance.STALE)
    assert "set-cookie" not in headers


def test_a_guest_is_named_once_and_an_owner_and_a_viewer_never(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(roles.ASKED, "guest")
    _, headers, text = asked("/")
    assert text == "the page"
    proof = headers["set-cookie"].partition(";")[0]
    assert roles.guest_of(proof.partition("=")[2])
    assert "set-cookie" not in asked("/", cookies=proof)[1]
    assert "set-cookie" not in asked("/", cookies=f"{roles.cookie('owner')}={roles.token()}")[1]
    monkeypatch.setenv(roles.ASKED, "viewer")
    assert "set-cookie" not in asked("/")[1]


def test_only_the_owner_sends_files() -> None:
    path = "/_stcore/upload_file/session/file"
    assert asked(path, "PUT")[::2] == (403, entrance.OWNERS)
    assert asked(f"/lab{path}", "POST")[0] == 403
    assert asked(path, "PUT", f"{roles.cookie('owner')}={roles.token()}")[2] == "the page"
    assert asked(path, "OPTIONS")[2] == "the page"
