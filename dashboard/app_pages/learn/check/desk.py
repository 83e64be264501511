"""The code that is to be checked: typed, uploaded or an example; the name in it, and what it is said to be.

It lies in the session and nowhere else: the view, which goes into links, knows at most which example it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import streamlit as st

from dashboard.app_pages.learn.check import running, words
from dashboard.app_pages.learn.check.examples import EXAMPLES
from dashboard.app_pages.learn.check.outline import Outline, outline
from dashboard.app_pages.learn.check.running import Asked, Check
from dashboard.app_pages.learn.check.settings import CheckSettings
from dashboard.parts.prose import plain, sentence
from dashboard.parts.widgets import barred, bound_choice, controlled
from dashboard.view import clicks, permission, session
from transformer.foundation.checks import UserError
from transformer.foundation.foreign import shortened

LONGEST = 100_000
"""Letters of a piece of code."""
LARGEST = 1
"""MB of a file that may be sent; what has more letters than that is refused."""
HEIGHT = 360
OWN = "your own"
FIELD = "check-code"
LETTER = "K"
NO_NAME = "no function yet"
PLACEHOLDER = "def attention(query, key, value, mask):\n    …"


@dataclass(eq=False)
class Desk:
    """What lies on it, of one session."""

    own: str = ""
    """What was typed or uploaded."""
    name: str = ""
    """What was picked in it; empty is the likeliest."""
    problem: str = ""
    """Why what was sent last was not taken; said once."""
    check: Check | None = None
    """The last one that was asked for."""
    uploads: int = 0
    _read: tuple[str, Outline] = field(default=("", Outline()))

    @property
    def code(self) -> str:
        """What stands in the field."""
        example = EXAMPLES.get(session.mine(CheckSettings).check_example)
        return self.own if example is None else example.code()

    @property
    def outline(self) -> Outline:
        """What that code defines."""
        if self._read[0] != self.code:
            self._read = self.code, outline(self.code)
        return self._read[1]

    @property
    def asked(self) -> Asked:
        """What is checked next."""
        found = self.outline
        kind = session.mine(CheckSettings).check_kind
        name = self.name if self.name in found.names else found.likeliest
        return Asked(self.code, name, kind if kind in words.KINDS else "")

    def take(self, text: str) -> None:
        """Let this be the code."""
        if len(text) > LONGEST:
            self.problem = f"The code has {len(text):,} letters. At most {LONGEST:,} are checked."
            clicks.touch()
            return
        self.own = text
        session.update(check_example="")


def desk() -> Desk:
    """The desk of this session."""
    found: Desk = st.session_state.setdefault("check_desk", Desk())
    return found


def draw(mine: Desk) -> None:
    """The field of code, its examples, what is checked in it, and the button."""
    bound_choice(
        st.selectbox,
        "Code to start from",
        "check_example",
        ["", *EXAMPLES],
        "",
        format_func=lambda name: f"example: {EXAMPLES[name].title()}" if name else OWN,
        missing=lambda name: f"There is no example “{shortened(name, 40)}” here. The field is yours.",
    )
    controlled(  # without `max_chars`: Streamlit would cut the code, and check what is left
        st.text_area,
        "Code",
        key=FIELD,
        value=mine.code,
        picked=mine.take,
        height=HEIGHT,
        placeholder=PLACEHOLDER,
    )
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        _name(mine)
        bound_choice(
            st.selectbox,
            "What it is",
            "check_kind",
            ["", *words.KINDS],
            "",
            format_func=lambda kind: words.KINDS[kind] if kind else words.GUESSED,
            missing=lambda kind: f"There is no kind “{shortened(kind, 40)}”. The check guesses it.",
            width=210,
        )
        _button(mine)
        _upload(mine)
    said = mine.problem or mine.outline.problem
    mine.problem = ""
    if said:
        st.warning(plain(said), icon=":material/warning:")


def _name(mine: Desk) -> None:
    names = list(mine.outline.names) or [""]  # a menu of nothing would be grey, and hard to read

    def picked(name: str) -> None:
        mine.name = name
        clicks.touch()

    controlled(
        st.selectbox,
        "What to check",
        names,
        key="check-name",
        value=mine.asked.name,
        picked=picked,
        format_func=lambda name: shortened(name, 40) or NO_NAME,
        width=180,
    )


def _button(mine: Desk) -> None:
    """Check, or stop."""
    if mine.check is not None and not mine.check.over:
        st.button("Stop", on_click=_stop, args=(mine,), key="check-stop", icon=":material/stop:", shortcut=LETTER)
        return
    st.button(
        "Check",
        on_click=_begin,
        args=(mine,),
        key="check-begin",
        type="primary",
        icon=":material/fact_check:",
        shortcut=LETTER,
    )


@clicks.once
def _begin(mine: Desk) -> None:
    typed = st.session_state.get(FIELD)
    if isinstance(typed, str) and typed != mine.code:  # the button was pressed in the midst of typing
        mine.take(typed)
        if mine.problem:
            return
    if mine.check is not None and not mine.check.over:
        return
    if not mine.asked.name:
        mine.problem = mine.outline.problem or "There is no code yet: paste some, or start from an example."
        return
    try:
        mine.check = running.begin(mine.asked)
    except UserError as error:
        mine.problem = sentence(str(error))


@clicks.once
def _stop(mine: Desk) -> None:
    if mine.check is not None:
        mine.check.stop()


def _upload(mine: Desk) -> None:
    """A file in place of what is pasted. Its text is kept, and not the file."""
    why = permission.for_the_owner("send files")
    key = f"check-file-{mine.uploads}"
    count = mine.uploads

    def uploaded() -> None:
        file = st.session_state[key]
        if file is None or why or mine.uploads != count:
            return  # nothing, or sent once more
        mine.uploads = count + 1  # an empty box for the next one
        text, mine.problem = text_of(file.getvalue())
        clicks.touch()
        if not mine.problem:
            mine.take(text)

    with st.popover("Upload", icon=":material/upload_file:"):
        st.file_uploader(
            "One .py file (UTF-8)", type="py", key=key, on_change=uploaded, max_upload_size=LARGEST, **barred(why)
        )


def text_of(content: bytes) -> tuple[str, str]:
    """The text of a file, and why it cannot be read, where it cannot."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return "", f"The file is no UTF-8 text: byte {error.start + 1} cannot be read."
    if "\0" in text:
        return "", "The file is no text: it holds null characters."
    return text.replace("\r\n", "\n").replace("\r", "\n"), ""
