"""What a page sends, searched for what is nobody else's business."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest

from dashboard.components.payload import unpack
from tests.kit.checkout import ROOT

HOST = "a-machine-of-ours"
"""What this machine is called while a test looks for its name."""


def sent(app: AppTest) -> str:
    """Everything that a page sends: texts, figures, and what components are told."""

    def parts(node: Any) -> Iterator[str]:
        for child in getattr(node, "children", {}).values():
            yield from parts(child)
        if (proto := getattr(node, "proto", None)) is not None:
            yield str(proto)
            if getattr(node, "type", "") == "bidi_component":
                header, body = unpack(proto.bytes)
                yield from (json.dumps(header, ensure_ascii=False), body.decode("latin-1"))

    return "\n".join(parts(app._tree))


def told_of_here(text: str, *folders: Path) -> list[str]:
    """Which of this machine's name and folders stand in a text; the name as a word of its own."""
    words = [word for word in map(str, (Path.home(), ROOT, *folders)) if len(word) > 1 and word in text]
    return words + re.findall(rf"\b{HOST}\b", text)
