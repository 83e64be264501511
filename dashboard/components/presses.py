"""A button of which no press is lost, by click or by key: the browser counts them.

Of the presses of an `st.button` that come while the page is being drawn Streamlit makes one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import streamlit as st

from dashboard.components.payload import pack
from dashboard.components.registration import renderer
from dashboard.server.streamlit_private import is_asked_for

HTML = """
<button type="button" style="visibility: hidden">
  <span class="icon" aria-hidden="true"></span><span class="label"></span><span class="kbd" aria-hidden="true"></span>
</button>
"""
"""Hidden until its script has given it its name: nobody sees or hears of a button without one."""


def counted_button(
    label: str,
    on_press: Callable[[int], None],
    *,
    key: str,
    letter: str,
    keys: Sequence[str] = (),
    icon: str = "",
    help_: str = "",
    disabled: bool = False,
    primary: bool = False,
    first: bool = False,
    most: int | None = None,
    width: Literal["stretch", "content"] = "stretch",
) -> None:
    """A button that the key `letter` presses too. `on_press` is called with how many presses have come since the last.

    Or the `keys`, by the names that browsers give them, in place of that letter, which is then only shown: "→" for
    "ArrowRight".
    Where two buttons bear one key, that which is `first` hears it, whichever came before.
    `icon` is the name of a Material symbol. A button that is `disabled` may still tell of presses from before it was.
    At most so many presses count until this page has been drawn anew; those that come after them are lost.
    """

    def pressed() -> None:
        new = unanswered(key)
        st.session_state[f"{key}-seen"] = st.session_state[key]["presses"]
        if new:  # after a change of page Streamlit tells the old count once more, with whatever is clicked next
            on_press(new)
            if not is_asked_for():  # the count comes with every request, also with one for another part of the page
                st.rerun()

    mount = renderer("presses", html=HTML, isolate_styles=True)
    words = {
        "icon": icon,
        "label": label,
        "letter": letter,
        "keys": [*keys] or [letter],
        "help": help_,
        "disabled": disabled,
        "primary": primary,
        "first": first,
        "most": most,
        "answered": st.session_state.get(f"{key}-seen") or (st.session_state.get(key) or {}).get("presses"),
    }
    mount(key=key, data=pack(words, b""), width=width, on_presses_change=pressed)
    # After a restart of the server a browser tells a new session of presses that the old one has answered.
    st.session_state.setdefault(f"{key}-seen", (st.session_state.get(key) or {}).get("presses"))


def unanswered(key: str) -> int:
    """How many presses of the button of this key the present request tells of that have not been answered yet."""
    told = (st.session_state.get(key) or {}).get("presses")
    seen = st.session_state.get(f"{key}-seen")
    if not told:
        return 0
    return int(told["count"]) - (int(seen["count"]) if seen and seen["since"] == told["since"] else 0)
