"""The bundle of plotly.js that browsers get: of the package's version, and of the traces that are drawn."""

from __future__ import annotations

import re

import plotly.graph_objects as go
import pytest
from plotly.offline import get_plotlyjs

from dashboard.components.plot import pack_figure
from dashboard.server import plotly_js


def version_of(script: str) -> str:
    """As its first lines say it."""
    found = re.search(r"plotly\.js (?:\([^)]*\) )?v([\d.]+)", script[:1000])
    assert found is not None
    return found[1]


def test_it_is_the_makers_bundle_of_the_version_that_the_package_has() -> None:
    script = plotly_js.source()
    assert "plotly.js (cartesian - minified)" in script[:200]
    assert "Licensed under the MIT license" in script[:300]
    assert version_of(script) == version_of(get_plotlyjs())
    assert len(script) < len(get_plotlyjs()) / 3


def test_a_trace_that_it_does_not_know_is_refused_in_words() -> None:
    figure = go.Figure(go.Scatter3d(x=[0], y=[0], z=[0]))
    with pytest.raises(ValueError, match="draws no trace of the type scatter3d"):
        pack_figure(figure, key="main", alt="A point.", height=300)
