"""Where a page's numbers come from, written into the page once a rerun; whatever is saved of a figure carries it.

It stands in an element of its own, not in the figures' messages: there a new link would redraw every figure.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from urllib.parse import urlencode

from dashboard.components.registration import declared


@dataclass(frozen=True)
class Maker:
    """Whose numbers these are."""

    run: str
    step: int
    weights: str = ""
    """SHA-256 of the weights' file, in hex; empty where the weights of this step are not kept."""


def origin_element(query: Mapping[str, str], makers: Sequence[Maker]) -> str:
    """The element, as HTML that shows nothing: the view's query and its makers. The browser adds address and time."""
    said = {
        "query": urlencode(query),
        "makers": [asdict(maker) for maker in makers],
        "software": f"Attention Lab {declared()['project']['version']}",
    }
    return f'<div class="al-origin" data-at="{time.time()}" data-origin="{escape(json.dumps(said), quote=True)}"></div>'
