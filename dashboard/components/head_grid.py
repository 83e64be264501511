"""Draws the patterns of all layers and heads as small multiples on one canvas, and reports which head is chosen."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, replace
from typing import Any

import numpy as np

from dashboard.components.appearance import palette
from dashboard.components.origin import Maker
from dashboard.components.payload import Body, Distinct, pack
from dashboard.components.registration import nothing, renderer
from dashboard.theme import Palette, pattern_colours, rgb
from transformer.analysis.findings import Attention, Head

EXACT_CELLS = 131_072
"""Up to this many cells (½ MiB) patterns are sent as float32; beyond, as uint8, and the hover says so with a ≈."""
MOST_CELLS = 786_432
"""More cells than this (¾ MiB) are not sent at all: patterns are downsampled, and the hover says by how much."""

HTML = """
<div class="scroller">
  <div class="grid" role="application" tabindex="0" aria-describedby="help" data-panels="0">
    <canvas class="base"></canvas>
    <canvas class="overlay"></canvas>
  </div>
</div>
<div class="foot"><p class="sentence" role="status" aria-live="polite"
  data-hint="Point at a cell; click a head to choose it."></p></div>
<p class="help" id="help">Arrow keys choose a head; Enter chooses it again. Point at a cell to read its value.</p>
"""


@dataclass(frozen=True, eq=False)
class Panel:
    """One head's pattern, with its place: `row` and `column` (layer and head) within a named `group`, from 0."""

    name: str
    group: str
    row: int
    column: int
    pattern: np.ndarray
    """float [query, key], 0 to 1. Of a pattern that is already downsampled, its blocks."""
    mask: np.ndarray | None
    """bool [query, key], True = this query may see this key; None where all may be seen."""
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    factor: int = 1
    """How many tokens a side of a cell stands for."""
    whole: tuple[int, int] | None = None
    """The shape of the whole pattern, where `factor` is not 1."""


@dataclass(frozen=True, eq=False)
class HeadGrid:
    """The grid of `panels`, of which number `focus` is outlined; without one, the panel that another component of
    `link` says.

    `size` is the longest side of a thumbnail in pixels, where the width allows it (never under 36). With `by_row` each
    row has a scale of its own, from 0 to its greatest value. Grids and plots of one `link` share their hovered cell.
    `makers` says whose patterns these are, where they are not those of the page's model.
    """

    panels: Sequence[Panel]
    _: KW_ONLY
    key: str
    focus: int | None
    alt: str
    link: str | None = None
    size: int = 200
    by_row: bool = False
    makers: Sequence[Maker] | None = None

    def draw(self, on_focus: Callable[[], None] | None = None) -> int | None:
        """Mount it, and return the number of the panel chosen in this rerun, if any.

        In `on_focus` the chosen number is `st.session_state[key]["focus"]`.
        """
        mount = renderer("head_grid", html=HTML, isolate_styles=True)
        result = mount(key=self.key, data=self.pack(palette()), on_focus_change=on_focus or nothing)
        chosen: int | None = result.focus
        return chosen

    def pack(self, colours: Palette) -> bytes:
        """The message for the browser; its body holds the patterns, then the distinct masks, then the colours.

        The header says where each begins, in bytes from the start of the body. Masks and token labels that several
        panels share are sent once. Raises ValueError for what cannot be drawn.
        """
        self._check()
        panels = _fitting(self.panels)
        exact = sum(panel.pattern.size for panel in panels) <= EXACT_CELLS
        body = Body()
        labels = Distinct()
        records: list[dict[str, Any]] = []
        for panel in panels:
            rows, columns = panel.pattern.shape
            records.append(
                {
                    "name": panel.name,
                    "group": panel.group,
                    "row": panel.row,
                    "column": panel.column,
                    "rows": rows,
                    "columns": columns,
                    "pattern": body.add(_encode(panel.pattern, exact)),
                    "queries": labels.add(panel.queries),
                    "keys": labels.add(panel.keys),
                }
            )
            if panel.factor > 1:
                records[-1] |= {"factor": panel.factor, "whole": panel.whole}
        for panel, record in zip(panels, records, strict=True):
            if panel.mask is not None and not panel.mask.all():
                record["mask"] = body.add_once(np.ascontiguousarray(panel.mask, dtype=np.uint8).tobytes())
        header: dict[str, Any] = {
            "key": self.key,
            "alt": self.alt,
            "focus": self.focus,
            "dark": colours.dark,
            "link": self.link,
            "size": self.size,
            "byRow": self.by_row,
            "forbidden": list(rgb(colours.forbidden)),
            "exact": exact,
            "labels": labels.values,
            "colours": body.add(np.ascontiguousarray(pattern_colours(colours.dark)).tobytes()),
            "panels": records,
        }
        if self.makers is not None:
            header["makers"] = [asdict(maker) for maker in self.makers]
        return pack(header, bytes(body.data))

    def _check(self) -> None:
        if not self.panels:
            raise ValueError("A head grid needs at least one panel.")
        if self.focus is not None and not 0 <= self.focus < len(self.panels):
            raise ValueError(f"focus is the number of a panel, 0 to {len(self.panels) - 1}, not {self.focus}.")
        if not self.alt.strip():
            raise ValueError("A head grid needs alt: one sentence that says in words what the patterns show.")
        if self.size < 36:
            raise ValueError(f"A thumbnail's size is at least 36 pixels, not {self.size}.")
        places: dict[tuple[str, int, int], str] = {}
        for panel in self.panels:
            _check_panel(panel)
            place = (panel.group, panel.row, panel.column)
            if place in places:
                both = f"Panels {places[place]} and {panel.name}"
                raise ValueError(f"{both} have the same place in group {panel.group!r}.")
            places[place] = panel.name


def heads_of(attentions: Mapping[str, Attention]) -> list[Head]:
    """All heads, in the order of the data's way."""
    return [Head(site, i) for site, attention in attentions.items() for i in range(len(attention.pattern))]


def panels_of(attentions: Mapping[str, Attention], patterns: Mapping[str, np.ndarray] | None = None) -> list[Panel]:
    """A panel for each head, in the order of the data's way; `patterns` are drawn in place of the attentions' own."""
    heads = heads_of(attentions)
    single = len({head.kind for head in heads}) == 1
    panels = []
    for head in heads:
        attention = attentions[head.site]
        panels.append(
            Panel(
                name=head.short,
                group="" if single else head.kind,
                row=head.layer,
                column=head.index,
                pattern=(attention.pattern if patterns is None else patterns[head.site])[head.index],
                mask=attention.mask,
                queries=attention.queries,
                keys=attention.keys,
                factor=attention.factor if patterns is None else 1,
                whole=attention.whole,
            )
        )
    return panels


def _fitting(panels: Sequence[Panel]) -> list[Panel]:
    """The panels, downsampled as far as it takes for all of them to stay within MOST_CELLS."""
    fitted = list(panels)
    while sum(panel.pattern.size for panel in fitted) > MOST_CELLS:
        fitted = [_halved(panel) for panel in fitted]
    return fitted


def _halved(panel: Panel) -> Panel:
    """A panel of half the resolution: each cell is the strongest of four."""
    whole, factor = panel.whole or panel.pattern.shape, 2 * panel.factor
    return replace(
        panel,
        pattern=downsampled(panel.pattern, 2),
        mask=None if panel.mask is None else downsampled(panel.mask, 2),
        queries=panel.queries[::2],
        keys=panel.keys[::2],
        factor=factor,
        whole=(whole[0], whole[1]),
    )


def downsampled(cells: np.ndarray, factor: int) -> np.ndarray:
    """The greatest of each block of factor × factor cells; blocks at the far edges may be smaller."""
    return _greatest(_greatest(cells, factor).T, factor).T


def _greatest(rows: np.ndarray, factor: int) -> np.ndarray:
    """The greatest of each `factor` rows, column by column. Row by row: fifteen times as fast as `maximum.reduceat`."""
    found = rows[::factor].copy()
    for first in range(1, factor):
        others = rows[first::factor]
        np.maximum(found[: len(others)], others, out=found[: len(others)])
    return found


def _encode(pattern: np.ndarray, exact: bool) -> bytes:
    if exact:
        return np.ascontiguousarray(pattern, dtype="<f4").tobytes()
    bounded = np.clip(np.nan_to_num(pattern, nan=0.0), 0, 1)
    return np.rint(bounded * 255).astype(np.uint8).tobytes()


def _check_panel(panel: Panel) -> None:
    if panel.pattern.ndim != 2 or panel.pattern.size == 0:
        raise ValueError(f"Panel {panel.name}: a pattern is [query, key], not {list(panel.pattern.shape)}.")
    rows, columns = panel.pattern.shape
    if len(panel.queries) != rows or len(panel.keys) != columns:
        raise ValueError(
            f"Panel {panel.name}: {len(panel.queries)} query labels and {len(panel.keys)} key labels "
            f"for a pattern of {rows} × {columns}."
        )
    if panel.mask is not None and panel.mask.shape != panel.pattern.shape:
        raise ValueError(f"Panel {panel.name}: the mask is {list(panel.mask.shape)}, the pattern {[rows, columns]}.")
    if panel.row < 0 or panel.column < 0:
        raise ValueError(f"Panel {panel.name}: row and column count from 0, not {panel.row} and {panel.column}.")
