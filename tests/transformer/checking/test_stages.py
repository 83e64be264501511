"""The first stage that differs, by how much, and the axis at fault in words; differences are computed here again."""

import math

import pytest
import torch

from transformer.attention import MultiHeadAttention
from transformer.checking.stages import diverge, of_attention, of_module
from transformer.mistakes import MISTAKES, STAGES, AttentionMistake, ModuleMistake

B, H, Q, K, D = 2, 3, 4, 5, 6


@pytest.fixture
def given():
    generator = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(B, H, n, D, generator=generator) for n in (Q, K, K))
    visible = torch.rand(B, 1, Q, K, generator=generator) < 0.6
    visible[..., 0] = True
    visible[..., 1] = False
    return query, key, value, visible


def attend(query, key, value, visible, scale=None, dim=-1, hide=-math.inf, after=False):
    scores = query @ key.transpose(-2, -1) / (math.sqrt(D) if scale is None else scale)
    if not after:
        scores = scores.masked_fill(~visible, hide)
    pattern = scores.softmax(dim)
    return (pattern * visible if after else pattern) @ value


def stage(divergence, name):
    return next(each for each in divergence.stages if each.name == name)


def test_right_code_reaches_every_stage(given):
    found = diverge(lambda: attend(*given), of_attention(*given))
    assert found.first is None
    # q kᵀ / √d in one line has the scores as a step, too
    assert [each.name for each in found.stages] == ["scores", "scaled", "masked", "softmax", "values"]
    assert all(each.reached and each.difference <= 1e-6 for each in found.stages)


@pytest.mark.parametrize(
    ("wrong", "first", "sentence"),
    [
        (
            {"dim": 1, "hide": -1e9},
            "softmax",
            "Softmax runs over dimension 1, the heads; it should run over the keys, the last.",
        ),
        (
            {"dim": 2, "hide": -1e9},
            "softmax",
            "Softmax runs over dimension 2, the queries; it should run over the keys, the last.",
        ),
        (
            {"dim": 0, "hide": -1e9},
            "softmax",
            "Softmax runs over dimension 0, the sequences; it should run over the keys, the last.",
        ),
        ({"scale": 1}, "scaled", "The scores are not divided at all; they should be divided by √d_head = √6."),
        ({"scale": 6}, "scaled", "The scores are divided by 6 = d_head, as if the scale were applied twice; "),
        (
            {"scale": math.sqrt(18)},
            "scaled",
            "The scores are divided by √18 = √d_model; they should be ",
        ),
        ({"scale": 1 / math.sqrt(6)}, "scaled", "The scores are multiplied by √d_head; "),
        ({"scale": 5}, "scaled", "The scores are divided by 5; they should be divided by √d_head = √6."),
        (
            {"hide": -1.0},
            "masked",
            "Hidden scores are only -1 before the softmax; they should be −inf, or as low",
        ),
        ({"hide": 0.0}, "masked", "Hidden scores are only 0 before the softmax; "),
        ({"after": True}, "masked", "The mask does not reach the scores before the softmax: "),
    ],
)
def test_the_stage_and_the_axis_are_named(wrong, first, sentence, given):
    found = diverge(lambda: attend(*given, **wrong), of_attention(*given))
    assert found.first == first
    assert found.sentence.startswith(sentence)
    before = STAGES[: STAGES.index(first)]
    assert all(each.reached for each in found.stages if each.name in before)
    # of the output the difference is computed here, from PyTorch's own attention
    expected = torch.nn.functional.scaled_dot_product_attention(*given[:3], given[3])
    largest = float((attend(*given, **wrong) - expected).abs().max())
    assert stage(found, "values").difference == pytest.approx(largest, rel=1e-3)


def test_a_mask_the_wrong_way_round_is_said_so(given):
    query, key, value, visible = given
    found = diverge(lambda: attend(query, key, value, ~visible), of_attention(*given))
    assert found.first == "masked"
    assert found.sentence.startswith("The mask is the wrong way round")


def test_a_transposed_mask_is_said_so(given):
    query, key, value, _ = given
    visible = torch.ones(K, K, dtype=torch.bool).tril()[None, None]
    query = key.flip(0)
    found = diverge(lambda: attend(query, key, value, visible.mT), of_attention(query, key, value, visible))
    assert found.first == "masked"
    assert found.sentence == "The mask is transposed: its rows should be the queries, its columns the keys."


def test_another_order_of_the_axes_is_no_difference(given):
    query, key, value, visible = given

    def heads_last():
        q, k, v = (each.transpose(1, 2) for each in (query, key, value))
        scores = torch.einsum("bqhd,bkhd->bkhq", q, k) / math.sqrt(D)
        pattern = scores.masked_fill(~visible.permute(0, 3, 1, 2), -1e9).softmax(1)
        return torch.einsum("bkhq,bkhd->bqhd", pattern, v)

    found = diverge(heads_last, of_attention(*given))
    assert found.first is None
    assert stage(found, "softmax").shape == (B, K, H, Q)
    assert stage(found, "softmax").expected == (B, H, Q, K)


def test_a_fused_kernel_is_looked_into(given):
    query, key, value, visible = given
    attention = torch.nn.functional.scaled_dot_product_attention
    found = diverge(lambda: attention(query, key, value, visible), of_attention(*given))
    assert found.first is None
    assert all(stage(found, name).reached for name in ("scaled", "softmax", "values"))
    found = diverge(lambda: attention(query, key, value, visible, scale=1.0), of_attention(*given))
    assert found.first == "scaled"


# what has no model that can be trained breaks before there is anything to compare
SHOWN = [
    name
    for name in MISTAKES.names()
    if issubclass(MISTAKES[name], AttentionMistake | ModuleMistake) and MISTAKES[name].trains
]


@pytest.mark.parametrize("name", SHOWN)
def test_each_mistake_diverges_where_the_gallery_says(name):
    mistake = MISTAKES[name]
    torch.manual_seed(0)
    module, x = MultiHeadAttention(24, 3).requires_grad_(False), 3 * torch.randn(4, 9, 24)
    visible = torch.ones(9, 9, dtype=torch.bool).tril()[None, None]
    if mistake.kind == "module":
        found = diverge(lambda: mistake.wrong(module, x, visible), of_module(module, x, visible))
        same = diverge(lambda: mistake.right(module, x, visible), of_module(module, x, visible))
    else:
        given = [module._split(layer(x)) for layer in (module.query, module.key, module.value)]
        found = diverge(lambda: mistake.wrong(*given, visible), of_attention(*given, visible))
        same = diverge(lambda: mistake.right(*given, visible), of_attention(*given, visible))
    assert same.first is None
    assert found.first is not None
    if mistake.stage is not None:
        assert found.first == mistake.stage
