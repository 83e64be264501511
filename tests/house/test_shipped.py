"""The shipped runs are what their cards say: measured anew, on sequences that nobody has used before."""

import json
import math
import subprocess
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.kit.numbers.rounding import near_count
from transformer import checkpoints
from transformer.analysis.accuracy.by_position import accuracy_by_position
from transformer.analysis.film.film import Film
from transformer.config import ModelConfig, RunConfig, TaskConfig, TrainingConfig
from transformer.experiments.populations.table import Population
from transformer.model import build
from transformer.network import Network
from transformer.training.runs import Control, Run

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "checkpoints"
SOLVED = ("reverse", "reverse-aligned", "reverse-aligned-causal", "reverse-sinusoidal", "reverse-translate")
TRIO = ("bottleneck-gru", "bottleneck-gru-attention", "bottleneck-transformer")
"""They take as many steps as each other, however far that brings them (tests/test_bottleneck.py)."""
NAMES = (*SOLVED, *TRIO)
READER = "shakespeare"
"""It has no law to be measured by: tests/test_shipped_text.py."""
SEQUENCES = 4096
MOST_BYTES = 18_000_000


@pytest.fixture(params=NAMES)
def run(request) -> Run:
    return Run(FOLDER / request.param)


def tracked() -> list[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("no git checkout")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in listed.split("\0") if name]


def questions_and_answers(config: RunConfig, seed: int):
    """Tokens, source and targets, laid out by hand: what is measured here owes nothing to the library's tasks."""
    length, symbols, task = config.task.length, config.task.symbols, config.task.task
    question = np.random.default_rng([seed, 99]).integers(0, symbols, (SEQUENCES, length))
    answer = question[:, ::-1].copy()
    separator = np.full((SEQUENCES, 1), symbols)
    if task == "reverse-aligned":
        return question, None, answer
    if task == "reverse-translate":
        return np.concatenate([separator, answer[:, :-1]], axis=1), question, answer
    whole = np.concatenate([question, separator, answer], axis=1)
    return whole[:, :-1], None, whole[:, 1:]


@torch.no_grad()
def said(model: Network, tokens: np.ndarray, source: np.ndarray | None) -> np.ndarray:
    """What a model says to the right tokens; a recurrent one reads what it said itself."""
    asked = None if source is None else torch.from_numpy(source)
    if model.config.recurrent:
        return model.greedy(asked, int(tokens[0, 0])).numpy()
    return model(torch.from_numpy(tokens), asked).argmax(dim=-1).numpy()


def test_these_runs_are_shipped_and_no_others():
    cards = {path.parent.name for path in tracked() if path.name == "run.json"}
    assert cards == {*NAMES, READER}


@pytest.mark.nightly
def test_it_reaches_what_its_card_says_on_fresh_sequences(run):
    """Within the sum of both uncertainties: four standard errors, and 0.005 where all is right."""
    model, config = checkpoints.load(run.snapshot())
    card = run.evaluation
    tokens, source, targets = questions_and_answers(config, seed=20_261_121)
    right = said(model, tokens, source) == targets
    for position, share in enumerate(card["accuracy_by_position"]):
        spread = math.sqrt(share * (1 - share) * (1 / SEQUENCES + 1 / card["sequences"]))
        assert abs(right[:, position].mean() - share) <= max(4 * spread, 0.005), card["positions"][position]
    answer = right[:, -config.task.length :]
    spread = math.sqrt(card["exact_match"] * (1 - card["exact_match"]) * (1 / SEQUENCES + 1 / card["sequences"]))
    if run.name in TRIO:
        assert abs(answer.all(axis=1).mean() - card["exact_match"]) <= max(4 * spread, 0.005)
    elif config.model.mask == "full" or config.task.task != "reverse-aligned":
        assert answer.mean() >= 0.999
        assert abs(answer.all(axis=1).mean() - card["exact_match"]) <= 0.005


@pytest.mark.parametrize("name", SOLVED)
def test_its_card_says_what_it_shows(name):
    """The story that the README tells with it: what can be known is, what cannot is guessed."""
    run = Run(FOLDER / name)
    card = run.evaluation
    second = [s for name, s in zip(card["positions"], card["accuracy_by_position"], strict=True) if name[0] == "y"]
    first = [s for name, s in zip(card["positions"], card["accuracy_by_position"], strict=True) if name[0] == "x"]
    if run.name == "reverse-aligned-causal":
        first, second = second[:4], second[4:]
    assert card["chance"] == 0.1
    assert min(second) >= 0.999
    assert all(0.08 < share < 0.12 for share in first)
    assert card["second_half"] >= 0.999
    holds = "second half 1.00, first half 0.10 = chance: the mask holds"
    known = "second half 1.00, first half 1.00: every answer can be known, and is"
    bridged = "answer from the source 1.00: every answer can be known, and is"
    assert card["verdict"] == {"reverse-aligned": known, "reverse-translate": bridged}.get(run.name, holds)


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
    files = set(folder.iterdir())
    assert {path.resolve() for path in tracked() if path.parent.name == folder.name} == {
        path.resolve() for path in files
    }
    assert sum(path.stat().st_size for path in files) <= 2_000_000
    found = Population.load(folder)
    assert len(found.rows) == found.planned == 320


def test_the_repository_is_small():
    """Everybody who clones it waits for every byte."""
    assert sum(path.stat().st_size for path in tracked() if path.exists()) <= MOST_BYTES
