"""The fifth question: a model without positions against the ceiling of a bag of tokens."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dashboard.app_pages.how_it_began.questions import bag
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


@pytest.mark.parametrize(
    ("mean", "low", "said"),
    [
        ([0.2, 0.3, 0.4], [0.1, 0.2, 0.3], ""),
        ([0.32, 0.3, 0.4], [0.29, 0.2, 0.3],
         "a stands 0.020 above its ceiling, by the luck of these sequences: its interval holds the ceiling."),
        ([0.32, 0.41, 0.4], [0.29, 0.39, 0.3],
         "a and b stand up to 0.020 above their ceilings, by the luck of these sequences: their intervals hold the "
         "ceilings."),
        ([0.32, 0.41, 0.4], [0.31, 0.39, 0.3],
         "a and b stand up to 0.020 above their ceilings, farther than their intervals reach."),
    ],
)  # fmt: skip
def test_bars_above_their_ceilings_are_explained_as_far_as_the_intervals_go(mean, low, said):
    assert bag.lucky(["a", "b", "c"], np.array(mean), np.array(low), np.array([0.3, 0.4, 0.5])) == said


def test_the_last_symbol_is_the_one_that_stands_an_odd_number_of_times():
    """What the caption says of the last place, for every question drawn: so its ceiling is 1."""
    for x in np.random.default_rng(0).integers(0, 10, (200, 8)):
        read = np.concatenate([x, x[::-1][:-1]])
        assert [s for s in range(10) if (read == s).sum() % 2] == [x[0]]
    assert bag_ceiling(8, 10)[-1] == pytest.approx(1)


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
    most = bag_ceiling(8, 10)
    over = [f"y{i + 1}" for i in range(8) if right[i] > most[i]]
    half = 1.96 * np.sqrt(right * (1 - right) / len(x))
    assert all(right[i] - half[i] <= most[i] for i in range(8))
    captions = [caption.value for caption in app.caption]
    luck = f"{' and '.join(over)} stand up to {(right - most).max():.3f} above their ceilings, by the luck"
    assert any(luck in caption for caption in captions) == (len(over) == 2)
    assert over or not any("above" in caption for caption in captions)
    assert any(f"this layer gets {right[-1]:.2f} right." in caption for caption in captions)
    assert app.title[0].value.endswith(f"at most {bag_ceiling(8, 10).mean():.2f} of a reversal.")
