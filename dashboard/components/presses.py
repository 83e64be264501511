"""A button of which no press is lost, by click or by key: the browser counts them.

Of the presses of an `st.button` that come while the page is being drawn Streamlit makes one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import streamlit as st

from dashboard.components.payload import pack
from dashboard.components.registration import renderer

HTML = """
<button type="button">
  <span class="icon" aria-hidden="true"></span><span class="label"></span><span class="kbd" aria-hidden="true"></span>
</button>
"""


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
    width: Literal["stretch", "content"] = "stretch",
) -> None:
    """A button that the key `letter` presses too. `on_press` is called with how many presses have come since the last.

    Or the `keys`, by the names that browsers give them, in place of that letter, which is then only shown: "→" for
    "ArrowRight".
    `icon` is the name of a Material symbol. A button that is `disabled` may still tell of presses from before it was.
    """

    def pressed() -> None:
        told, seen = st.session_state[key]["presses"], f"{key}-seen"
        before = st.session_state.get(seen) or {"since": None, "count": 0}
        st.session_state[seen] = told
        on_press(told["count"] - (before["count"] if before["since"] == told["since"] else 0))

    mount = renderer("presses", html=HTML, isolate_styles=True)
    words = {
        "icon": icon,
        "label": label,
        "letter": letter,
        "keys": [*keys] or [letter],
        "help": help_,
        "disabled": disabled,
        "primary": primary,
    }
    mount(key=key, data=pack(words, b""), width=width, on_presses_change=pressed)
