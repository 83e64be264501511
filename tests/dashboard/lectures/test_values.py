"""The numbers of a view that a lecture can say, beside the same numbers worked out from the raw weights."""

from __future__ import annotations

import json
import lzma

import numpy as np
import pytest
import torch

from dashboard.lectures.values import NAMES, NUMBERS, ViewValues
from dashboard.view.link import View
from tests.kit.pages import PI, ROOT, SEP, network
from transformer.observation import observe

HEAD = "decoder.0.self_attention.2"


@pytest.fixture(scope="module")
def values() -> ViewValues:
    return ViewValues(View(run="reverse"))


@pytest.fixture(scope="module")
def seen() -> dict[str, torch.Tensor]:
    model, _ = network("reverse")
    return observe(model, torch.tensor([[*PI, SEP, *PI[::-1][:-1]]]))


def test_shapes_and_counts_are_the_configs(values: ViewValues) -> None:
    model, config = network("reverse")
    expected = {
        "layers": config.model.n_layers,
        "heads": config.model.n_heads,
        "d_model": config.model.d_model,
        "d_head": config.model.d_model // config.model.n_heads,
        "parameters": sum(each.numel() for each in model.parameters()),
        "length": 8,
        "tokens": 16,
        "symbols": 10,
        "vocabulary": 12,
        "chance": 0.1,
        "right": 8,
    }
    assert {name: values[name] for name in expected} == expected


def test_what_was_measured_is_what_the_run_keeps(values: ViewValues) -> None:
    kept = json.loads((ROOT / "checkpoints/reverse/evaluation.json").read_text())
    shares = [count / kept["sequences"] for count in kept["correct"]]
    assert values["second_half"] == pytest.approx(kept["second_half"])
    assert [values["accuracy"](place) for place in range(1, len(shares) + 1)] == pytest.approx(shares)
    first = (ROOT / "checkpoints/reverse/metrics.jsonl").read_text().splitlines()[0]
    assert values["loss"](1) == json.loads(first)["loss"]


def test_a_head_is_read_cell_by_cell(values: ViewValues, seen: dict[str, torch.Tensor]) -> None:
    pattern = seen["decoder.0.self_attention.pattern"][0, 2]
    for query, key in ((9, 8), (16, 1), (3, 3)):
        assert values["weight"](HEAD, query, key) == pytest.approx(float(pattern[query - 1, key - 1]), abs=1e-6)
    assert values["most"](HEAD, 9) == int(pattern[8].argmax()) + 1 == 8
    query, key = (seen[f"decoder.0.self_attention.{name}"][0, 2] for name in ("query", "key"))
    scaled = float(query[8] @ key[7]) / values["d_head"] ** 0.5
    assert values["score"](HEAD, 9, 8) == pytest.approx(scaled, rel=1e-5)
    assert values["weight"]("", 9, 8) == values["weight"](
        HEAD, 9, 8
    )  # no name is the one that looks most at the answer


def test_tokens_and_what_is_said(values: ViewValues) -> None:
    assert [values["token"](place) for place in (1, 8, 9)] == ["3", "6", "SEP"]
    assert values["predicted"](9) == "6"


def test_masks_are_measured_and_counted(values: ViewValues) -> None:
    assert values["known_under"]("causal") == 8
    assert values["known_under"]("hide:3") == 7
    assert values["under"]("causal", "second half") == pytest.approx(values["second_half"], abs=0.01)
    assert values["ceiling"](1) == pytest.approx(0.1)
    assert values["ceiling"](8) == 1


def test_positions_are_compared_by_the_formula(values: ViewValues) -> None:
    waves = ViewValues(View(run="reverse-sinusoidal"))
    places, pairs = np.arange(16)[:, None], np.arange(32)[None, :]
    turned = places / 10_000 ** (2 * pairs / 64)
    table = np.stack([np.sin(turned), np.cos(turned)], axis=-1).reshape(16, 64)
    for one, other in ((8, 9), (1, 16), (3, 3)):
        expected = table[one - 1] @ table[other - 1] / 32
        assert waves["cosine"](one, other) == pytest.approx(expected, abs=1e-6)
    learned = network("reverse")[0].state_dict()
    table = next(value.numpy() for name, value in learned.items() if "position" in name and value.shape == (16, 64))
    one, other = table[7], table[8]
    expected = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
    assert values["cosine"](8, 9) == pytest.approx(float(expected), abs=1e-6)


def test_lengths_and_bags_are_those_that_are_shipped(values: ViewValues) -> None:
    kept = json.loads(lzma.decompress((ROOT / "checkpoints/lengths.json.xz").read_bytes()))
    whole = [trial["exact"][7] for trial in kept["trials"] if trial["positions"] == "alibi"]
    assert values["whole"]("alibi", 8) == pytest.approx(np.mean(whole) / kept["sequences"])
    assert values["bag"] == pytest.approx(0.3996, abs=1e-4)  # the open bars of "Five questions", counted in test_bags
    with pytest.raises(ValueError, match="no encoding “nope” was measured"):
        values["whole"]("nope", 8)


def test_another_run_is_asked_by_its_name(values: ViewValues) -> None:
    assert values["of"]("reverse-sinusoidal", "step") == 160


def test_every_name_is_told_of(values: ViewValues) -> None:
    assert sorted(values) == sorted((*NUMBERS, *NAMES))
    assert len(values) == len(NUMBERS) + len(NAMES)
    assert "weight" in values
    assert "nope" not in values


@pytest.mark.parametrize(
    ("view", "said"),
    [
        (View(run="nowhere"), "there is no run “nowhere”"),
        (View(run="reverse", step=3), "reverse has no weights of step 3"),
        (View(run="reverse", input="3 x"), "x"),
    ],
)
def test_what_a_view_cannot_have_is_one_sentence(view: View, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ViewValues(view)


@pytest.mark.parametrize(
    "ask",
    [
        lambda values: values["weight"]("decoder.9.self_attention.0", 1, 1),
        lambda values: values["weight"]("decoder.0.self_attention.9", 1, 1),
        lambda values: values["weight"]("nonsense", 1, 1),
        lambda values: values["weight"](HEAD, 0, 1),
        lambda values: values["weight"](HEAD, 1.5, 1),
        lambda values: values["accuracy"](99),
        lambda values: values["loss"](7777),
        lambda values: values["perplexity"],
    ],
)
def test_what_is_not_there_is_an_error_that_a_sentence_is_made_of(values: ViewValues, ask) -> None:
    with pytest.raises((ValueError, IndexError)):
        ask(values)
