"""What is shown of a training under way."""

from __future__ import annotations

import numpy as np
import pytest

from dashboard.frame.live import progress
from tests.kit import texts
from tests.kit.runs import tiny
from transformer.analysis.accuracy.ceilings import ceiling


@pytest.mark.parametrize(("share", "words"), [(0.0, "0 %"), (0.5, "50 %"), (0.97, "97 %"), (1.0, "100 %")])
def test_the_bar_says_what_share_of_the_way_it_shows(share: float, words: str) -> None:
    config = tiny(max_steps=2000)
    most, chance = ceiling(config).accuracy, config.build_task().chance
    line = {"step": 28, "accuracy": (chance + share * (most - chance)).tolist()}
    found, said = progress(config, 28, [{"step": 20, "accuracy": [0.0] * len(most)}, line, {"step": 29}])
    assert found == pytest.approx(share)
    assert said == f"Accuracy: {words} of the way from guessing to the best possible"


def test_what_cannot_be_known_is_no_progress() -> None:
    config = tiny()
    guessed = ceiling(config).accuracy < 1
    assert guessed.any()
    assert progress(config, 1, [{"step": 1, "accuracy": np.where(guessed, 1.0, 0.0).tolist()}])[0] == 0


def test_before_a_measurement_the_bar_is_empty_and_says_so() -> None:
    assert progress(tiny(), 3, [{"step": 3}]) == (0.0, "Accuracy: not measured yet")


def test_of_a_text_the_bar_shows_the_steps() -> None:
    assert progress(texts.config(), 15, [{"step": 15, "accuracy": [0.5]}]) == (0.25, "Step 15 of 60")
