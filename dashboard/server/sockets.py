"""The sockets that the server listens on: how soon they answer, and who can reach them."""

import ipaddress
import os
import socket
import stat
from collections.abc import Iterator

OPEN = "/dev/fd"
"""Where Linux and macOS list what a process has open."""


def answer_at_once() -> None:
    """Turn Nagle's algorithm off (RFC 896) on the TCP sockets that this process listens on.

    What they accept inherits it. Streamlit binds its socket before it hands it to uvicorn, and asyncio then takes it
    for no TCP socket and leaves the algorithm on (github.com/Kludex/uvicorn/issues/3149): on a connection that is kept,
    every answer waits 44 ms for the acknowledgement of its own headers, and a page asks for a hundred files. Where
    nothing lists what is open, nothing is done.
    """
    for each in _listening():
        each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def beyond_this_machine(port: int) -> bool:
    """Whether this process listens on a port for other machines, too. Where nothing lists it, it is taken to."""
    names = [each.getsockname() for each in _listening()]
    heard = [ipaddress.ip_address(name[0]) for name in names if name[1] == port]
    return not heard or not all(address.is_loopback for address in heard)


def _listening() -> Iterator[socket.socket]:
    """The TCP sockets that this process listens on, each open until the next is asked for."""
    for name in os.listdir(OPEN) if os.path.isdir(OPEN) else ():
        try:
            if not stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                continue
            each = socket.socket(fileno=os.dup(int(name)))
        except OSError:  # closed since
            continue
        with each:
            internet = each.family in (socket.AF_INET, socket.AF_INET6) and each.type == socket.SOCK_STREAM
            if internet and each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                yield each
