"""What the server's sockets are told."""

import os
import socket

import pytest

from dashboard.server import sockets


@pytest.mark.skipif(not os.path.isdir(sockets.OPEN), reason="nothing lists what this process has open")
def test_what_is_accepted_answers_at_once():
    """A listening socket as Streamlit makes it: of a family, without a protocol."""
    opened = len(os.listdir(sockets.OPEN))
    with socket.socket(family=socket.AF_INET) as listening, socket.socket(family=socket.AF_INET) as bound:
        for each in (listening, bound):
            each.bind(("127.0.0.1", 0))
        listening.listen()
        sockets.answer_at_once()
        with socket.create_connection(listening.getsockname()), listening.accept()[0] as accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert not bound.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    assert len(os.listdir(sockets.OPEN)) == opened


def test_where_nothing_lists_them_nothing_is_done(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sockets, "OPEN", "/nowhere")
    sockets.answer_at_once()
