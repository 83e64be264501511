"""Folders of models that are not ours, on the server's list."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.foreign.folders import saved

MODELS = {
    "small-gpt2": "GPT2LMHeadModel",
    "small-bert": "BertModel",
    "small-t5": "T5ForConditionalGeneration",
    "small-vit": "ViTModel",
    "small-llama": "LlamaForCausalLM",
}


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("models")
    for name, kind in MODELS.items():
        saved(kind, root / name)
    return root


@pytest.fixture(autouse=True)
def _listed(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The models are on the list by ATTENTION_LAB_MODELS; what is brought in is written in the folder of the test."""
    monkeypatch.setenv("ATTENTION_LAB_MODELS", str(models))
    monkeypatch.delenv("ATTENTION_LAB_MODULE", raising=False)
    monkeypatch.setattr("dashboard.models.imported.place", lambda: tmp_path / "imported.json")
