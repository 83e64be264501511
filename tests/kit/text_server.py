"""A server of this machine that a text is fetched from."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.kit import texts

BOOK = f"The front.\n*** START OF THE PROJECT GUTENBERG EBOOK 100 ***\n{texts.TEXT}\n*** END OF THE BOOK ***\nLegal.\n"


@contextmanager
def server(content: bytes, *, status: int = 200, length: int | None = None) -> Iterator[tuple[str, list[str]]]:
    """A server that sends this to whoever asks: its address, and what was asked of it."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(content) if length is None else length))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{http.server_port}/book.txt", asked
        finally:
            http.shutdown()
            thread.join()


def nowhere() -> str:
    """An address at which nobody listens."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{found.getsockname()[1]}/book.txt"
