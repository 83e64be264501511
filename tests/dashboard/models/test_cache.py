"""The cache tells arguments apart by all that they hold, and does not walk through a model to do so."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, replace

import numpy as np
import pytest

from dashboard.models.cache import cached
from dashboard.models.model import Model
from transformer.config import ModelConfig, RunConfig

MODEL = Model("reverse", 40, RunConfig(), 0.0)


def test_large_arrays_that_differ_in_one_cell_are_told_apart() -> None:
    """Streamlit alone compares 100,000 cells of an array of 500,000 or more."""

    @cached(4)
    def last(array: np.ndarray) -> int:
        return int(array[-1])

    first = np.zeros(1_000_000, dtype=np.int64)
    other = first.copy()
    other[-1] = 1
    assert (last(first), last(other)) == (0, 1)


def test_arrays_are_told_apart_by_type_and_shape() -> None:
    @cached(8)
    def said(array: np.ndarray) -> tuple[str, tuple[int, ...]]:
        return array.dtype.name, array.shape

    zeros = [np.zeros(4, np.int64), np.zeros(4), np.zeros((2, 2)), np.zeros((4, 1)), np.zeros(0), np.zeros((0, 3))]
    assert [said(each) for each in zeros] == [(each.dtype.name, each.shape) for each in zeros]


def test_the_same_cells_are_looked_up_however_they_lie_in_memory() -> None:
    worked_out = []

    @cached(4)
    def total(array: np.ndarray) -> int:
        worked_out.append(array)
        return int(array.sum())

    table = np.arange(12).reshape(3, 4)
    assert [total(each) for each in (table, table.copy(), np.asfortranarray(table), table[::-1][::-1])] == [66] * 4
    assert len(worked_out) == 1


def test_what_was_remembered_of_an_array_is_not_what_is_written_into_it_later() -> None:
    @cached(4)
    def total(array: np.ndarray) -> int:
        return int(array.sum())

    array = np.ones(3, dtype=np.int64)
    assert total(array) == 3
    array[0] = 5
    assert (total(array), total(np.ones(3, dtype=np.int64))) == (7, 3)


def test_a_model_is_told_apart_by_its_repr_and_not_walked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True)
    class Stranger:
        config: RunConfig

    @cached(8)
    def of(model: object) -> str:
        return repr(model)

    def walked(*_: object, **__: object) -> None:
        raise AssertionError("walked through")

    # Streamlit's way into a dataclass that it has no function for, as the stranger shows.
    monkeypatch.setattr(dataclasses, "asdict", walked)
    with pytest.raises(Exception, match="walked through"):
        of(Stranger(RunConfig()))
    others = [
        replace(MODEL, step=41),
        replace(MODEL, stamp=1.0),
        replace(MODEL, config=RunConfig(model=ModelConfig(norm="post"))),
    ]
    for each in (MODEL, *others, replace(MODEL), RunConfig(), RunConfig(model=ModelConfig(norm="post"))):
        assert of(each) == repr(each)
    assert of(replace(MODEL)) is of(MODEL)


def test_every_field_of_a_model_is_in_its_repr() -> None:
    def names(value: object) -> list[str]:
        if not dataclasses.is_dataclass(value):
            return []
        fields = dataclasses.fields(value)
        return [f"{each.name}=" for each in fields] + [
            name for each in fields for name in names(getattr(value, each.name))
        ]

    assert len(names(MODEL)) > 30
    assert all(name in repr(MODEL) for name in names(MODEL))
