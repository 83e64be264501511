"""Votes: who may, what they may hold, and what they come to."""

from __future__ import annotations

import json
import math
from itertools import count
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

from dashboard.server.rooms.routes import NO_COOKIE
from dashboard.server.rooms.voters import COOKIE, sender_of
from tests.kit.rooms.house import HERE, House, Lecturer, Stream, in_memory

pytestmark = pytest.mark.anyio
THERE = "198.51.100.9"
MANY_HERE = "As many have voted on this question from your network as can."


async def asking(house: House, query: str = "question=q") -> Lecturer:
    lecturer = await house.lecturer()
    assert (await lecturer.show("asks", query)).status == 200
    return lecturer


async def voted(lecturer: Lecturer, answers: list[Any]) -> dict[str, Any]:
    for number, answer in enumerate(answers):
        assert (await lecturer.vote("q", answer, number)).status == 204
    return await lecturer.votes()


async def test_choices_are_counted(house: House) -> None:
    found = await voted(await asking(house), [2, 0, 2, 2])
    assert found == {"question": "q", "followers": 0, "votes": 4, "kind": "choice", "counts": {"0": 1, "2": 3}}


async def test_numbers_bars_and_cells_have_a_mean_each_and_the_first_two_a_spread(house: House) -> None:
    """JavaScript writes 1.0 as 1: among numbers it is a number, whichever came first, or where the lecturer says so."""
    for query, kind, answers in (
        *(("question=q", "number", each) for each in ([0.25, 1, 3.5], [-4, 2, 2], [1, 0.5], [100, 2])),
        ("question=q&kind=number", "number", [1, 2]),
        ("question=q", "bars", [[0, 1, 0.5], [1, 1, 0.25], [0.5, 0, 0]]),
        ("question=q", "cells", [[[0, 1, 0], [0.5, 0, 0]], [[1, 1, 0], [0, 0, 0.25]]]),
    ):
        found = await voted(await asking(house, query), answers)
        assert (found["kind"], found["votes"], "sd" in found) == (kind, len(answers), kind != "cells")
        np.testing.assert_allclose(found["mean"], np.mean(answers, axis=0))
        np.testing.assert_allclose(found.get("sd", np.std(answers, axis=0)), np.std(answers, axis=0))


async def test_the_last_fifty_words_are_seen(house: House) -> None:
    lecturer = await asking(house)
    found = await voted(lecturer, [f" word {number} " for number in range(60)])
    assert (found["kind"], found["votes"]) == ("words", 60)
    assert found["words"] == [f"word {number}" for number in range(10, 60)]
    await lecturer.vote("q", "again", 30)
    latest = [f"word {number}" for number in range(10, 60) if number != 30]
    assert (await lecturer.votes())["words"] == [*latest, "again"]


async def test_before_anybody_votes_nothing_is_said_of_votes(house: House) -> None:
    lecturer = await house.lecturer()
    assert await lecturer.votes() == {"question": "", "followers": 0, "votes": 0, "kind": ""}
    lecturer = await asking(house, "question=q&kind=bars:4")
    assert await lecturer.votes() == {"question": "q", "followers": 0, "votes": 0, "kind": "bars"}


async def test_one_voter_has_one_vote(house: House) -> None:
    lecturer = await asking(house)
    for answer in (1, 2, 3):
        await lecturer.vote("q", answer, 1)
    await lecturer.vote("q", 3, 2)
    assert (await lecturer.votes())["counts"] == {"3": 2}


async def test_votes_are_taken_until_the_answer_is_shown(house: House) -> None:
    lecturer = await asking(house)
    assert (await lecturer.vote("q", 1)).status == 204
    other = await lecturer.vote("p", 1)
    assert (other.status, other.sentence) == (409, "This question is not asked now.")
    await lecturer.show("asks", "question=q&shown=1")
    late = await lecturer.vote("q", 2, 2)
    assert (late.status, late.sentence) == (409, "The answer is shown already: votes on this question are closed.")
    assert (await lecturer.votes())["counts"] == {"1": 1}
    await lecturer.show("goes on")
    assert (await lecturer.vote("q", 1)).status == (await lecturer.vote("", 1)).status == 409


async def test_votes_are_there_when_a_lecturer_goes_back_or_reloads(house: House) -> None:
    lecturer = await asking(house)
    await lecturer.vote("q", 1)
    await lecturer.show("next", "question=r")
    assert (await lecturer.votes())["votes"] == 0
    await lecturer.vote("r", "a word")
    await lecturer.show("asks", "question=q")
    assert (await lecturer.votes())["counts"] == {"1": 1}


async def test_votes_on_the_last_questions_are_kept(make: Any) -> None:
    house = make(questions=2)
    lecturer = await asking(house)
    await lecturer.vote("q", 1)
    for question in ("r", "s"):
        await lecturer.show("asks", f"question={question}")
    await lecturer.show("asks", "question=q")
    assert (await lecturer.votes())["votes"] == 0
    assert (await lecturer.vote("q", 1)).status == 204


OTHER_SHAPES: list[tuple[Any, Any]] = [
    (1, [0.5]),
    ([0.5], 1),
    ([0.5], [0.5, 0.5]),
    ([[0.5]], [0.5]),
    ([[0.5]], [[0.5, 0.5]]),
    ("word", 1),
    (1, "word"),
]


async def test_a_vote_of_another_shape_than_the_first_is_refused(house: House) -> None:
    for first, second in OTHER_SHAPES:
        lecturer = await asking(house)
        assert (await lecturer.vote("q", first, 1)).status == 204
        before = await lecturer.votes()
        answer = await lecturer.vote("q", second, 2)
        assert (answer.status, answer.sentence) == (400, "This question takes another kind of answer.")
        assert await lecturer.votes() == before


TAKES = {
    "choice": ([0, 99], [-1, 100, 0.5, [1], "1"]),
    "choice:4": ([0, 3], [4, -1, 0.5]),
    "number": ([0, 0.5, -3], [[0.5], "1"]),
    "bars": ([[0.5], [0, 1]], [0.5, [[0.5]], "1"]),
    "bars:2": ([[0, 1]], [[0.5], [0, 1, 1], [[0, 1]]]),
    "cells:2x1": ([[[0], [1]]], [[0, 1], [[0, 1]], [[0]]]),
    "words": (["one", "1"], [1, [1]]),
}


async def test_the_lecturer_says_which_answers_a_question_takes(make: Any) -> None:
    """Then no first voter can say it for the others."""
    lecturer = await make(shows_at_once=20).lecturer()
    for kind, (taken, refused) in TAKES.items():
        for place, right in enumerate(taken):
            question = f"{kind}, {place}"
            assert (await lecturer.show("asks", f"question={quote(question)}&kind={kind}")).status == 200
            for wrong in refused:
                answer = await lecturer.vote(question, wrong, question)
                assert (answer.status, answer.sentence) == (400, "This question takes another kind of answer."), wrong
            assert (await lecturer.vote(question, right, kind)).status == 204, right
            assert (await lecturer.votes())["kind"] == kind.partition(":")[0]


NO_ANSWERS: list[Any] = [
    *(None, True, {}, [], "", "  ", "a" * 501),
    *([1.01], [-0.01], [True], ["a"], [[]], [[0.5], [0.5, 0.5]], [0.5, [0.5]], [[0.5], 0.5], [[[0.5]]]),
    *(1e10, 10**400, math.nan, math.inf, [math.nan]),
]
NO_VOTES = [
    *(b"", b"{", b"\xff", b"[" * 8_000, b"1", b"[]", b"{}"),
    *(json.dumps({"question": each, "answer": 1}).encode() for each in (1, None)),
    *(json.dumps({"question": "q", "answer": each}).encode() for each in NO_ANSWERS),
]


@in_memory
async def test_what_is_no_vote_is_refused_in_a_sentence(house: House) -> None:
    lecturer = await asking(house)
    for sent in NO_VOTES:
        answer = await lecturer.send(sent)
        assert answer.status == 400, sent
        assert answer.sentence.endswith(".")
    assert (await lecturer.votes())["votes"] == 0


async def test_half_a_character_does_not_keep_the_lecturer_from_the_votes(house: House) -> None:
    lecturer = await asking(house)
    assert (await lecturer.send(b'{"question": "q", "answer": "a\\ud800b"}')).status == 204
    assert (await lecturer.votes())["words"] == ["a?b"]
    assert (await lecturer.send(b'{"question": "\\ud800", "answer": "a"}')).status == 409


@in_memory
async def test_a_vote_is_small(house: House) -> None:
    lecturer = await asking(house)
    most = [0.5] * 4_000
    assert (await lecturer.vote("q", [round(each, 1) for each in most[:2_000]])).status == 204
    answer = await lecturer.vote("q", most)
    assert (answer.status, answer.sentence) == (413, "A vote may have 16 kB; this one has more.")


async def test_so_many_vote_and_no_more(make: Any) -> None:
    house = make(voters=2)
    lecturer = await asking(house)
    assert [(await lecturer.vote("q", 1, number)).status for number in range(3)] == [204, 204, 429]
    assert (await lecturer.vote("q", 2, 1)).status == 204  # in place of the earlier one
    assert (await lecturer.votes())["counts"] == {"1": 1, "2": 1}


# --- who is a voter


@in_memory
async def test_a_voter_is_a_cookie_that_the_server_signed_for_this_room(house: House) -> None:
    """Any other is as good as none: the vote is not counted, and the refusal brings a cookie that is."""
    lecturer, other = await asking(house), await asking(house)
    good = await house.come(lecturer.code)
    name, _, signed = good.partition("=")[2].partition(".")
    wrong = {
        "none": "",
        "of another room": await house.come(other.code),
        "of another name": f"{COOKIE}={'x' * 22}.{signed}",
        "unsigned": f"{COOKIE}={name}",
        "signed by somebody else": f"{COOKIE}={name}.{'0' * 64}",
        "no name": f"{COOKIE}=.{signed}",
        "no letters": f"{COOKIE}={'ä' * 22}.{signed}",
    }
    vote = json.dumps({"question": "q", "voter": "v" * 16, "answer": 1}).encode()
    for number, (case, cookie) in enumerate(wrong.items(), 1):
        refused = await house.ask("POST", f"/room/{lecturer.code}/votes", vote, cookie=cookie)
        assert (refused.status, refused.sentence) == (403, NO_COOKIE), case
        lecturer.cookies[number] = refused.headers["set-cookie"].partition(";")[0]
        assert (await lecturer.votes())["votes"] == number - 1
        assert (await lecturer.vote("q", 1, number)).status == 204
    assert len({good, *lecturer.cookies.values()}) == 1 + len(wrong)


@in_memory
async def test_the_cookie_belongs_to_the_room_alone_and_outlives_a_reload(house: House) -> None:
    lab = House(house.rooms, "/lab")
    lecturer = await lab.lecturer()
    page = f"/room/{lecturer.code}"
    for proto in ("http", "https"):
        first = (await lab.ask("GET", page, x_forwarded_proto=proto)).headers["set-cookie"]
        cookie, *attributes = first.split("; ")
        wanted = {f"Path=/lab{page}", "Max-Age=14400", "HttpOnly", "SameSite=Lax"}
        assert set(attributes) == wanted | ({"Secure"} if proto == "https" else set())
        assert "set-cookie" not in (await lab.ask("GET", page, cookie=cookie)).headers


def test_an_address_is_what_somebody_has_one_of() -> None:
    for host, sender in (
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9%eth0", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::9", "2001:db8:1:3::/64"),
        ("unix:", "unknown"),
        ("", "unknown"),
    ):
        assert sender_of({"type": "http", "client": (host, 1)}) == sender, host
    assert sender_of({"type": "http", "client": None}) == "unknown"


# --- how many, how often


async def test_so_many_of_an_address_vote_and_no_more(make: Any) -> None:
    house = make(voters_of_an_address=2)
    lecturer = await asking(house)
    answers = [await lecturer.vote("q", 1, number) for number in range(3)]
    assert [each.status for each in answers] == [204, 204, 429]
    assert answers[-1].sentence == MANY_HERE
    assert (await lecturer.vote("q", 2, 1)).status == 204  # in place of the earlier one
    assert (await lecturer.vote("q", 2, 1, THERE)).status == 204  # who goes elsewhere stays one voter
    assert [(await lecturer.vote("q", 3, number, THERE)).status for number in (4, 5, 6)] == [204, 204, 429]
    assert (await lecturer.votes())["counts"] == {"1": 1, "2": 1, "3": 2}
    await lecturer.show("asks", "question=r")
    assert [(await lecturer.vote("r", 1, number)).status for number in range(3)] == [204, 204, 429]


@in_memory
async def test_a_lecture_hall_behind_one_address_votes_and_follows(make: Any) -> None:
    """300 at once, and the clock stands still: no limit is any nearer than that."""
    house = make(votes_of_a_voter_at_once=10)
    lecturer = await asking(house)
    streams: list[Stream] = []
    for number in range(300):
        assert (await lecturer.vote("q", number % 3, number)).status == 204
        streams.append(await house.begin(lecturer.code, lecturer.cookies[number]))
    assert {(await stream.begun).status for stream in streams} == {200}
    found = await lecturer.votes()
    assert (found["followers"], found["votes"], found["counts"]) == (300, 300, {"0": 100, "1": 100, "2": 100})
    for stream in streams:
        await stream.leave()
    assert (await lecturer.votes())["followers"] == 0


@in_memory
@pytest.mark.parametrize("votes", [420, pytest.param(10_000, marks=pytest.mark.nightly)])
async def test_one_client_counts_four_hundred_times_at_most(make: Any, votes: int) -> None:
    """However long it goes on: a new cookie for each vote, and no hurry."""
    seconds = count()
    house = make(clock=lambda: float(next(seconds)))
    lecturer = await asking(house)
    answers = [await lecturer.vote("q", 1, number) for number in range(votes)]
    assert [each.status for each in answers] == [204] * 400 + [429] * (votes - 400)
    assert (await lecturer.votes())["votes"] == 400
    assert (await lecturer.vote("q", 2, "other", THERE)).status == 204


FLOODS: dict[str, Any] = {
    "with one cookie": lambda number: "one",
    "with a cookie for each vote": lambda number: number,
    "without a cookie": lambda number: "none",
}


@in_memory
@pytest.mark.parametrize("flood", FLOODS)
async def test_who_floods_a_room_is_refused_and_others_are_not(make: Any, flood: str) -> None:
    """The clock stands still: everything comes in one instant. One cookie does not even disturb its own address."""
    house = make(votes_of_a_voter_at_once=10)
    lecturer = await asking(house)
    found: list[int] = []
    for number in range(550):
        voter = FLOODS[flood](number)
        if voter == "none":
            lecturer.cookies[voter] = ""
        found.append((await lecturer.vote("q", 1, voter)).status)
    counted = found.count(204)
    assert counted == {"with one cookie": 10, "with a cookie for each vote": 400, "without a cookie": 0}[flood]
    assert set(found[-100:]) == {429}
    honest = HERE if flood == "with one cookie" else THERE
    assert {(await lecturer.vote("q", 2, f"honest {number}", honest)).status for number in range(50)} == {204}
