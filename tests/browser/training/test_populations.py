"""A small population in a real browser: its film, and a click that opens a member."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.kit.driving import PHONE, click_at, go_to, plot, query, title, wait_until_painted
from tests.kit.experiments.populations import trained
from tests.kit.waiting import wait_for
from transformer.experiments.populations.table import Population


@pytest.fixture(scope="module")
def population(runs: Path) -> Iterator[Population]:
    """Beside the other runs, for as long as these tests go on."""
    folder = runs / "small"
    yield trained(folder)
    shutil.rmtree(folder)


def film(page: Page) -> Locator:
    return page.locator(".film[data-state=ready]")


def point_at_member(page: Page, place: int) -> dict[str, float]:
    """Point at the first cell of a member's head; where that is on the stage."""
    x, y = film(page).evaluate(
        """(host, place) => {
          const { layout, ratio } = host.__film, box = layout.grid.boxes[place];
          return [(box.x + 0.5 * box.step) / ratio, (box.y + 0.5 * box.step) / ratio];
        }""",
        place,
    )
    film(page).locator(".stage").hover(position={"x": x, "y": y})
    return {"x": x, "y": y}


def every_head_stands_on_the_stage(page: Page) -> None:
    boxes, width = film(page).evaluate(
        "host => [host.__film.layout.grid.boxes, host.__film.layout.width * host.__film.ratio]"
    )
    assert all(box["x"] + box["width"] <= width for box in boxes)
    assert len({(box["x"], box["y"]) for box in boxes}) == len(boxes) == 3


@pytest.mark.smoke
def test_a_click_in_the_film_opens_a_member(new_page: Callable[..., Page], address: str, population: Population):
    page = new_page(reduced_motion="reduce")
    page.goto(f"{address}/populations?population=small&combination=n_heads%3D2")
    film(page).wait_for()
    wait_until_painted(page, plots=3)
    expect(title(page)).to_have_text(re.compile("of 3 seeds .*with 2 heads"))
    place = point_at_member(page, 2)
    member, row = list(population.rows.items())[5]
    head = str(row.working).replace("decoder.", "").replace(".self_attention", "")
    expect(film(page).locator(".sentence")).to_have_text(re.compile(rf"^Seed 2, head {head}: query '3' at 1 reads key"))
    film(page).locator(".stage").click(position=place)
    expect(page).to_have_url(query(run=f"small%2F{member}", head=str(row.working)))
    expect(page.get_by_text(f"Every page shows {member} now.")).to_be_visible()
    go_to(page, "Attention heads")
    expect(page.get_by_test_id("stSidebar").get_by_label("Model", exact=True)).to_have_value(
        re.compile(f"^{member} · ")
    )


def test_no_head_stands_outside_the_stage_and_a_click_in_the_steps_chooses_a_combination_that_back_takes_away(
    new_page: Callable[..., Page], address: str, population: Population
):
    page = new_page(reduced_motion="reduce", viewport={"width": 1440, "height": 800})
    page.goto(f"{address}/populations?population=small&sidebar=0")
    film(page).wait_for()
    wait_until_painted(page, plots=3)
    every_head_stands_on_the_stage(page)
    expect(title(page)).to_have_text(re.compile("with 1 head"))
    film(page).evaluate("host => window.stays = host")
    click_at(
        plot(page, "populations-steps"),
        """host => {
          const stage = host.querySelector('.js-plotly-plot');
          const dots = stage._fullData.find(({ name }) => name === '2 heads');
          const { xaxis, yaxis } = stage._fullLayout, { left, top } = stage.getBoundingClientRect();
          return [left + xaxis._offset + xaxis.c2p(dots.x[0]), top + yaxis._offset + yaxis.c2p(dots.y[0])];
        }""",
    )
    expect(page).to_have_url(query(combination="n_heads%3D2"))
    expect(title(page)).to_have_text(re.compile("with 2 heads"))
    page.go_back()
    expect(title(page)).to_have_text(re.compile("with 1 head"))
    assert film(page).evaluate("host => host === window.stays"), "no other film stood beside it meanwhile"
    page.set_viewport_size(PHONE)
    width = "host => host.__film.layout.width"
    wait_for(
        "a stage as wide as a phone", lambda: film(page).evaluate(width), lambda found: 0 < found <= PHONE["width"]
    )
    every_head_stands_on_the_stage(page)
