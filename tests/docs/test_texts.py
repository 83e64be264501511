"""The page of words, now and at another commit: every page is in it, and each begins with its title."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from dashboard.view.pages import PAGES
from tests.kit.checkout import ROOT, script

TEXTS = script("docs/texts.py")


def test_every_page_is_in_it() -> None:
    assert {path.stem for path in TEXTS.pages(ROOT)} == set(PAGES)


@pytest.mark.nightly
def test_a_page_gives_its_words() -> None:
    words = [sys.executable, TEXTS.__file__, "--dump", str(ROOT), "--page", "accuracy", "--page", "reading"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=300, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert set(found) == {"accuracy", "reading"}
    assert not any(lines[0].startswith("It fails") for lines in found.values())
    assert found["accuracy"][0] == "Second half 1.00, first half 0.10 = chance: the mask holds."
