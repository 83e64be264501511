"""The view and its way through the URL."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.view.settings import FIELDS, Settings, from_query, limits

VALUES = {
    "bool": st.booleans(),
    "str": st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=60),
}


def field_values(field: dataclasses.Field) -> st.SearchStrategy:
    kind = str(field.type)
    if kind.startswith(("int", "float")):
        low, high = limits(field.name)
        return st.floats(low, high) if kind.startswith("float") else st.integers(low, high)
    return VALUES[kind]


@given(st.fixed_dictionaries({}, optional={name: field_values(field) for name, field in FIELDS.items()}))
def test_a_view_survives_the_url(values):
    """Defaults are left out."""
    view = Settings(**values)
    assert from_query(view.to_query()) == (view, [])
    assert set(view.to_query()) == {name for name, value in values.items() if value != FIELDS[name].default}


@pytest.mark.parametrize(
    "query",
    [
        {"layers": "0"},
        {"layers": "many"},
        {"step": "-1"},
        {"mean": "yes"},
        {"length": "1e9"},
        {"run": "x" * 500},
        {"run": "a\x00b"},
        {"<script>alert(1)</script>": "1"},
    ],
)
def test_what_cannot_be_used_falls_back_with_one_notice(query):
    view, notices = from_query(query)
    assert view == Settings()
    assert len(notices) == 1
    assert "<" not in notices[0]


def test_what_a_field_may_be_stands_where_it_is_declared():
    """A field without it would be read with no limits at all."""
    expected = {"bool": set(), "str": {"longest", "passage", "of_model"}}
    for name, field in FIELDS.items():
        assert set(field.metadata) == expected.get(field.type, {"limits", "of_model"}), name
        if "limits" in field.metadata and field.default is not None:
            low, high = limits(name)
            assert low <= field.default <= high, name
