"""The works of Shakespeare on their way from Project Gutenberg: one download a server, whoever asked for it."""

from __future__ import annotations

import threading

from transformer.text import download


class Fetching:
    """A download in the background, how far it is, and why it failed if it did."""

    def __init__(self) -> None:
        self.done = self.total = 0
        """Bytes that have come, and all of them; 0 where the server does not say."""
        self.problem = ""
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    @property
    def running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Begin, unless one is under way."""
        with self._lock:
            if self.running:
                return
            self.done, self.total, self.problem = 0, 0, ""
            self._thread = threading.Thread(target=self._fetch, name="fetching", daemon=True)
            self._thread.start()

    def wait(self, seconds: float) -> None:
        """Wait for its end, at most so long."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _fetch(self) -> None:
        try:
            download.download(said=self._said)
        except Exception as error:  # a thread has nobody else to tell
            self.problem = str(error) or type(error).__name__

    def _said(self, done: int, total: int) -> None:
        self.done, self.total = done, total


shakespeare = Fetching()
