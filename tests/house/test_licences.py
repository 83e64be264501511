"""The lock files and the page of licences are about what requirements.txt pins."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
AGAIN = "run deploy/update.sh"


@pytest.fixture(scope="module")
def licences() -> ModuleType:
    spec = importlib.util.spec_from_file_location("licences", ROOT / "deploy" / "licences.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pinned(file: str) -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / file).read_text(), re.MULTILINE))


@pytest.mark.parametrize("name", ["cpu", "cuda"])
def test_the_locks_hold_the_versions_of_the_requirements(name: str, licences: ModuleType) -> None:
    locked = licences.pins(name)
    wanted = pinned("requirements.txt") | {"redis": pinned("requirements-dev.txt")["redis"]}
    assert {package: locked.get(package) for package in wanted} == wanted, AGAIN


@pytest.mark.parametrize("name", ["cpu", "cuda"])
def test_every_locked_package_has_a_hash_and_no_lock_names_an_index(name: str, licences: ModuleType) -> None:
    text = licences.LOCKS[name].read_text()
    entries = re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)[1:]
    assert len(entries) == len(licences.pins(name)) > 40
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", entry) for entry in entries)
    assert not re.search(r"://|--(extra-)?index|--find-links", text)


def test_the_page_is_up_to_date(licences: ModuleType) -> None:
    assert licences.differences(licences.PAGE.read_text()) == [], AGAIN
    assert licences.UNKNOWN not in licences.PAGE.read_text()


def test_what_is_old_or_missing_is_named(licences: ModuleType) -> None:
    text = licences.PAGE.read_text()
    row = next(line for line in text.splitlines() if line.startswith("| rich |"))
    version = licences.pins("cpu")["rich"]
    assert licences.differences(text.replace(f"{row}\n", "")) == [f"rich {version} is missing"]
    assert licences.differences(text.replace(row, row.replace(version, "0.1"))) == [f"rich {version} is missing"]
    assert licences.differences(text.replace(row, f"{row}\n| poor | 1.0 | MIT |")) == ["poor is in no lock"]


def test_what_is_not_installed_keeps_its_licence(licences: ModuleType) -> None:
    before = licences.known("| package | version | licence |\n|---|---|---|\n| no-such-package | 1.0 | MIT |\n")
    assert before == {"no-such-package": "MIT"}
    assert licences.licence("no-such-package", before) == "MIT"
    assert licences.licence("no-such-package", {}) == licences.UNKNOWN
    assert licences.licence("plotly", {}) == "MIT"
