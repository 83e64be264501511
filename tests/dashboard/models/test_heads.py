"""What the pages ask of heads, of a model that has not what it takes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dashboard.models import heads
from dashboard.models.menu import menu
from dashboard.models.model import Model
from tests.kit.checkout import call_that_raised, calls
from tests.kit.pages import open_page, words
from tests.kit.runs import TINY, untrained
from transformer.analysis import assumptions
from transformer.analysis.assumptions import NotCovered
from transformer.config import RunConfig


@pytest.fixture
def without_residual(root: Path) -> Model:
    """A model without residual connections, which pages open as "mine"."""
    untrained(root / "mine", RunConfig(model=replace(TINY, residual=False)))
    return Model.of(menu()["mine"], 0)


def test_every_question_that_the_dashboard_asks_of_a_model_refuses_this_one(without_residual: Model) -> None:
    """A new question needs a model here that has not what it asks for."""
    with pytest.raises(NotCovered, match="no residual connections: rollout counts half of each stream") as refused:
        heads.rolled(without_residual, without_residual.task.example, 0)
    assert {call_that_raised(refused.value, assumptions)} == {*calls("dashboard", assumptions)}


@pytest.mark.usefixtures("without_residual")
@pytest.mark.parametrize("page", ["layers", "information"])
def test_a_page_says_in_place_of_a_rollout_why_there_is_none(page: str) -> None:
    app = open_page(page, run="mine")
    said = words(app) + " ".join(each.value for each in app.info)
    assert "no residual connections: rollout counts half of each stream" in said
