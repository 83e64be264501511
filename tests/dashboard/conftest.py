"""What holds for every page that is opened without a browser."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.kit.gpus.sitecustomize import ASKED
from tests.kit.pages import ROOT
from transformer.foundation import claims
from transformer.foundation.claims import Claim


@pytest.fixture(autouse=True)
def _each_click_counts(monkeypatch: pytest.MonkeyPatch):
    """No browser, so no click is reported twice, and a second one may follow sooner than any hand could click."""
    monkeypatch.setattr("dashboard.view.clicks.ECHO", 0.0)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of runs, in which there is nothing yet."""
    monkeypatch.setattr("dashboard.models.menu.ROOT", tmp_path)
    return tmp_path


@pytest.fixture
def heard() -> Iterator[list[Claim]]:
    """What claims are made."""
    found: list[Claim] = []
    claims.listeners.append(found.append)
    yield found
    claims.listeners.remove(found.append)


@pytest.fixture(autouse=True)
def _no_page_asks_for_a_gpu(monkeypatch: pytest.MonkeyPatch):
    """The process of the pages leaves the GPUs to those that train, which tell it what there is."""
    asked: list[str] = []

    def noted(name: str):
        own = getattr(torch.cuda, name)

        def ask(*args: object, **kwargs: object):
            caller = sys._getframe(1)
            while caller is not None:
                if caller.f_code.co_filename.startswith(f"{ROOT / 'dashboard'}{os.sep}"):
                    asked.append(f"{name}, line {caller.f_lineno} of {caller.f_code.co_filename}")
                caller = caller.f_back
            return own(*args, **kwargs)

        return ask

    for name in ASKED:
        monkeypatch.setattr(torch.cuda, name, noted(name))
    yield
    assert asked == []
