"""The shipped runs are what their cards say: measured anew, on sequences and excerpts that nobody has used before."""

import json
import math
from dataclasses import asdict

import numpy as np
import pytest
import torch
from torch.nn import functional

from dashboard.app_pages.text.reading import measured
from dashboard.app_pages.text.reading.words import whole_sentence
from dashboard.models.menu import menu
from dashboard.models.model import Model
from tests.kit.checkout import ROOT, tracked
from tests.kit.numbers.rounding import near_count
from tests.kit.pages import laid_out
from transformer import checkpoints
from transformer.analysis.accuracy import ceilings
from transformer.analysis.accuracy.by_position import accuracy_by_position
from transformer.analysis.film.film import Film
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.experiments.populations.table import Population
from transformer.model import build
from transformer.text.corpus import Excerpt
from transformer.text.perplexity import COUNTING
from transformer.training.runs import Control, Run

FOLDER = ROOT / "checkpoints"
SOLVED = (
    "reverse",
    "reverse-any",
    "reverse-aligned",
    "reverse-aligned-causal",
    "reverse-sinusoidal",
    "reverse-translate",
)
TRIO = ("bottleneck-gru", "bottleneck-gru-attention", "bottleneck-transformer")
"""They take as many steps as each other, however far that brings them."""
READER = "shakespeare"
"""It has no law to be measured by."""
SEQUENCES = 4096
MOST_BYTES, MOST_BYTES_OF_THE_READER = 18_000_000, 6_000_000


@pytest.fixture(params=(*SOLVED, *TRIO))
def run(request) -> Run:
    return Run(FOLDER / request.param)


def test_these_runs_are_shipped_and_no_others():
    cards = {path.parent.name for path in tracked() if path.name == "run.json"}
    assert cards == {*SOLVED, *TRIO, READER}


@pytest.mark.nightly
@pytest.mark.parametrize("length", range(1, 9))
def test_the_run_on_the_first_page_answers_one_to_eight_digits(length: int) -> None:
    """The whole answer, which it writes by itself, in at least 0.99 of 4,096 sequences of each length."""
    model, config = checkpoints.load(Run(FOLDER / "reverse-any").snapshot())
    questions = np.random.default_rng([20_261_127, length]).integers(0, 10, (SEQUENCES, length))
    separator = np.full((SEQUENCES, 1), config.build_task().separator)
    tokens = torch.from_numpy(np.concatenate([questions, separator], axis=1))
    with torch.no_grad():
        for _ in range(length):
            tokens = torch.cat([tokens, model(tokens)[:, -1:].argmax(-1)], dim=1)
    right = (tokens[:, length + 1 :].numpy() == questions[:, ::-1]).all(axis=1)
    assert right.mean() >= 0.99


@pytest.mark.nightly
def test_it_reaches_what_its_card_says_on_fresh_sequences(run):
    """Within the sum of both uncertainties: four standard errors, and 0.005 where all is right."""
    model, config = checkpoints.load(run.snapshot())
    card = run.evaluation
    question = np.random.default_rng([20_261_121, 99]).integers(0, 10, (SEQUENCES, config.task.length))
    tokens, source, targets = laid_out(config, question)
    with torch.no_grad():  # a recurrent one reads what it said itself
        said = model.greedy(source, int(tokens[0, 0])) if model.config.recurrent else model(tokens, source).argmax(-1)
    right = said.numpy() == targets

    def room(share: float) -> float:
        return max(4 * math.sqrt(share * (1 - share) * (1 / SEQUENCES + 1 / card["sequences"])), 0.005)

    for position, share in enumerate(card["accuracy_by_position"]):
        assert abs(right[:, position].mean() - share) <= room(share), card["positions"][position]
    answer, exact = right[:, -config.task.length :], card["exact_match"]
    if run.name in TRIO:
        assert abs(answer.all(axis=1).mean() - exact) <= room(exact)
    elif config.model.mask == "full" or config.task.task != "reverse-aligned":
        assert answer.mean() >= 0.999
        assert abs(answer.all(axis=1).mean() - exact) <= 0.005


@pytest.mark.parametrize("name", SOLVED)
def test_its_card_says_what_it_shows(name):
    """The story that the README tells with it: what can be known is, what cannot is guessed."""
    run = Run(FOLDER / name)
    card = run.evaluation
    shares = list(zip(card["positions"], card["accuracy_by_position"], strict=True))
    first, second = ([share for name, share in shares if name[0] == letter] for letter in "xy")
    if run.name == "reverse-aligned-causal":
        first, second = second[:4], second[4:]
    assert card["chance"] == 0.1
    assert min(second) >= 0.999
    # Who is not told the length guesses its end in place of a digit: no question of the greatest length has it there.
    least = 0.08 if run.config.task.min_length is None else 0.0
    assert all(least <= share < 0.12 for share in first)
    assert card["second_half"] >= 0.999
    most = ceilings.ceiling(run.config).greatest
    assert (np.array(card["low"]) <= most).all()
    assert card.get("ceiling", most.tolist()) == most.tolist()
    holds = "second half 1.00, first half 0.10 = chance: the mask holds"
    known = "second half 1.00, first half 1.00: every answer can be known, and is"
    bridged = "answer from the source 1.00: every answer can be known, and is"
    unknown = "second half 1.00, first half 0.01 (random symbols, which can only be guessed): the mask holds"
    others = {"reverse-aligned": known, "reverse-translate": bridged, "reverse-any": unknown}
    assert card["verdict"] == others.get(run.name, holds)


def test_its_weights_are_those_that_were_measured(run):
    model, config = checkpoints.load(run.snapshot())
    assert checkpoints.weights_hash(model) == run.evaluation["weights"]
    assert all(torch.isfinite(weight).all() for weight in model.state_dict().values())
    assert config == run.config
    assert run.state.step == max(run.snapshots())


def test_its_film_begins_before_the_first_step(run):
    """Every snapshot loads, has the run's config, and the first is the untrained model of the run's seed.

    No file holds the first weights; that they are those that the training began with is what its film says below.
    """
    assert min(run.snapshots()) == 0
    for file in run.snapshots().values():
        _, config = checkpoints.load(file)
        assert config == run.config
    first, _ = checkpoints.load(run.snapshot(0))
    drawn = build(run.config).state_dict()
    for name, weight in first.state_dict().items():
        assert torch.allclose(weight, drawn[name], atol=1e-5), name
    assert checkpoints.weights_hash(first) != run.evaluation["weights"]
    assert run.snapshot(0).stat().st_size < 2_000


def test_its_card_is_complete(run):
    """Every setting is written down, none is "auto", and it says with what it was made.

    What a later version has added is what it was before there was a choice: its default.
    """
    card = json.loads((run.folder / "run.json").read_text())
    assert RunConfig.from_dict(card["config"]) == run.config
    parts = {"task": TaskConfig(), "model": ModelConfig(), "training": TrainingConfig()}
    assert card["config"].keys() == parts.keys()
    for part, defaults in parts.items():
        written, meant = card["config"][part], run.config.to_dict()[part]
        assert len(written) > 3
        assert meant == asdict(defaults) | written
    assert "auto" not in card["config"]["model"].values()
    assert card["config"]["training"]["device"] == "cpu"
    assert {"torch", "python"} <= set(card["versions"])
    assert card["device"]
    assert card["created"] > 0


def test_it_is_finished_and_its_metrics_go_to_the_end(run):
    assert run.state.status == "finished"
    lines = run.metrics()
    if run.name in TRIO:
        assert run.state.reason == f"all {run.config.training.max_steps} steps taken"
        assert run.state.step == run.config.training.max_steps
    else:
        assert run.state.reason.startswith(f"solved at step {run.state.step}, after ")
        assert lines[-1]["solved"]
    steps, every = range(1, run.state.step + 1), (25, run.config.training.evaluate_every)
    few = [step for step in steps if step == 1 or step >= steps[-20] or any(step % each == 0 for each in every)]
    assert [line["step"] for line in lines] == (few if len(steps) > 400 else [*steps])
    assert not any("solved" in line for line in lines[:-1])
    assert lines[-1]["accuracy"]
    assert lines[-1]["loss"] < lines[0]["loss"]
    assert run.control == Control()


def test_nothing_is_left_lying_about(run):
    files = {path.relative_to(run.folder).as_posix() for path in run.folder.rglob("*") if path.is_file()}
    snapshots = {f"snapshots/step-{step:06d}.safetensors" for step in run.snapshots()}
    kept = {"run.json", "state.json", "metrics.jsonl", "evaluation.json", "example.npz", "film.npz"}
    assert files == kept | snapshots
    assert run.state.host == ""


def test_its_film_is_of_its_own_weights_and_shows_more_steps_than_are_kept(run):
    film = Film.load(run.folder / "film.npz")
    assert film.snapshot == run.digest()
    assert set(run.snapshots()) <= set(film.steps.tolist())
    assert film.steps[[0, -1]].tolist() == [0, run.state.step]
    assert len(film.steps) >= 20
    for step in run.snapshots():
        model, config = checkpoints.load(run.snapshot(step))
        frame = film.steps.tolist().index(step)
        found = accuracy_by_position(model, config.build_task(), sequences=film.sequences)
        assert found.correct == near_count(film.correct[frame], film.sequences)


def test_the_population_is_tracked_whole_and_small():
    """What lies in checkpoints/ is tracked only where .gitignore says so."""
    folder = FOLDER / "encodings"
    assert set(tracked("checkpoints/encodings")) == set(folder.iterdir())
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 2_000_000
    found = Population.load(folder)
    assert len(found.rows) == found.planned == 320


def test_the_repository_is_small():
    """Everybody who clones it waits for every byte."""
    assert sum(path.stat().st_size for path in tracked()) <= MOST_BYTES


# --- the reader of a text


@pytest.fixture(scope="module")
def reader() -> Run:
    return Run(FOLDER / READER)


@pytest.fixture(scope="module")
def excerpt() -> Excerpt:
    return Excerpt.load(FOLDER / READER / "text.npz")


def test_the_reader_beats_the_models_that_count_on_the_same_tokens(reader):
    """benchmarks/language.py wrote them down, for these weights and this text."""
    baselines = reader.evaluation["baselines"]
    assert (baselines["snapshot"], baselines["tokens"]) == (reader.digest(), reader.evaluation["read"])
    assert reader.evaluation["perplexity"] < min(baselines[name] for name in COUNTING)
    assert baselines["5-gram"] < baselines["trigram"] < baselines["unigram"]


def test_its_perplexity_measured_anew_on_some_of_its_excerpt(reader, excerpt):
    """Four windows of each work that was held out; 6,144 tokens settle it to about 4 %."""
    model, config = checkpoints.load(reader.snapshot())
    length, separator = config.task.length, len(excerpt.vocabulary.tokens) + 1
    nats = []
    for work in excerpt.held_out:
        for start in range(0, 4 * length, length):
            window = torch.from_numpy(work[start : start + length])
            with torch.no_grad():
                said = model(torch.cat([torch.tensor([separator]), window[:-1]])[None])[0]
            nats += functional.cross_entropy(said, window, reduction="none").tolist()
    assert len(nats) == 12 * 512
    assert math.exp(np.mean(nats)) == pytest.approx(reader.evaluation["perplexity"], rel=0.12)
    assert math.exp(np.mean(nats)) < reader.evaluation["baselines"]["5-gram"]


def test_its_excerpt_is_of_whole_works_that_were_held_out_and_small_enough_to_travel(reader, excerpt):
    assert sum(excerpt.vocabulary.counts) == excerpt.sizes[0]  # the vocabulary is of what was learned from, all of it
    assert reader.evaluation["read"] <= excerpt.sizes[1]
    assert min(excerpt.vocabulary.counts) >= reader.config.task.min_count
    assert len(excerpt.titles) == len(set(excerpt.titles)) == 3
    assert reader.snapshot().stat().st_size <= MOST_BYTES_OF_THE_READER


def test_its_page_says_what_its_card_does(reader):
    """And names no baseline that was measured on other weights, or on other tokens."""
    card = reader.evaluation
    said = whole_sentence(card, 0.5)
    assert said.startswith("Perplexity 21.1 over 161,792 held-out tokens, in windows of 512. ")
    assert (card["read"], round(card["perplexity"], 1)) == (161_792, 21.1)
    for name, value in {"9-gram": 27.08, "5-gram": 27.09, "trigram": 28.11, "unigram": 120.65}.items():
        assert card["baselines"][name] == pytest.approx(value, abs=0.005)
        assert f"{value} for a {name}" in said
    assert f"{card['baselines']['10-gram']:.2f} for a 9-gram and a 10-gram, the best of orders 3 to 10" in said
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
def test_the_best_order_is_the_card_s(reader, best, words):
    card = reader.evaluation
    said = whole_sentence(card | {"baselines": card["baselines"] | {best: 20.0}}, 0.5)
    assert words in said
    assert said.count("sees") == (1 if best == "5-gram" else 2)


def test_half_of_its_tokens_are_no_words(reader):
    """Counted here in all of the excerpt's held-out passages that are drawn, letter by letter."""
    model = Model.of(menu()[READER], max(reader.snapshots()))
    assert measured.wordless(model) == pytest.approx(0.5, abs=0.02)
