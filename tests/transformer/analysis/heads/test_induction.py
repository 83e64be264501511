"""Heads on repeated text and attention by distance: patterns written by hand have the scores that one can say."""

import math

import numpy as np
import pytest
import torch

from tests.kit import texts
from transformer.analysis.findings import Head
from transformer.analysis.heads import distances, induction
from transformer.analysis.heads.distances import by_distance, measure_distances
from transformer.analysis.heads.induction import INDUCTION, NEITHER, PREVIOUS, find_induction, measure_repetition
from transformer.analysis.heads.metrics import Estimate
from transformer.config import ConfigError, ModelConfig, RunConfig, TaskConfig
from transformer.model import build
from transformer.network import Network
from transformer.trace import UNTRACED, Trace

BLOCK, SYMBOLS = 6, 20
SEP = SYMBOLS


class ByHand(Network):
    """Four heads whose patterns are written down: induction, previous token, five back, and even. With them it copies:
    what the first head looks at gets nearly all the probability.
    """

    def __init__(self, symbols: int = SYMBOLS) -> None:
        super().__init__(
            ModelConfig(architecture="decoder", n_layers=1, n_heads=4, d_model=8), d_vocab=symbols + 2, n_ctx=64
        )
        self.unembedding = torch.nn.Linear(symbols + 2, symbols + 2, bias=False)
        self.unembedding.weight.data = 10 * torch.eye(symbols + 2)

    def forward(self, tokens: torch.Tensor, source: torch.Tensor | None = None, trace: Trace = UNTRACED):
        batch, width = tokens.shape
        mask = torch.ones(width, width, dtype=torch.bool).tril()
        pattern = torch.zeros(batch, 4, width, width)
        for sequence, read in enumerate(tokens.tolist()):
            for query in range(width):
                before = [key for key in range(1, query + 1) if read[key - 1] == read[query]]
                pattern[sequence, 0, query, before[-1] if before else 0] = 1
                pattern[sequence, 1, query, max(query - 1, 0)] = 1
                pattern[sequence, 2, query, max(query - (BLOCK - 1), 0)] = 1
                pattern[sequence, 3, query, : query + 1] = 1 / (query + 1)
        inner = trace.within("decoder.0").within("self_attention")
        pattern = inner("pattern", pattern)
        inner("mask", mask[None, None])
        seen = torch.nn.functional.one_hot(tokens, self.d_vocab).float()
        copied = (pattern[:, 0] @ seen) * (pattern[:, 0].argmax(-1) > 0)[..., None]
        logits: torch.Tensor = self.unembedding(copied)
        return logits


@pytest.fixture(scope="module")
def by_hand() -> induction.Repetition:
    rng = np.random.default_rng(3)
    first = np.stack([rng.permutation(SYMBOLS)[:BLOCK] for _ in range(5)])
    return measure_repetition(ByHand().eval(), SEP, first, (first + 7) % SYMBOLS)


def test_a_head_that_carries_on_or_looks_back_scores_one_and_by_distance_alone_it_gets_no_name(by_hand) -> None:
    np.testing.assert_allclose(by_hand.induction.mean[:3], [1, 0, 1])
    np.testing.assert_allclose(by_hand.previous.mean[:3], [0, 1, 0])
    even = np.mean([1 / (query + 1) for query in range(BLOCK + 1, 2 * BLOCK)])  # the second block; SEP stands at 0
    assert [each.mean[3] for each in (by_hand.induction, by_hand.previous)] == pytest.approx([even, even])
    np.testing.assert_allclose(by_hand.even, even, rtol=1e-6)
    assert by_hand.unrepeated.mean[2] == 1
    assert by_hand.unrepeated.mean[0] < 0.5
    assert [by_hand.name(head) for head in by_hand.heads] == [INDUCTION, PREVIOUS, NEITHER, NEITHER]


@pytest.mark.parametrize(
    ("mean", "half", "rival", "name"),
    [(0.7, 0.1, 0.35, INDUCTION), (0.7, 0.1, 0.42, NEITHER), (0.45, 0.1, 0.0, NEITHER), (0.41, 0.0, 0.2, INDUCTION)],
)
def test_a_name_needs_the_whole_interval_beyond_the_margin(mean: float, half: float, rival: float, name: str) -> None:
    estimates = [Estimate(*np.array([[m], [m - h], [m + h]]), 9) for m, h in ((mean, half), (rival, 0.0), (0.0, 0.0))]
    head, nats = Head("decoder.0.self_attention", 0), np.ones((9, 2))
    assert induction.Repetition((head,), 2, 9, *estimates, np.zeros(1), *[nats] * 3).name(head) == name


def test_what_is_copied_is_cheap(by_hand: induction.Repetition) -> None:
    uniform, copied = math.log(SYMBOLS + 2), math.log1p((SYMBOLS + 1) * math.exp(-10))
    np.testing.assert_allclose(by_hand.first, uniform, rtol=1e-5)
    np.testing.assert_allclose(by_hand.again[:, 0], uniform, rtol=1e-5)  # nothing announces its first token
    np.testing.assert_allclose(by_hand.again[:, 1:], copied, atol=1e-5)
    assert by_hand.drop().mean[0] == pytest.approx(uniform - copied, rel=1e-5)
    places = (by_hand.first - by_hand.another)[:, 1:].mean(axis=1)
    assert by_hand.drop_of_another().mean[0] == pytest.approx(places.mean())
    assert by_hand.drop_of_another().mean[0] < uniform - copied


@pytest.mark.parametrize("passages", [False, True])
def test_a_model_is_read_as_its_plain_call_reads(passages: bool) -> None:
    config = texts.config(mask="sliding-window:40")
    model, task = build(config).eval(), config.build_task()
    found = find_induction(model, task, passages=passages, sequences=3, seed=5)
    rng = np.random.default_rng([5, 5])
    if passages:
        first = np.stack(task.draw(rng, 3, 16))
    else:
        known = task.symbols - 1  # the unknown token is the last
        first = np.stack([rng.permutation(known)[:16] for _ in range(3)])
    assert (found.block, found.sequences) == (16, 3)
    whole = np.hstack([first, first])
    read = torch.tensor(np.hstack([np.full((3, 1), task.symbols), whole[:, :-1]]))
    with torch.no_grad():
        said = torch.nn.functional.cross_entropy(model(read).mT, torch.tensor(whole), reduction="none").numpy()
    np.testing.assert_allclose(np.hstack([found.first, found.again]), said, atol=1e-5)
    assert found.drop().mean[0] == pytest.approx((said[:, 1:16] - said[:, 17:]).mean(), abs=1e-5)


def test_an_untrained_model_has_no_such_heads_and_the_loss_does_not_fall() -> None:
    config = texts.config()
    found = find_induction(build(config).eval(), config.build_task())
    assert {found.name(head) for head in found.heads} == {NEITHER}
    assert found.sequences == induction.SEQUENCES


def test_a_law_is_read_too_and_what_says_no_next_token_is_not() -> None:
    config = RunConfig()
    found = find_induction(build(config).eval(), config.build_task(), sequences=4)
    assert found.block == 8
    for shape in ({"task": "reverse-aligned"}, {"task": "reverse-translate"}, {"task": "reverse", "length": 1}):
        other = RunConfig(task=TaskConfig(**shape))
        with pytest.raises(ConfigError, match="induction"):
            find_induction(build(other).eval(), other.build_task())


def test_attention_by_distance_is_counted_cell_by_cell() -> None:
    pattern = torch.rand(2, 3, 7, 7).softmax(dim=-1)
    expected = np.zeros((2, 3, 7))
    for sequence in range(2):
        for head in range(3):
            for query in range(3, 7):
                for key in range(7):
                    expected[sequence, head, abs(query - key)] += float(pattern[sequence, head, query, key]) / 4
    np.testing.assert_allclose(by_distance(pattern, 7).numpy(), expected, atol=1e-6)
    assert by_distance(pattern, 9).shape == (2, 3, 9)


def test_a_head_that_looks_back_reaches_one_token_and_an_even_head_half_as_far_as_it_may() -> None:
    task = texts.config().build_task()
    found = measure_distances(ByHand(task.symbols).eval(), task, length=12)
    assert found.share.sum(axis=1) == pytest.approx(1)
    back = list(found.heads).index(Head("decoder.0.self_attention", 1))
    even = list(found.heads).index(Head("decoder.0.self_attention", 3))
    assert (found.mean.mean[back], found.reach[back]) == (1, 1)
    assert found.mean.mean[even] == pytest.approx(np.mean([query / 2 for query in range(6, 12)]))
    np.testing.assert_allclose(found.share[even], found.even[even], atol=1e-6)
    np.testing.assert_allclose(found.even_mean, found.mean.mean[even], rtol=1e-6)
    assert found.bins() == [(0, 0), (1, 1), (2, 3), (4, 7), (8, 11)]
    np.testing.assert_allclose(found.binned(found.share)[even, 2], found.share[even, 2:4].sum())


@pytest.mark.parametrize("task", ["reverse", "reverse-aligned", "reverse-translate"])
def test_every_architecture_has_distances(task: str) -> None:
    config = RunConfig(task=TaskConfig(task=task))
    found = measure_distances(build(config).eval(), config.build_task())
    assert len(found.share) == len(found.heads) > 0
    assert all(head.site.endswith("self_attention") for head in found.heads)
    np.testing.assert_allclose(found.share.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(found.share @ np.arange(found.share.shape[1]), found.mean.mean, rtol=1e-5)
    assert found.sequences == distances.MANY
