"""What the pages about a model that is not ours say is true of it, by Hugging Face's own library."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dashboard.app_pages.your_model.ablation import words
from tests.kit import claims
from tests.kit.claims import LAWS
from tests.kit.claims.foreign import Foreign
from tests.kit.claims.laws import your_model
from tests.kit.foreign.folders import saved
from tests.kit.pages import open_page, shown
from transformer.foundation.claims import Claim

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("GPT2LMHeadModel", {}),
    "one-head": ("GPT2LMHeadModel", {"n_layer": 1, "n_head": 1}),
    "loud": ("GPT2LMHeadModel", {"initializer_range": 1.0}),
    "still": ("GPT2LMHeadModel", {"initializer_range": 0.0}),
    "bert": ("BertModel", {}),
    "llama": ("LlamaForCausalLM", {}),
    "classes": ("BertForSequenceClassification", {}),
}
KING, SAME, ONE = "The king is dead, long live the king, the king!", "a a a a a a", "a"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models of a list of their own, which the folder's fixture puts on the server's."""
    root = tmp_path_factory.mktemp("claims")
    for name, (kind, more) in MODELS.items():
        saved(kind, root / name, **more)
    return root


def links(world: Foreign) -> dict[str, str]:
    """What a link says of these changes."""
    stack = "encoder" if "Bert" in type(world.model).__name__ else "decoder"
    removed = ",".join(f"{stack}.{layer}.self_attention.{head}" for layer, head in world.removed)
    named = {"removed": removed, "seen_mask": "causal" * world.causal}
    return {name: value for name, value in named.items() if value}


def false_of(page: str, worlds: list[Foreign], heard: list[Claim]) -> list[str]:
    """What a page says that is false of these models, each title of it that is no claim, and each form never said."""
    false, prefix = [], f"app_pages/your_model/{page}/"
    for world in worlds:
        heard.clear()
        app = open_page(page, imported=world.folder.name, imported_input=world.text, **links(world))
        assert not app.warning, [shown(each.value) for each in app.warning]
        where = f"{world.folder.name}, {world.text!r}, {links(world)}"
        said = {each.sentence for each in heard}
        false += [f"{where}: no claim: {title}" for each in app.title if (title := shown(each.value)) not in said]
        for each in dict.fromkeys(each for each in heard if each.name.startswith(prefix)):
            try:
                claims.judge(world, each)  # type: ignore[arg-type]
            except AssertionError as error:
                false.append(f"{where}: {each.sentence!r}\n    {str(error)[:400]}")
    return false


def never_said(page: str, but: tuple[Callable[..., None], ...] = ()) -> list[str]:
    """The forms of a page's claims that were not met, `but` for those of these laws."""
    return [
        law.called
        for name, laws in LAWS.items()
        if name.startswith(f"app_pages/your_model/{page}/")
        for law in laws
        if not law.met and law.holds not in but
    ]


def test_what_is_said_of_its_layers_is_true(models: Path, heard: list[Claim]) -> None:
    asked = [("gpt2", KING), ("gpt2", SAME), ("gpt2", ONE), ("loud", KING), ("loud", ONE), ("llama", KING)]
    asked += [("bert", KING), ("one-head", KING), ("one-head", ONE), ("still", KING)]
    false = false_of("stream", [Foreign(models / name, text) for name, text in asked], heard)
    assert not false, "\n".join(false)
    assert not never_said("stream")


def test_what_is_said_of_its_heads_is_true(models: Path, heard: list[Claim]) -> None:
    texts = [KING, SAME, ", , , ,", "ab", "The king"]
    worlds = [Foreign(models / name, text) for name in ("gpt2", "loud", "bert", "llama") for text in texts]
    worlds += [Foreign(models / "one-head", text) for text in (KING, "ab")]
    false = false_of("imported", worlds, heard)
    assert not false, "\n".join(false)
    assert not never_said("imported")


def test_what_is_said_of_its_attention_changed_is_true(models: Path, heard: list[Claim]) -> None:
    worlds = [
        Foreign(models / "gpt2", KING, ((1, 3),)),
        Foreign(models / "gpt2", ONE, ((1, 3),)),
        Foreign(models / "loud", KING, ((0, 1), (1, 3))),
        Foreign(models / "loud", SAME, ((0, 0), (0, 1), (0, 2), (1, 3))),
        Foreign(models / "llama", KING, ((0, 1),)),
        Foreign(models / "one-head", KING, ((0, 0),)),
        Foreign(models / "still", KING, ((0, 0),)),
        Foreign(models / "bert", KING, ((0, 1),)),
        Foreign(models / "bert", KING, (), causal=True),
        Foreign(models / "bert", KING, ((1, 0),), causal=True),
        Foreign(models / "classes", KING, ((1, 0),)),
    ]
    false = false_of("ablation", worlds, heard)
    assert not false, "\n".join(false)
    assert not never_said("ablation", but=(your_model.many_change_as_much, your_model.is_not_compared))


def test_heads_that_come_out_alike_are_counted() -> None:
    labels = ["0.0", "0.1", "0.2", "0.3", "0.4"]
    costs = np.array([0.0201, 0.0203, 0.0, 0.0202, 0.0199])
    said = words.removal_sentence(labels, costs, "nats")
    assert said.startswith("Removing any of 4 of the 5 heads alone changes the model’s own output most, by 0.020 nats")
    said = words.removal_sentence(labels[:3], costs[:3], "nats")
    assert said.startswith("Removing head 0.0 or 0.1 alone changes the model’s own output most, by 0.020 nats")


def test_what_cannot_be_compared_has_no_number() -> None:
    look: Any = SimpleNamespace(answer=None)
    said = words.headline(look, look, "Without head 0.1")
    assert said == (
        "Without head 0.1 the model was asked again. Its output is neither logits nor vectors, so it is not compared."
    )
    assert words.amount_sentence(look, look) == ""
