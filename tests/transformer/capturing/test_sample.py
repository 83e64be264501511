"""The sample of *Your model*: what it is, its attention by NumPy, and that it has learned something."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from transformer import capture
from transformer.capturing.modules import built
from transformer.capturing.sample import BUILT, WEIGHTS, WORDS
from transformer.capturing.sample.reader import HEADS, LAYERS, TOKENS, WIDTH, WINDOW, Words, build
from transformer.text.corpus import Excerpt

EXCERPT = Path(__file__).parents[3] / "checkpoints" / "shakespeare" / "text.npz"
TEXT = "The king said to the queen that the king was dead."


def layer_norm(x: np.ndarray, weights: dict[str, np.ndarray], name: str) -> np.ndarray:
    """A layer norm, as its paper has it (Ba et al. 2016, eq. 3)."""
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def by_hand(tokens: list[int]) -> tuple[list[np.ndarray], np.ndarray]:
    """The patterns [head, query, key] of each layer, and the logits, from the raw weights in double precision."""
    weights = {name: each.astype(np.float64) for name, each in load_file(WEIGHTS).items()}
    n, width = len(tokens), WIDTH // HEADS
    x = weights["words.weight"][tokens] + weights["places.weight"][:n]
    patterns = []
    for layer in range(LAYERS):
        at = f"stack.layers.{layer}"
        read = layer_norm(x, weights, f"{at}.norm1")
        joined = read @ weights[f"{at}.self_attn.in_proj_weight"].T + weights[f"{at}.self_attn.in_proj_bias"]
        query, key, value = joined.reshape(n, 3, HEADS, width).transpose(1, 2, 0, 3)
        scores = np.where(np.tril(np.ones((n, n), bool)), query @ key.swapaxes(1, 2) / np.sqrt(width), -np.inf)
        weighed = np.exp(scores - scores.max(-1, keepdims=True))
        patterns.append(weighed / weighed.sum(-1, keepdims=True))
        z = (patterns[-1] @ value).transpose(1, 0, 2).reshape(n, WIDTH)
        x = x + z @ weights[f"{at}.self_attn.out_proj.weight"].T + weights[f"{at}.self_attn.out_proj.bias"]
        read = layer_norm(x, weights, f"{at}.norm2")
        hidden = np.maximum(read @ weights[f"{at}.linear1.weight"].T + weights[f"{at}.linear1.bias"], 0)
        x = x + hidden @ weights[f"{at}.linear2.weight"].T + weights[f"{at}.linear2.bias"]
    return patterns, layer_norm(x, weights, "norm") @ weights["words.weight"].T


@torch.no_grad()
@pytest.mark.numerical
def test_its_attention_and_its_logits_are_those_of_its_raw_weights() -> None:
    model, words = build()
    tokens = words.encode(TEXT)
    patterns, logits = by_hand(tokens)
    seen = capture(model, torch.tensor([tokens]))
    sites = seen.attentions()
    assert len(sites) == LAYERS
    for site, pattern in zip(sites, patterns, strict=True):
        np.testing.assert_allclose(seen[f"{site}.pattern"][0], pattern, atol=1e-5)
    np.testing.assert_allclose(model(torch.tensor([tokens]))[0], logits, atol=1e-4 * np.abs(logits).max())


def test_it_is_opened_as_any_module_is() -> None:
    one = built(BUILT)
    given = one.given(TEXT)
    assert one.says == "text"
    assert [one.word(token) for token in given.tokens][:3] == ["the", "king", "said"]
    assert one.longest == WINDOW


def test_its_files_are_small_and_its_words_are_told_apart() -> None:
    words = json.loads(WORDS.read_bytes())
    assert len(words) == len({*words}) == TOKENS - 1
    assert WEIGHTS.stat().st_size + WORDS.stat().st_size < 700_000
    made = Words(words)
    assert made.decode(made.encode("The KING, xyzzy")) == "the king , ⟨unk⟩"


@torch.no_grad()
def test_it_has_learned_more_than_how_common_each_word_is() -> None:
    """On three plays: a token costs it at least 0.7 nats less than their own frequencies do."""
    model, words = build()
    excerpt = Excerpt.load(EXCERPT)
    text = "\n".join(excerpt.vocabulary.decode(part) for part in excerpt.held_out)
    tokens = words.encode(text)
    counts = Counter(tokens)
    alone = -sum(count * np.log(count / len(tokens)) for count in counts.values()) / len(tokens)
    windows = torch.tensor(tokens[: len(tokens) // WINDOW * WINDOW]).view(-1, WINDOW)
    logits = model(windows[:, :-1])
    cost = torch.nn.functional.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())
    assert cost < alone - 0.7


def test_it_refuses_more_than_it_reads() -> None:
    model, _ = build()
    with pytest.raises(ValueError, match="at most 64 tokens, not 65"):
        model(torch.zeros(1, WINDOW + 1, dtype=torch.long))
