"""The shipped reader is what its files say: it beats models that count, and its words are the excerpt's."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from dashboard.app_pages.text.reading.words import whole_sentence
from transformer import checkpoints
from transformer.text.corpus import Excerpt
from transformer.text.perplexity import COUNTING
from transformer.training.runs import Run

FOLDER = Path(__file__).parents[2] / "checkpoints" / "shakespeare"
MOST_BYTES = 6_000_000


@pytest.fixture(scope="module")
def run() -> Run:
    return Run(FOLDER)


@pytest.fixture(scope="module")
def baselines() -> dict:
    return json.loads((FOLDER / "evaluation.json").read_text())["baselines"]


def test_it_beats_the_models_that_count_on_the_same_tokens(run, baselines):
    """benchmarks/language.py wrote them down, for these weights and this text."""
    assert baselines["snapshot"] == run.digest()
    assert baselines["tokens"] == run.evaluation["read"]
    assert run.evaluation["perplexity"] < min(baselines[name] for name in COUNTING)
    assert baselines["5-gram"] < baselines["trigram"] < baselines["unigram"]


def test_its_perplexity_measured_anew_on_some_of_its_excerpt(run, baselines):
    """Four windows of each work that was held out; 6,144 tokens settle it to about 4 %."""
    excerpt, (model, config) = Excerpt.load(FOLDER / "text.npz"), checkpoints.load(run.snapshot())
    length, separator = config.task.length, len(excerpt.vocabulary.tokens) + 1
    nats = []
    for work in excerpt.held_out:
        for start in range(0, 4 * length, length):
            window = torch.from_numpy(work[start : start + length])
            with torch.no_grad():
                said = model(torch.cat([torch.tensor([separator]), window[:-1]])[None])[0]
            nats += functional.cross_entropy(said, window, reduction="none").tolist()
    assert len(nats) == 12 * 512
    assert math.exp(np.mean(nats)) == pytest.approx(run.evaluation["perplexity"], rel=0.12)
    assert math.exp(np.mean(nats)) < baselines["5-gram"]


def test_its_excerpt_is_of_whole_works_that_were_held_out(run):
    excerpt = Excerpt.load(FOLDER / "text.npz")
    assert sum(excerpt.vocabulary.counts) == excerpt.sizes[0]  # the vocabulary is of what was learned from, all of it
    assert run.evaluation["read"] <= excerpt.sizes[1]
    assert min(excerpt.vocabulary.counts) >= run.config.task.min_count
    assert len(excerpt.titles) == len(set(excerpt.titles)) == 3


def test_its_weights_are_small_enough_to_travel(run):
    assert run.snapshot().stat().st_size <= MOST_BYTES


def test_its_page_says_what_its_card_does(run):
    """And names no baseline that was measured on other weights, or on other tokens."""
    card = run.evaluation
    said = whole_sentence(card, 0.5)
    assert said.startswith("Perplexity 21.1 over 161,792 held-out tokens, in windows of 512. ")
    assert (card["read"], round(card["perplexity"], 1)) == (161_792, 21.1)
    for name, value in {"10-gram": 27.08, "5-gram": 27.09, "trigram": 28.11, "unigram": 120.65}.items():
        assert card["baselines"][name] == pytest.approx(value, abs=0.005)
        assert f"{value} for a {name}" in said
    for wordless in (0.5, 0.0):  # of the tokens that an n-gram sees before the next one so many are words
        five, ten = ((n - 1) * (1 - wordless) for n in (5, 10))
        assert f"a 5-gram sees {five:.1f} words and a 10-gram sees {ten:.1f} words" in whole_sentence(card, wordless)
    lacks = {name: value for name, value in card["baselines"].items() if name != "7-gram"}
    for other in ({"snapshot": "another"}, {"read": 1}, {"baselines": lacks}):
        assert "gram" not in whole_sentence(card | other, 0.5)


@pytest.mark.parametrize(
    ("best", "words"),
    [
        ("8-gram", "28.11 for a trigram, 27.09 for a 5-gram and 20.00 for an 8-gram, the best of orders 3 to 10"),
        ("5-gram", "120.65 for a unigram, 28.11 for a trigram and 20.00 for a 5-gram, the best"),
        ("trigram", "120.65 for a unigram, 27.09 for a 5-gram and 20.00 for a trigram, the best"),
    ],
)
def test_the_best_order_is_the_card_s(run, best, words):
    said = whole_sentence(run.evaluation | {"baselines": run.evaluation["baselines"] | {best: 20.0}}, 0.5)
    assert words in said
    assert said.count("sees") == (1 if best == "5-gram" else 2)


def test_half_of_its_tokens_are_no_words(run):
    """Counted here in all of the excerpt's held-out passages that are drawn, letter by letter."""
    from dashboard.app_pages.text.reading import measured
    from dashboard.models.menu import menu
    from dashboard.models.model import Model

    model = Model.of(menu()[run.name], max(run.snapshots()))
    assert measured.wordless(model) == pytest.approx(0.5, abs=0.02)
