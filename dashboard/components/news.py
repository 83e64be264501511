"""Has a part of a page drawn anew when there is news of what it shows. Nothing is to be seen of it."""

from __future__ import annotations

from dashboard.components.payload import pack
from dashboard.components.registration import renderer

HTML = '<div class="al-news" aria-hidden="true"></div>'


def ask_for_news(number: int, token: str | None, version: int, every: float, awaits: bool) -> None:
    """Mount it, in the fragment that is to be drawn anew.

    The browser asks for that when what it follows by the `token` has a later version than this, which is about to be
    drawn; `every` seconds at most, and not while its tab is hidden. Without a token, and where the server cannot tell
    it, it asks every so many seconds. Where it `awaits` an end, a hand-out waits for that, too.
    """
    mount = renderer("news", html=HTML, isolate_styles=False)
    data = pack({"token": token, "version": version, "every": every, "awaits": awaits}, b"")
    mount(key=f"news-{number}", data=data, on_news_change=lambda: None)
