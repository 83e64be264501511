"""The ceiling of a model that sees a bag, against every question there is, and the law that makes it a ceiling."""

import itertools
from collections import Counter, defaultdict

import numpy as np
import pytest
import torch

from transformer.analysis.accuracy.bags import bag_ceiling
from transformer.config import ModelConfig, RunConfig, TaskConfig
from transformer.model import build


def enumerated(length: int, symbols: int) -> list[float]:
    """Every question, every place: of all that look alike as a bag, the best guess is the most frequent next token."""
    found = []
    for said in range(length):
        alike: dict[object, Counter[int]] = defaultdict(Counter)
        for question in itertools.product(range(symbols), repeat=length):
            read = [*question, "SEP", *question[::-1][:said]]
            bag = (tuple(sorted(Counter(read).items(), key=str)), read[-1])
            alike[bag][question[::-1][said]] += 1
        found.append(sum(max(counts.values()) for counts in alike.values()) / symbols**length)
    return found


@pytest.mark.parametrize(("length", "symbols"), [(1, 2), (2, 5), (3, 3), (4, 3), (5, 2), (6, 2), (4, 4)])
def test_no_guess_from_a_bag_is_better(length, symbols):
    assert bag_ceiling(length, symbols) == pytest.approx(enumerated(length, symbols), abs=1e-12)


def test_the_last_symbol_is_known_and_the_first_is_a_guess():
    """One symbol is left: it is the one that the bag holds an odd number of times. The first: the most frequent."""
    most = bag_ceiling(8, 10)
    assert most[-1] == pytest.approx(1)
    questions = np.random.default_rng(0).integers(0, 10, (20_000, 8))
    mode = (questions[:, :, None] == np.arange(10)).sum(axis=1).max(axis=1).mean() / 8
    assert most[0] == pytest.approx(mode, abs=0.005)


@pytest.mark.parametrize("positions", ["none", "learned", "alibi"])
def test_only_without_positions_does_one_causal_layer_see_a_bag(positions):
    """Permute the question: after SEP not one logit moves, beyond rounding."""
    config = RunConfig(task=TaskConfig(), model=ModelConfig(n_layers=1, positions=positions))
    model = build(config).eval()
    question = torch.tensor([3, 1, 4, 1, 5, 9, 2, 6])
    order = torch.tensor([5, 2, 7, 0, 1, 6, 4, 3])
    with torch.no_grad():
        one, other = (model(torch.cat([x, torch.tensor([10])])[None])[0, -1] for x in (question, question[order]))
    moved = float((one - other).abs().max())
    assert moved < 1e-5 if positions == "none" else moved > 1e-2
