"""What only Redis gives: rooms that outlive a server, and that several servers share."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from redis.asyncio import Redis

from dashboard.server.rooms.limits import Limits
from dashboard.server.rooms.places import place_at
from tests.kit.driving import ROOT, free_port
from tests.kit.rooms.house import HERE, OVER, Event, House, RedisServer, packed, redis_server, step
from tests.kit.waiting import PATIENCE, in_time, wait_for

pytestmark = pytest.mark.anyio

AWAY = "The rooms cannot be reached at this moment. Try again in a second."


async def test_servers_share_a_room_which_outlives_each_of_them(servers: Callable[..., House]) -> None:
    one, other = servers(followers=3), servers(followers=3)
    lecturer = await one.lecturer()
    async with one.follow(lecturer.code) as here, other.follow(lecturer.code) as there:
        await here.next(), await there.next()
        assert (await lecturer.show(1, "question=q")).json["followers"] == 2
        assert await here.next() == await there.next() == step(1, "q")
        await lecturer.vote("q", 0)  # with a cookie of the one
        vote = json.dumps({"question": "q", "answer": 1}).encode()
        voted = await other.ask("POST", f"/room/{lecturer.code}/votes", vote, cookie=lecturer.cookies[0])
        assert voted.status == 204
        anew = replace(lecturer, house=servers(followers=3))
        assert (await lecturer.votes())["counts"] == (await anew.votes())["counts"] == {"1": 1}
        assert (await anew.document(1)).body == packed(1)
        assert (await anew.show(2, "question=q&shown=1")).status == 200
        assert await here.next() == await there.next() == step(2, "q", True)
        async with other.follow(lecturer.code):
            assert (await one.ask("GET", f"/room/{lecturer.code}/events")).status == 503
        await lecturer.close()
        assert await here.next() == await there.next() == OVER


async def test_a_step_of_which_nothing_was_heard_is_found(
    servers: Callable[..., House], redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Publish/subscribe promises nothing; each server looks after its rooms once a second."""
    monkeypatch.setattr("dashboard.server.rooms.redis.POLL", 0.05)
    house = servers()
    lecturer = await house.lecturer()
    async with house.follow(lecturer.code) as stream, Redis.from_url(redis.address) as client:
        await stream.next()
        room = f"attention-lab:room:{lecturer.code}"
        await client.hset(room, mapping={"question": "unheard", "version": 1})
        assert await stream.next() == Event("step", {"document": "", "question": "unheard", "shown": False})


async def test_whatever_is_kept_has_an_end_and_goes_when_the_room_is_closed(
    servers: Callable[..., House], redis: RedisServer
) -> None:
    house = servers()
    lecturer = await house.lecturer()
    for number in range(5):
        await lecturer.show(number, f"question=q{number}")
        await lecturer.vote(f"q{number}", "a word")
    async with house.follow(lecturer.code) as stream, Redis.from_url(redis.address) as client:
        await stream.next()
        keys = await client.keys("*")
        assert len(keys) == 1 + 1 + 1 + 3 + 1 + 5 + 1
        assert all([0 < await client.ttl(key) <= 4 * 3600 for key in keys])
        stored = [await client.dump(key) for key in keys]
        assert not [each for each in stored if lecturer.key.encode() in each or HERE.encode() in each]
        await lecturer.close()
        assert await stream.next() == OVER
        assert await client.keys("*") == []


async def test_who_was_lost_with_a_server_is_no_longer_counted(
    servers: Callable[..., House], redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = servers(followers=1)
    lecturer = await house.lecturer()
    async with Redis.from_url(redis.address) as client:
        followers = f"attention-lab:room:{lecturer.code}:followers"
        await client.zadd(followers, {"lost": time.time() - 1})
        assert (await lecturer.show(1)).json["followers"] == 0
        monkeypatch.setattr("dashboard.server.rooms.redis.LEASE", 3.0)
        monkeypatch.setattr("dashboard.server.rooms.redis.POLL", 0.02)
        async with house.follow(lecturer.code):
            assert [name for name, _ in await client.zrange(followers, 0, -1, withscores=True)] != [b"lost"]
            (lease,) = [end for _, end in await client.zrange(followers, 0, -1, withscores=True)]
            async with in_time("a lease that is renewed"):
                while (await client.zrange(followers, 0, -1, withscores=True))[0][1] == lease:
                    await asyncio.sleep(0.01)
            assert await client.zcard(followers) == 1


async def test_while_redis_is_away_followers_stay_and_then_it_goes_on(
    servers: Callable[..., House], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.server.rooms.redis.POLL", 0.05)
    with redis_server(tmp_path) as server:
        house = House(place_at(server.address, Limits()))
        try:
            lecturer = await house.lecturer()
            await lecturer.show(1, "question=q")
            await lecturer.vote("q", 1)
            async with house.follow(lecturer.code) as stream:
                assert await stream.next() == step(1, "q")
                server.stop()
                refused = [
                    await house.ask("POST", "/rooms"),
                    await house.ask("GET", f"/room/{lecturer.code}/events"),
                    await house.ask("GET", f"/room/{lecturer.code}/votes", x_room_key=lecturer.key),
                    await lecturer.show(2),
                    await lecturer.vote("q", 1),
                ]
                assert [(each.status, each.sentence) for each in refused] == [(503, AWAY)] * 5
                server.start()
                assert (await lecturer.show(2, "question=q")).status == 200
                assert await stream.next() == step(2, "q")
        finally:
            await house.rooms.stop()


# --- a killed server


@contextmanager
def process(address: str, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """A server of rooms, ready to be asked."""
    environment = os.environ | {"ATTENTION_LAB_ROOMS": address}
    command = [sys.executable, "-m", "tests.kit.rooms.server", str(port)]
    server = subprocess.Popen(command, cwd=ROOT, env=environment)
    try:
        wait_for("the server listens", lambda: answers(server, port))
        yield server
    finally:
        server.kill()
        server.wait(PATIENCE)


def answers(server: subprocess.Popen[bytes], port: int) -> bool:
    assert server.poll() is None, f"the server ended with exit code {server.returncode}"
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def ask(port: int, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, bytes, str]:
    """Status, what came, and the cookie that came with it."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.headers.get("set-cookie", "").partition(";")[0]
    finally:
        connection.close()


@pytest.mark.nightly
def test_a_room_outlives_a_killed_server(redis: RedisServer) -> None:
    """The room, its document and its question are there, and the lecturer's key still works."""
    port = free_port()
    with process(redis.address, port) as server:
        opened = json.loads(ask(port, "POST", "/rooms")[1])
        room, key = f"/room/{opened['code']}", {"x_room_key": opened["key"]}
        ask(port, "PUT", f"{room}/document?question=q&shown=0", packed("shown"), **key)
        vote = json.dumps({"question": "q", "answer": 3}).encode()
        refused, cookie = ask(port, "POST", f"{room}/votes", vote)[::2]
        assert (refused, ask(port, "POST", f"{room}/votes", vote, cookie=cookie)[0]) == (403, 204)
        server.kill()
        server.wait(PATIENCE)
    with process(redis.address, port):
        stream = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        stream.request("GET", f"{room}/events")
        lines = iter(stream.getresponse().readline, b"")
        (told,) = [next(lines) for _ in range(3)][2:]
        now = json.loads(told.removeprefix(b"data: "))
        assert now == step("shown", "q").data
        assert ask(port, "GET", f"{room}/document/{now['document']}")[:2] == (200, packed("shown"))
        assert json.loads(ask(port, "GET", f"{room}/votes", **key)[1])["counts"] == {"3": 1}
        assert ask(port, "PUT", f"{room}/document?question=q&shown=1", packed("next"), **key)[0] == 200
        assert json.loads([next(lines) for _ in range(3)][2].removeprefix(b"data: ")) == step("next", "q", True).data
        stream.close()


@pytest.mark.nightly
@pytest.mark.parametrize(("number", "ends"), [(signal.SIGTERM, True), (signal.SIGINT, False)])
def test_a_server_that_is_told_to_end_does_not_wait_for_its_followers(
    number: signal.Signals, ends: bool, request: pytest.FixtureRequest
) -> None:
    """Rooms of its own are over then; those in Redis go on, and nobody is told that they ended."""
    port = free_port()
    with process("" if ends else request.getfixturevalue("redis").address, port) as server:
        code = json.loads(ask(port, "POST", "/rooms")[1])["code"]
        stream = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        stream.request("GET", f"/room/{code}/events")
        answer = stream.getresponse()
        while not answer.readline().startswith(b"data"):
            pass
        server.send_signal(number)
        rest = list(islice(iter(answer.readline, b""), 20))  # a server that goes on says a word every 15 s
        stream.close()
        server.wait(PATIENCE)
    assert len(rest) < 20
    assert (b"event: over\n" in rest) == ends
