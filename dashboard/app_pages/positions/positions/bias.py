"""An encoding that adds a bias to the scores: the bias itself, and whether it goes by the distance alone."""

from __future__ import annotations

import numpy as np
import streamlit as st

from dashboard.app_pages.positions.positions.figures.alibi import bias_heatmap
from dashboard.app_pages.positions.positions.settings import MOST_LONG
from dashboard.components.plot import coloured, plot
from dashboard.figures.kit.numbers import signed
from dashboard.models import positions as models_positions
from dashboard.models.model import Model
from dashboard.parts.prose import capital, encoding_name
from dashboard.parts.widgets import bound_number
from transformer.foundation.claims import claim

SAME = 1e-6
"""Numbers of single precision that differ by less than this share of the largest are the same."""


def added(model: Model, name: str) -> str:
    """What a head adds to its scores, query by key. Returns the page's headline."""
    found = models_positions.bias(model, name)
    assert found is not None
    heads, longest, _ = found.values.shape
    first, second = st.columns(2, gap="large")
    with first:
        most = min(longest, MOST_LONG)
        length = bound_number("Length, positions", "pe_length", most, 1, most, also={"cursor": None})
    with second:
        head = bound_number("Head", "slope", 0, 0, heads - 1)
    shown = found.values[head, :length, :length]
    low, high = float(shown.min()), float(shown.max())
    said = f"Head {head} adds {signed(low)} to {signed(high)} to its scores. {by_distance(shown)}"
    st.markdown(f"**What head {head} adds to its scores**, whatever the tokens are")
    plot(coloured(bias_heatmap, shown), key="bias", alt=said, height=400)
    st.caption(f"{said} Row = query (who looks), column = key (looked at).{f' {found.note}' if found.note else ''}")
    return headline(capital(encoding_name(name)), head, low, high)


@claim
def headline(encoding: str, head: int, low: float, high: float) -> str:
    """From what to what a head adds to its scores."""
    return f"{encoding} positions: head {head} adds {signed(low)} to {signed(high)} to its scores."


@claim
def by_distance(bias: np.ndarray) -> str:
    """Whether a bias, float [query, key], goes by the distance of query and key, or by more."""
    from transformer.analysis.encodings import spread

    if len(bias) < 2:
        return "There is only one position."
    same = SAME * max(1.0, float(np.abs(bias).max()))
    if (apart := spread(bias)) > same:
        return f"Pairs that are equally far apart differ by up to {apart:.3g}: the positions matter too."
    if float(np.abs(bias - bias.T).max()) > same:
        return "It goes by the distance alone, and is another before the query than behind it."
    return "It goes by the distance alone, the same before the query and behind it."
