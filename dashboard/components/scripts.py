"""The scripts of all components as one, for a page that mounts many of them.

One by one they are some forty requests in five waves, for a browser hears of the next only when it has read the last.
At a component's own address Streamlit's page gets a line that takes its part of the one, or its whole style sheet.
"""

from __future__ import annotations

from functools import cache

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from dashboard.components.documents.bundle import WEB, exporting, style
from dashboard.components.registration import SCRIPTS, declared
from dashboard.server.streamlit_private import COMPONENTS

SHARED = "shared"
"""The component that is none: under its name Streamlit serves the folder web/ to the others."""
FOLDER, NAME = SCRIPTS.split("/")
"""Where the one script is, below the application's root."""


@cache
def names() -> tuple[str, ...]:
    """All components."""
    components = declared()["tool"]["streamlit"]["component"]["components"]
    return tuple(each["name"] for each in components if each["name"] != SHARED)


def components_script() -> str:
    """A module that exports each component by its name."""
    return exporting({name: f"{name}/{name}" for name in names()})


class Scripts:
    """ASGI middleware that answers for the components' own scripts and style sheets."""

    def __init__(self, app: ASGIApp, base: str) -> None:
        self.app, self.folder = app, f"{base}{COMPONENTS}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer: ASGIApp | None = None
        if scope["type"] == "http" and scope["method"] == "GET" and scope["path"].startswith(self.folder):
            answer = _answer(scope["path"].removeprefix(self.folder))
        await (answer or self.app)(scope, receive, send)


def _answer(address: str) -> Response | None:
    """What is said at an address below the folder of components; None is what Streamlit says."""
    if address not in answers():
        return None
    body, kind = answers()[address]
    return Response(body, media_type=kind, headers={"Cache-Control": "no-cache"})


@cache
def answers() -> dict[str, tuple[str, str]]:
    """What is answered and its type, by the address below the folder of components."""
    project = declared()["project"]["name"]
    found: dict[str, tuple[str, str]] = {}
    for name in names():
        own = f"{project}.{name}/{name}/{name}"
        script = f"export {{ {name} as default }} from '../../../../{FOLDER}/{NAME}';\n"
        found[f"{own}.js"] = script, "text/javascript"
        if (WEB / name / f"{name}.css").exists():
            found[f"{own}.css"] = style(f"{name}/{name}.css"), "text/css"
    return found
