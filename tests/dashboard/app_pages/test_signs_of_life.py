"""No page is silent for long: the most that a link can ask for is worked out behind it, or in small pieces."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext, get_script_run_ctx
from torch.nn.modules.module import register_module_forward_pre_hook

from dashboard.app_pages.learn.corners.settings import CornersSettings
from dashboard.app_pages.whole_model.block import sections
from dashboard.models.budget import OPERATIONS, passes
from dashboard.view.link import FIELDS, View
from dashboard.view.pages import PAGES
from tests.kit.pages import open_page
from transformer.network import Network

MOST = OPERATIONS / 10
"""Operations of models between two things that a page draws: about a second on two cores."""
READERS = dict.fromkeys(("tokens", "writing", "reading"), "shakespeare")
SLOW = {"masks": "reverse-translate", "accuracy": "bottleneck-gru"}
"""The shipped runs whose measurements take longest, each on a page that measures."""

PART = {"sequences": 8}
"""Of a field with which the work grows in proportion, so small a part of its limit: it may take the same part."""
FEW = 6
"""Steps."""
VIEWS = {
    "accuracy": [{"depth": look} for look in ("training", "head", "symbol", "length", "confusion", "hardest")],
    "block": [{"part": part.name} for part in sections.PARTS],
    "corners": [{"corner_part": part} for part in ("walks", "forcing")],
    "questions": [{"asked": number} for number in "12345"],
}
"""The pages that show one of several sections, and the links that open each."""


@dataclass
class Silence:
    """What models compute in a page's own thread between two things that it draws."""

    now: float = 0.0
    longest: float = 0.0

    def computed(self, network: Any, arguments: tuple[Any, ...]) -> None:
        if isinstance(network, Network) and get_script_run_ctx(suppress_warning=True):
            slots = sum(each.shape[1] for each in arguments[:2] if each is not None)
            self.now += len(arguments[0]) * OPERATIONS / passes(network.config, network.d_vocab, slots)
            self.longest = max(self.longest, self.now)


@pytest.fixture
def silence(monkeypatch: pytest.MonkeyPatch) -> Iterator[Silence]:
    """What is trained behind a page takes a few steps: how many there are is nothing to the page's own thread."""
    for steps in ("training.quick.MOST_STEPS", "mistakes._base.STEPS"):
        monkeypatch.setattr(f"transformer.{steps}", FEW)
    for steps in ("models.no_positions.STEPS", "app_pages.positions.lengths.race.RACE_STEPS"):
        monkeypatch.setattr(f"dashboard.{steps}", FEW)
    whole = CornersSettings.corner_config
    monkeypatch.setattr(CornersSettings, "corner_config", lambda mine: replace(whole(mine), steps=FEW))
    found, enqueue = Silence(), ScriptRunContext.enqueue

    def drawn(context: ScriptRunContext, message: Any) -> None:
        found.now = 0.0
        enqueue(context, message)

    monkeypatch.setattr(ScriptRunContext, "enqueue", drawn)
    hook = register_module_forward_pre_hook(found.computed)
    yield found
    hook.remove()


def greatest(name: str) -> str:
    """A number of the view at its limit, or at a PART of it, a switch as it is not; empty for a text."""
    field = FIELDS[name]
    if "limits" in field.metadata:
        return str(field.metadata["limits"][1] // PART.get(name, 1))
    return str(int(not field.default)) if isinstance(field.default, bool) else ""


def fields_of(page: str, monkeypatch: pytest.MonkeyPatch, **query: str) -> list[str]:
    """The fields of the view that a page reads by itself, and not what stands around it; of the first page all."""
    found = set(FIELDS) if page == next(iter(PAGES)) else set()
    read = View.__getattribute__

    def noted(view: View, name: str) -> Any:
        asking = sys._getframe(1).f_code
        if name in FIELDS and ("app_pages" in asking.co_filename or asking.co_name in ("named", "bound")):
            found.add(name)
        return read(view, name)

    with monkeypatch.context() as patch:
        patch.setattr(View, "__getattribute__", noted)
        open_page(page, **query)
    return sorted(found - {"lecture", "exercise", "predict"})


@pytest.mark.nightly
@pytest.mark.parametrize("page", PAGES)
def test_the_greatest_value_of_each_field_leaves_no_page_silent(
    page: str, silence: Silence, monkeypatch: pytest.MonkeyPatch
) -> None:
    for view in VIEWS.get(page, [{}]):
        query = {"run": READERS.get(page, SLOW.get(page, "reverse")), **view}
        for name in fields_of(page, monkeypatch, **query):
            if value := greatest(name):
                silence.longest = 0.0
                open_page(page, **query | {name: value})
                assert silence.longest <= MOST / PART.get(name, 1), (view, name, value)


def test_a_page_measures_behind_itself(silence: Silence) -> None:
    """The same by day, with less to do: two masks on so many sequences are three times what is allowed here."""
    open_page("masks", run="reverse", mask="full", sequences="1024")
    assert silence.longest <= MOST / 20
