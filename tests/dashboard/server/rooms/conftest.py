"""Every law of rooms is held to both places where they live, but for those which neither place keeps."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from redis.asyncio import Redis

from dashboard.server.rooms.limits import Limits
from dashboard.server.rooms.places import place_at
from dashboard.server.rooms.rooms import Rooms
from tests.kit.rooms.house import House, RedisServer, redis_server, without_redis

ROOMY = Limits(openings_at_once=1_000, votes_of_a_voter_at_once=1_000)
Make = Callable[..., House]


@pytest.fixture
def anyio_backend() -> Iterator[str]:
    """asyncio. Where a browser is driven too, Playwright's own loop counts as running until it is put aside."""
    playwrights = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    yield "asyncio"
    asyncio._set_running_loop(playwrights)


@pytest.fixture(scope="session")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    if reason := without_redis():
        pytest.skip(reason)
    with redis_server(tmp_path_factory.mktemp("redis")) as server:
        yield server


@asynccontextmanager
async def houses(address: str) -> AsyncIterator[Make]:
    """Makes houses, with some limits; at an address of Redis, which is emptied, all have the same rooms."""
    if address:
        async with Redis.from_url(address) as client:
            await client.flushall()
    made: list[Rooms] = []

    def make(clock: Callable[[], float] = lambda: 0.0, **limits: Any) -> House:
        made.append(place_at(address, replace(ROOMY, **limits)))
        return House(made[-1], clock=clock)

    yield make
    for each in made:
        await each.stop()


@pytest.fixture(params=["memory", "redis"])
async def make(request: pytest.FixtureRequest) -> AsyncIterator[Make]:
    """Makes a house."""
    address = request.getfixturevalue("redis").address if request.param == "redis" else ""
    async with houses(address) as found:
        yield found


@pytest.fixture
async def servers(redis: RedisServer) -> AsyncIterator[Make]:
    """Makes servers that share their rooms."""
    async with houses(redis.address) as found:
        yield found


@pytest.fixture
def house(make: Make) -> House:
    return make()
