"""A model told that its tokens stand elsewhere, against models built to be told the same."""

from __future__ import annotations

import math

import pytest
import torch

from tests.kit import strangers
from transformer.config import ModelConfig, RunConfig, TaskConfig
from transformer.edits import EditError, parse_edit
from transformer.edits.places.places_shift import ShiftPositions
from transformer.edits.places.places_shuffle import ShufflePositions
from transformer.edits.places.places_turn import TurnPositions
from transformer.edits.places.swap import SwapPositions
from transformer.edits.places.unplaced import RemovePositions
from transformer.model import Transformer, build
from transformer.observation import observe
from transformer.positions import ENCODINGS, PositionalEncoding

with strangers.lent(ENCODINGS, *strangers.ENCODINGS):
    TOLD = [name for name in ENCODINGS.names() if ENCODINGS[name].at is not PositionalEncoding.at]
"""Encodings whose tokens can be told that they stand elsewhere."""
TOKENS = torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])
CLOSE = {"atol": 1e-5, "rtol": 1e-5}
EVERY = pytest.mark.parametrize("positions", TOLD)


@pytest.fixture(autouse=True)
def _strangers(monkeypatch):
    strangers.lend(monkeypatch, ENCODINGS, *strangers.ENCODINGS)


def model_of(positions: str, task: str = "reverse-aligned", **sizes: object) -> Transformer:
    """A small model with 8 places, whose weights are its own: no bias is zero."""
    config = RunConfig(
        task=TaskConfig(task=task, length=8),
        model=ModelConfig(positions=positions, d_model=16, n_heads=2, d_ff=8, **sizes),
    )
    model = build(config).eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("bias"):
                weight.normal_(generator=generator)
    return model


@EVERY
@pytest.mark.parametrize("task", ["reverse-aligned", "reverse-translate"])
def test_without_positions_it_is_the_model_that_was_never_told_any(positions, task):
    model, untold = model_of(positions, task), model_of("none", task)
    weights = {name: weight for name, weight in model.state_dict().items() if not name.startswith("positions.")}
    untold.load_state_dict(weights)
    source = TOKENS.flip(1) if task == "reverse-translate" else None
    seen = observe(model, TOKENS, (RemovePositions(),), source=source).logits
    torch.testing.assert_close(seen, untold(TOKENS, source), **CLOSE)
    assert not torch.allclose(seen, model(TOKENS, source), atol=1e-2)


@EVERY
def test_tokens_that_change_places_and_are_told_so_give_their_answers_in_their_new_places(positions):
    model = model_of(positions)
    plain = observe(model, TOKENS).logits
    moved = observe(model, TOKENS, (ShufflePositions(seed=3),))
    order = moved["encoder.places"]
    assert sorted(order.tolist()) == [0, 1, 2, 3, 4]
    assert order.tolist() != [0, 1, 2, 3, 4]
    # Each token is told the place of another; let it be the token that stands there.
    together = observe(model, TOKENS[:, order], (ShufflePositions(seed=3),)).logits
    torch.testing.assert_close(together, plain[:, order], **CLOSE)
    assert not torch.allclose(moved.logits, plain, atol=1e-2)


@pytest.mark.parametrize("positions", ["rotary", "alibi"])
@pytest.mark.parametrize("by", [-40, -1, 2, 40])
def test_who_is_told_distances_only_takes_no_notice_of_a_shift(positions, by):
    model = model_of(positions, mask="causal")
    torch.testing.assert_close(observe(model, TOKENS, (ShiftPositions(by=by),)).logits, model(TOKENS), **CLOSE)
    turned = observe(model, TOKENS, (TurnPositions(by=2),)).logits
    assert not torch.allclose(turned, model(TOKENS), atol=1e-2)


@torch.no_grad()
def test_a_learned_table_is_read_further_down_and_says_where_it_ends():
    model, other = model_of("learned"), model_of("learned")
    table = other.positions.get_parameter("table")
    table[:5] = model.positions.get_parameter("table")[3:8]
    assert torch.equal(observe(model, TOKENS, (ShiftPositions(by=3),)).logits, other(TOKENS))
    for by, place in ((4, 9), (-1, 0)):
        with pytest.raises(EditError, match=f"has no position {place}: it ends at 1 and at 8"):
            observe(model, TOKENS, (ShiftPositions(by=by),))


@pytest.mark.parametrize("by", [-3, 1, 100])
def test_waves_go_on_beyond_the_table_as_the_paper_writes_them(by):
    seen = observe(model_of("sinusoidal"), TOKENS, (ShiftPositions(by=by),))
    expected = [
        [f((place + by) / 10_000 ** (2 * pair / 16)) for pair in range(8) for f in (math.sin, math.cos)]
        for place in range(5)
    ]
    torch.testing.assert_close(seen["encoder.position_embedding"], torch.tensor(expected), **CLOSE)


@EVERY
def test_turned_by_two_each_token_is_told_the_place_two_further_on_and_the_last_the_first(positions):
    model = model_of(positions)
    seen = observe(model, TOKENS, (TurnPositions(by=2),))
    assert seen["encoder.places"].tolist() == [2, 3, 4, 0, 1]
    swaps = [SwapPositions(first=i, second=j) for i, j in ((0, 3), (1, 4), (0, 2), (1, 3), (2, 4))]
    order = torch.arange(5)
    for swap in swaps:
        order[[swap.first, swap.second]] = order[[swap.second, swap.first]]
    by_hand = observe(model, TOKENS, swaps)
    assert by_hand["encoder.places"].tolist() == order.tolist()


def test_source_and_tokens_can_be_told_apart():
    model, source = model_of("learned", "reverse-translate"), TOKENS.flip(1)
    plain = observe(model, TOKENS, source=source)
    for stack, other in (("encoder", "decoder"), ("decoder", "encoder")):
        seen = observe(model, TOKENS, (TurnPositions(site=f"{stack}.places", by=1),), source=source)
        assert seen[f"{stack}.places"].tolist() == [1, 2, 3, 4, 0]
        assert torch.equal(seen[f"{other}.0.resid_pre"], plain[f"{other}.0.resid_pre"])
        assert not torch.equal(seen[f"{stack}.0.resid_pre"], plain[f"{stack}.0.resid_pre"])
    both = observe(model, TOKENS, (TurnPositions(by=1),), source=source)
    assert both["encoder.places"].tolist() == both["decoder.places"].tolist() == [1, 2, 3, 4, 0]


@EVERY
def test_looking_leaves_the_encoding_as_it_was_and_draws_nothing(positions):
    model = model_of(positions)
    before = {name: value.clone() for name, value in model.positions.named_buffers()}
    plain, state = model(TOKENS), torch.random.get_rng_state()
    observe(model, TOKENS, (ShufflePositions(seed=1),))
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.equal(model(TOKENS), plain)
    assert all(torch.equal(value, before[name]) for name, value in model.positions.named_buffers())


@pytest.mark.parametrize("name", TOLD)
def test_told_their_own_places_tokens_are_told_nothing_new(name):
    encoding = ENCODINGS[name](n_ctx=8, d_model=16, n_heads=2)
    told, x = encoding.at(torch.arange(8)), torch.randn(3, 8, 8, generator=torch.Generator().manual_seed(0))
    assert torch.equal(told.rotate(x), encoding.rotate(x))
    for own, other in ((encoding.vectors(8), told.vectors(8)), (encoding.bias(8, 8), told.bias(8, 8))):
        assert (own is None and other is None) or torch.equal(own, other)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("places-shift:0", "choose another number"),
        ("places-turn:0", "choose another number"),
        ("places-turn:x", "needs a whole number"),
        ("places-shuffle:-1", "needs a whole number"),
        ("places-shift:", "needs a whole number"),
    ],
)
def test_what_is_no_move_is_said(text, words):
    with pytest.raises(EditError, match=words):
        parse_edit(text)


def test_a_turn_all_the_way_round_changes_nothing_and_that_is_said():
    with pytest.raises(EditError, match="changed no number"):
        observe(model_of("alibi"), TOKENS, (TurnPositions(by=5),))
