"""Positional encodings as numbers: formulas worked out anew, the model's own weights, and laws of turning."""

import cmath
import copy
import math
from functools import cache

import numpy as np
import pytest
import torch

from tests.kit import strangers
from tests.kit.numbers.rounding import near
from transformer.analysis.encodings import (
    TURNING,
    deviation,
    fit_shift,
    lengths_of,
    penalty,
    profile,
    read_backwards,
    read_in_two_orders,
    rotary_scores,
    shift,
    similarity,
    slopes,
    spread,
    table_of,
    turning_table,
    wavelengths,
)
from transformer.compiled import compiled_reverser
from transformer.config import ModelConfig, RunConfig, TaskConfig
from transformer.model import build
from transformer.observation import observe
from transformer.positions import ENCODINGS, described

EVERY = pytest.mark.parametrize("name", [*ENCODINGS.names(), *strangers.ENCODINGS])
SIZES = pytest.mark.parametrize(("length", "width", "base"), [(1, 2, 10), (9, 6, 100), (40, 16, 1_000_000)])


@pytest.fixture(autouse=True)
def _strangers(monkeypatch):
    strangers.lend(monkeypatch, ENCODINGS, *strangers.ENCODINGS)


@cache
def model_with(positions: str, length: int = 5, **shape):
    return build(RunConfig(task=TaskConfig(length=length), model=ModelConfig(positions=positions, **shape))).eval()


@pytest.mark.parametrize("own", ["sinusoidal", "learned"])
def test_sinusoidal_is_the_formula_of_the_paper(own):
    """Section 3.5, number by number, in the standard library's own sines: of the model, and beside another."""
    d_model = 12
    table = table_of(model_with(own, d_model=d_model, n_heads=2), "sinusoidal")
    assert table.values.shape == (10, d_model)
    for position in range(10):
        for pair in range(d_model // 2):
            angle = position / 10_000 ** (2 * pair / d_model)
            assert table.values[position, 2 * pair] == pytest.approx(math.sin(angle), abs=1e-7)
            assert table.values[position, 2 * pair + 1] == pytest.approx(math.cos(angle), abs=1e-7)
    assert (table.columns, table.short, table.note) == ("dimension", "dimension", "")


def test_a_learned_table_is_the_models_own_weights():
    model = model_with("learned")
    table = table_of(model, "learned")
    assert np.array_equal(table.values, model.positions.get_parameter("table").detach().numpy())
    assert (table.values.shape, table.note) == ((10, 64), "")


def test_the_compiled_models_table_tells_every_position_apart():
    table, place = table_of(compiled_reverser(4), "learned").values, range(12, 20)
    assert np.array_equal(table[:, place], np.eye(8))
    assert not np.delete(table, place, axis=1).any()


def test_a_learned_table_that_is_not_the_models_is_untrained_and_says_so():
    table, again = (table_of(model_with("sinusoidal"), "learned") for _ in range(2))
    assert table.note == "Not this model's: untrained, as it is drawn before the first step."
    assert np.array_equal(table.values, again.values)
    assert abs(table.values.mean()) < 0.1
    assert table.values.std() == pytest.approx(1, abs=0.1)


def test_looking_draws_nothing_from_the_random_numbers_of_others():
    model = model_with("none")
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    for name in ENCODINGS.names():
        table_of(model, name)
    assert torch.equal(torch.rand(4), expected)


@EVERY
def test_every_encoding_can_be_looked_at_beside_every_model(name):
    """One row a position, numbers only, and columns that have a name; 2 · length positions for a continuation."""
    shapes = [{"d_model": d_model, "n_heads": n_heads} for d_model, n_heads in ((4, 4), (6, 2), (3, 1))]  # odd widths
    for own, shape in [*(("learned", shape) for shape in shapes), ("learned", {}), ("rotary", {}), ("none", {})]:
        table = table_of(model_with(own, **shape), name)
        assert table.values.shape[0] == 10
        assert table.values.shape[1] >= 1
        assert np.isfinite(table.values).all()
        assert table.columns.startswith(table.short)
        assert table.short


def test_without_positions_all_are_alike():
    values = table_of(model_with("none"), "none").values
    assert (values == values[:1]).all()


def test_similarity_is_every_inner_product():
    table = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
    products = [[sum(float(a) * float(b) for a, b in zip(one, other, strict=True)) for other in table] for one in table]
    np.testing.assert_allclose(similarity(table), products, atol=1e-5)


def test_neighbours_look_alike_in_waves_and_not_in_what_is_learned():
    """Why sinusoidal positions take longer to learn from: the nearest neighbour, as a share of a position itself."""
    alike = {}
    for name in ("sinusoidal", "learned"):
        found = similarity(table_of(model_with("none", length=8), name).values)
        alike[name] = np.abs(np.diag(found, 1)).mean() / np.diag(found).mean()
    assert alike["sinusoidal"] > 0.9
    assert alike["learned"] < 0.25


def test_a_profile_is_counted_over_all_pairs_at_a_distance():
    table = np.random.default_rng(1).normal(size=(5, 3))
    found = profile(table @ table.T)
    for distance in range(5):
        products = [float(np.dot(table[p], table[q])) for p in range(5) for q in range(5) if p - q == distance]
        assert found.mean[distance] == pytest.approx(sum(products) / len(products))
        assert (found.low[distance], found.high[distance]) == pytest.approx((min(products), max(products)))


def test_spread_is_the_greatest_difference_on_one_diagonal():
    assert spread(np.array([[1.0, 2, 3], [4, 1, 2]])) == 0
    assert spread(np.array([[1.0, 2, 3], [4, 1.5, 9]])) == 7
    assert spread(np.array([[5.0]])) == 0


@SIZES
def test_turning_tables_are_the_formulas_of_any_size(length, width, base):
    """Section 3.5, and RoFormer's 3.4: a pair of dimensions is a complex number of length one, e^(i p theta)."""
    waves, hands = (turning_table(name, length, width, base).values for name in TURNING)
    assert waves.shape == hands.shape == (length, width)
    assert waves.dtype == hands.dtype == np.float64
    for position in range(length):
        for pair in range(width // 2):
            turned = cmath.exp(1j * position * base ** (-2 * pair / width))
            assert waves[position, 2 * pair : 2 * pair + 2] == pytest.approx((turned.imag, turned.real), abs=1e-12)
            assert hands[position, 2 * pair : 2 * pair + 2] == pytest.approx((turned.real, turned.imag), abs=1e-12)


@pytest.mark.parametrize("name", TURNING)
def test_the_models_tables_are_the_same_numbers_in_single_precision(name):
    model = model_with(name, d_model=24, n_heads=2)
    own = table_of(model, name).values
    assert own == near(turning_table(name, 10, own.shape[1]).values)


@SIZES
def test_after_a_wavelength_a_pair_is_where_it_was(length, width, base):
    found = wavelengths(width, base)
    table = turning_table("sinusoidal", length, width, base).values
    assert found[0] == pytest.approx(2 * math.pi)
    for pair in range(width // 2):
        assert found[pair] == pytest.approx(2 * math.pi * base ** (2 * pair / width))
        for position in range(length):
            assert table[position, 2 * pair] == pytest.approx(math.sin(2 * math.pi * position / found[pair]), abs=1e-9)


@SIZES
@pytest.mark.parametrize("name", TURNING)
def test_equally_far_apart_is_equally_alike(name, length, width, base):
    similar = similarity(turning_table(name, length, width, base).values)
    assert spread(similar) < 1e-12
    theta = [base ** (-2 * pair / width) for pair in range(width // 2)]
    expected = [sum(math.cos(distance * t) for t in theta) for distance in range(length)]
    found = profile(similar)
    for each in (found.mean, found.low, found.high):
        assert each == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("name", TURNING)
@pytest.mark.parametrize(("steps", "width", "base"), [(1, 2, 10_000), (7, 10, 10), (3, 16, 1e6)])
def test_one_matrix_takes_every_position_a_step_further(name, steps, width, base):
    """Against positions worked out one by one, dimension by dimension."""
    matrix = shift(name, steps, width, base)

    def at(position):
        angles = [position / base ** (2 * pair / width) for pair in range(width // 2)]
        ways = (math.sin, math.cos) if name == "sinusoidal" else (math.cos, math.sin)
        return np.array([way(angle) for angle in angles for way in ways])

    for position in (0, 1, 5, 100):
        assert matrix @ at(position) == pytest.approx(at(position + steps), abs=1e-12)
    assert matrix @ matrix.T == pytest.approx(np.eye(width))
    assert matrix == pytest.approx(np.linalg.matrix_power(shift(name, 1, width, base), steps))
    pair = np.arange(width) // 2
    assert (matrix[pair[:, None] != pair[None, :]] == 0).all()


@pytest.mark.parametrize("name", TURNING)
@pytest.mark.parametrize(("length", "width", "base"), [(2, 2, 10), (9, 6, 100), (40, 16, 1_000_000)])
def test_what_a_matrix_misses_is_found_wherever_it_is(name, length, width, base):
    table, matrix = turning_table(name, length, width, base).values.copy(), shift(name, 1, width, base)
    assert deviation(table, matrix, 1) < 1e-12
    table[-1, -1] += 0.25
    assert deviation(table, matrix, 1) == pytest.approx(0.25)


def test_rotary_scores_are_those_of_the_encoding_that_models_use():
    scores = rotary_scores(12, 8)
    assert spread(scores) < 1e-12
    assert scores.std() > 0.1
    rng = np.random.default_rng(0)
    query, key = (np.stack([rng.normal(size=4), rng.normal(size=4)], axis=1).reshape(8) for _ in range(2))
    rotary = ENCODINGS["rotary"](n_ctx=12, d_model=8, n_heads=1)
    queries, keys = (rotary.rotate(torch.tensor(x).expand(12, 8)).double().numpy() for x in (query, key))
    assert scores == pytest.approx(queries @ keys.T, abs=1e-5)


def test_a_linear_recurrence_is_found_and_holds_for_steps_not_seen():
    """x(p + 1) = A x(p): with more steps than dimensions there is one A, and it is found."""
    rng = np.random.default_rng(0)
    step = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    table = np.array([np.linalg.matrix_power(step, p) @ [1.0, 2, 3, 4] for p in range(20)])
    found = fit_shift(table, 2)
    assert found.matrix == pytest.approx(step @ step, abs=1e-9)
    assert found.fitted == 18
    assert (found.missed, found.unseen) == pytest.approx((0, 0), abs=1e-9)


def test_the_nearest_map_is_that_of_the_normal_equations():
    table = np.random.default_rng(0).normal(size=(30, 3))
    before, after = table[:-1], table[1:]
    expected = (after.T @ before) @ np.linalg.inv(before.T @ before)
    found = fit_shift(table, 1)
    assert found.matrix == pytest.approx(expected)
    squares = [np.sum((y - expected @ x) ** 2) for x, y in zip(before, after, strict=True)]
    assert found.missed == pytest.approx(math.sqrt(sum(squares) / np.sum(after**2)))
    assert found.unseen > found.missed > 0.5


def test_few_steps_are_hit_whatever_they_are_and_prove_nothing():
    """One-hot positions: each step is hit, and of a step that was not seen nothing at all is known."""
    found = fit_shift(np.eye(6), 1)
    assert found.missed == pytest.approx(0, abs=1e-12)
    assert found.unseen == pytest.approx(1)
    assert math.isnan(fit_shift(np.eye(2), 1).unseen)
    assert fit_shift(np.zeros((3, 2)), 1).missed == 0


@pytest.mark.parametrize("n_heads", [1, 4, 8, 12])
def test_slopes_and_penalties_are_those_of_the_encoding(n_heads):
    found = slopes(n_heads)
    assert found == pytest.approx([2 ** (-8 * (head + 1) / n_heads) for head in range(n_heads)])
    bias = ENCODINGS["alibi"](n_ctx=5, d_model=n_heads, n_heads=n_heads).bias(5, 5).numpy()
    for head in range(n_heads):
        matrix = penalty(float(found[head]), 5)
        assert all(matrix[q, k] == -found[head] * abs(q - k) for q in range(5) for k in range(5))
        assert matrix == pytest.approx(bias[head])


@EVERY
def test_lengths_are_roots_of_sums_of_squares(name):
    for own in ("learned", "rotary"):
        model = model_with(own, d_model=16, n_heads=2)
        found = lengths_of(model, name)
        weights = model.embedding.weight.detach().double().numpy()[:-1]
        assert found.tokens == pytest.approx(np.sqrt((weights**2).sum(axis=1)))
        assert (found.factor, found.scaled) == (4, True)
        if described(name).told == "vectors":
            rows = table_of(model, name).values.astype(float)
            assert found.positions == pytest.approx(np.sqrt((rows**2).sum(axis=1)))
        else:
            assert found.positions is None


def test_the_compiled_models_vectors_are_one_long_and_not_scaled():
    found = lengths_of(compiled_reverser(4), "learned")
    assert {*found.tokens, *found.positions} == {1}
    assert not found.scaled


@pytest.mark.parametrize("d_model", [64, 256])
def test_why_embeddings_are_scaled(d_model):
    """As they are drawn they are about 1 long, where learned positions start about sqrt(d) long."""
    found = lengths_of(model_with("learned", d_model=d_model), "learned")
    assert found.tokens.mean() == pytest.approx(1, abs=0.1)
    assert found.positions.mean() == pytest.approx(math.sqrt(d_model), rel=0.1)


MIXED = {"d_model": 16, "n_heads": 2, "d_ff": 8}
OWN = pytest.mark.parametrize("own", ["learned", "rotary", "alibi", "none"])
TASK = pytest.mark.parametrize("task", ["reverse", "reverse-aligned", "reverse-translate"])


def reader(own, task):
    """A model, what it reads, and its weights as they are before somebody looks at it."""
    model = build(RunConfig(task=TaskConfig(task=task, length=5), model=ModelConfig(positions=own, **MIXED)))
    source = torch.tensor([2, 7, 1]) if task == "reverse-translate" else None
    return model, torch.tensor([3, 1, 4, 1, 5]), source, {k: v.clone() for k, v in model.state_dict().items()}


@pytest.mark.daily(4)
@OWN
@TASK
def test_without_positions_and_masks_order_does_not_exist(own, task):
    model, tokens, source, before = reader(own, task)
    found = read_backwards(model, tokens, source, everything_seen=True)
    assert found.moved < 1e-12
    masked = read_backwards(model, tokens, source, everything_seen=False)
    assert (masked.moved > 1e-3) == (task != "reverse-aligned")  # whose own mask hides nothing
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())

    # A model that is built without positions and without a mask, with the same weights, says the same.
    shape = ModelConfig(positions="none", mask="full", **MIXED)
    bag = build(RunConfig(task=TaskConfig(task=task, length=5), model=shape))
    bag.load_state_dict({name: value for name, value in before.items() if not name.startswith("positions.")})
    with torch.no_grad():
        says = bag.double()(tokens.flip(0)[None], None if source is None else source.flip(0)[None])[0]
    assert found.backwards == pytest.approx(says.numpy(), abs=1e-12)


@pytest.mark.daily(4)
@OWN
@TASK
def test_the_last_token_gets_the_same_from_any_order_without_positions(own, task):
    model, tokens, source, before = reader(own, task)
    found = read_in_two_orders(model, tokens, source)
    without, told = found.moved
    assert found.told.shape == found.untold.shape == (2, 16)
    assert without < 1e-12
    assert (told > 1e-6) == (own != "none")
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    # the first row is the input as it is read: the last of a causal decoder's queries sees everything anyway
    if task == "reverse":
        seen = observe(copy.deepcopy(model).double(), tokens[None])
        assert found.told[0] == pytest.approx(seen["decoder.0.self_attention.out"][0, -1].numpy(), abs=1e-12)
