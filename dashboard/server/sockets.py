"""The sockets that the server listens on, and how soon they answer."""

import os
import socket
import stat

OPEN = "/dev/fd"
"""Where Linux and macOS list what a process has open."""


def answer_at_once() -> None:
    """Turn Nagle's algorithm off (RFC 896) on the TCP sockets that this process listens on.

    What they accept inherits it. Streamlit binds its socket before it hands it to uvicorn, and asyncio then takes it
    for no TCP socket and leaves the algorithm on (github.com/Kludex/uvicorn/issues/3149): on a connection that is kept,
    every answer waits 44 ms for the acknowledgement of its own headers, and a page asks for a hundred files. Where
    nothing lists what is open, nothing is done.
    """
    for name in os.listdir(OPEN) if os.path.isdir(OPEN) else ():
        try:
            if not stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                continue
            with socket.socket(fileno=os.dup(int(name))) as each:
                internet = each.family in (socket.AF_INET, socket.AF_INET6) and each.type == socket.SOCK_STREAM
                if internet and each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                    each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:  # closed since
            continue
