"""Rooms that live in Redis: they outlive the server, and several servers behind one address share them.

Everything has a time to live, that of its room, and is in keys that begin with attention-lab:

    attention-lab:rooms                    sorted set: the codes of the open rooms by when they end
    attention-lab:room:CODE                hash: lock, kind, version (steps shown), document, question, shown
    attention-lab:room:CODE:documents      list of SHA-256, the newest first
    attention-lab:room:CODE:document:SHA   a document as it came
    attention-lab:room:CODE:questions      list of the questions whose votes are kept, the newest first
    attention-lab:room:CODE:votes:QUESTION hash: shape, turn (how many came), voters (how many voted), from:SENDER (how
                                           many of them from an address), and by voter "turn answer"
    attention-lab:room:CODE:followers      sorted set: event streams, SENDER:random, by when they count as lost

A SENDER is an address as voters.pseudonym calls it.

Whoever changes a room publishes its code in attention-lab:news. Each server listens there and, once a second, looks
after the rooms that are followed at it.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from dashboard.server.rooms.limits import Limits, Refused, no_room
from dashboard.server.rooms.rooms import (
    ALREADY_SHOWN,
    FULL_HOUSE,
    FULL_ROOM,
    MANY_HERE,
    MANY_VOTERS,
    MANY_VOTERS_HERE,
    NOT_ASKED,
    OLD_DOCUMENT,
    OTHER_SHAPE,
    Ballot,
    Channel,
    Opened,
    Room,
    Step,
    Vote,
    digest,
    new_code,
)

HOUSE, NEWS = "attention-lab:rooms", "attention-lab:news"
POLL = 1.0
"""Seconds between two looks at a room of which nothing was heard, and between two tries to reach Redis."""
PATIENCE = 3.0
"""Seconds in which Redis answers, or is away."""
CONNECTIONS = 16
LEASE = 45.0
"""Seconds for which a follower counts; it is renewed three times as often, and runs out when the server is killed."""

OPEN = """
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[2])
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[4]) then return 'full' end
if redis.call('EXISTS', KEYS[2]) == 1 then return 'taken' end
redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[5])
redis.call('HSET', KEYS[2], 'lock', ARGV[6], 'document', '', 'question', '', 'shown', '0', 'kind', '', 'version', 0)
redis.call('PEXPIRE', KEYS[2], ARGV[5])
return 'open'
"""
"""KEYS house, room; ARGV code, now, end, most rooms, life in ms, lock."""

SHOW = """
local left = redis.call('PTTL', KEYS[1])
if left <= 0 then return -1 end
local function keep(list, each, name, most)
  redis.call('LREM', list, 0, name)
  redis.call('LPUSH', list, name)
  redis.call('PEXPIRE', list, left)
  while redis.call('LLEN', list) > tonumber(most) do redis.call('DEL', each .. redis.call('RPOP', list)) end
end
redis.call('SET', KEYS[1] .. ':document:' .. ARGV[1], ARGV[5], 'PX', left)
keep(KEYS[1] .. ':documents', KEYS[1] .. ':document:', ARGV[1], ARGV[6])
if ARGV[2] ~= '' then keep(KEYS[1] .. ':questions', KEYS[1] .. ':votes:', ARGV[2], ARGV[7]) end
redis.call('HSET', KEYS[1], 'document', ARGV[1], 'question', ARGV[2], 'shown', ARGV[3], 'kind', ARGV[4])
redis.call('HINCRBY', KEYS[1], 'version', 1)
redis.call('PUBLISH', ARGV[9], ARGV[10])
return redis.call('ZCOUNT', KEYS[1] .. ':followers', ARGV[8], '+inf')
"""
"""KEYS room; ARGV document, question, shown, kind, bytes, most documents, most questions, now, news, code."""

VOTE = """
local left = redis.call('PTTL', KEYS[1])
if left <= 0 then return 'none' end
local step = redis.call('HMGET', KEYS[1], 'question', 'shown')
if ARGV[1] == '' or step[1] ~= ARGV[1] then return 'not asked' end
if step[2] == '1' then return 'shown' end
local votes = KEYS[1] .. ':votes:' .. ARGV[1]
local shape = redis.call('HGET', votes, 'shape')
if shape and shape ~= ARGV[3] then return 'shape' end
if redis.call('HEXISTS', votes, ARGV[2]) == 0 then
  local counted = redis.call('HMGET', votes, 'voters', 'from:' .. ARGV[6])
  if tonumber(counted[1] or 0) >= tonumber(ARGV[5]) then return 'full' end
  if tonumber(counted[2] or 0) >= tonumber(ARGV[7]) then return 'many' end
  redis.call('HINCRBY', votes, 'voters', 1)
  redis.call('HINCRBY', votes, 'from:' .. ARGV[6], 1)
end
local turn = redis.call('HINCRBY', votes, 'turn', 1)
redis.call('HSET', votes, 'shape', ARGV[3], ARGV[2], turn .. ' ' .. ARGV[4])
redis.call('PEXPIRE', votes, left)
return 'counted'
"""
"""KEYS room; ARGV question, voter, shape, answer, most voters, sender, most voters of a sender."""

FOLLOW = """
local left = redis.call('PTTL', KEYS[1])
if left <= 0 then return 'none' end
local followers = KEYS[1] .. ':followers'
redis.call('ZREMRANGEBYSCORE', followers, '-inf', ARGV[2])
if redis.call('ZCARD', followers) >= tonumber(ARGV[4]) then return 'full' end
local here = 0
for _, each in ipairs(redis.call('ZRANGE', followers, 0, -1)) do
  if string.sub(each, 1, #ARGV[5]) == ARGV[5] then here = here + 1 end
end
if here >= tonumber(ARGV[6]) then return 'many' end
redis.call('ZADD', followers, ARGV[3], ARGV[1])
redis.call('PEXPIRE', followers, left)
return 'in'
"""
"""KEYS room; ARGV follower, now, when its lease ends, most followers, sender, most followers of a sender."""

RENEW = """
local left = redis.call('PTTL', KEYS[1])
if left <= 0 then return end
for i = 2, #ARGV do redis.call('ZADD', KEYS[1] .. ':followers', ARGV[1], ARGV[i]) end
redis.call('PEXPIRE', KEYS[1] .. ':followers', left)
"""
"""KEYS room; ARGV when their lease ends, followers."""

CLOSE = """
local keys = {KEYS[1], KEYS[1] .. ':documents', KEYS[1] .. ':questions', KEYS[1] .. ':followers'}
for _, each in ipairs(redis.call('LRANGE', keys[2], 0, -1)) do table.insert(keys, KEYS[1] .. ':document:' .. each) end
for _, each in ipairs(redis.call('LRANGE', keys[3], 0, -1)) do table.insert(keys, KEYS[1] .. ':votes:' .. each) end
redis.call('DEL', unpack(keys))
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('PUBLISH', ARGV[2], ARGV[1])
"""
"""KEYS room, house; ARGV code, news."""

NO_VOTE = {
    b"not asked": (409, NOT_ASKED),
    b"shown": (409, ALREADY_SHOWN),
    b"shape": (400, OTHER_SHAPE),
    b"full": (429, MANY_VOTERS),
    b"many": (429, MANY_VOTERS_HERE),
}
NO_PLACE = {b"full": (503, FULL_ROOM), b"many": (429, MANY_HERE)}


@dataclass
class _Watch:
    """A room that is followed at this server, and who follows it here."""

    channel: Channel = field(default_factory=lambda: Channel(None))
    followers: set[str] = field(default_factory=set)
    version: int = -1
    """Of the step that was told last: two looks at Redis may overtake each other."""


class RedisRooms:
    """Rooms in the Redis of an address. Where it does not answer, everything is refused with 503; nobody is let go."""

    def __init__(self, address: str, limits: Limits) -> None:
        """Raises ValueError for what is no address of a Redis. It need not answer yet."""
        self.limits = limits
        pool = BlockingConnectionPool.from_url(
            address,
            max_connections=CONNECTIONS,
            timeout=PATIENCE,
            socket_timeout=PATIENCE,
            socket_connect_timeout=PATIENCE,
            retry=Retry(NoBackoff(), 1),  # for a connection that went stale; for more there is no time
        )
        self._redis = Redis.from_pool(pool)
        self._open, self._show, self._vote, self._follow, self._renew, self._close = (
            self._redis.register_script(script) for script in (OPEN, SHOW, VOTE, FOLLOW, RENEW, CLOSE)
        )
        self._watched: dict[str, _Watch] = {}
        self._listener: asyncio.Task[None] | None = None

    async def open(self) -> Opened:
        key, now = secrets.token_urlsafe(), time.time()
        end, life = now + self.limits.life, int(1000 * self.limits.life)
        while True:
            code = new_code()
            args: list[Any] = [code, now, end, self.limits.rooms, life, digest(key)]
            with _answering():
                found = await self._open(keys=[HOUSE, _room(code)], args=args)
            if found == b"full":
                raise Refused(429, FULL_HOUSE)
            if found == b"open":
                return Opened(code, key, end)

    async def look(self, code: str) -> Room:
        with _answering():
            found: list[Any] = await self._redis.hmget(_room(code), ["lock", "kind", *FIELDS])
        if found[0] is None:
            raise no_room(code)
        return Room(code, found[0].decode(), _step(found[2:]), found[1].decode())

    async def show(self, code: str, step: Step, kind: str, document: bytes) -> int:
        args: list[Any] = [step.document, step.question, int(step.shown), kind, document]
        args += [self.limits.documents, self.limits.questions, time.time(), NEWS, code]
        with _answering():
            followers = int(await self._show(keys=[_room(code)], args=args))
        if followers < 0:
            raise no_room(code)
        return followers

    async def document(self, code: str, name: str) -> bytes:
        with _answering():
            found: Any = await self._redis.get(f"{_room(code)}:document:{name}")
        if found is None:
            await self.look(code)
            raise Refused(404, OLD_DOCUMENT)
        return bytes(found)

    async def vote(self, code: str, vote: Vote) -> None:
        args: list[Any] = [vote.question, vote.voter, vote.shape, vote.answer, self.limits.voters]
        args += [vote.sender, self.limits.voters_of_an_address]
        with _answering():
            said = await self._vote(keys=[_room(code)], args=args)
        if said == b"none":
            raise no_room(code)
        if said in NO_VOTE:
            raise Refused(*NO_VOTE[said])

    async def ballot(self, code: str) -> Ballot:
        room = await self.look(code)
        with _answering():
            async with self._redis.pipeline(transaction=False) as pipeline:
                pipeline.hgetall(f"{_room(code)}:votes:{room.step.question}")
                pipeline.zcount(f"{_room(code)}:followers", time.time(), "+inf")
                votes, followers = await pipeline.execute()
        counts = (b"shape", b"turn", b"voters")
        answers = [
            answer.split(b" ", 1)
            for voter, answer in votes.items()
            if voter not in counts and not voter.startswith(b"from:")
        ]
        answers.sort(key=lambda answer: int(answer[0]))
        return Ballot(room.step.question, room.kind, followers, [answer.decode() for _, answer in answers])

    async def close(self, code: str) -> None:
        with _answering():
            await self._close(keys=[_room(code), HOUSE], args=[code, NEWS])

    @asynccontextmanager
    async def follow(self, code: str, sender: str) -> AsyncIterator[Channel]:
        follower, now = f"{sender}:{secrets.token_hex(8)}", time.time()
        args: list[Any] = [follower, now, now + LEASE, self.limits.followers]
        args += [f"{sender}:", self.limits.followers_of_an_address]
        with _answering():
            said = await self._follow(keys=[_room(code)], args=args)
        if said == b"none":
            raise no_room(code)
        if said in NO_PLACE:
            raise Refused(*NO_PLACE[said])
        watch = self._watched.setdefault(code, _Watch())
        watch.followers.add(follower)
        if self._listener is None:
            self._listener = asyncio.create_task(self._listen())
        try:
            with _answering():
                await self._look_after([code])
            yield watch.channel
        finally:
            watch.followers.discard(follower)
            if not watch.followers and self._watched.get(code) is watch:
                del self._watched[code]
            with suppress(RedisError, OSError):  # then the lease runs out
                await self._redis.zrem(f"{_room(code)}:followers", follower)

    def let_go(self) -> None:
        for watch in self._watched.values():
            watch.channel.end()

    async def stop(self) -> None:
        self.let_go()
        while self._listener is not None and not self._listener.done():
            self._listener.cancel()  # again, for redis-py swallows one now and then
            await asyncio.wait([self._listener], timeout=0.1)
        self._listener = None
        await self._redis.aclose()

    async def _listen(self) -> None:
        """Tell the channels here what is new, for ever. Without Redis they keep what they told last."""
        renewed = 0.0
        while True:
            try:
                async with self._redis.pubsub() as news:
                    await news.subscribe(NEWS)
                    await news.get_message(timeout=PATIENCE)  # that it has
                    looked = 0.0
                    while True:
                        now = time.monotonic()
                        if now - renewed >= LEASE / 3:
                            await self._renew_all()
                            renewed = now
                        if now - looked >= POLL:
                            await self._look_after(list(self._watched))
                            looked = now
                        heard = await news.get_message(ignore_subscribe_messages=True, timeout=POLL)
                        if heard is not None:
                            await self._look_after([heard["data"].decode()])
            except Exception as error:  # whatever it was: who follows here would hear of nothing any more
                if not isinstance(error, RedisError | OSError):
                    logging.getLogger(__name__).exception("news of rooms could not be read")
                await asyncio.sleep(POLL)

    async def _look_after(self, codes: list[str]) -> None:
        watched = [(code, self._watched[code]) for code in codes if code in self._watched]
        if not watched:
            return
        async with self._redis.pipeline(transaction=False) as pipeline:
            for code, _ in watched:
                pipeline.hmget(_room(code), ["version", *FIELDS])
            found = await pipeline.execute()
        for (_, watch), (version, *values) in zip(watched, found, strict=True):
            if version is None:
                watch.channel.tell(None)
            elif int(version) >= watch.version:
                watch.version = int(version)
                watch.channel.tell(_step(values))

    async def _renew_all(self) -> None:
        for code, watch in list(self._watched.items()):
            await self._renew(keys=[_room(code)], args=[time.time() + LEASE, *watch.followers])


FIELDS = ("document", "question", "shown")
"""Of a room's hash: a step."""


def _room(code: str) -> str:
    return f"attention-lab:room:{code}"


def _step(values: list[Any]) -> Step:
    document, question, shown = (value.decode() for value in values)
    return Step(document, question, shown == "1")


@contextmanager
def _answering() -> Iterator[None]:
    """Refuse with 503 what Redis does not answer."""
    try:
        yield
    except (RedisError, OSError):
        raise Refused(503, "The rooms cannot be reached at this moment. Try again in a second.") from None
