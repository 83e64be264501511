"""Every page speaks of a stranger's encoding and norm as these do themselves, and gives them no other's words."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from dashboard.app_pages.whole_model.block import sections
from dashboard.frame.glossary import TERMS
from dashboard.view.pages import PAGES
from tests.kit import strangers
from tests.kit.pages import open_page, sentences, shown
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.norms import NORMS
from transformer.positions import ENCODINGS, described
from transformer.presets import PRESETS
from transformer.training.recording import develop, record
from transformer.training.runs import Run

PAIRS = {
    "by-distance": ("by-distance", "one-gain", "pre"),
    "random-table": ("random-table", "no-gain", "post"),
    "half-turned": ("half-turned", "shift-only", "pre"),
    "gate": ("gate", "mean-absolute", "post"),
    "length": ("random-table", "euclidean", "pre"),
}
"""Encodings and norms of strangers that meet in a model, and where the norm stands."""
OWN_MODELS = {"lengths", "bottleneck", "corners", "context", "questions", "mistakes", "lectures", "exercises", "check"}
"""Pages that speak of models of their own, or of those of lectures and exercises, and not of the one that is chosen."""
HEAD = "decoder.0.self_attention.1"
VIEWS: dict[str, list[dict[str, Any]]] = {
    "machine": [{}, {"zoom": "block"}, {"zoom": "head", "head": HEAD}],
    "block": [{"part": part.name} for part in sections.PARTS],
    "inside": [{"operation": each} for each in ("query", "keys", "dot", "scale", "bias", "add")],
    "heads": [{}, {"mean": "1"}],
    "order": [{}, {"order": "unplaced"}],
    "masks": [{"live": "0"}],
    "edits": [{}, {"edits": f"zero:{HEAD}"}],
    "accuracy": [{"depth": depth} for depth in ("head", "confusion", "length", "hardest")],
    "layers": [{}, {"likeliest": "1"}],
}
"""More of a page than its address alone shows."""
ANOTHERS = re.compile(
    r"\bALiBi|\brotary|sinusoid|\blearned (?:positions?|table|vector)|(?-i:\bPE_)|\bm_h|b\^\{|LayerNorm|RMSNorm"
    r"|\\mathrm\{(?:LN|RMS)|root mean square|\bRMS\b|\b(?:the|and) spread (?:is|σ|[-−\d])|÷ spread|\bnan\b",
    re.IGNORECASE,
)
"""Words and formulas of shipped encodings and norms; and what stands where a number should."""


OF_OTHER_MODELS = re.compile(
    r"\(\?[<.]|positions: |Trains it with learned positions, and without|Variants of what the training panel describes"
    r"|learned positions or none$|attention-lab sweep |Sinusoidal waves\. This model's: |run=mine&encoding=sinusoidal$"
)
"""How patterns of the glossary begin, and sentences about models that could be trained."""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """What makes a folder of runs with one of a pair, after 40 steps."""
    return lru_cache(lambda pair: train(tmp_path_factory.mktemp(pair), *PAIRS[pair]))


def train(folder: Path, positions: str, norm_kind: str, norm: str) -> Path:
    model = ModelConfig(n_layers=2, n_heads=2, d_model=32, d_ff=32, positions=positions, norm_kind=norm_kind, norm=norm)
    settings = TrainingConfig(max_steps=40, device="cpu")
    run = Run.create(folder / "mine", RunConfig(task=TaskConfig(length=5), model=model, training=settings))
    for _ in record(run):
        pass
    assert develop(run)
    return run.folder.parent


@pytest.fixture
def pair(request: pytest.FixtureRequest, trained: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> str:
    """A pair; the menu holds one model of it."""
    strangers.lend(monkeypatch, ENCODINGS, *strangers.ENCODINGS)
    strangers.lend(monkeypatch, NORMS, *strangers.NORMS)
    monkeypatch.setattr("dashboard.models.menu.ROOT", trained(request.param))
    monkeypatch.setattr("dashboard.models.menu.FIRST", "mine")
    monkeypatch.setattr("dashboard.view.session.BEHIND", 0.0)
    return request.param


def in_menus() -> set[str]:
    """What menus and the glossary offer, and the help beside them."""
    encodings, norms = map(described, ENCODINGS.names()), [NORMS[name] for name in NORMS.names()]
    return (
        {each.title for each in (*encodings, *norms)}
        | {term.meaning for term in TERMS}
        | {each.name for each in PRESETS}
        | {
            "\n\n".join(f"{norm.title} {norm.description}." for norm in norms),
            " ".join(f"{norm.title} {norm.description}." for norm in norms),
        }
    )


@pytest.mark.daily(8)
@pytest.mark.parametrize("page", sorted(PAGES.keys() - OWN_MODELS))
@pytest.mark.parametrize("pair", PAIRS, indirect=True)
def test_no_page_gives_an_encoding_or_a_norm_the_words_of_another(pair: str, page: str) -> None:
    positions, norm_kind, _ = PAIRS[pair]
    encoding, norm = described(positions), NORMS[norm_kind]
    said: set[str] = set()
    for view in VIEWS.get(page, [{}]):
        app = open_page(page, run="mine", **view)
        assert not app.exception
        said |= sentences(app)
    others = {text for text in said - in_menus() if ANOTHERS.search(text) and not OF_OTHER_MODELS.match(text)}
    assert not others
    whole = shown(" ".join(said))
    for words in OWN_WORDS.get(page, lambda *_: ())(encoding, norm):
        assert shown(words) in whole


OWN_WORDS: dict[str, Callable[..., tuple[str, ...]]] = {
    "machine": lambda encoding, norm: (encoding.does, norm.title, norm.description),
    "positions": lambda encoding, norm: (encoding.description[1:], encoding.does if encoding.told != "vectors" else ""),
    "block": lambda encoding, norm: (norm.title, norm.formula, norm.size_name, f"The {encoding.title} positions"),
}
"""What a page says in their own words."""
