"""What the server adds to Streamlit: plotly.js, the presenter's page, a page that connects at once, security headers.

Streamlit's own scripts stay uncompressed on purpose: from localhost a page loads no sooner with gzip (2.4 s cold either
way), and its makers found the same (streamlit/web/server/starlette/starlette_gzip_middleware.py).
"""

import base64
import gzip
import hashlib
import re
from functools import cache, lru_cache
from pathlib import Path

import plotly
import streamlit as st
from anyio import to_thread
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dashboard.server.descriptors import Door
from dashboard.server.entrance import Entrance
from dashboard.server.guard import Guard, is_known
from dashboard.server.plotly_js import source
from dashboard.server.readiness import PATH, readiness
from dashboard.server.rooms import addresses
from dashboard.server.streamlit_private import connecting_script, register_components, served_page

PLOTLY_PATH = "/assets/plotly.min.js"
PRESENTER = Path(__file__).parent / "presenter"
YEAR = 365 * 24 * 3600


def routes(first: str) -> list[BaseRoute]:
    """The routes for `st.App(routes=…)`; they stand under `server.baseUrlPath`, like Streamlit's own.

    `first` is the address of the first page, which Streamlit opens by an empty one only.
    """
    return [
        Route(f"{base()}{PLOTLY_PATH}", plotly_js, methods=["GET"]),
        Route(f"{base()}/{first}", to_first, methods=["GET"]),
        Route(f"{base()}{PATH}", readiness, methods=["GET"]),
        Mount(presenter_address().rstrip("/"), StaticFiles(directory=PRESENTER, html=True)),
    ]


def middleware(style: str) -> list[Middleware]:
    """The middleware for `st.App(middleware=…)`; the page begins with these styles."""
    return [
        Middleware(SecurityHeaders),
        Middleware(Guard),
        Middleware(Door),
        Middleware(OwnPage, style=style),
        Middleware(Entrance, base=base()),
    ]


async def to_first(request: Request) -> Response:
    """The first page by its own address: the empty one beside it, with the same view."""
    return RedirectResponse(f"./{f'?{request.url.query}' if request.url.query else ''}")


async def plotly_js(request: Request) -> Response:
    """Serve plotly.js, compressed where the browser allows it, and cached for as long as its version stands."""
    compress = accepts_gzip(request.headers.get("accept-encoding", ""))
    tag = f'"plotly-cartesian-{plotly.__version__}{"-gzip" if compress else ""}"'
    # The browser asks for ?v=<version>, so a new version is a new address; without it, it has to ask again.
    named = request.query_params.get("v") == plotly.__version__
    headers = {
        "ETag": tag,
        "Vary": "Accept-Encoding",
        "Cache-Control": f"public, max-age={YEAR}, immutable" if named else "no-cache",
    }
    if tag in (
        candidate.strip().removeprefix("W/") for candidate in request.headers.get("if-none-match", "").split(",")
    ):
        return Response(status_code=304, headers=headers)
    if compress:
        headers["Content-Encoding"] = "gzip"
    body = await to_thread.run_sync(plotly_source, compress)
    return Response(body, media_type="text/javascript", headers=headers)


@cache
def plotly_source(compress: bool) -> bytes:
    """The bytes of plotly.js, 1.5 MB, or 0.5 MB compressed; either is made once and kept."""
    if compress:
        return gzip.compress(plotly_source(False), compresslevel=6, mtime=0)
    return source().encode()


def accepts_gzip(header: str) -> bool:
    """Whether an Accept-Encoding header allows gzip (RFC 9110, section 12.5.3)."""
    weights: dict[str, float] = {}
    for entry in header.lower().split(","):
        coding, *parameters = (part.strip() for part in entry.split(";"))
        quality = next((value[2:] for value in parameters if value.startswith("q=")), "1")
        try:
            weights[coding] = float(quality)
        except ValueError:
            weights[coding] = 0.0
    return weights.get("gzip", weights.get("*", 0.0)) > 0


class SecurityHeaders:
    """ASGI middleware that adds security headers to every HTTP answer; websockets pass through untouched."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in security_headers(Headers(scope=scope).get("host", "")).items():
                    headers.setdefault(name, value)
                if _is_html(message) and not scope["path"].startswith(presenter_address()):  # that one draws no figure
                    headers["Link"] = f"<{plotly_address()}>; rel=preload; as=script"
            await send(message)

        await self.app(scope, receive, send_with_headers)


class OwnPage:
    """ASGI middleware that gives Streamlit's page what it begins with.

    That is the script by which it opens its socket without asking around, and the style sheet of the pages: what
    `st.html` brings comes when the page stands already, and moves all of it.
    """

    def __init__(self, app: ASGIApp, style: str) -> None:
        self.app, self.style = app, style

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start: Message | None = None
        body = b""

        async def send_with_script(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start" and _is_html(message):
                start = message
            elif start is None:
                await send(message)
            else:
                body += message.get("body", b"")
                if not message.get("more_body"):
                    headers = MutableHeaders(scope=start)
                    page = served_page().encode()
                    packed = headers.get("Content-Encoding") == "gzip" and len(body) < len(page)
                    if page and page == (gzip.decompress(body) if packed else body):
                        # Last, so that they come after Streamlit's own.
                        body = connecting_page().replace("</body>", f"{self.style}</body>", 1).encode()
                        headers["Content-Length"] = str(len(body))
                        for name in ("Content-Encoding", "ETag", "Last-Modified"):  # of the page without it
                            del headers[name]
                    await send(start)
                    await send({"type": "http.response.body", "body": body})

        await self.app(scope, receive, send_with_script if scope["type"] == "http" else send)


def _is_html(start: Message) -> bool:
    """Whether an answer that begins like this is a page that was found."""
    kind = Headers(raw=start["headers"]).get("content-type", "")
    return bool(start["status"] == 200) and kind.startswith("text/html")


@cache
def connecting_page() -> str:
    """The HTML of the page that Streamlit serves, which connects at once."""
    script = connecting_script(st.get_option("client.allowedOrigins"))
    return served_page().replace("</head>", f"<script>{script}</script></head>", 1) if script else served_page()


def plotly_address() -> str:
    """Where the page will find plotly.js; named in the page's header, the browser fetches it before it is asked for."""
    return f"{base()}{PLOTLY_PATH}?v={plotly.__version__}"


def presenter_address() -> str:
    """The page that a lecturer has in a second window."""
    return f"{base()}/presenter/"


def room_address(code: str) -> str:
    """The page of those who follow a room."""
    return f"{base()}/room/{code}"


def own_address() -> str:
    """Where a browser finds this server, as far as the server can know: by the address it listens on."""
    named = str(st.get_option("server.address") or "")
    host = named if named not in ("", "0.0.0.0", "::") else addresses.own_address() or "localhost"
    scheme = "https" if st.get_option("server.sslCertFile") else "http"
    host = f"[{host}]" if ":" in host else host
    return f"{scheme}://{host}:{st.get_option('server.port')}{base()}"


def base() -> str:
    """What stands before every address of this server: "" or "/lab"."""
    path = (st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{path}" if path else ""


@lru_cache(maxsize=64)
def security_headers(host: str) -> dict[str, str]:
    """The headers, by name, for a page that was asked for under this name."""
    return {
        "Content-Security-Policy": content_security_policy(host),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
    }


def content_security_policy(host: str) -> str:
    """Everything from this server and nothing from elsewhere, as far as Streamlit and Plotly allow.

    Both write inline styles. The page holds two inline scripts, which are allowed by their hashes. A component that is
    mounted from a text is a script of its own (components/registration.py). Browsers differ on whether 'self' covers
    websockets, so these are named: those of this host.
    """
    sockets = [f"ws://{host}", f"wss://{host}"] if is_known(host) else []
    directives = {
        "default-src": ["'self'"],
        "script-src": ["'self'", *inline_script_hashes(), *([] if register_components.is_there() else ["blob:"])],
        "style-src": ["'self'", "'unsafe-inline'"],
        "img-src": ["'self'", "data:", "blob:"],
        "font-src": ["'self'", "data:"],
        "connect-src": ["'self'", *sockets, "data:", "blob:"],
        "worker-src": ["'self'", "blob:"],
        "object-src": ["'none'"],
        "base-uri": ["'self'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'self'"],
    }
    return "; ".join(f"{name} {' '.join(sources)}" for name, sources in directives.items())


def inline_script_hashes() -> list[str]:
    """The CSP sources of the scripts written into the page."""
    scripts = re.findall(r"<script>(.*?)</script>", connecting_page(), flags=re.DOTALL)
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    return [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]
