"""The part of the training panel that chooses a text: which one, how it is cut, where it is fetched from."""

from __future__ import annotations

import threading
from concurrent.futures import Future, wait

import streamlit as st

from dashboard.models import background, menu
from dashboard.parts import waiting
from dashboard.parts.prose import plain
from dashboard.parts.widgets import barred, bound_choice
from dashboard.view import clicks, permission, session
from dashboard.view.training import text_of
from transformer.commands import corpus
from transformer.config import SPLITS
from transformer.foundation.checks import reason
from transformer.text import download, shelf
from transformer.text.corpus import TextError

LARGEST = shelf.LARGEST // 2**20
"""Megabytes of the largest text."""


def choose_text() -> None:
    """Which text is read, from those at hand, and another one from a file or from Project Gutenberg."""
    at_hand = list(shelf.keys())
    if at_hand:
        bound_choice(st.selectbox, "Text", "text", at_hand, text_of(""), format_func=_named)
    _shelved(text_of(session.settings().text))
    if not any(key.rpartition("-")[0] == download.NAME for key in at_hand):
        _fetch()
    _upload()
    bound_choice(
        st.segmented_control,
        "Split into",
        "split",
        list(SPLITS),
        "words",
        help="At the boundaries of words, as `re.split(r'\\b', text)` does it, or between any two characters",
        width="stretch",
    )


def _named(key: str) -> str:
    """A text's name; with its digits where there are several of that name."""
    at_hand, name = shelf.keys(), key.rpartition("-")[0]
    return name if [other.rpartition("-")[0] for other in at_hand].count(name) == 1 else key


def _shelved(key: str) -> None:
    """Take the chosen text off the shelf, and have the last one back."""
    why = permission.for_the_owner("add and remove texts")
    with st.container(horizontal=True, gap="small"):
        if key:
            st.button(
                "Remove",
                on_click=_remove,
                args=(key,),
                icon=":material/delete:",
                key="text-remove",
                disabled=bool(why),
                help=why
                or f"Takes {_named(key)} off the list; what has been trained on it stays, and can be looked at",
            )
        removed = st.session_state.get("removed_text")
        if removed and not shelf.at_hand(removed):
            name = removed.rpartition("-")[0]
            st.button(
                f"Bring “{name}” back", on_click=_restore, args=(removed,), icon=":material/undo:", key="text-restore"
            )


@clicks.once
@permission.owners
def _remove(key: str) -> None:
    try:
        corpus.take_away(key, menu.ROOT)
    except TextError as error:
        st.session_state.text_problem = reason(error)
        return
    st.session_state.removed_text = key
    session.update(text="")


@clicks.once
@permission.owners
def _restore(key: str) -> None:
    try:
        shelf.restore(key)
    except TextError as error:
        st.session_state.text_problem = reason(error)
        return
    del st.session_state.removed_text
    session.update(text=key)


def _fetch() -> None:
    """The button that fetches Shakespeare, or how far he is on his way; why he did not come."""
    if shakespeare.running:
        waiting.until(lambda: not shakespeare.running, _progress, news=lambda: (shakespeare.running, shakespeare.done))
        return
    st.button(
        "Fetch Shakespeare",
        on_click=_begin,
        icon=":material/download:",
        width="stretch",
        disabled=bool(why := permission.for_the_owner("fetch texts")),
        help=why or "The complete works, 5.4 MB from Project Gutenberg, once",
    )
    if shakespeare.problem:
        st.error(f"{plain(shakespeare.problem)}.", icon=":material/cloud_off:")


@clicks.once
@permission.owners
def _begin() -> None:
    shakespeare.start()
    shakespeare.wait(waiting.AGAIN)  # so that a refusal is the click's own answer


def _progress() -> None:
    """How far he is."""
    done, total = shakespeare.done, shakespeare.total
    share = min(1.0, done / total) if total else 0.0
    st.progress(share, text=f"Fetching Shakespeare: {done / 2**20:.1f} MB" if done else "Asking Project Gutenberg …")


def _upload() -> None:
    """Another text, from a file; it is chosen at once."""
    why = permission.for_the_owner("add and remove texts")
    key = f"text-file-{st.session_state.setdefault('texts_read', 0)}"

    def uploaded() -> None:
        file = st.session_state.get(key)
        if file is None or why:
            return
        st.session_state.texts_read += 1  # a new one, so that the same file can be tried again
        try:
            session.update(text=shelf.put(file.name, file.getvalue()))
            st.session_state.text_problem = ""
        except (TextError, OSError) as error:
            st.session_state.text_problem = reason(error)
            clicks.touch()

    st.file_uploader(
        "Another text (.txt, UTF-8)",
        type="txt",
        key=key,
        on_change=uploaded,
        max_upload_size=LARGEST,
        **barred(why),
    )
    if problem := st.session_state.pop("text_problem", ""):
        st.error(f"{plain(problem)}.", icon=":material/error:")


# --- the works of Shakespeare on their way from Project Gutenberg: one download a server, whoever asked for it


class Fetching:
    """A download in the background, how far it is, and why it failed if it did."""

    def __init__(self) -> None:
        self.done = self.total = 0
        """Bytes that have come, and all of them; 0 where the server does not say."""
        self._future: Future[object] | None = None
        self._lock = threading.Lock()

    @property
    def running(self) -> bool:
        return self._future is not None and not self._future.done()

    @property
    def problem(self) -> str:
        return background.problem(self._future)

    def start(self) -> None:
        """Begin, unless one is under way."""
        with self._lock:
            if self.running:
                return
            self.done, self.total = 0, 0
            self._future = background.WATCHED.submit(download.download, said=self._said)

    def wait(self, seconds: float) -> None:
        """Wait for its end, at most so long."""
        if self._future is not None:
            wait([self._future], seconds)

    def _said(self, done: int, total: int) -> None:
        self.done, self.total = done, total


shakespeare = Fetching()
