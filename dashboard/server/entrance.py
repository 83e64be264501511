"""What comes in by HTTP: the owner's link becomes a cookie, a guest gets one, and only the owner sends files."""

from __future__ import annotations

import hmac
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dashboard.server import roles
from dashboard.server.roles import Visitor
from dashboard.server.streamlit_private import UPLOADS

FIELD = "token"
"""The parameter of the owner's link."""
STALE = "This link's token is not that of this server. The owner's link is printed where the server was started."
OWNERS = "Only the owner of this server may send files."


class Entrance:
    """ASGI middleware that finds out who sends a request, and remembers it in the browser."""

    def __init__(self, app: ASGIApp, base: str) -> None:
        self.app, self.base = app, base

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        answer = self._answer(scope)
        if answer is not None:
            await answer(scope, receive, send)
            return
        someone = visitor_of(scope)
        named = someone.role == "guest" and not someone.name

        async def send_with_name(message: Message) -> None:
            if message["type"] == "http.response.start" and named:
                headers = MutableHeaders(scope=message)
                if message["status"] == 200 and headers.get("content-type", "").startswith("text/html"):
                    headers.append("set-cookie", self._remember("guest", roles.new_guest()[1], scope))
            await send(message)

        await self.app(scope, receive, send_with_name)

    def _answer(self, scope: Scope) -> Response | None:
        """What is answered here and goes no further."""
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        said = dict(query).get(FIELD)
        if scope["method"] == "GET" and said is not None:
            if not hmac.compare_digest(said.encode(), roles.token().encode()):
                return PlainTextResponse(STALE, 403)
            rest = urlencode([pair for pair in query if pair[0] != FIELD])
            name = scope["path"].rpartition("/")[2]  # relative: whatever a proxy calls the folder
            answer = RedirectResponse(f"./{name}{f'?{rest}' if rest else ''}", 303)
            answer.headers["set-cookie"] = self._remember("owner", roles.token(), scope)
            answer.headers["cache-control"] = "no-store"
            return answer
        if UPLOADS in scope["path"] and scope["method"] in ("PUT", "POST") and visitor_of(scope).role != "owner":
            return PlainTextResponse(OWNERS, 403)
        return None

    def _remember(self, kind: str, value: str, scope: Scope) -> str:
        return set_cookie(scope, roles.cookie(kind), value, self.base or "/")


def set_cookie(scope: Scope, name: str, value: str, path: str, life: int | None = None) -> str:
    """The header that sets a cookie that no script reads and that no other site sends.

    It lives for so many seconds; without that, it goes with the browser.
    """
    proto = Headers(scope=scope).get("x-forwarded-proto", scope["scheme"])
    age = "" if life is None else f"; Max-Age={life}"
    safe = "; Secure" if proto == "https" else ""
    return f"{name}={value}; Path={path}{age}; HttpOnly; SameSite=Lax{safe}"


def is_owner(request: Request) -> bool:
    """Does the server's owner send this?"""
    return visitor_of(request.scope).role == "owner"


def visitor_of(scope: Scope) -> Visitor:
    """Who sent a request."""
    asked = HTTPConnection(scope)
    return roles.visitor(asked.headers, asked.cookies)
