"""Explains terms where they stand in a page's sentences, by pointer and touch, and in a list by keyboard."""

from __future__ import annotations

from collections.abc import Sequence

from dashboard.components.payload import pack
from dashboard.components.registration import renderer

HTML = """
<div class="al-glossary">
  <button type="button" popovertarget="al-words" hidden>Words</button>
  <div class="al-words" id="al-words" popover role="dialog" aria-label="Words on this page">
    <b>Words on this page</b>
    <dl></dl>
  </div>
  <div class="al-meaning" popover="manual" role="tooltip"></div>
</div>
"""


def explained(terms: Sequence[tuple[str, str, str]], *, key: str) -> None:
    """Find each term in the sentences of the page that is shown now, and explain it where it stands first.

    A term is its name, the regular expression that finds it, and its meaning; of two that are found at one place the
    earlier one stands. The page's own elements stay as they are: terms are marked by the browser's highlights.
    """
    mount = renderer("glossary", html=HTML, isolate_styles=False)
    mount(key=key, data=pack({"terms": [list(term) for term in terms]}, b""))
