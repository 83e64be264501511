"""The glossary: each term is found in a sentence as it is written there, and is explained in one way."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dashboard.components.payload import unpack
from dashboard.frame.glossary import TERMS, longest_first
from tests.kit.pages import open_page

ROOT = Path(__file__).resolve().parents[3]
MEANINGS = {term.name: term.meaning for term in TERMS}


def terms_in(text: str) -> list[str]:
    """The names of the terms of a text, in its order, as a browser finds them."""
    terms = longest_first()
    every = re.compile("|".join(f"({term.pattern})" for term in terms), re.IGNORECASE)
    return list(dict.fromkeys(terms[(match.lastindex or 0) - 1].name for match in every.finditer(text)))


def test_a_term_is_found_by_its_name_and_explained_in_one_phrase() -> None:
    for term in TERMS:
        assert terms_in(f"Look at the {term.name}, please.") == [term.name]
        assert terms_in(term.name.capitalize()) == [term.name]
        assert term.name not in terms_in(f"x{term.name}") + terms_in(f"{term.name.partition(' layer')[0]}ish")
        assert not re.search(r"[.;]|\bwe\b", term.meaning)
    assert len(term.meaning.split()) <= 30
    assert term.meaning[0].islower()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Row = query (who looks), column = key (looked at).", ["query", "key"]),
        ("Heads, and an induction head; two previous-token heads.", ["head", "induction head", "previous-token head"]),
        ("It costs 4.96 nats on 16 windows of 512 held-out tokens.", ["nats", "held out"]),
        ("Largest value: 0.31. Values from 0 to 1. The values add up.", ["value"]),
        ("Two queries fit one key; keyboard, monkeys and a passkey do not.", ["query", "key"]),
        ("Nothing to explain here.", []),
    ],
)
def test_a_sentence_has_these_terms(text: str, found: list[str]) -> None:
    assert terms_in(text) == found


def test_names_differ() -> None:
    assert len({term.name.lower() for term in TERMS}) == len(TERMS)


def test_what_the_page_is_told_is_the_glossary() -> None:
    app = open_page("positions")
    header = next(h for e in app.get("bidi_component") if "terms" in (h := unpack(e.proto.bytes)[0]))
    assert {name: meaning for name, _, meaning in header["terms"]} == MEANINGS


def test_the_words_of_the_house_say_the_same() -> None:
    rows = dict(re.findall(r"^\| \*\*(.+?)\*\* \| (.+?) \|$", (ROOT / "docs" / "glossary.md").read_text("utf-8"), re.M))
    shared = rows.keys() & MEANINGS.keys()
    assert {"nats", "perplexity", "ceiling", "chance", "held out", "residual stream", "head"} <= shared
    assert [name for name in shared if not rows[name].startswith(MEANINGS[name])] == []
