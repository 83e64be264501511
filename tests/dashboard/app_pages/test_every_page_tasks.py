"""Every page speaks of the task as the task itself does: of each that is shipped, and of three that strangers wrote.

What a task says, its law, its verb and its parts, is renamed, so that no word can come from elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from dashboard.view.pages import PAGES
from tests.kit import strangers
from tests.kit.pages import open_page, sentences, shown
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.presets import PRESETS
from transformer.tasks import TASKS, Task
from transformer.training.recording import develop, record
from transformer.training.runs import Run

SHIPPED = TASKS.names()
OWN_MODELS = {"lengths", "bottleneck", "corners", "context", "questions", "mistakes", "lectures", "exercises"}
"""Pages that speak of models of their own, or of those of lectures and exercises, and not of the one that is chosen."""
VIEWS: dict[str, list[dict[str, str]]] = {
    "masks": [{"live": "0"}, {"live": "0", "mask": "full"}],
    "edits": [{}, {"edits": "zero:{stack}.0.self_attention.0"}],
    "accuracy": [{"depth": depth} for depth in ("head", "confusion", "length", "hardest")],
    "layers": [{}, {"likeliest": "1"}],
    "heads": [{}, {"mean": "1"}],
    "runs": [{}, {"measure": "loss"}],
    "order": [{"order": "swap:1,3"}],
}
"""More of a page than its address alone shows."""
LAW, VERB, PARTS = "each token zibbled", "zibbles", ("front bit", "back bit")
ANOTHERS = re.compile(
    r"\breverses\b|\breversals?\b|\bto reverse\b|(?<!forwards or )\bbackwards\b|\bdoubles\b|\bIt (?:copies|sorts)\b"
    r"|\b(?:first|second) half\b(?! of [\d,]+ )|\bhalves\b|\bdigits?\b|\b0 to [a-z]\b|\bnan\b",
    re.IGNORECASE,
)
"""Words of tasks that a page may not know; and what stands where a number should."""
OWN_WORDS = {
    "overview": "zibble",
    "machine": "symbols, 0 to 9 and a to b.",
    "accuracy": f"{LAW[0].upper()}{LAW[1:]}.",
    "masks": f"the {PARTS[-1]} stands at",
    "edits": f"the {PARTS[-1]} stands at",
    "runs": f"Accuracy of the {PARTS[-1]}",
}
"""What a page says in the task's own words."""
PRESET_WORDS = {f"{each.description[0].upper()}{each.description[1:]}." for each in PRESETS}
"""What the presets of the training panel say of themselves."""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """What makes a folder of runs with one of a task, after 60 steps."""
    return lru_cache(lambda task: train(tmp_path_factory.mktemp(task), task))


def train(folder: Path, task: str) -> Path:
    model = ModelConfig(n_layers=2, n_heads=2, d_model=32, d_ff=32)
    settings = TrainingConfig(max_steps=60, device="cpu")
    run = Run.create(
        folder / "mine",
        RunConfig(task=TaskConfig(task=task, length=5, symbols=12), model=model, training=settings),
    )
    for _ in record(run):
        pass
    assert develop(run)
    return run.folder.parent


@pytest.fixture
def renamed(
    request: pytest.FixtureRequest, trained: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> type[Task]:
    """A task whose law, verb and parts are no words of anybody else; the menu holds one model of it."""
    strangers.lend(monkeypatch, TASKS, *strangers.TASKS)
    kind = TASKS[request.param]
    monkeypatch.setattr("dashboard.models.menu.ROOT", trained(request.param))
    monkeypatch.setattr(kind, "law", LAW)
    monkeypatch.setattr(kind, "verb", VERB)
    monkeypatch.setattr(kind, "aim", "zibble them")
    monkeypatch.setattr(kind, "parts", PARTS[-len(kind.parts) :])
    monkeypatch.setattr("dashboard.models.menu.FIRST", "mine")
    return kind


def opened(kind: type[Task], page: str, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """All that a page says of the model, in all its views."""
    monkeypatch.setattr("dashboard.view.session.BEHIND", 0.0)
    stack = "encoder" if kind.architectures[0] == "encoder" else "decoder"
    found: set[str] = set()
    for view in VIEWS.get(page, [{}]):
        query: dict[str, Any] = {name: value.format(stack=stack) for name, value in view.items()}
        app = open_page(page, run="mine", **query)
        assert not app.warning, [shown(each.value) for each in app.warning]
        found |= sentences(app)
    return found - PRESET_WORDS


@pytest.mark.daily(6)
@pytest.mark.parametrize("page", sorted(PAGES.keys() - OWN_MODELS))
@pytest.mark.parametrize("renamed", [*strangers.TASKS, *SHIPPED], indirect=True)
def test_no_page_names_a_verb_a_part_or_a_symbol_that_the_task_did_not_give(
    renamed: type[Task], page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = opened(renamed, page, monkeypatch)
    assert not {text for text in said if ANOTHERS.search(text)}
    whole = " ".join(said)
    for page_of, words in OWN_WORDS.items():
        assert page != page_of or words in whole
