"""How long a figure takes when it is made in one go, beside the same figure put together step by step.

`python benchmarks/figures.py --save` writes FIGURES.md. "Finished" is `go.Figure` of traces and layout that are there
already, which Plotly has only to check. "Step by step" adds the same traces, shapes and annotations one after another,
as Plotly's own examples do. The three are timed in turn, and the ratio is taken turn by turn.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from importlib.metadata import version

import numpy as np
import plotly.graph_objects as go
from kit.pages import options, page, spread, table

from dashboard.figures.accuracy import accuracy_by_position_bars
from dashboard.figures.effects import redundancy_heatmap
from dashboard.figures.loss import loss_curve
from dashboard.figures.patterns import pattern_heatmap

PAGE = "FIGURES.md"
TURNS = 40
N = 17
"""Tokens: reversal at length 8."""
TOKENS = [str(i % 10) for i in range(N)]
MASK = np.tril(np.ones((N, N), dtype=bool))
SHARES = np.random.default_rng(0).random((N, N)) * MASK
LAST = SHARES[-1]
HALVES = ["first half"] * 9 + ["second half"] * 8
DRAWN: dict[str, Callable[[], go.Figure]] = {
    "accuracy by position": lambda: accuracy_by_position_bars(LAST, LAST, LAST, LAST, 0.1, TOKENS, groups=HALVES),
    "pattern": lambda: pattern_heatmap(SHARES, MASK, TOKENS, TOKENS),
    "pairs of heads removed": lambda: redundancy_heatmap(SHARES[:8, :8], TOKENS[:8]),
    "loss": lambda: loss_curve(np.arange(30), np.linspace(2.3, 0.1, 30), floor=0.1, chance=2.3, solved_at=25),
}


def step_by_step(traces: list[dict], layout: dict) -> go.Figure:
    figure = go.Figure()
    for trace in traces:
        figure.add_trace(trace)
    for shape in layout.get("shapes", ()):
        figure.add_shape(shape)
    for annotation in layout.get("annotations", ()):
        figure.add_annotation(annotation)
    added = ("shapes", "annotations")
    return figure.update_layout({name: value for name, value in layout.items() if name not in added})


def milliseconds(make: Callable[[], go.Figure]) -> float:
    start = time.process_time()
    make()
    return 1000 * (time.process_time() - start)


def main() -> None:
    arguments = options(__doc__, PAGE).parse_args()
    with page(PAGE, "Figures", save=arguments.save):
        report(1 if arguments.quick else TURNS)


def report(turns: int) -> None:
    """Every figure, made in three ways."""
    print(f"Processor time, {turns} turns; plotly {version('plotly')}, numpy {version('numpy')}.")
    table("milliseconds, median and least to most", "ours", "", "finished", "", "step by step", "", "÷ ours", "")
    for name, draw in DRAWN.items():
        figure = draw()
        layout = figure.layout.to_plotly_json() | {"template": figure.layout.template}  # a dictionary would be merged
        parts = [trace.to_plotly_json() for trace in figure.data], layout
        assert json.loads(step_by_step(*parts).to_json()) == json.loads(figure.to_json()), name
        ways = draw, lambda parts=parts: go.Figure(*parts), lambda parts=parts: step_by_step(*parts)
        times = np.array([[milliseconds(way) for way in ways] for _ in range(turns)])
        cells = [*(spread(column.tolist(), 1) for column in times.T), spread((times[:, 2] / times[:, 0]).tolist(), 1)]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
