"""Brings into sight what a key or a click has let come to the page. Nothing is to be seen of it."""

from __future__ import annotations

from dashboard.components.payload import pack
from dashboard.components.registration import renderer

HTML = '<div class="al-arrival" aria-hidden="true"></div>'


def bring(what: str, key: str, *, growing: bool) -> None:
    """Mount it, beside the container of a `key`: once for each name of `what` is there, it scrolls to that container.

    That is below a lecture's words, and for as long as what is there is `growing`, or until the reader scrolls.
    """
    mount = renderer("arrival", html=HTML, isolate_styles=False)
    mount(key=f"arrival-{key}", data=pack({"what": what, "key": key, "growing": growing}, b""))
