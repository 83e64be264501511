"""The page of words, now and at another commit: no page fails in it, and each begins with its title."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from dashboard.view.pages import PAGES
from tests.kit.pages import ROOT


@pytest.mark.nightly
def test_every_page_gives_its_words() -> None:
    words = [sys.executable, str(ROOT / "docs" / "texts.py"), "--dump", str(ROOT)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=300, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert set(found) == set(PAGES)
    assert not [page for page, lines in found.items() if lines[0].startswith("It fails")]
    assert found["accuracy"][0] == "Second half 1.00, first half 0.10 = chance: the mask holds."
