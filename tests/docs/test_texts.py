"""The page of words, now and at another commit: every page is on it, and each begins with its title."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys

import pytest

from dashboard.view.pages import PAGES
from tests.kit.pages import ROOT

SCRIPT = ROOT / "docs" / "texts.py"


def test_every_page_is_on_it() -> None:
    assert set(runpy.run_path(str(SCRIPT))["pages"](ROOT)) == set(PAGES)


@pytest.mark.nightly
def test_a_page_gives_its_words() -> None:
    words = [sys.executable, str(SCRIPT), "--dump", str(ROOT), "accuracy", "tokens"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=300, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert set(found) == {"accuracy", "tokens"}
    assert found["accuracy"][0] == "Second half 1.00, first half 0.10 = chance: the mask holds."
    assert not found["tokens"][0].startswith("It fails")
