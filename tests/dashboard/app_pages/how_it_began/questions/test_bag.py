"""The fifth question: a model without positions against the ceiling of a bag of tokens."""

from __future__ import annotations

import numpy as np
import torch

from dashboard.models import background, no_positions, quick_training
from tests.kit.pages import array, figures, open_page
from transformer.analysis.accuracy.bags import bag_ceiling
from transformer.analysis.accuracy.by_position import EVALUATION_STREAM


def test_small_models_that_wait_say_so(busy, monkeypatch):
    monkeypatch.setattr("dashboard.models.background.AT_ONCE", 0.1)
    for positions in no_positions.POSITIONS:
        quick_training._lesson.clear(no_positions.small(positions), background.TRAININGS)  # type: ignore[attr-defined]
    app = open_page("questions", run="reverse", asked="5")
    assert any("Two small models wait for another training" in caption.value for caption in app.caption)


def test_the_bars_of_the_bag_are_the_ceiling_and_a_count():
    """The trained layer, asked here: the sequences that its accuracy is measured on, laid out by hand."""
    app = open_page("questions", run="reverse", asked="5")
    model = quick_training.trained(no_positions.small("none")).model
    rng = np.random.default_rng([no_positions.small("none").training.seed + 1, EVALUATION_STREAM])
    x = torch.from_numpy(rng.integers(0, 10, (no_positions.SEQUENCES, 8)))
    tokens = torch.cat([x, torch.full((len(x), 1), 10), x.flip(1)[:, :-1]], dim=1)
    with torch.no_grad():
        right = (model(tokens).argmax(dim=-1)[:, 8:] == x.flip(1)).double().mean(dim=0).numpy()
    bars = {trace["name"]: trace for trace in figures(app)["bag"]["data"]}
    np.testing.assert_allclose(array(bars["measured"]["y"]), right, atol=1e-6)
    assert any(caption.value.startswith(f"The trained layer gets {right.mean():.2f} right.") for caption in app.caption)
    assert app.title[0].value.endswith(f"at most {bag_ceiling(8, 10).mean():.2f} of a reversal.")
