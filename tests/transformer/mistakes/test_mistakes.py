"""The gallery: every mistake is held to one contract, and its functions are what they are by hand."""

from __future__ import annotations

import ast
import copy
import itertools
import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from tests.kit.models import small, tokens_of
from transformer import mistakes, observe
from transformer.attention import MultiHeadAttention
from transformer.mistakes import MISTAKES, STAGES
from transformer.mistakes.decoder.norm_by_std import NormByStd

ALL = pytest.mark.parametrize("name", MISTAKES.names())
KINDS = {
    "attention": mistakes.AttentionMistake,
    "mask": mistakes.MaskMistake,
    "positions": mistakes.PositionsMistake,
    "module": mistakes.ModuleMistake,
    "decoder": mistakes.DecoderMistake,
    "training": mistakes.TrainingMistake,
}
WITH_A_MODEL = [name for name in MISTAKES.names() if MISTAKES[name].trains]
SHOWN = [name for name in MISTAKES.names() if MISTAKES[name].demonstrate()]
SITES = {
    "projected": "query",
    "split": "query",
    "scores": "scores",
    "scaled": "scores",
    "masked": "pattern",
    "softmax": "pattern",
    "values": "z",
    "merged": "out",
    "out": "out",
}
"""Where a model records what comes of a stage."""
ORDER = ("query", "key", "value", "scores", "pattern", "z", "out")


def of_kind(kind):
    return [name for name in WITH_A_MODEL if MISTAKES[name].kind == kind]


def fresh(seed=0):
    return torch.Generator().manual_seed(seed)


# --- the contract


@ALL
def test_says_what_it_is_in_words(name):
    mistake = MISTAKES[name]
    assert mistake.name == name
    assert mistake.kind in KINDS
    assert mistake.title
    assert not mistake.title.endswith(".")
    assert [MISTAKES[other].title for other in MISTAKES.names()].count(mistake.title) == 1
    for sentence in (mistake.hidden, mistake.exposes, mistake.mend):
        assert sentence.endswith((".", "…"))
        assert len(sentence) < 200
    notebook, reports = "a lecture notebook", "bug reports in public repositories"
    assert mistake.met in (notebook, reports, f"{notebook} and {reports}")
    assert mistake.stage is None or mistake.stage in STAGES
    assert issubclass(mistake, KINDS[mistake.kind]) if mistake.trains else mistake.demonstrate()


@ALL
def test_wrong_and_right_are_two_functions_that_take_the_same_and_the_difference_leads_from_one_to_the_other(name):
    codes, lines = MISTAKES[name].code(), MISTAKES[name].difference()
    ((wrong,), (right,)) = (ast.parse(code).body for code in codes)
    assert isinstance(wrong, ast.FunctionDef)
    assert isinstance(right, ast.FunctionDef)
    assert wrong.name == right.name == MISTAKES[name].function
    assert ast.dump(wrong.args) == ast.dump(right.args)
    assert not wrong.decorator_list
    assert ast.dump(wrong) != ast.dump(right)
    assert max(len(code.splitlines()) for code in codes) <= 12
    for code, other in zip(codes, "+-", strict=True):
        assert [line[2:] for line in lines if line[0] != other] == code.splitlines()
    assert lines[0].startswith("  def ")


@pytest.mark.parametrize("name", WITH_A_MODEL)
@torch.no_grad()
def test_a_model_with_it_is_another_one_with_the_same_weights(name, monkeypatch):
    """What differs is the mistake, and not the piece that holds it: with the right code in its place nothing does."""
    mistake = MISTAKES[name]
    model, tokens = small(positions=mistake.encoding), tokens_of(3, 16)
    before, weights = model(tokens), copy.deepcopy(model.state_dict())
    other = mistake.mistaken(model).eval()
    assert other is not model
    assert all(own is not copied for own, copied in zip(model.parameters(), other.parameters(), strict=True))
    assert list(other.state_dict()) == list(weights)
    for key, value in other.state_dict().items():
        torch.testing.assert_close(value, weights[key], rtol=0, atol=0)
    wrong = other(tokens)
    assert wrong.isfinite().all()
    assert (wrong - before).abs().max() > 1e-4 or mistake.kind == "training"
    torch.testing.assert_close(model(tokens), before, rtol=0, atol=0)
    if name != "no-residual":  # a setting of a block: there is no piece
        monkeypatch.setattr(mistake, "wrong", staticmethod(mistake.right))
        torch.testing.assert_close(mistake.mistaken(model).eval()(tokens), before, rtol=1e-5, atol=1e-5)


IN_ATTENTION = [name for name in WITH_A_MODEL if MISTAKES[name].kind not in ("decoder", "training")]


@pytest.mark.parametrize("name", IN_ATTENTION)
def test_what_is_seen_of_a_model_with_it_is_what_is_used_and_its_stage_is_the_first_that_differs(name):
    """All that the lab's pages and edits need of an attention module is there."""
    mistake = MISTAKES[name]
    plain, tokens = small(positions=mistake.encoding), tokens_of(2, 16)
    model = mistake.mistaken(plain).eval()
    right, seen = observe(plain, tokens), observe(model, tokens)
    torch.testing.assert_close(seen.logits, model(tokens), rtol=0, atol=0)
    for layer, site in itertools.product((0, 1), ORDER):
        assert f"decoder.{layer}.self_attention.{site}" in seen.sites
    z, value, pattern = (seen[f"decoder.0.self_attention.{site}"] for site in ("z", "value", "pattern"))
    torch.testing.assert_close(z, pattern @ value)
    if mistake.stage:
        pairs = ((site, *(each[f"decoder.0.self_attention.{site}"] for each in (right, seen))) for site in ORDER)
        differ = (site for site, a, b in pairs if a.shape != b.shape or not torch.allclose(a, b, atol=1e-6))
        assert next(differ) == SITES[mistake.stage]


@pytest.mark.parametrize("positions", ["rotary", "alibi"])
def test_attention_is_replaced_only_where_positions_are_added(positions):
    with pytest.raises(ValueError, match=f"added to the input, not {positions}"):
        MISTAKES["scale-missing"].mistaken(small(positions=positions))


# --- the formula, by hand


def softmax(scores, axis=-1):
    exponentials = np.exp(scores)
    return exponentials / exponentials.sum(axis=axis, keepdims=True)


def hidden(mask, scores):
    return np.where(mask, scores, -np.inf)


def cosines(query, key):
    lengths = np.linalg.norm(query, axis=-1)[..., :, None] * np.linalg.norm(key, axis=-1)[..., None, :]
    return query @ key.swapaxes(-1, -2) / lengths


PATTERNS = {
    "no-mask": lambda q, k, s, m: softmax(s / 2),
    "masked-with-minus-one": lambda q, k, s, m: softmax(np.where(m, s / 2, -1)),
    "masked-with-zero": lambda q, k, s, m: softmax(np.where(m, s / 2, 0)),
    "masked-after-softmax": lambda q, k, s, m: np.where(m, softmax(s / 2), 0),
    "softmax-over-queries": lambda q, k, s, m: softmax(hidden(m, s / 2), axis=-2),
    "softmax-over-heads": lambda q, k, s, m: np.where(m, softmax(s / 2, axis=1), 1 / 3),
    "scale-missing": lambda q, k, s, m: softmax(hidden(m, s)),
    "scale-of-d-model": lambda q, k, s, m: softmax(hidden(m, s / math.sqrt(12))),
    "scale-twice": lambda q, k, s, m: softmax(hidden(m, s / 4)),
    "product-as-cosine": lambda q, k, s, m: softmax(hidden(m, cosines(q, k))),
}
"""The pattern of 3 heads, each 4 wide, from queries, keys, their products and a mask."""


@pytest.mark.parametrize("name", of_kind("attention"))
def test_the_wrong_formula_is_what_it_is_by_hand_and_the_right_one_is_pytorchs(name):
    query, key, value = (torch.randn(2, 3, 5, 4, generator=fresh(seed)).double() for seed in range(3))
    mask = torch.ones(5, 5, dtype=torch.bool).tril()
    output, pattern = MISTAKES[name].wrong(query, key, value, mask)
    q, k, m = query.numpy(), key.numpy(), mask.numpy()
    expected = PATTERNS[name](q, k, q @ k.swapaxes(-1, -2), m)
    np.testing.assert_allclose(pattern.numpy(), expected, atol=1e-6)
    np.testing.assert_allclose(output.numpy(), expected @ value.numpy(), atol=1e-6)
    output, pattern = MISTAKES[name].right(query, key, value, mask)
    torch.testing.assert_close(output, functional.scaled_dot_product_attention(query, key, value, mask))
    torch.testing.assert_close(pattern.sum(dim=-1), torch.ones(2, 3, 5).double())


# --- masks, by hand

DRAWN = {
    "mask-transposed": "xxxx .xxx ..xx ...x",
    "mask-hides-self": ".... x... xx.. xxx.",
    "mask-sees-one-ahead": "xx.. xxx. xxxx xxxx",
}


@pytest.mark.parametrize("name", of_kind("mask"))
def test_masks_are_what_is_drawn_by_hand(name):
    for made, drawn in ((MISTAKES[name].wrong(4), DRAWN[name]), (MISTAKES[name].right(4), "x... xx.. xxx. xxxx")):
        assert made.tolist() == [[cell == "x" for cell in row] for row in drawn.split()]


def test_a_query_that_may_see_nothing_looks_everywhere_in_usual_code():
    query, key, value = (torch.randn(1, 1, 4, 8, generator=fresh(seed)) for seed in range(3))
    _, pattern = mistakes.usual_attention(query, key, value, MISTAKES["mask-hides-self"].wrong(4))
    torch.testing.assert_close(pattern[0, 0, 0], torch.full((4,), 0.25))
    right = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    causal = torch.ones(4, 4, dtype=torch.bool).tril()
    torch.testing.assert_close(mistakes.usual_attention(query, key, value, causal)[0], right)


# --- positions, by hand

WIDTH = 6
ENCODINGS = {
    "no-positions": lambda p, d: 0.0,
    "positions-as-integers": lambda p, d: float(p == 0 and d % 2),
    "exponent-twice": lambda p, d: wave(p, d, 10_000 ** (4 * (d // 2) / WIDTH)),
    "sine-everywhere": lambda p, d: math.sin(p / 10_000 ** (2 * (d // 2) / WIDTH)),
    "base-1000": lambda p, d: wave(p, d, 1_000 ** (2 * (d // 2) / WIDTH)),
}


def wave(place, dimension, slowness):
    return (math.cos if dimension % 2 else math.sin)(place / slowness)


def by_hand(formula, length=5):
    return torch.tensor([[formula(place, dimension) for dimension in range(WIDTH)] for place in range(length)])


@pytest.mark.parametrize("name", of_kind("positions"))
def test_encodings_are_what_they_are_by_hand(name):
    x = torch.zeros(3, 5, WIDTH)
    paper = by_hand(lambda p, d: wave(p, d, 10_000 ** (2 * (d // 2) / WIDTH)))
    torch.testing.assert_close(MISTAKES[name].right(x), paper, rtol=0, atol=1e-6)
    wrong = MISTAKES[name].wrong(x)
    expected = paper[:3, None] if name == "along-the-batch" else by_hand(ENCODINGS[name])
    torch.testing.assert_close(wrong, expected, rtol=0, atol=1e-6)


# --- modules, by hand


def product(attention, layer, vector):
    return (getattr(attention, layer).weight @ vector + getattr(attention, layer).bias).tolist()


def heads_by_hand(attention, x, layer, cell):
    """Cell by cell: what a layer gives a head at a position, from all that it gives one sequence, in order."""
    flat = [number for vector in x for number in product(attention, layer, vector)]
    width, length = attention.d_head, len(x)
    return np.array(
        [[[flat[cell(h, p, c)] for c in range(width)] for p in range(length)] for h in range(attention.n_heads)]
    )


def merged_by_hand(z, position, feature, name):
    """The number at a position and a feature of what is merged."""
    heads, _, width = z.shape
    if name == "heads-split-without-transpose":
        return z[feature // width, position, feature % width]
    return z.reshape(-1)[position * heads * width + feature]


@pytest.mark.parametrize("name", [name for name in of_kind("module") if name.startswith("heads-")])
@torch.no_grad()
def test_modules_are_what_they_are_cell_by_cell(name):
    torch.manual_seed(0)
    attention, x = MultiHeadAttention(6, 3), torch.randn(1, 4, 6)
    mask = torch.ones(4, 4, dtype=torch.bool).tril()
    cell = (lambda h, p, c: p * 6 + h * 2 + c) if "merged" in name else (lambda h, p, c: h * 8 + p * 2 + c)
    query, key, value = (heads_by_hand(attention, x[0], layer, cell) for layer in ("query", "key", "value"))
    scores = query @ key.swapaxes(-1, -2) / math.sqrt(2)
    z = softmax(hidden(mask.numpy(), scores)) @ value
    merged = [[merged_by_hand(z, p, f, name) for f in range(6)] for p in range(4)]
    expected = attention.out(torch.tensor(merged, dtype=torch.float32))
    torch.testing.assert_close(MISTAKES[name].wrong(attention, x, mask)[0], expected, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_one_projection_is_the_same_small_matrix_in_each_head():
    torch.manual_seed(0)
    attention, x = MultiHeadAttention(6, 3), torch.randn(2, 4, 6)
    mask, parts = torch.ones(4, 4, dtype=torch.bool).tril(), []
    for part in x.split(2, dim=-1):
        query, key, value = (
            part @ layer.weight[:2, :2].T for layer in (attention.query, attention.key, attention.value)
        )
        parts.append(functional.scaled_dot_product_attention(query, key, value, mask))
    expected = attention.out(torch.cat(parts, dim=-1))
    torch.testing.assert_close(MISTAKES["one-projection-for-all-heads"].wrong(attention, x, mask), expected)


@pytest.mark.parametrize("name", [*of_kind("module"), "batch-of-one"])
@torch.no_grad()
def test_the_right_module_is_pytorchs(name):
    torch.manual_seed(0)
    attention, x = MultiHeadAttention(8, 4), torch.randn(3, 5, 8)
    other = nn.MultiheadAttention(8, 4, batch_first=True)
    layers = (attention.query, attention.key, attention.value)
    other.in_proj_weight.copy_(torch.cat([layer.weight for layer in layers]))
    other.in_proj_bias.copy_(torch.cat([layer.bias for layer in layers]))
    other.out_proj.load_state_dict(attention.out.state_dict())
    mask = torch.ones(5, 5, dtype=torch.bool).tril()
    expected, _ = other(x, x, x, attn_mask=~mask)
    torch.testing.assert_close(MISTAKES[name].right(attention, x, mask), expected, rtol=1e-4, atol=1e-5)


# --- around attention


def test_a_stream_without_residuals_is_what_the_sublayer_gives():
    stream = torch.tensor([1.0, 2.0])
    assert MISTAKES["no-residual"].right(stream, lambda x: 10 * x).tolist() == [11, 22]
    assert MISTAKES["no-residual"].wrong(stream, lambda x: 10 * x).tolist() == [10, 20]
    model, tokens = small(), tokens_of(2, 9)
    plain = small(residual=False)
    plain.load_state_dict(model.state_dict())
    torch.testing.assert_close(MISTAKES["no-residual"].mistaken(model)(tokens), plain(tokens), rtol=0, atol=0)


@pytest.mark.parametrize("width", [4, 64])
def test_the_wrong_norm_is_smaller_by_the_root_of_what_is_left_out(width):
    """The unbiased variance is n / (n - 1) times the biased one: at a width of 4 the vectors are 13 % too short."""
    x, gain, offset = (torch.randn(width, generator=fresh(seed)).double() for seed in range(3))
    norm = nn.LayerNorm(width).double()
    norm.load_state_dict({"weight": gain, "bias": offset})
    right = NormByStd.right(x, gain, offset, norm.eps)
    torch.testing.assert_close(right, norm(x))
    wrong = NormByStd.wrong(x, gain, offset, 0.0)
    torch.testing.assert_close(
        wrong - offset, (NormByStd.right(x, gain, offset, 0.0) - offset) * math.sqrt(1 - 1 / width)
    )


def test_the_target_that_is_not_shifted_is_what_is_read():
    tokens = torch.arange(12).reshape(2, 6)
    read, predicted = MISTAKES["target-not-shifted"].right(tokens)
    assert torch.equal(read[:, 1:], predicted[:, :-1])
    read, predicted = MISTAKES["target-not-shifted"].wrong(tokens)
    assert torch.equal(read, predicted)
    task = MISTAKES["target-not-shifted"].config(0).build_task()
    right, wrong = (
        each.batch(np.random.default_rng(0), 4) for each in (task, MISTAKES["target-not-shifted"].taught(task))
    )
    assert np.array_equal(right.tokens, wrong.tokens)
    assert np.array_equal(wrong.tokens, wrong.targets)
    assert not np.array_equal(right.targets, wrong.targets)


# --- what no model can have


@pytest.mark.parametrize("name", SHOWN)
def test_a_demonstration_is_made_of_its_numbers(name):
    shown = MISTAKES[name].demonstrate()
    assert shown.sentence.endswith(".")
    assert any(number.wrong != number.right for number in shown.numbers)
    assert not any(str(number.right).startswith(("TypeError", "RuntimeError")) for number in shown.numbers)
    assert MISTAKES[name].demonstrate() == shown
    for value in [value for number in shown.numbers for value in (number.wrong, number.right)]:
        assert said(value) in shown.sentence


def said(value):
    """A value as a sentence says it: a share with two digits, more with one, an error by its kind."""
    if isinstance(value, str):
        return value.split(":")[0].replace("RuntimeError", "an error")
    return f"{value:g}" if value == int(value) else f"{value:.2f}" if value < 2 else f"{value:.1f}"


def test_a_normal_draw_helps_as_often_as_the_normal_distribution_says():
    """Φ(0.5) = (1 + erf(0.5 / √2)) / 2 = 0.6915, by 100,000 draws to within five standard deviations."""
    (share,) = MISTAKES["normal-draw"].demonstrate().numbers
    assert share.wrong == pytest.approx((1 + math.erf(0.5 / math.sqrt(2))) / 2, abs=5 * math.sqrt(0.25 / 100_000))
    assert share.right == pytest.approx(0.5, abs=5 * math.sqrt(0.25 / 100_000))


def test_what_is_shown_is_what_happens():
    numbers = {name: [(n.wrong, n.right) for n in MISTAKES[name].demonstrate().numbers] for name in SHOWN}
    assert [round(wrong - right, 6) for wrong, right in numbers["product-as-cosine"]][1] == 0
    assert numbers["product-as-cosine"][0][1] > 10
    assert numbers["matrix-never-written"] == [(0, 8 * 16)]
    assert numbers["moved-and-dropped"] == [("cpu", "meta")]
    assert numbers["encoding-of-maximal-length"][0] == (8, 8)
    assert numbers["encoding-of-maximal-length"][2] == (1, 8)
    assert numbers["length-from-the-batch"][:2] == [(8, 8), (1, 8)]
    assert numbers["weights-averaged"][0] == ("2 × 8 × 8", "2 × 4 × 8 × 8")
    assert numbers["batch-of-one"][0] == ("1 × 8 × 16", "1 × 8 × 16")
    assert numbers["def-for-class"][0] == ("NoneType", "Twice")


def test_the_averaged_weights_are_the_mean_of_the_heads():
    torch.manual_seed(0)
    attention, x = nn.MultiheadAttention(16, 4, batch_first=True), torch.randn(2, 8, 16)
    each, mean = MISTAKES["weights-averaged"].right(attention, x), MISTAKES["weights-averaged"].wrong(attention, x)
    torch.testing.assert_close(each.mean(dim=1), mean)
