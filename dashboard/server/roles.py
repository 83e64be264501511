"""Who somebody is to this server: its owner, a guest, or a viewer.

The owner may do everything. A guest looks, and trains within limits, into a folder of one's own. A viewer looks only.
The owner has a link with a token, as in Jupyter, which becomes a cookie. A guest has a name, given and signed by the
server, in another cookie. Where ATTENTION_LAB_ROLE does not say who the others are, a server that only this machine can
reach takes everybody for its owner, and any other takes everybody for a guest.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import ipaddress
import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal
from urllib.parse import urlsplit

import streamlit as st

from transformer.foundation.checks import ConfigError
from transformer.foundation.regular_files import open_file
from transformer.training import runs

Role = Literal["owner", "guest", "viewer"]
ROLES: tuple[Role, ...] = ("owner", "guest", "viewer")
ASKED = "ATTENTION_LAB_ROLE"
TOKEN = "ATTENTION_LAB_TOKEN"
"""The environment variables that say who everybody is without the owner's link, and which token stands in that."""
RUN_CODE = "ATTENTION_LAB_RUN_CODE"
"""The environment variable by which an operator lets visitors' code be run here: 1."""
SHORTEST = 16
"""Letters of a token that somebody chose."""
SECRET = ".secret"
"""A file beside the runs, from which token and signatures are made: they outlive a restart, and replicas share them."""
NAME = re.compile(r"[a-z0-9]{6}")
"""What guests are called."""
LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
"""Headers of a proxy: whoever comes through one does not come from this machine."""


@dataclass(frozen=True)
class Visitor:
    """Somebody at the other end of a connection."""

    role: Role
    name: str = ""
    """Of a guest, in the names of whose runs it stands; empty for all others."""


OWNER, VIEWER = Visitor("owner"), Visitor("viewer")


def visitor(headers: Mapping[str, str], cookies: Mapping[str, str]) -> Visitor:
    """Who sent a request with these headers, their names in lower case, and these cookies.

    A guest without a valid cookie has no name, and can train nothing.
    """
    if hmac.compare_digest(cookies.get(cookie("owner"), "").encode(), token().encode()):
        return OWNER
    role = others(headers)
    return Visitor(role, guest_of(cookies.get(cookie("guest"), "")) if role == "guest" else "")


def others(headers: Mapping[str, str]) -> Role:
    """Who somebody is that does not have the owner's link."""
    role = others_at_best()
    return "guest" if role == "owner" and asked() is None and not is_from_here(headers) else role


def others_at_best() -> Role:
    """The same, of somebody who asks directly from this machine."""
    return asked() or ("owner" if is_alone() else "guest")


def asked() -> Role | None:
    """What ATTENTION_LAB_ROLE says, if it says anything. Raises ConfigError."""
    said = os.environ.get(ASKED, "")
    if said and said not in ROLES:
        raise ConfigError(f"{ASKED} must be owner, guest or viewer, not {said[:30]!r}.")
    return next((role for role in ROLES if role == said), None)


def lets_code_run() -> bool:
    """Has the operator said that visitors' code is run here?"""
    return os.environ.get(RUN_CODE) == "1"


def is_alone() -> bool:
    """Does the server listen on this machine only?"""
    return _is_loopback(str(st.get_option("server.address") or ""))


def token() -> str:
    """What the owner's link says. Raises ConfigError where ATTENTION_LAB_TOKEN is too short to be one."""
    said = os.environ.get(TOKEN, "")
    if said and len(said) < SHORTEST:
        raise ConfigError(f"{TOKEN} must have at least {SHORTEST} letters.")
    return said or signature("owner")[:40]


def new_guest() -> tuple[str, str]:
    """A name for a guest, and the cookie that proves it."""
    name = "".join(secrets.choice(LETTERS) for _ in range(6))
    return name, f"{name}.{signature(name)}"


def guest_of(proof: str) -> str:
    """The name that a guest's cookie proves; empty where it proves none."""
    name, _, signed = proof.partition(".")
    good = NAME.fullmatch(name) and hmac.compare_digest(signed.encode(), signature(name).encode())
    return name if good else ""


def signature(word: str) -> str:
    """What only a server with this secret can make of a word: HMAC-SHA256 (RFC 2104), in hexadecimal digits."""
    return hmac.new(_secret(), word.encode(), hashlib.sha256).hexdigest()


def cookie(kind: str) -> str:
    """What a cookie is called: servers with other secrets, on other ports of this machine, have others."""
    return f"attention-lab-{kind}-{signature('cookie')[:8]}"


@cache
def _secret() -> bytes:
    """32 bytes, from the file beside the runs; of this process only where it cannot be kept."""
    path, made = runs.ROOT / SECRET, secrets.token_bytes(32)
    with contextlib.suppress(OSError):
        runs.ROOT.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            own = path.with_name(f"{SECRET}-{os.getpid()}")
            with os.fdopen(os.open(own, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(made)
            with contextlib.suppress(FileExistsError):  # another server was quicker: its secret holds
                os.link(own, path)
            own.unlink()
        with open_file(path) as file:
            found: bytes = file.read(len(made) + 1)
        if len(found) == len(made):
            return found
    return made


def is_from_here(headers: Mapping[str, str]) -> bool:
    """Did a browser of this machine send a request with these headers, through no proxy?"""
    if any(name in headers for name in FORWARDED):
        return False
    origin = headers.get("origin", "")
    try:
        hosts = [headers.get("host", ""), *([urlsplit(origin).netloc] if origin else [])]
        return all(_is_loopback(urlsplit(f"//{host}").hostname or "") for host in hosts)
    except ValueError:
        return False


def _is_loopback(name: str) -> bool:
    """Is this a name of the machine itself, in itself?"""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
