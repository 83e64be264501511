"""From wherever a model is opened, the view is the same: what was chosen inside the one before is forgotten."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.app_pages.attention.masks.retraining import SEEDS
from dashboard.view.link import FIELDS, OF_MODEL, View, limits
from tests.kit.pages import open_page

NEXT, SEED = "reverse-aligned", SEEDS[0]
KEPT: dict[str, Any] = {"input": "3 1 4 1", "mean": True, "live": False, "sequences": 256, "layers": 3}


def all_chosen(run: str, **others: Any) -> View:
    """A view in which everything that is chosen inside a model is chosen, and some more."""
    chosen = {name: "7" if FIELDS[name].type == "str" else int(limits(name)[1]) for name in OF_MODEL}
    return View(**{**chosen, "step": None, "run": run, **KEPT, **others})


def by_the_sidebar(app: AppTest) -> None:
    app.selectbox(key="control-run").set_value(NEXT)


def by_the_table_of_runs(app: AppTest) -> None:
    app.button(key="open").click()


def by_the_offer_of_a_page(app: AppTest) -> None:
    app.button(key="elsewhere").click()


def by_a_seed(app: AppTest) -> None:
    app.button(key=f"seed-{SEED.mask}").click()


def by_the_end_of_its_training(app: AppTest) -> None:
    app.session_state["watched"] = NEXT


@pytest.mark.daily(3)
@pytest.mark.parametrize(
    ("page", "run", "opened", "besides"),
    [
        ("questions", "reverse", by_the_sidebar, {}),
        ("runs", "reverse", by_the_table_of_runs, {}),
        ("inside", "bottleneck-gru", by_the_offer_of_a_page, {}),
        ("masks", "reverse", by_a_seed, {"mask": SEED.mask, "target": SEED.target, "input": ""}),
        ("questions", "reverse", by_the_end_of_its_training, {}),
    ],
)
def test_what_was_chosen_inside_the_model_before_is_forgotten(
    page: str, run: str, opened: Callable[[AppTest], None], besides: dict[str, Any]
) -> None:
    app = open_page(page, run=run, live="0")
    if page == "runs":
        app.selectbox(key="shelf-run").set_value(NEXT).run()
    app.session_state["settings"] = before = all_chosen(run)
    opened(app)
    app.run()
    assert not app.exception
    now: View = app.session_state["settings"]
    assert now.run != run
    assert now == replace(before, **{**OF_MODEL, "run": now.run, **besides})


def test_a_training_that_ends_leaves_what_is_chosen_inside_its_model() -> None:
    app = open_page("questions", run=NEXT)
    app.session_state["settings"] = before = all_chosen(NEXT, step=20)
    app.session_state["watched"] = NEXT
    app.run()
    assert not app.exception
    assert app.session_state["settings"] == replace(before, step=None)
