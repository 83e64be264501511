"""What a user sees is what was recorded: 60 links, the link grammar, the command line, files and downloads.

Where a difference is meant, record anew: see recording.py.
"""

import json
import lzma
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs

import pytest
import streamlit as st

from dashboard.view.pages import PAGES
from tests.house.digests import cut
from tests.house.recording import (
    LINKS,
    ROOT,
    SECTIONS,
    SHIPPED,
    TRAINING,
    difference,
    main,
    read_recordings,
    sections_of,
    settled,
)

MARKS = {
    "links": (pytest.mark.nightly, pytest.mark.numerical),
    "output": pytest.mark.numerical,
    "downloads": pytest.mark.numerical,
}
NAMED = [
    pytest.param(section, name, id=f"{section}-{cut(name, 60)}", marks=MARKS.get(section, ()))
    for section, (names, _) in SECTIONS.items()
    for name in names
]


@pytest.fixture(scope="module", autouse=True)
def _fresh() -> None:
    """What other tests of this process left in the cache, as a model of fewer steps, is nobody's record."""
    st.cache_resource.clear()


@pytest.fixture(autouse=True)
def _settled() -> Iterator[None]:
    with settled():
        yield


@pytest.mark.daily(9)
@pytest.mark.parametrize(("section", "name"), NAMED)
def test_it_is_as_it_was_recorded(section: str, name: str) -> None:
    lines = difference(read_recordings()[section][name], SECTIONS[section][1](name))
    if lines:
        pytest.fail("\n".join([f"{section}: {name}", *lines]), pytrace=False)


@pytest.mark.parametrize(
    ("before", "now", "same"),
    [
        ("costs 0.045", "costs 0.046", True),  # 0.0455, rounded down and up
        ("costs 0.045", "costs 0.047", False),
        ("costs 0.045", "gains 0.045", False),
        ("0.999e-03", "1.000e-03", True),
        ("9.999e-03", "1.000e-02", True),
        ("1.600e-02", "1.602e-02", False),
        ("1.6e-06 apart", "3.1e-06 apart", True),
        ("-0.001", "0.000", True),
        ("head 1.3", "head 1.2", False),
        ("1,200 steps", "1,201 steps", False),
    ],
)
def test_words_are_compared_exactly_and_numbers_to_the_last_digit(before: str, now: str, same: bool) -> None:
    assert (difference([before], [now]) == []) == same


def test_of_a_training_on_the_spot_no_number_is_recorded_and_of_all_else_some_are() -> None:
    links = {name: "".join(found["page"] + found["sidebar"]) for name, found in read_recordings()["links"].items()}
    without = {name for name, text in links.items() if "#" in text and not re.search(r"\d", text)}
    assert without == {link for link in LINKS if link.startswith(TRAINING)}


def test_nothing_is_recorded_that_is_not_compared() -> None:
    assert {section: set(names) for section, (names, _) in SECTIONS.items()} == {
        section: set(found) for section, found in read_recordings().items()
    }


def test_the_links_show_every_page_and_every_run() -> None:
    assert len(set(LINKS)) == len(LINKS) >= 60
    pages = {path.stem for path in (ROOT / "dashboard").rglob("app_pages/**/*.py")}
    assert {link.partition("?")[0] for link in LINKS} <= pages
    assert len({link.partition("?")[0] for link in LINKS}) == len(PAGES)
    runs = {parse_qs(link.partition("?")[2])["run"][0] for link in LINKS}
    assert runs >= {*SHIPPED, "compiled"}


def test_what_is_asked_for_is_recorded_and_all_else_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two records say something else, of which one is asked for; one of a setting that is gone goes."""
    file, now = tmp_path / "recorded.json.xz", read_recordings()
    before = {**now, "parameters": {**now["parameters"], "seed": "old", "symbols": "old", "gone": "old"}}
    file.write_bytes(lzma.compress(json.dumps(before).encode()))
    assert main(False, ["seed"], file) == 1
    assert read_recordings(file) == before
    assert main(True, ["seed"], file) == 0
    assert read_recordings(file) == {**now, "parameters": {**now["parameters"], "symbols": "old"}}
    assert main(False, ["seed"], file) == 0
    printed = capsys.readouterr().out
    assert printed.count("parameters: seed") == 2
    assert "symbols" not in printed
    assert printed.endswith("0 of 1 records differ.\n")


def test_a_page_a_link_a_setting_and_a_section_are_asked_for_by_name() -> None:
    assert {section: tuple(names) for section, names in sections_of([]).items()} == {
        section: names for section, (names, _) in SECTIONS.items()
    }
    found = sections_of(["film", LINKS[0], "seed", "help"])
    assert set(found["links"]) == {LINKS[0], *(link for link in LINKS if link.startswith("film?"))}
    assert found["downloads"] == [link for link in SECTIONS["downloads"][0] if link.startswith("film?")]
    assert (found["parameters"], found["help"], found["output"]) == (["seed"], list(SECTIONS["help"][0]), [])
    with pytest.raises(ValueError, match="nothing is recorded of nonsense"):
        sections_of(["film", "nonsense"])
