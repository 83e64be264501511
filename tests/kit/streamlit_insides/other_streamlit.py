"""A Streamlit in which names are others: processes read it so by sitecustomize.py, browsers by a route."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import streamlit as st
from playwright.sync_api import BrowserContext, Route

from dashboard.server.private_names import Part
from dashboard.server.streamlit_private import PARTS

WORDS = r"_[a-z]\w*|(?!Forward|Page|Client)[A-Z]\w+[a-z]|get_script_run_ctx|on_script\w+|register_from_manifest"
"""Names that mean one thing wherever Streamlit writes them, so that all of it can be read with others: no messages of
protobuf, whose names are data, and none that is promised as well."""


def _words(part: Part[..., Any]) -> set[str]:
    wanted = [need.partition("(")[0].partition(":")[2] for need in part.needs if "/" not in need]
    names = {name for each in wanted for name in re.findall(r"\w+", each)}
    return {name for name in names if re.fullmatch(WORDS, name)}


RENAMED = {part.__name__: _words(part) for part in PARTS if _words(part)}
"""For each part of the dashboard what may have another name of that it needs."""


def environment(names: Iterable[str]) -> dict[str, str]:
    """The variables with which a process reads Streamlit with other names for these."""
    here = Path(__file__).parent
    return {"PYTHONPATH": os.pathsep.join((str(here), str(here.parents[2]))), "RENAMED": " ".join(names)}


STATIC = Path(st.__file__).parent / "static" / "static" / "js"


def _another(found: re.Match[str]) -> str:
    return f"{found[0]}-renamed" if "-" in found[0] else f"{found[0]}Renamed"


def rename_in_page(context: BrowserContext, names: Iterable[str]) -> None:
    """Have a browser read the scripts of Streamlit's page with other names for these classes and attributes."""
    words = re.compile(rf"\b(?:{'|'.join(names)})\b")

    def fulfil(route: Route) -> None:
        source = (STATIC / route.request.url.rpartition("/")[2]).read_text(encoding="utf-8")
        route.fulfill(body=words.sub(_another, source), content_type="text/javascript")

    context.route("**/static/js/*.js", fulfil)
