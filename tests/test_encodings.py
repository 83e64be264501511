"""Positional encodings as tables: the formula's numbers, the model's own weights, and how alike positions are."""

import math

import numpy as np
import pytest
import torch

from transformer.analysis.encodings import similarity, table_of
from transformer.compiled import compiled_reverser
from transformer.config import POSITIONS, ModelConfig, RunConfig, TaskConfig
from transformer.model import build


def model_with(positions: str, length: int = 5, **shape):
    return build(RunConfig(task=TaskConfig(length=length), model=ModelConfig(positions=positions, **shape))).eval()


# --- tables


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
    with torch.no_grad():
        model.positions.get_parameter("table").copy_(torch.arange(10 * 64).reshape(10, 64))
    table = table_of(model, "learned")
    assert np.array_equal(table.values, np.arange(640, dtype=np.float32).reshape(10, 64))
    assert table.note == ""


def test_the_compiled_models_table_tells_every_position_apart():
    table = table_of(compiled_reverser(4), "learned").values
    place = slice(12, 20)
    assert np.array_equal(table[:, place], np.eye(8))
    assert np.array_equal(np.delete(table, np.arange(12, 20), axis=1), np.zeros((8, table.shape[1] - 8)))


def test_a_learned_table_that_is_not_the_models_is_untrained_and_says_so():
    model = model_with("sinusoidal")
    table = table_of(model, "learned")
    assert table.note == "Not this model's: untrained, as it is drawn before the first step."
    assert np.array_equal(table.values, table_of(model, "learned").values)
    assert abs(table.values.mean()) < 0.1
    assert table.values.std() == pytest.approx(1, abs=0.1)


def test_looking_draws_nothing_from_the_random_numbers_of_others():
    model = model_with("none")
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    for name in POSITIONS:
        table_of(model, name)
    assert torch.equal(torch.rand(4), expected)


@pytest.mark.parametrize("name", POSITIONS)
@pytest.mark.parametrize("own", ["learned", "rotary", "none"])
def test_every_encoding_can_be_looked_at_beside_every_model(own, name):
    """One row a position, numbers only, and columns that have a name; 2 · length positions for a continuation."""
    table = table_of(model_with(own), name)
    assert table.values.shape[0] == 10
    assert table.values.shape[1] >= 1
    assert np.isfinite(table.values).all()
    assert table.columns.startswith(table.short)
    assert table.short
    assert isinstance(table.values, np.ndarray)


@pytest.mark.parametrize("name", POSITIONS)
@pytest.mark.parametrize(("d_model", "n_heads"), [(4, 4), (6, 2), (3, 1)])
def test_heads_of_an_odd_width_can_be_looked_at_too(name, d_model, n_heads):
    values = table_of(model_with("learned", d_model=d_model, n_heads=n_heads), name).values
    assert values.shape[1] >= 1
    assert np.isfinite(values).all()


def test_without_positions_all_are_alike():
    values = table_of(model_with("none"), "none").values
    assert (values == values[:1]).all()


def test_a_longer_model_begins_with_the_same_waves():
    short, long = (table_of(model_with("sinusoidal", length), "sinusoidal").values for length in (3, 9))
    assert np.array_equal(long[:6], short)


# --- similarity


def test_similarity_is_every_inner_product():
    table = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
    found = similarity(table)
    for one in range(6):
        for other in range(6):
            product = sum(float(a) * float(b) for a, b in zip(table[one], table[other], strict=True))
            assert found[one, other] == pytest.approx(product, abs=1e-5)


def test_sinusoidal_similarity_depends_on_the_distance_alone():
    """sin a sin b + cos a cos b = cos(a - b), summed over the pairs: the diagonal is d_model / 2."""
    found = similarity(table_of(model_with("sinusoidal", length=20), "sinusoidal").values)
    assert np.allclose(np.diag(found), 32, atol=1e-4)
    for distance in range(1, 40):
        expected = sum(math.cos(distance / 10_000 ** (2 * pair / 64)) for pair in range(32))
        assert np.allclose(np.diag(found, distance), expected, atol=1e-4)
        assert np.allclose(np.diag(found, -distance), expected, atol=1e-4)


def test_neighbours_look_alike_in_waves_and_not_in_what_is_learned():
    """Why sinusoidal positions take longer to learn from: the nearest neighbour, as a share of a position itself."""
    alike = {}
    for name in ("sinusoidal", "learned"):
        found = similarity(table_of(model_with("none", length=8), name).values)
        alike[name] = np.abs(np.diag(found, 1)).mean() / np.diag(found).mean()
    assert alike["sinusoidal"] > 0.9
    assert alike["learned"] < 0.25


@pytest.mark.parametrize("positions", [1, 2, 512])
def test_similarity_of_few_and_of_many(positions):
    found = similarity(np.ones((positions, 3), dtype=np.float32))
    assert found.shape == (positions, positions)
    assert (found == 3).all()
