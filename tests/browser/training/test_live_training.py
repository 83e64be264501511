"""Training in a real browser: watched, paused, stepped, resumed, and left behind as a film."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.kit.driving import PAGES, go_to, query, title, violations, wait_until_painted
from tests.kit.runs import looked_after, reached
from tests.kit.waiting import wait_for
from transformer.training.runs import Run

UNSOLVABLE = "layers=1&heads=1&width=8&positions=none"
"""A model that cannot reverse, so that its training lasts as long as it may; its steps are quick."""


def panel(page: Page) -> Locator:
    """The headline of the training that is watched."""
    return page.locator(".st-key-training p").first


def stage(page: Page) -> Locator:
    return page.locator(".st-key-training .film[data-state=ready]")


def train(page: Page) -> Locator:
    return page.get_by_test_id("stSidebar").get_by_test_id("stBaseButton-primary")


def begin(page: Page, address: str, settings: str) -> str:
    """Press Train with these settings; the name of the run."""
    page.goto(f"{address}/machine?{settings}")
    wait_until_painted(page, PAGES["The machine"])
    train(page).click()
    expect(panel(page)).to_contain_text(re.compile(r"-\d+\b"))
    name: str = re.findall(r"\S+-\d+\b", panel(page).inner_text())[0]
    return name


@pytest.mark.smoke
def test_a_training_is_watched_its_model_taken_and_its_film_shown(page: Page, address: str, runs: Path):
    page.goto(f"{address}/?seed=1&run=reverse-sinusoidal")
    wait_until_painted(page, plots=3)
    train(page).click()
    expect(panel(page)).to_contain_text(re.compile(r"solved at step \d+, after [\d.]+ s\."))
    expect(page.locator(".st-key-training-taken")).to_have_text("The pages now show it.")
    name, step = re.findall(r"(\S+): solved at step (\d+)", panel(page).inner_text())[0]
    expect(page.get_by_label("Model", exact=True)).to_have_value(re.compile(rf"^{name} ·"))
    expect(page.get_by_test_id("stSidebar").get_by_text(re.compile(rf"· {step} steps$"))).to_be_visible()
    expect(page).to_have_url(query(run=name, seed="1"))
    expect(page.get_by_test_id("stMain").get_by_text(re.compile("^Second half 1.00, first half 0.1"))).to_be_visible()
    expect(title(page)).to_have_text(re.compile("^This transformer (reads|is to read) eight digits"))
    expect(train(page)).to_be_enabled()
    page.keyboard.press("Shift")  # ends the replay
    expect(stage(page)).to_have_count(0)
    assert violations(page) == []
    go_to(page, "Attention heads")  # another page that shows it has the line too, with the way to its film
    expect(page.locator(".st-key-training")).to_contain_text("solved at step")
    expect(stage(page)).to_have_count(0)
    expect(page.locator(".st-key-training").get_by_role("link", name="Film")).to_be_visible()
    page.locator(".st-key-training").get_by_role("button", name="close icon").first.click()
    expect(page.locator(".st-key-training")).to_have_count(0)


def test_pause_and_stop_are_obeyed_at_once_and_the_machine_shows_how_much_each_box_still_changes(
    page: Page, address: str, runs: Path
):
    """By the training: at most one more step begins once the click has reached the folder."""
    name = begin(page, address, f"{UNSOLVABLE}&max_steps=100000")
    run = Run(runs / name)
    expect(page.get_by_role("heading", name="In training now")).to_be_visible()
    expect(page.get_by_text("Below, its boxes show how much each still changes.")).to_be_visible()
    told = page.get_by_text(re.compile(r"From step \d+ to step \d+ training moved “"))
    first = told.inner_text()
    boxes = page.locator(".st-key-machine-live svg text", has_text=re.compile("^moved "))
    expect(boxes.first).to_be_visible()
    shares = [float(text.split()[1]) for text in boxes.all_text_contents()]
    assert len(shares) >= 4
    assert min(shares) > 0
    expect(told).not_to_have_text(first)

    page.get_by_role("button", name="Pause").click()
    wait_for("a pause that is asked for", lambda: run.control, lambda control: control.pause_at == 0)
    taken = len(run.metrics())
    step = reached(run, "paused").step
    assert step <= taken + 1
    expect(panel(page)).to_have_text(f"{name} is paused at step {step} of at most 100000.")
    looked_after(run)
    assert run.state.step == step
    page.get_by_role("button", name="Resume").click()
    reached(run, past=step)
    page.get_by_test_id("stSidebar").get_by_role("button", name="Stop").click()
    expect(panel(page)).to_contain_text(re.compile(r"stopped by hand at step \d+\."))
    expect(page.locator(".st-key-training-taken")).to_be_visible()
    stopped = int(re.findall(r"at step (\d+)", panel(page).inner_text())[0])
    assert (run.state.status, run.state.step) == ("stopped", stopped)
    assert run.snapshot(stopped).stat().st_size > 1000
    expect(page).to_have_url(query(run=name))
    expect(page.locator(".st-key-machine-live")).to_have_count(0)
    expect(page.get_by_text(re.compile(r"^Tint what training moved since step \d+$"))).to_be_visible()
    expect(train(page)).to_be_enabled()


def test_after_a_click_in_the_panel_of_a_training_back_and_forward_are_followed(page: Page, address: str):
    begin(page, address, f"{UNSOLVABLE}&max_steps=100000&pace=key")
    go_to(page, "Through the layers")
    wait_until_painted(page, PAGES["Through the layers"])
    page.get_by_role("radio", name="0", exact=True).click()
    expect(page).to_have_url(query(through="0"))
    expect(page.get_by_text(re.compile("^In the rollout through layer 0, "))).to_be_visible()
    page.get_by_role("button", name="Step", exact=True).click()
    expect(panel(page)).to_contain_text("is paused at step 2 of")
    page.go_back()
    expect(page.get_by_text(re.compile("^In the rollout through layer 1, "))).to_be_visible()
    page.get_by_role("button", name="Step", exact=True).click()
    expect(panel(page)).to_contain_text("is paused at step 3 of")
    page.go_forward()
    expect(page.get_by_text(re.compile("^In the rollout through layer 0, "))).to_be_visible()


def test_a_training_is_taken_step_by_step_with_the_keyboard_and_a_closed_tab_does_not_end_it(
    new_page: Callable[..., Page], address: str, runs: Path
):
    page = new_page()
    name = begin(page, address, f"{UNSOLVABLE}&max_steps=200&seed=7&pace=key")
    run, said = Run(runs / name), "{} is paused at step {} of at most 200."
    expect(panel(page)).to_have_text(said.format(name, 1))
    button = page.get_by_role("button", name="Step", exact=True)
    expect(button).to_be_visible()
    for step in (2, 3):
        page.keyboard.press("n")
        expect(panel(page)).to_have_text(said.format(name, step))
        expect(stage(page)).to_have_attribute("data-losses", str(step))
        expect(stage(page)).to_have_attribute("data-patterns", str(step))
    for _ in range(4):
        page.keyboard.press("n")
        page.wait_for_timeout(60)
    expect(panel(page)).to_have_text(said.format(name, 7))
    button.dblclick()
    expect(panel(page)).to_have_text(said.format(name, 9))
    page.keyboard.press("p")
    reached(run, past=9)
    page.close()
    reached(run, "finished")
    assert run.config.training.seed == 7
    assert [line["step"] for line in run.metrics()] == list(range(1, 201))
    assert run.snapshot(200).is_file()
    assert run.evaluation is not None
