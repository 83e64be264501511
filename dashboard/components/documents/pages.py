"""What shows a document, a page that has written itself down (web/document/write.js): a page of its own, or a widget.

All are the same reader: the components that the dashboard mounts, in one script. A follower's page gets its documents
from a room of the server; a hand-out holds them, and plotly.js, in one file; a widget of a notebook gets its own from
Python.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Callable, Sequence
from functools import cache
from html import escape
from typing import Any

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from dashboard.components.documents.bundle import WEB, bundle, exporting, source_of, style
from dashboard.components.scripts import FOLDER, NAME, components_script
from dashboard.server import plotly_js
from dashboard.server.http import accepts_gzip, base

STYLED = ("film", "glances", "head_grid", "painter", "passage", "prediction")
"""The components whose style sheets stand with them, in a root of their own."""
OPEN = ("plot/plot.css", "sheet/sheet.css", "document/reader.css")
"""The style sheets of the others, and of the page around a document."""


def routes() -> list[BaseRoute]:
    """The routes for `st.App(routes=…)`: the reader, and the script of all components."""
    return [Route(f"{base()}/{FOLDER}/{name}", _file, methods=["GET"], name=name) for name in FILES]


@cache
def live_page() -> str:
    """A follower's page; its scripts and documents come from the server."""
    return _template("live.html", BASE=base(), STYLES=_styles())


@cache
def hand_out_page() -> str:
    """A hand-out that is empty yet: @@TITLE@@ stands where its title is to be, @@DOCUMENTS@@ where its documents are.

    The documents are a JSON array, compressed by gzip, as base64. The page's own policy forbids it every request.
    """
    script = bundle("document/file").replace("</script", r"<\/script")
    sources = f"{source_of(script)} {source_of(plotly_js.source())}"
    policy = (
        f"default-src 'none'; script-src {sources}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    plotly = base64.b64encode(packed_plotly()).decode()
    return _template(
        "file.html",
        POLICY=policy,
        STYLE=rules() + style("document/paper.css"),
        STYLES=_styles(),
        SCRIPT=script,
        PLOTLY=plotly,
    )


def hand_out(title: str, documents: Sequence[dict[str, Any]]) -> str:
    """A hand-out of documents, a page each, as web/document/hand_out.js writes it."""
    written = packed(json.dumps(documents, ensure_ascii=False, separators=(",", ":")).encode())
    parts = {"@@TITLE@@": escape(title), "@@DOCUMENTS@@": base64.b64encode(written).decode()}
    return re.sub("|".join(parts), lambda found: parts[found[0]], hand_out_page())


@cache
def widget_script() -> str:
    """The module of a notebook's widget, as anywidget takes it: the reader with its style sheets."""
    made = exporting({"notebook": "document/notebook"})
    return f"{made}export default notebook({_styles()}, {json.dumps(rules())});\n"


@cache
def packed_plotly() -> bytes:
    """plotly.js, compressed: a third of what it is."""
    return packed(plotly_js.source().encode())


def packed(content: bytes) -> bytes:
    """Compressed by gzip; the same content gives the same bytes."""
    return gzip.compress(content, compresslevel=6, mtime=0)


@cache
def rules() -> str:
    """The style sheet of the page around a document."""
    return "\n".join(style(name) for name in OPEN)


def _styles() -> str:
    """The style sheets of the components, by name, as JSON that may stand within a script."""
    return json.dumps({name: style(f"{name}/{name}.css") for name in STYLED}).replace("<", "\\u003c")


def _template(name: str, **parts: str) -> str:
    """A page with its parts in the place of their names."""
    source = (WEB / "document" / name).read_text(encoding="utf-8")
    return re.sub("|".join(rf"\b{part}\b" for part in parts), lambda found: parts[found[0]], source)


async def _file(request: Request) -> Response:
    """One of FILES, compressed where the browser allows it; a browser that has it asks whether it is still the same."""
    name = request.url.path.rsplit("/", 1)[1]
    compress = accepts_gzip(request.headers.get("accept-encoding", ""))
    body, tag = await to_thread.run_sync(_made, name, compress)
    headers = {"ETag": tag, "Vary": "Accept-Encoding", "Cache-Control": "no-cache"}
    if tag in (each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")):
        return Response(status_code=304, headers=headers)
    if compress:
        headers["Content-Encoding"] = "gzip"
    return Response(body, media_type=FILES[name][0], headers=headers)


@cache
def _made(name: str, compress: bool) -> tuple[bytes, str]:
    """The bytes of one of FILES and their tag; made once and kept."""
    body = FILES[name][1]().encode()
    if compress:
        body = packed(body)
    return body, f'"{hashlib.sha256(body).hexdigest()[:24]}"'


FILES: dict[str, tuple[str, Callable[[], str]]] = {
    NAME: ("text/javascript", components_script),
    "live.js": ("text/javascript", lambda: bundle("document/live")),
    "reader.css": ("text/css", rules),
    "hand-out.html": ("text/html", hand_out_page),
}
"""What the server gives out below "reader/", by name: its type, and what makes it."""
