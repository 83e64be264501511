"""What the first page needs, made ready while the first browser still loads its own part."""

from __future__ import annotations

from threading import Thread


def make_ready() -> None:
    """Begin, in a thread: import what pages import, and draw figures of the first page for nobody.

    Plotly reads its definitions at the first figure.
    """
    Thread(target=_make_ready, name="first page", daemon=True).start()


def _make_ready() -> None:
    from dashboard.figures import patterns
    from dashboard.frame import health, live, sharing, sidebar, training_panel  # noqa: F401
    from dashboard.frame.guided import exercise, lecture, prediction  # noqa: F401
    from dashboard.models import menu
    from dashboard.models.model import Model
    from dashboard.parts.learning import accuracy_bars
    from transformer.analysis.accuracy import ceilings

    choice = next(iter(menu.menu().values()))
    model = Model.of(choice, choice.snapshots[-1])
    run = model.run
    if run is None or run.example is None or run.evaluation is None:
        return  # the rest would need PyTorch
    attention = next(iter(model.sample(model.task.example).attentions.values()))
    patterns.pattern_heatmap(attention.pattern[0], attention.mask, attention.queries, attention.keys)
    accuracy_bars(model.accuracy(run.evaluation["sequences"]), ceilings.ceiling(model.config).accuracy)
