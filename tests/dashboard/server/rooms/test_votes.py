"""Votes: who may, what they may hold, and what they come to."""

from __future__ import annotations

import json
import statistics
from typing import Any

import pytest

from tests.kit.rooms.house import House, Lecturer, voter

pytestmark = pytest.mark.anyio


async def asking(house: House, query: str = "question=q") -> Lecturer:
    lecturer = await house.lecturer()
    assert (await lecturer.show("asks", query)).status == 200
    return lecturer


async def voted(lecturer: Lecturer, answers: list[Any]) -> dict[str, Any]:
    for number, answer in enumerate(answers):
        assert (await lecturer.vote("q", answer, voter(number))).status == 204
    return await lecturer.votes()


async def test_choices_are_counted(house: House) -> None:
    found = await voted(await asking(house), [2, 0, 2, 2])
    assert found == {"question": "q", "followers": 0, "votes": 4, "kind": "choice", "counts": {"0": 1, "2": 3}}


@pytest.mark.parametrize("answers", [[0.25, 1, 3.5], [-4, 2, 2], [1, 0.5], [100, 2]])
async def test_numbers_have_a_mean_and_a_spread(house: House, answers: list[float]) -> None:
    """JavaScript writes 1.0 as 1: among numbers it is a number, whichever came first."""
    found = await voted(await asking(house), answers)
    assert (found["kind"], found["votes"]) == ("number", len(answers))
    assert found["mean"] == pytest.approx(statistics.fmean(answers))
    assert found["sd"] == pytest.approx(statistics.pstdev(answers))


async def test_whole_numbers_are_numbers_where_the_lecturer_says_so(house: House) -> None:
    found = await voted(await asking(house, "question=q&kind=number"), [1, 2])
    assert (found["kind"], found["mean"], found["sd"]) == ("number", 1.5, 0.5)


async def test_bars_have_a_mean_and_a_spread_each(house: House) -> None:
    answers = [[0, 1, 0.5], [1, 1, 0.25], [0.5, 0, 0]]
    found = await voted(await asking(house), answers)
    assert found["kind"] == "bars"
    columns = list(zip(*answers, strict=True))
    assert found["mean"] == pytest.approx([statistics.fmean(each) for each in columns])
    assert found["sd"] == pytest.approx([statistics.pstdev(each) for each in columns])


async def test_cells_have_a_mean_each(house: House) -> None:
    found = await voted(await asking(house), [[[0, 1, 0], [0.5, 0, 0]], [[1, 1, 0], [0, 0, 0.25]]])
    assert (found["kind"], found["mean"]) == ("cells", [[0.5, 1, 0], [0.25, 0, 0.125]])
    assert "sd" not in found


async def test_the_last_fifty_words_are_seen(house: House) -> None:
    lecturer = await asking(house)
    found = await voted(lecturer, [f" word {number} " for number in range(60)])
    assert (found["kind"], found["votes"]) == ("words", 60)
    assert found["words"] == [f"word {number}" for number in range(10, 60)]
    await lecturer.vote("q", "again", voter(30))
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
        await lecturer.vote("q", answer, voter(1))
    await lecturer.vote("q", 3, voter(2))
    assert (await lecturer.votes())["counts"] == {"3": 2}


async def test_votes_are_taken_until_the_answer_is_shown(house: House) -> None:
    lecturer = await asking(house)
    assert (await lecturer.vote("q", 1)).status == 204
    other = await lecturer.vote("p", 1)
    assert (other.status, other.sentence) == (409, "This question is not asked now.")
    await lecturer.show("asks", "question=q&shown=1")
    late = await lecturer.vote("q", 2, voter(2))
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


@pytest.mark.parametrize(
    ("first", "second"),
    [(1, [0.5]), ([0.5], 1), ([0.5], [0.5, 0.5]), ([[0.5]], [0.5]), ([[0.5]], [[0.5, 0.5]]), ("word", 1), (1, "word")],
)
async def test_a_vote_of_another_shape_than_the_first_is_refused(house: House, first: Any, second: Any) -> None:
    lecturer = await asking(house)
    assert (await lecturer.vote("q", first, voter(1))).status == 204
    before = await lecturer.votes()
    answer = await lecturer.vote("q", second, voter(2))
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


@pytest.mark.parametrize("kind", TAKES)
async def test_the_lecturer_says_which_answers_a_question_takes(house: House, kind: str) -> None:
    """Then no first voter can say it for the others."""
    for right in TAKES[kind][0]:
        lecturer = await asking(house, f"question=q&kind={kind}")
        for wrong in TAKES[kind][1]:
            answer = await lecturer.vote("q", wrong, voter(1))
            assert (answer.status, answer.sentence) == (400, "This question takes another kind of answer."), wrong
        assert (await lecturer.vote("q", right, voter(2))).status == 204, right
        assert (await lecturer.votes())["kind"] == kind.partition(":")[0]


NO_VOTES = [
    b"",
    b"{",
    b"\xff",
    b"[" * 8_000,
    b"1",
    b"[]",
    b"{}",
    *(
        json.dumps({"question": "q", "voter": "v" * 16, "answer": 1} | change).encode()
        for change in (
            {"voter": "v" * 15},
            {"voter": "v" * 65},
            {"voter": "ä" * 16},
            {"voter": 1},
            {"question": 1},
            {"question": None},
            {"answer": None},
            {"answer": True},
            {"answer": {}},
            {"answer": []},
            {"answer": ""},
            {"answer": "  "},
            {"answer": "a" * 501},
            {"answer": [1.01]},
            {"answer": [-0.01]},
            {"answer": [True]},
            {"answer": ["a"]},
            {"answer": [[]]},
            {"answer": [[0.5], [0.5, 0.5]]},
            {"answer": [0.5, [0.5]]},
            {"answer": [[0.5], 0.5]},
            {"answer": [[[0.5]]]},
            {"answer": 1e10},
            {"answer": 10**400},
            {"answer": float("nan")},
            {"answer": float("inf")},
            {"answer": [float("nan")]},
        )
    ),
]


async def test_what_is_no_vote_is_refused_in_a_sentence(house: House) -> None:
    lecturer = await asking(house)
    for sent in NO_VOTES:
        answer = await house.ask("POST", f"/room/{lecturer.code}/votes", sent)
        assert answer.status == 400, sent
        assert answer.sentence.endswith(".")
    assert (await lecturer.votes())["votes"] == 0


async def test_half_a_character_does_not_keep_the_lecturer_from_the_votes(house: House) -> None:
    lecturer = await asking(house)
    sent = b'{"question": "q", "voter": "vvvvvvvvvvvvvvvv", "answer": "a\\ud800b"}'
    assert (await house.ask("POST", f"/room/{lecturer.code}/votes", sent)).status == 204
    assert (await lecturer.votes())["words"] == ["a?b"]
    sent = b'{"question": "\\ud800", "voter": "vvvvvvvvvvvvvvvv", "answer": "a"}'
    assert (await house.ask("POST", f"/room/{lecturer.code}/votes", sent)).status == 409


async def test_a_vote_is_small(house: House) -> None:
    lecturer = await asking(house)
    most = [0.5] * 4_000
    assert (await lecturer.vote("q", [round(each, 1) for each in most[:2_000]])).status == 204
    answer = await lecturer.vote("q", most)
    assert (answer.status, answer.sentence) == (413, "A vote may have 16 kB; this one has more.")


async def test_so_many_vote_and_no_more(make: Any) -> None:
    house = make(voters=2)
    lecturer = await asking(house)
    assert [(await lecturer.vote("q", 1, voter(number))).status for number in range(3)] == [204, 204, 429]
    assert (await lecturer.vote("q", 2, voter(1))).status == 204  # in place of the earlier one
    assert (await lecturer.votes())["counts"] == {"1": 1, "2": 1}


async def test_votes_do_not_come_without_pause(make: Any) -> None:
    house = make(votes=1e-9, votes_at_once=3)
    lecturer, other = await asking(house), await asking(house)
    answers = [await lecturer.vote("q", 1, voter(number)) for number in range(4)]
    assert [each.status for each in answers] == [204, 204, 204, 429]
    assert answers[-1].sentence == "Too many votes at once. Try again in a second."
    assert (await other.vote("q", 1)).status == 204
