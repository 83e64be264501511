"""The address by which followers come to a room, in text and as a QR code."""

from __future__ import annotations

import io
import ipaddress
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

import segno

from dashboard.server.sockets import beyond_this_machine

SOMEWHERE = ("192.0.2.1", 9)
"""An address that nobody has (RFC 5737). Nothing is sent: only the way to it is asked for."""


@dataclass(frozen=True)
class Address:
    """Where followers find a room."""

    text: str
    local: bool
    """Only this machine can open it."""


def address(scheme: str, host: str, port: int, path: str) -> Address:
    """The address of a path on this server, as followers write it.

    `scheme` and `host` are those of the request, `port` the one on which the server heard it. The lecturer's browser
    may call this machine localhost; for all others it is then named by its own address in its network, if the server
    listens there.
    """
    if not _is_loopback(host):
        return Address(f"{scheme}://{host}{path}", False)
    own = own_address() if beyond_this_machine(port) else None
    if own is None:
        return Address(f"{scheme}://{host}{path}", True)
    outside = urlsplit(f"//{host}").port
    return Address(f"{scheme}://{own}{f':{outside}' if outside else ''}{path}", False)


def own_address() -> str | None:
    """This machine's address in its network; None where it is in none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(SOMEWHERE)
        except OSError:
            return None
        found: str = probe.getsockname()[0]
    return None if _is_loopback(found) or found == "0.0.0.0" else found


def _is_loopback(host: str) -> bool:
    """Whether a host, with or without a port, is the machine that asks."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or name.endswith(".localhost") or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def qr_code(text: str) -> bytes:
    """A text as a QR code (ISO/IEC 18004), an SVG of any size, dark on light whatever is around it."""
    out = io.BytesIO()
    segno.make(text, error="m", micro=False).save(out, kind="svg", border=4, dark="#000", light="#fff", omitsize=True)
    return out.getvalue()
