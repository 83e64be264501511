"""What a room does, wherever it lives: it carries steps to followers, and forgets."""

from __future__ import annotations

import gzip
import itertools
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dashboard.server.rooms.guesses import Guesses
from dashboard.server.rooms.limits import Buckets, Limits
from dashboard.server.rooms.rooms import LETTERS
from tests.kit.rooms.house import HOST, OVER, Event, House, Lecturer, in_memory, packed, sha, step

pytestmark = pytest.mark.anyio

EMPTY = Event("step", {"document": "", "question": "", "shown": False})


def no_room(code: str) -> str:
    return f"There is no room {code}. It may be over: rooms end after four hours."


# --- steps


async def test_an_opened_room_has_a_code_a_key_and_an_end(house: House) -> None:
    before = datetime.now(UTC)
    rooms = [await house.lecturer() for _ in range(20)]
    assert len({each.code for each in rooms}) == len({each.key for each in rooms}) == 20
    assert all(len(each.code) == 4 and set(each.code) <= set(LETTERS) and len(each.key) >= 40 for each in rooms)
    assert not set("0O1IL") & set(LETTERS)
    left = datetime.fromisoformat(rooms[0].ends) - before
    assert timedelta(hours=3.99) < left < timedelta(hours=4.01)


async def test_a_step_comes_to_every_follower(house: House) -> None:
    lecturer = await house.lecturer()
    async with house.follow(lecturer.code) as one, house.follow(lecturer.code.lower()) as other:
        headers = (await one.begun).headers
        assert headers["content-type"].startswith("text/event-stream")
        assert (headers["cache-control"], headers["x-accel-buffering"]) == ("no-cache", "no")
        assert await one.next() == await other.next() == EMPTY
        answer = await lecturer.show({"title": "one"}, "question=q%201&shown=0")
        assert (answer.status, answer.json) == (200, {"document": sha({"title": "one"}), "followers": 2})
        assert await one.next() == await other.next() == step({"title": "one"}, "q 1")
        await lecturer.show({"title": "one"}, "question=q%201&shown=1")
        assert await one.next() == await other.next() == step({"title": "one"}, "q 1", True)
        await lecturer.show({"title": "two"})
        assert await one.next() == await other.next() == step({"title": "two"})


async def test_who_comes_late_or_again_is_at_the_present_step(house: House) -> None:
    lecturer = await house.lecturer()
    for number in range(3):
        await lecturer.show(number, "question=q")
    for _ in range(2):
        async with house.follow(lecturer.code) as stream:
            assert await stream.next() == step(2, "q")


async def test_a_document_is_had_as_it_came(house: House) -> None:
    lecturer = await house.lecturer()
    await lecturer.show({"π": [0.1, 1e-300]})
    answer = await lecturer.document({"π": [0.1, 1e-300]})
    assert answer.body == packed({"π": [0.1, 1e-300]})
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "private, max-age=14400, immutable"


async def test_the_last_three_documents_are_kept(house: House) -> None:
    lecturer = await house.lecturer()

    async def kept() -> list[int]:
        return [number for number in range(5) if (await lecturer.document(number)).status == 200]

    for number in range(4):
        await lecturer.show(number)
    assert await kept() == [1, 2, 3]
    await lecturer.show(1)  # back to an old one: it is the newest again
    await lecturer.show(4)
    assert await kept() == [1, 3, 4]
    gone = await lecturer.document(0)
    assert (gone.status, gone.sentence.split(".")[0]) == (404, "This document is no longer kept")


async def test_a_slow_follower_gets_the_newest_step_and_no_queue(house: House) -> None:
    lecturer = await house.lecturer()
    async with house.follow(lecturer.code) as slow, house.follow(lecturer.code) as quick:
        assert await slow.next() == await quick.next() == EMPTY
        slow.read.clear()
        for number in range(8):
            await lecturer.show(number)
            assert await quick.next() == step(number)
        slow.read.set()
        found = [await slow.next()]
        if found[0] != step(7):  # what was under way when it became slow
            found.append(await slow.next())
        assert found[-1] == step(7)


async def test_a_silent_stream_sends_comments(make: Any) -> None:
    house = make(silence=0.01)
    lecturer = await house.lecturer()
    async with house.follow(lecturer.code) as stream:
        assert await stream.next() == EMPTY
        assert [await stream.next(comments=True) for _ in range(2)] == [Event("")] * 2


# --- the end


async def test_a_closed_room_is_over_and_forgotten(house: House) -> None:
    lecturer, other = await house.lecturer(), await house.lecturer()
    await lecturer.show("secret", "question=q")
    await lecturer.vote("q", "a secret")
    async with house.follow(lecturer.code) as stream:
        assert await stream.next() == step("secret", "q")
        assert (await lecturer.close()).status == 204
        assert await stream.next() == OVER
        assert await stream.next() is None
    room, read = f"/room/{lecturer.code}", ("/events", f"/document/{sha('secret')}", "/votes", "/address", "/qr.svg")
    for method, path in [*(("GET", path) for path in read), ("PUT", "/document"), ("POST", "/votes"), ("DELETE", "")]:
        answer = await house.ask(method, room + path, packed(0), x_room_key=lecturer.key)
        assert (answer.status, answer.sentence) == (404, no_room(lecturer.code)), (method, path)
    assert (await other.show("goes on")).status == 200


async def test_a_room_ends_by_itself(make: Any) -> None:
    house = make(life=0.4)
    lecturer = await house.lecturer()
    async with house.follow(lecturer.code) as stream:
        assert await stream.next() == EMPTY
        assert await stream.next() == OVER
    assert (await house.ask("GET", f"/room/{lecturer.code}/address")).sentence == no_room(lecturer.code)


# --- the reader's page


@in_memory
async def test_the_reader_page_stands_under_the_base(house: House) -> None:
    lab = House(house.rooms, "/lab")
    lecturer = await lab.lecturer()
    for each, base in ((lab, "/lab/"), (house, "/")):
        page = await each.ask("GET", f"/room/{lecturer.code}")
        assert page.status == 200
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert f'<base href="{base}"' in page.body.decode()
        assert "BASE" not in page.body.decode()


@in_memory
async def test_a_code_may_be_written_small(house: House) -> None:
    lab = House(house.rooms, "/lab")
    lecturer = await lab.lecturer()
    small = await lab.ask("GET", f"/room/{lecturer.code.lower()}")
    wanted = lecturer.code if lecturer.code == lecturer.code.lower() else f"/lab/room/{lecturer.code}"
    assert small.headers.get("location", lecturer.code) == wanted
    assert (await lab.ask("GET", f"/room/{lecturer.code.lower()}/address")).status == 200


@in_memory
async def test_where_there_is_no_room_a_page_says_so(house: House) -> None:
    assert (await house.ask("GET", "/room/aaaa")).headers["location"] == "/room/AAAA"
    for code in ("AAAA", "0000", "AAAAA", "<script>alert(1)<_script>"):
        page = await house.ask("GET", f"/room/{code}")
        assert page.status == 404
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert "It may be over: rooms end after four hours." in page.body.decode()
        assert "<script" not in page.body.decode().lower()
        assert (no_room("AAAA") in page.body.decode()) == (code == "AAAA")


# --- what is no document


BAD = {
    "no gzip": (b'{"a": 1}', 400),
    "nothing": (b"", 400),
    "cut off": (packed("a" * 100)[:-9], 400),
    "more behind it": (packed(1) + b"x", 400),
    "two members": (packed(1) + packed(2), 400),
    "no JSON": (gzip.compress(b"{"), 400),
    "no UTF-8": (gzip.compress(b'"\xff"'), 400),
    "very deep": (gzip.compress(b"[" * 90_000 + b"]" * 90_000), 400),
    "a bomb": (gzip.compress(b'"' + b"a" * 2_000_000 + b'"'), 413),
    "many values": (gzip.compress(b"[" + b"0," * 300_000 + b"0]"), 413),
    "too large": (gzip.compress(json.dumps([sha(number) * 2 for number in range(256)]).encode()), 413),
}


@in_memory
async def test_what_is_no_document_is_refused_and_changes_nothing(make: Any) -> None:
    house = make(compressed=10_000, inflated=1_000_000, values=200_000, shows_at_once=len(BAD) + 1)
    lecturer = await house.lecturer()
    await lecturer.show("good")
    for bad, (body, status) in BAD.items():
        answer = await lecturer.show(body)
        assert answer.status == status, bad
        assert answer.sentence.startswith("A document m"), bad
        async with house.follow(lecturer.code) as stream:
            assert await stream.next() == step("good"), bad


@in_memory
async def test_what_a_step_cannot_be_is_said(house: House) -> None:
    lecturer = await house.lecturer()
    for query in ("shown=2", "shown=true", f"question={'q' * 201}", "kind=drawing", "kind=bars:x"):
        answer = await lecturer.show(1, query)
        assert answer.status == 400, query
        assert answer.sentence.startswith(query.partition("=")[0].replace("shown", "question"))


# --- how many, how often


async def test_followers_are_counted_and_no_more_than_so_many_come_in(make: Any) -> None:
    house = make(followers=2)
    lecturer, other = await house.lecturer(), await house.lecturer()
    async with house.follow(lecturer.code):
        async with house.follow(lecturer.code):
            assert (await lecturer.show(1)).json["followers"] == 2
            refused = await house.ask("GET", f"/room/{lecturer.code}/events")
            assert (refused.status, refused.sentence.split(".")[0]) == (503, "As many follow this room as can")
            async with house.follow(other.code):
                assert (await other.show(1)).json["followers"] == 1
        async with house.follow(lecturer.code):  # somebody has left
            assert (await lecturer.votes())["followers"] == 2
    assert (await lecturer.show(2)).json["followers"] == 0


async def test_so_many_of_an_address_follow_and_no_more(make: Any) -> None:
    house = make(followers_of_an_address=2)
    lecturer = await house.lecturer()
    async with house.follow(lecturer.code):
        async with house.follow(lecturer.code):
            refused = await house.ask("GET", f"/room/{lecturer.code}/events")
            assert refused.status == 429
            assert refused.sentence.startswith("As many follow this room from your network as can.")
            async with house.follow(lecturer.code, "2001:db8::1"), house.follow(lecturer.code, "2001:db8::2"):
                refused = await house.ask("GET", f"/room/{lecturer.code}/events", sender="2001:db8::3")
                assert refused.status == 429, "all of one network of 64 bits are one"
                assert (await lecturer.show(1)).json["followers"] == 4
        async with house.follow(lecturer.code):  # somebody has left
            assert (await lecturer.show(1)).json["followers"] == 2


async def test_so_many_rooms_are_open_and_no_more(make: Any) -> None:
    house = make(rooms=2)
    lecturer, _ = await house.lecturer(), await house.lecturer()
    refused = await house.ask("POST", "/rooms")
    assert refused.status == 429
    assert refused.sentence.startswith("There are as many rooms open on this server as there may be.")
    await lecturer.close()
    await house.lecturer()


@in_memory
async def test_rooms_are_not_opened_without_pause(make: Any) -> None:
    house = make(openings=1e-9, openings_at_once=2)
    for _ in range(2):
        await house.lecturer()
    refused = await house.ask("POST", "/rooms")
    assert (refused.status, refused.sentence.split(".")[0]) == (429, "Too many rooms were opened in the last minute")


@in_memory
async def test_documents_are_not_shown_without_pause(make: Any) -> None:
    house = make(shows=1e-9, shows_at_once=2)
    lecturer, other = await house.lecturer(), await house.lecturer()
    for number in range(20):
        assert (await lecturer.show(number, key="wrong")).status == 403  # what others send is not counted
    assert [(await lecturer.show(number)).status for number in range(3)] == [200, 200, 429]
    assert (await other.show(1)).status == 200
    async with house.follow(lecturer.code) as stream:
        assert await stream.next() == step(1)


# --- codes that are guessed


WRONG = ["".join(letters) for letters in itertools.product(LETTERS, repeat=4)]
"""Every code there is: one of them is right, and is left out by who guesses."""


class Clock:
    """Seconds, which pass when somebody says so."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@in_memory
async def test_guesses_come_at_two_a_minute_in_the_long_run(make: Any) -> None:
    """Of who tries the next code as soon as it may: in t seconds 26 + t / 30 at most, for as long as rooms last."""
    clock = Clock()
    house = make(clock)
    lecturer = await house.lecturer()
    begun, waits = clock.now, []
    wrong = (code for code in WRONG if code != lecturer.code)
    for tried, code in enumerate(wrong, 1):
        answer = await house.ask("GET", f"/room/{code}/address")
        assert (answer.status, answer.sentence) == (404, no_room(code))
        assert tried <= 26 + (clock.now - begun) / 30
        refused = await house.ask("GET", f"/room/{lecturer.code}/address")
        wait = int(refused.headers.get("retry-after", 0))
        assert refused.status == (429 if wait else 200), "a right code is not let in where a wrong one would not be"
        waits.append(wait)
        clock.now += wait
        if clock.now - begun > 4 * 3600:
            break
    assert waits[:20] == [0] * 20, "a lecture hall may mistype"
    assert waits[20:27] == sorted(waits[20:27])
    assert set(waits[30:]) == {30}


@in_memory
async def test_who_guesses_disturbs_neither_other_addresses_nor_who_is_in_the_room(house: House) -> None:
    lecturer = await house.lecturer()
    name = (await lecturer.show(1)).json["document"]
    cookie = await house.come(lecturer.code)
    for code in [code for code in WRONG if code != lecturer.code][:21]:
        await house.ask("GET", f"/room/{code}")
    paths = ["", "/qr.svg", "/address", f"/document/{name}", "/votes", "/events"]
    for path in paths:
        answer = await house.ask("GET", f"/room/{lecturer.code}{path}")
        assert (answer.status, answer.headers["retry-after"]) == (429, "1"), path
    page = (await house.ask("GET", f"/room/{lecturer.code}")).body.decode()
    assert "Too many wrong codes came from your network. Try again in 1 s." in page
    stream = await house.begin(lecturer.code, cookie)
    assert stream.begun.result().status == 200
    await stream.leave()
    for path in paths[:-2]:
        for known in ({"cookie": cookie}, {"x_room_key": lecturer.key}, {"sender": "198.51.100.9"}):
            assert (await house.ask("GET", f"/room/{lecturer.code}{path}", **known)).status == 200, path
    assert (await lecturer.show(2)).status == 200


@in_memory
async def test_a_room_that_ends_is_no_guess_of_those_who_followed_it(house: House) -> None:
    over, other = await house.lecturer(), await house.lecturer()
    await over.close()
    for _ in range(600):
        assert (await house.ask("GET", f"/room/{over.code}/events")).status == 404
    assert (await house.ask("GET", f"/room/{other.code}")).status == 200


async def test_what_is_known_of_addresses_is_bounded() -> None:
    limits = Limits(kept=3, rooms=2)
    guesses, buckets = Guesses(limits, lambda: 0.0), Buckets(1.0, 1, limits.kept, lambda: 0.0)
    for sender in map(str, range(10)):
        for code in WRONG[:50]:
            guesses.wrong(sender, code)
        assert buckets.take(sender)
        assert not buckets.take(sender)
    assert len(guesses) == len(buckets) == 3
    assert [guesses.wait("9", code) for code in (WRONG[0], WRONG[49])] == [30.0, 0.0]
    assert guesses.wait("0", WRONG[60]) == 0.0
    assert buckets.take("0"), "who was forgotten begins anew"


# --- who may


@in_memory
async def test_a_page_of_another_site_opens_no_room_and_does_not_vote(house: House) -> None:
    lecturer = await house.lecturer()
    await lecturer.show(1, "question=q")
    vote, cookie = json.dumps({"question": "q", "answer": 1}).encode(), await house.come(lecturer.code)
    for path, body, status in (("/rooms", b"", 201), (f"/room/{lecturer.code}/votes", vote, 204)):
        for origin in ("https://elsewhere.example", "null", f"http://{HOST}.elsewhere.example", "http://lab.example"):
            refused = await house.ask("POST", path, body, origin=origin, cookie=cookie)
            assert (refused.status, refused.sentence) == (403, "Only pages of this server may ask for this.")
        assert (await house.ask("POST", path, body, origin=f"https://{HOST.upper()}", cookie=cookie)).status == status


async def everything(house: House, lecturer: Lecturer) -> list[Any]:
    """All that anybody in a room can see of it."""
    async with house.follow(lecturer.code) as stream:
        now = await stream.next()
    assert now is not None
    document = await house.ask("GET", f"/room/{lecturer.code}/document/{now.data['document']}")
    page = await house.ask("GET", f"/room/{lecturer.code}")
    return [now, document, (page.status, page.body), await lecturer.votes()]


async def test_a_follower_changes_nothing_for_others(house: House) -> None:
    """Every method on every address, with every key that a follower can have: others see what they saw."""
    lecturer, other = await house.lecturer(), await house.lecturer()
    await lecturer.show("shown", "question=q&kind=bars:2")
    await lecturer.vote("q", [0.5, 0.25])
    await other.show("of another room")
    before = await everything(house, lecturer)
    vote, cookie = {"question": "q", "answer": [1, 1, 1]}, await house.come(lecturer.code)
    bodies = [b"", packed("mine"), json.dumps(vote).encode(), json.dumps(vote | {"question": "r"}).encode(), b"\xff{"]
    paths = ["", "/qr.svg", "/address", "/document", f"/document/{before[0].data['document']}", "/votes"]
    allowed = {("GET", path) for path in paths} - {("GET", "/document"), ("GET", "/votes")}
    async with house.follow(lecturer.code) as watcher:
        assert await watcher.next() == before[0]
        for key in ({}, {"x_room_key": ""}, {"x_room_key": other.key}, {"x_room_key": "ä" * 43}):
            for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
                for path in paths:
                    for body in bodies:
                        tried = f"/room/{lecturer.code}{path}?question=q&shown=1"
                        answer = await house.ask(method, tried, body, cookie=cookie, **key)
                        if (method, path) in allowed:
                            assert answer.status == 200
                        else:
                            assert answer.status in (400, 403, 405, 409), (method, path)
                            assert answer.sentence.endswith(".")
                        if answer.status == 403:
                            assert answer.sentence == "Only who opened this room may show something in it."
        assert await everything(house, lecturer) == [*before[:3], before[3] | {"followers": 1}]
        await lecturer.show("next")
        assert await watcher.next() == step("next")  # and heard of nothing in between


@in_memory
async def test_another_method_is_refused_in_a_sentence(house: House) -> None:
    answer = await house.ask("GET", "/rooms")
    assert (answer.status, answer.sentence) == (405, "This address answers POST only.")
