"""plotly.js as browsers get it here: its makers' own bundle of the kinds of traces that stand in a plane.

The whole of plotly.js draws maps and three dimensions, too: a browser reads it for a second before it draws its first
figure, and this bundle for a third of one. It is `plotly.js-cartesian-dist-min` from npm, of the version that is in the
package plotly; `deploy/update.sh` fetches it.
"""

from __future__ import annotations

import lzma
from functools import cache
from pathlib import Path

FILE = Path(__file__).parent / "plotly" / "plotly-cartesian.min.js.xz"
TRACES = ("bar", "box", "contour", "heatmap", "histogram", "image", "pie", "scatter", "violin")
"""Kinds of traces that it draws; it knows some more."""


@cache
def source() -> str:
    """The script."""
    return lzma.decompress(FILE.read_bytes()).decode()
