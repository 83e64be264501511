"""The routes of rooms: what a lecturer's browser and followers' browsers ask for, and who may ask for what.

Whoever opens a room gets its key, and whatever changes the room asks for it in the header X-Room-Key, which no page of
another site can send. A voter is a cookie that the page of a room brings. Nothing that a follower sends reaches another
follower. Every refusal is JSON, {"error": "<a sentence>"}.
"""

from __future__ import annotations

import html
import json
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime

from anyio import CapacityLimiter, to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dashboard.server.entrance import set_cookie
from dashboard.server.guard import FOREIGN_PAGE, is_own
from dashboard.server.rooms import addresses, documents, voters, votes
from dashboard.server.rooms.guesses import Guesses
from dashboard.server.rooms.limits import Buckets, Refused, no_room
from dashboard.server.rooms.rooms import LENGTH, LETTERS, Channel, Room, Rooms, Step, digest

QUESTION = 200
"""Characters of a question's name."""
DRAINED = 64_000_000
"""Bytes of a refused body that are read and thrown away, so that the browser gets to read why."""
AGAIN = 1_000
"""Milliseconds after which a browser whose event stream broke asks again."""
NO_COOKIE = (
    "This vote is not counted: your browser sent no cookie of this room, and nothing else tells voters apart. "
    "Allow cookies for this address, then send it again."
)

Handler = Callable[[Request], Awaitable[ASGIApp]]


def routes(
    base: str,
    rooms: Rooms,
    page: Callable[[], str],
    opens: Callable[[Request], bool] = lambda request: True,
    clock: Callable[[], float] = time.monotonic,
) -> list[BaseRoute]:
    """The routes under `base`, "" or "/lab", of rooms that live there.

    `page` is the HTML that followers get, `opens` says whether who sends a request may open a room, and `clock` the
    seconds by which it is counted how often somebody asks.
    """
    desk = Desk(base, rooms, page, opens, clock)
    room = f"{base}/room/{{code}}"
    return [
        Route(f"{base}/rooms", Answers(POST=desk.open)),
        Route(room, Answers(GET=desk.reader, DELETE=desk.close)),
        Route(f"{room}/qr.svg", Answers(GET=desk.qr_code)),
        Route(f"{room}/address", Answers(GET=desk.address)),
        Route(f"{room}/events", Answers(GET=desk.events)),
        Route(f"{room}/document", Answers(PUT=desk.show)),
        Route(f"{room}/document/{{name}}", Answers(GET=desk.document)),
        Route(f"{room}/votes", Answers(GET=desk.ballot, POST=desk.vote)),
    ]


class Answers:
    """What one address answers, by method; a refusal is made into its answer."""

    def __init__(self, **handlers: Handler) -> None:
        self._handlers = handlers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        incoming = Incoming(receive)
        request = Request(scope, incoming)
        try:
            handler = self._handlers.get(request.method)
            if handler is None:
                raise Refused(405, f"This address answers {' and '.join(self._handlers)} only.")
            answer = await handler(request)
            await answer(scope, incoming, send)
        except Refused as refused:
            await incoming.drain()
            await _json({"error": str(refused)}, refused.status, refused.headers)(scope, incoming, send)
        except ClientDisconnect:  # in the midst of what it sent: there is nobody to answer
            pass


class Incoming:
    """What a request sends, message by message."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._ended = False

    async def __call__(self) -> Message:
        message = await self._receive()
        self._ended = not message.get("more_body", False)
        return message

    async def drain(self) -> None:
        """Read the rest, up to a limit: a connection that is closed before loses the answer on its way."""
        size = 0
        while not self._ended and size < DRAINED:
            size += len((await self()).get("body", b""))


class Desk:
    """Where requests are answered. How often somebody asks, each server counts for itself."""

    def __init__(
        self,
        base: str,
        rooms: Rooms,
        page: Callable[[], str],
        opens: Callable[[Request], bool],
        clock: Callable[[], float],
    ) -> None:
        self._base, self._rooms, self._limits, self._page, self._opens = base, rooms, rooms.limits, page, opens
        limits = rooms.limits
        self._openings = Buckets(limits.openings, limits.openings_at_once, limits.kept, clock)
        self._shows = Buckets(limits.shows, limits.shows_at_once, limits.kept, clock)
        self._cookies = Buckets(limits.cookies, limits.cookies_at_once, limits.kept, clock)
        self._votes = Buckets(limits.votes, limits.votes_at_once, limits.kept, clock)
        self._voters = Buckets(limits.votes_of_a_voter, limits.votes_of_a_voter_at_once, limits.kept, clock)
        self._guesses = Guesses(limits, clock)
        self._checks: CapacityLimiter | None = None

    async def open(self, request: Request) -> ASGIApp:
        _same_site(request)
        if not self._opens(request):
            raise Refused(403, "Only the owner of this server can open a room.")
        if not self._openings.take(voters.sender_of(request.scope)):
            raise Refused(429, "Too many rooms were opened in the last minute. Try again in a moment.")
        opened = await self._rooms.open()
        ends = datetime.fromtimestamp(opened.ends, UTC).isoformat(timespec="seconds")
        # With a cookie: the address and the QR code are asked for without the key, and are for who has been in here.
        cookie = self._new_cookie(request, Room(opened.code, digest(opened.key), Step(), ""))
        return _json({"code": opened.code, "key": opened.key, "ends": ends}, 201, cookie)

    async def reader(self, request: Request) -> Response:
        try:
            code = _code(request)
            if code != request.path_params["code"]:
                return RedirectResponse(f"{self._base}/room/{code}")
            room = await self._room(request)
        except Refused as refused:
            title = "No room" if refused.status == 404 else "Not now"
            said = NO_ROOM.format(title=title, sentence=html.escape(str(refused)), home=f"{self._base}/")
            return HTMLResponse(said, refused.status, refused.headers)
        page = await to_thread.run_sync(self._page)
        headers = {"Cache-Control": "private, no-cache"}
        if not voters.voter_of(request.scope, room) and self._cookies.take(voters.sender_of(request.scope)):
            headers |= self._new_cookie(request, room)
        return HTMLResponse(page, headers=headers)

    async def qr_code(self, request: Request) -> Response:
        room = await self._room(request)
        code = addresses.qr_code(self._address(request, room).text)
        return Response(code, media_type="image/svg+xml", headers={"Cache-Control": "no-store"})

    async def address(self, request: Request) -> Response:
        found = self._address(request, await self._room(request))
        return _json({"address": found.text, "local": found.local})

    async def events(self, request: Request) -> ASGIApp:
        room = await self._room(request)
        sender = voters.pseudonym(room, voters.sender_of(request.scope))
        return Events(self._rooms.follow(room.code, sender), self._limits.silence)

    async def show(self, request: Request) -> Response:
        room = await self._room(request, locked=True)
        if not self._shows.take(room.lock):
            raise Refused(429, f"A room takes {self._limits.shows:.0f} documents a second. Send the newest once more.")
        asked = request.query_params
        question, shown, kind = asked.get("question", ""), asked.get("shown", "0"), asked.get("kind", "")
        if len(question) > QUESTION or shown not in ("0", "1"):
            raise Refused(400, f"question has at most {QUESTION} characters, and shown is 0 or 1.")
        if not votes.KIND.fullmatch(kind):
            raise Refused(
                400, "kind, if it is said, is choice, number, bars, cells or words, or one of a size: bars:8."
            )
        body = await _body(request, self._limits.compressed, "A document", "compressed")
        if self._checks is None:
            self._checks = CapacityLimiter(1)  # one at a time: each may take memory of its own
        name = await to_thread.run_sync(documents.checked, body, self._limits, limiter=self._checks)
        followers = await self._rooms.show(room.code, Step(name, question, shown == "1"), kind, body)
        return _json({"document": name, "followers": followers})

    async def document(self, request: Request) -> Response:
        room = await self._room(request)
        found = await self._rooms.document(room.code, request.path_params["name"])
        headers = {"Content-Encoding": "gzip", "Cache-Control": f"private, max-age={4 * 3600}, immutable"}
        return Response(found, media_type="application/json", headers=headers)

    async def vote(self, request: Request) -> Response:
        _same_site(request)
        room = await self._room(request)
        voter, sender = voters.voter_of(request.scope, room), voters.sender_of(request.scope)
        if not voter:
            if not self._cookies.take(sender):
                raise Refused(429, "Many new voters come from your network at this moment. Try again in a second.")
            raise Refused(403, NO_COOKIE, self._new_cookie(request, room))
        # The voter first: one in a hurry does not use up what all others at this address may send.
        if not self._voters.take(f"{room.lock} {voter}") or not self._votes.take(f"{room.lock} {sender}"):
            raise Refused(429, "Too many votes at once. Try again in a second.")
        body = await _body(request, self._limits.vote, "A vote", "")
        vote = votes.read(body, voter, voters.pseudonym(room, sender), room.kind, self._limits)
        await self._rooms.vote(room.code, vote)
        return Response(status_code=204)

    async def ballot(self, request: Request) -> Response:
        room = await self._room(request, locked=True)
        return _json(await to_thread.run_sync(votes.tally, await self._rooms.ballot(room.code)))

    async def close(self, request: Request) -> Response:
        room = await self._room(request, locked=True)
        await self._rooms.close(room.code)
        return Response(status_code=204)

    async def _room(self, request: Request, locked: bool = False) -> Room:
        """The room of a request. Refused with 404 where there is none, and with 403 where it is locked for this one.

        Refused with 429 where too many wrong codes came from the address, be this one right or not. Who has been in
        the room, and who opened it, does not wait for those who share the address.
        """
        code, sender = _code(request), voters.sender_of(request.scope)
        key = request.headers.get("x-room-key", "")
        room: Room | None
        try:
            room = await self._rooms.look(code)
        except Refused as refused:
            if refused.status != 404:
                raise
            room = None
        if room is None or not (room.opened_by(key) or voters.voter_of(request.scope, room)):
            wait = math.ceil(self._guesses.wait(sender, code))
            if wait:
                said = f"Too many wrong codes came from your network. Try again in {wait} s."
                raise Refused(429, said, {"Retry-After": str(wait)})
        if room is None:
            self._guesses.wrong(sender, code)
            raise no_room(code)
        if locked and not room.opened_by(key):
            raise Refused(403, "Only who opened this room may show something in it.")
        return room

    def _new_cookie(self, request: Request, room: Room) -> dict[str, str]:
        """The header that makes a browser a voter of a room, until the room ends."""
        path = f"{self._base}/room/{room.code}"
        value = set_cookie(request.scope, voters.COOKIE, voters.new_cookie(room), path, math.ceil(self._limits.life))
        return {"Set-Cookie": value}

    def _address(self, request: Request, room: Room) -> addresses.Address:
        server = request.scope.get("server") or ("", 0)
        host = request.headers.get("host") or f"{server[0]}:{server[1]}"
        return addresses.address(request.url.scheme, host, server[1] or 0, f"{self._base}/room/{room.code}")


class Events:
    """The event stream of a room: its present step at once, then each change, then that it is over.

    https://html.spec.whatwg.org/multipage/server-sent-events.html
    """

    def __init__(self, following: AbstractAsyncContextManager[Channel], silence: float) -> None:
        self._following, self._silence = following, silence

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        async with self._following as channel:
            told = StreamingResponse(self._told(channel), media_type="text/event-stream", headers=headers)
            await told(scope, receive, send)

    async def _told(self, channel: Channel) -> AsyncIterator[str]:
        seen = channel.step
        yield f"retry: {AGAIN}\n" + _event(seen)
        while seen is not None and not channel.ended:
            if await channel.changed(seen, self._silence):
                seen = channel.step
                yield _event(seen)
            else:
                yield ":\n\n"


def _event(step: Step | None) -> str:
    if step is None:
        return "event: over\ndata: {}\n\n"
    data = {"document": step.document, "question": step.question, "shown": step.shown}
    return f"event: step\ndata: {json.dumps(data)}\n\n"


def _code(request: Request) -> str:
    """The code in a request's path, in upper case. Refused with 404 where it cannot be one."""
    code = str(request.path_params["code"]).upper()
    if len(code) != LENGTH or not set(code) <= set(LETTERS):
        raise no_room(code[:12])
    return code


def _json(content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return JSONResponse(content, status, {"Cache-Control": "no-store"} | dict(headers or {}))


def _same_site(request: Request) -> None:
    """Refuse what a page of another site sends in the name of its reader (RFC 6454, section 7)."""
    origin = request.headers.get("origin")
    if origin is not None and not is_own(origin, request.headers.get("host", "")):
        raise Refused(403, FOREIGN_PAGE)


async def _body(request: Request, most: int, what: str, how: str) -> bytes:
    """What was sent. Refused with 413 as soon as it is more than that."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > most:
            size = f"{most / 1e6:.0f} MB" if most >= 1e6 else f"{most // 1024} kB"
            raise Refused(413, f"{what} may have {size}{f' {how}' if how else ''}; this one has more.")
    return bytes(body)


NO_ROOM = """<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>{title} – Attention Lab</title>
    <style>
      :root {{ color-scheme: light dark; }}
      body {{ margin: 15vh auto; max-width: 32rem; padding: 0 1.5rem; font: 1.2rem/1.5 system-ui, sans-serif; }}
    </style>
  </head>
  <body>
    <h1>{title}</h1>
    <p>{sentence}</p>
    <p><a href="{home}">Attention Lab</a></p>
  </body>
</html>
"""
