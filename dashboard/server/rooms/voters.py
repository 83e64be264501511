"""Who votes and who asks: a voter by a cookie that the server signed, a sender by its address.

A cookie belongs to one room and says nothing of who has it. Whoever throws it away can have another, so that what it
proves is little: two votes with one cookie are of one browser. Addresses bound the rest.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import secrets

from starlette.requests import HTTPConnection
from starlette.types import Scope

from dashboard.server.rooms.rooms import Room

COOKIE = "attention-lab-voter"
"""Its path is that of the room, so that each room has its own."""
NAME = re.compile(r"[\w-]{22}", re.ASCII)
SUBNET = 64
"""Bits of an IPv6 address by which networks are told apart (RFC 6177): the rest is up to who has the address."""
NOWHERE = "unknown"


def new_cookie(room: Room) -> str:
    """What is in the cookie of a new voter of a room: a name nobody had, and its signature."""
    name = secrets.token_urlsafe(16)
    return f"{name}.{_signature(room, name)}"


def voter_of(scope: Scope, room: Room) -> str:
    """The voter whose cookie a request bears; empty where it bears none that was signed for this room."""
    name, _, signed = HTTPConnection(scope).cookies.get(COOKIE, "").partition(".")
    good = NAME.fullmatch(name) and hmac.compare_digest(signed.encode(), _signature(room, name).encode())
    return name if good else ""


def sender_of(scope: Scope) -> str:
    """The address that a request came from; of IPv6 its network of 64 bits.

    Behind a proxy it is the one in X-Forwarded-For. uvicorn has put it there, if the proxy's own address is one of
    those in FORWARDED_ALLOW_IPS: without that variable, this machine only.
    """
    host = (scope.get("client") or ("", 0))[0]
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return NOWHERE
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:  # as a socket for both kinds writes it
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((int(address), SUBNET), strict=False))


def pseudonym(room: Room, sender: str) -> str:
    """What a sender is called where a room is kept: nothing is kept there by which somebody could be found."""
    return room.sign(f"sender {sender}")[:16]


def _signature(room: Room, name: str) -> str:
    return room.sign(f"voter {name}")
