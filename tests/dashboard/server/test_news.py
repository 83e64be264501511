"""A follower is told of what has changed, of nothing else, and nobody of what is another's."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from starlette.datastructures import Headers

from dashboard.models.progress import Training, stamp
from dashboard.server import guard, news
from dashboard.server.descriptors import Door
from dashboard.server.news.followed import Followed, followed_by
from dashboard.server.news.routes import Limits
from dashboard.server.news.watcher import Follower, Watcher
from dashboard.server.roles import OWNER, VIEWER, Visitor
from tests.kit.rooms.asgi import to_its_end
from tests.kit.runs import tiny, untrained
from tests.kit.waiting import in_time, wait_for

GUEST = Visitor("guest", "abcdef")


class Tab:
    """The socket of a tab, seen from its browser."""

    def __init__(self, application: Any, sender: str, **headers: str) -> None:
        raw = {"host": "localhost", **headers}
        self._scope = {
            "type": "websocket",
            "path": "/news",
            "query_string": b"",
            "client": (sender, 1),
            "scheme": "ws",
            "headers": [(name.encode(), value.encode()) for name, value in raw.items()],
        }
        self._says: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._hears: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._says.put_nowait({"type": "websocket.connect"})
        self.answered = asyncio.create_task(application(self._scope, self._says.get, self._hears.put))

    async def next(self) -> Any:
        """What it is told next; of a socket that is closed its status."""
        message = await self._hears.get()
        if message["type"] == "websocket.close":
            return message["code"]
        return json.loads(message["text"]) if message["type"] == "websocket.send" else message["type"]

    def say(self, **message: Any) -> None:
        self._says.put_nowait({"type": "websocket.receive", **message})

    def follow(self, *followed: Followed | str) -> None:
        tokens = [each.token if isinstance(each, Followed) else each for each in followed]
        self.say(text=json.dumps({"follow": tokens}))

    async def go(self) -> None:
        self._says.put_nowait({"type": "websocket.disconnect", "code": 1001})
        await self.answered


class Server:
    """The route of news, and its tabs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **limits: Any) -> None:
        self.watcher = Watcher(tick=0.01)
        (route,) = news.routes("", Limits(**limits), self.watcher)
        self._application = guard.Guard(Door(route))
        module = import_module("dashboard.server.news.routes")
        monkeypatch.setattr(module, "visitor_of", lambda scope: VISITORS[Headers(scope=scope).get("as", "owner")])

    @asynccontextmanager
    async def tab(self, sender: str = "198.51.100.1", **headers: str) -> AsyncIterator[Tab]:
        tab = Tab(self._application, sender, **headers)
        assert await tab.next() == "websocket.accept"
        yield tab
        await tab.go()

    async def refusal(self, sender: str = "198.51.100.1", **headers: str) -> int:
        tab = Tab(self._application, sender, **headers)
        status: int = await tab.next()
        await tab.answered
        return status


VISITORS = {"owner": OWNER, "viewer": VIEWER, "guest": GUEST, "another": Visitor("guest", "fedcba")}


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Server]:
    return lambda **limits: Server(monkeypatch, **limits)


def story(told: Callable[[], Any]) -> None:
    """Play it, with patience."""

    async def play() -> None:
        async with in_time("the end of the story"):
            await told()

    to_its_end(play())


def test_a_tab_is_told_of_each_change_and_of_nothing_between(serve: Callable[..., Server]) -> None:
    things, looked = {"one": 0, "other": 0}, Counter[str]()

    def look(name: str) -> int:
        looked[name] += 1
        return things[name]

    async def told() -> None:
        server = serve()
        one, other = (Followed(lambda name=name: look(name), OWNER) for name in things)
        assert (one.version, other.version) == (1, 1)
        async with server.tab() as tab:
            tab.follow(one, other)
            assert await tab.next() == {one.token: 1, other.token: 1}
            for version in (2, 3):
                seen = looked.total()
                while looked.total() < seen + 6:  # where nothing changes, nothing is told
                    await asyncio.sleep(0.01)
                things["one"] += 1
                assert await tab.next() == {one.token: version}
            things["other"] += 1
            assert other.version == 2  # whoever draws it looks as well, and sees what the watcher sees
            assert await tab.next() == {other.token: 2}

    story(told)


def test_one_thread_looks_as_long_as_somebody_follows(serve: Callable[..., Server]) -> None:
    threads, looks = set[int](), list[None]()

    def look() -> int:
        threads.add(threading.get_ident())
        looks.append(None)
        return len(looks)

    async def told() -> None:
        server = serve()
        followed = [Followed(look, OWNER) for _ in range(3)]
        assert not server.watcher.looks
        async with AsyncExitStack() as tabs:
            for each in followed:
                tab = await tabs.enter_async_context(server.tab())
                tab.follow(each)
                await tab.next()
                await tab.next()
            assert len(threads) == 1
        wait_for("nothing is looked at any more", lambda: server.watcher.looks, lambda looks: not looks)

    story(told)


def test_what_many_follow_is_looked_at_once_a_round() -> None:
    looks = list[None]()

    async def told() -> None:
        seen: dict[Any, Any] = {}
        for followed in [Followed(partial(looks.append, None), OWNER)] * 2 + [
            Followed(Same(looks), OWNER) for _ in "ab"
        ]:
            follower = Follower(OWNER)
            follower.follow([followed.token])
            follower.look(seen)

    story(told)
    assert len(looks) == 2


@dataclass(frozen=True, eq=False)
class Same:
    """A look that equals all others of its kind."""

    looks: list[None]

    def __call__(self) -> None:
        self.looks.append(None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same)

    def __hash__(self) -> int:
        return 0


@pytest.mark.parametrize("who", ["viewer", "guest", "another", "nobody", "gone"])
def test_a_foreign_and_an_old_token_get_nothing(who: str, serve: Callable[..., Server]) -> None:
    async def told() -> None:
        followed = Followed(lambda: 1, OWNER if who != "another" else GUEST)
        token = "x" * 22 if who == "nobody" else followed.token
        if who == "gone":
            del followed
            gc.collect()
        async with serve().tab(**{"as": who if who in ("viewer", "guest", "another") else "owner"}) as tab:
            tab.follow(token)
            assert await tab.next() == {token: None}

    story(told)


def test_a_guest_is_known_by_its_name_where_its_browser_keeps_one() -> None:
    followed = Followed(lambda: 1, GUEST)
    assert followed_by(followed.token, GUEST) is followed_by(followed.token, Visitor("guest")) is followed


def test_what_fails_is_news_once(serve: Callable[..., Server]) -> None:
    def fail() -> None:
        raise OSError("gone")

    followed = Followed(fail, OWNER)
    assert followed.version == followed.version == 1


@pytest.mark.parametrize(
    ("message", "status"),
    [
        ({"text": "no JSON"}, 1008),
        ({"text": "[" * 100_000}, 1009),
        ({"text": "[" * 4_000}, 1008),
        ({"text": "[]"}, 1008),
        ({"text": "{}"}, 1008),
        ({"text": '{"follow": "a"}'}, 1008),
        ({"text": '{"follow": [1]}'}, 1008),
        ({"text": json.dumps({"follow": ["a"] * 33})}, 1008),
        ({"bytes": b"{}"}, 1008),
        ({"bytes": b"{}", "text": None}, 1008),
    ],
)
def test_what_is_no_message_closes_the_socket(
    message: dict[str, Any], status: int, serve: Callable[..., Server]
) -> None:
    async def told() -> None:
        server = serve()
        async with server.tab() as tab:
            tab.say(**message)
            assert await tab.next() == status
        assert not len(server.watcher)

    story(told)


def test_sockets_are_bounded_for_an_address_and_in_all_and_a_place_is_free_again(serve: Callable[..., Server]) -> None:
    async def told() -> None:
        server = serve(sockets=3, sockets_of_an_address=2)
        async with server.tab("198.51.100.1"), server.tab("198.51.100.1"):
            assert await server.refusal("198.51.100.1") == 1013
            async with server.tab("198.51.100.2"):
                assert await server.refusal("198.51.100.3") == 1013
            async with server.tab("198.51.100.3"):
                pass
        async with server.tab("198.51.100.1"):
            pass

    story(told)


def test_a_socket_in_a_hurry_and_one_that_follows_nothing_are_closed(serve: Callable[..., Server]) -> None:
    async def told() -> None:
        followed = Followed(lambda: 1, OWNER)
        async with serve(messages=0.0, messages_at_once=2).tab() as tab:
            tab.follow(followed)
            assert await tab.next() == {followed.token: 1}
            tab.follow(followed)
            tab.follow(followed)
            assert await tab.next() == 1008
        server = serve(silence=0.01)
        async with server.tab() as tab:
            assert await tab.next() == 1000
        async with server.tab() as tab:
            tab.follow("nobody's")
            while (heard := await tab.next()) == {"nobody's": None}:
                pass  # once, where it is looked at before the silence is over
            assert heard == 1000

    story(told)


def test_foreign_pages_and_foreign_names_get_no_socket_nor_does_anybody_with_the_last_descriptors(
    serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def told() -> None:
        server = serve()
        assert await server.refusal(origin="http://evil.test") == 1008
        assert await server.refusal(host="evil.test") == 1008
        async with server.tab(origin="http://localhost"):
            pass
        monkeypatch.setattr("dashboard.server.descriptors.left", lambda: 10)
        assert await server.refusal() == 1013

    story(told)


def test_a_training_is_another_when_its_page_is_and_not_for_a_sign_of_life(tmp_path: Path) -> None:
    run = untrained(tmp_path / "run", tiny())
    look = Training(run)
    assert look == Training(run)  # so that sessions share a look
    before = look()
    state = run.state
    run.set_state(state.status, state.step, state.reason)  # a new heartbeat
    (run.folder / ".state.json.1-2.tmp").touch()
    assert look() == before
    with (run.folder / "metrics.jsonl").open("a") as lines:
        lines.write("{}\n")
    assert look() != before
    assert stamp(tmp_path / "nowhere") == ()
