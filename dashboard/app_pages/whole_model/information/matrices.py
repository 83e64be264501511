"""Three matrices beside each other: effect of replacing a token, gradient, attention; by cell or by block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from dashboard.app_pages.whole_model.information.figures import Axes, Words, influence_heatmap
from dashboard.app_pages.whole_model.information.influence import Flow
from dashboard.theme import LIGHT, Palette
from transformer.foundation.claims import claim

NO_PATH, NO_PATH_TO_ANY = "no path to output {output} from {slot}", "no path to any output at {output} from {slot}"


@dataclass(frozen=True, eq=False)
class Matrix:
    """One of the three as it is drawn; a cell may stand for a block of cells."""

    values: np.ndarray
    """None negative: float [row, column]."""
    reach: np.ndarray
    """May any cell of the block be above 0? bool [row, column]."""
    leaking: np.ndarray
    """Is any of them above 0 that may not be? bool [row, column]."""
    axes: Axes
    words: Words
    poked: int
    """The column that is framed."""
    most: float | None = None
    """The end of the scale, where it is known before the values are."""

    @claim
    def greatest(self) -> str:
        """The greatest value and its cell; where no digit tells several cells apart, how many they are."""
        if not self.values.any():
            return "All values are 0."
        most = f"{self.values.max():.3g}"
        near = np.argwhere(self.values >= 0.99 * self.values.max()).tolist()  # what is written alike is no farther
        level = [(row, column) for row, column in near if f"{self.values[row, column]:.3g}" == most]
        row, column = level[0]
        cell = self.words.cell.format(output=self.axes.rows[row], slot=self.axes.columns[column], value=most)
        if len(level) > 1:
            return f"{len(level):,} cells have the largest value; the first: {cell}."
        return f"Largest value: {cell}."

    def figure(self, link: str, *, palette: Palette = LIGHT) -> go.Figure:
        return influence_heatmap(
            self.values,
            self.reach,
            self.axes,
            self.words,
            leaking=self.leaking,
            most=self.most,
            poked=self.poked,
            link=link,
            palette=palette,
        )


def moves(flow: Flow) -> Matrix:
    """How far each output, or the farthest of each block, moves when a token is poked."""
    by_row, leaking = flow.grain.by_row, flow.leaks[0]
    words = Words("output {output} moves by {value} when {slot} is replaced", NO_PATH)
    rows = _outputs(flow)
    if not flow.grain.whole:
        words = Words("an output at {output} moves by {value} when {slot} is replaced", NO_PATH_TO_ANY)
        rows = flow.grain.row_places
    return _matrix(flow, (by_row(flow.moved), by_row(~flow.forbidden), by_row(leaking)), rows, _tokens(flow), words)


def slopes(flow: Flow) -> Matrix:
    """How steeply the logit of each output, or of the one that stands for its block, leans on the poked tokens."""
    allowed = ~flow.forbidden[list(flow.grain.standing)]
    words = Words("the gradient of output {output} with respect to {slot} is {value} long", NO_PATH)
    return _matrix(flow, (flow.leaning, allowed, flow.leaks[1]), _outputs(flow), _tokens(flow), words)


def rolled_out(flow: Flow, rolled: np.ndarray, even: np.ndarray) -> Matrix:
    """Attention through all layers, float [output, slot], beside what it would be if every head looked evenly."""
    words = Words("output {output} gets {value} of its rolled-out attention from {slot}", NO_PATH)
    afar = Words(
        "an output at {output} gets {value} of its rolled-out attention from a token at {slot}",
        "no path to any output at {output} from any token at {slot}",
    )
    return _attention(flow, rolled, even > 0, words if flow.grain.whole else afar)


def head_of(flow: Flow, pattern: np.ndarray, mask: np.ndarray) -> Matrix:
    """A head's pattern over the slots, float [output, slot]."""
    words = Words("output {output} looks at {slot}: {value}", "output {output} may not see {slot}")
    afar = Words(
        "an output at {output} looks at a token at {slot}: {value}", "no output at {output} may see a token at {slot}"
    )
    return _attention(flow, pattern, mask, words if flow.grain.whole else afar)


def _attention(flow: Flow, values: np.ndarray, seen: np.ndarray, words: Words) -> Matrix:
    grain, leaking = flow.grain, ~seen & (values > 0)
    rows, columns = (_outputs(flow), _tokens(flow)) if grain.whole else (grain.row_places, grain.column_places)
    found = grain.by_block(values), grain.by_block(seen), grain.by_block(leaking)
    return _matrix(flow, found, rows, columns, words, 1.0)


def _matrix(
    flow: Flow,
    cells: tuple[np.ndarray, np.ndarray, np.ndarray],
    rows: Sequence[str],
    columns: Sequence[str],
    words: Words,
    most: float | None = None,
) -> Matrix:
    grain = flow.grain
    axes = Axes(grain.row_labels, grain.column_labels, rows, columns, grain.n_source_columns)
    return Matrix(*cells, axes, words, grain.column(flow.slot), most)


def _outputs(flow: Flow) -> list[str]:
    """What is said where: by each output, or by those that stand for their blocks."""
    names = flow.model.task.vocabulary
    return [f"'{names[flow.pokes.said[place]]}' at {place + 1}" for place in flow.grain.standing]


def _tokens(flow: Flow) -> list[str]:
    """The tokens that are poked, and where they stand."""
    return [flow.grain.place(slot) for slot in flow.grain.poked]
