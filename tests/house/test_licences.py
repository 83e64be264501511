"""The lock files and the page of licences are about what requirements.txt pins."""

from __future__ import annotations

import re

import pytest

from tests.kit.checkout import ROOT, script

LICENCES = script("deploy/licences.py")
AGAIN = "run deploy/update.sh"


def pinned(file: str) -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / file).read_text(), re.MULTILINE))


@pytest.mark.parametrize("name", ["cpu", "cuda"])
def test_a_lock_holds_the_versions_of_the_requirements_each_with_a_hash_and_names_no_index(name: str) -> None:
    locked, text = LICENCES.pins(name), LICENCES.LOCKS[name].read_text()
    wanted = pinned("requirements.txt") | {"redis": pinned("requirements-dev.txt")["redis"]}
    assert {package: locked.get(package) for package in wanted} == wanted, AGAIN
    entries = re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)[1:]
    assert len(entries) == len(locked) > 40
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", entry) for entry in entries)
    assert not re.search(r"://|--(extra-)?index|--find-links", text)


def test_the_page_is_up_to_date() -> None:
    assert LICENCES.differences(LICENCES.PAGE.read_text()) == [], AGAIN
    assert LICENCES.UNKNOWN not in LICENCES.PAGE.read_text()


def test_what_is_old_or_missing_is_named() -> None:
    text = LICENCES.PAGE.read_text()
    row = next(line for line in text.splitlines() if line.startswith("| rich |"))
    version = LICENCES.pins("cpu")["rich"]
    assert LICENCES.differences(text.replace(f"{row}\n", "")) == [f"rich {version} is missing"]
    assert LICENCES.differences(text.replace(row, row.replace(version, "0.1"))) == [f"rich {version} is missing"]
    assert LICENCES.differences(text.replace(row, f"{row}\n| poor | 1.0 | MIT |")) == ["poor is in no lock"]


def test_what_is_not_installed_keeps_its_licence() -> None:
    before = LICENCES.known("| package | version | licence |\n|---|---|---|\n| no-such-package | 1.0 | MIT |\n")
    assert before == {"no-such-package": "MIT"}
    assert LICENCES.licence("no-such-package", before) == "MIT"
    assert LICENCES.licence("no-such-package", {}) == LICENCES.UNKNOWN
    assert LICENCES.licence("plotly", {}) == "MIT"
