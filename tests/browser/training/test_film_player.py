"""The film in a real browser: it plays without the server, obeys hands and keys, and leaves as a file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, expect

from tests.kit.driving import MEASURED, go_to, query, title, wait_until_painted
from tests.kit.waiting import wait_for
from transformer.analysis.film.film import Film


def film(page: Page) -> Locator:
    return page.locator(".film[data-state=ready]")


def stands(page: Page) -> dict[str, Any]:
    """What the film shows: its step, and those of its patterns, its accuracy and its losses."""
    found: dict[str, Any] = film(page).evaluate("host => ({ ...host.dataset })")
    return found


def open_film(page: Page, address: str, run: str = "reverse") -> None:
    page.goto(f"{address}/film?run={run}")
    film(page).wait_for()
    wait_until_painted(page, plots=2)


def test_it_plays_by_itself_without_asking_the_server(page: Page, address: str, runs: Path):
    kept = Film.load(runs / "reverse" / "film.npz").steps.tolist()
    page.goto(address)  # as long as the server looks for its devices, every page asks for them
    expect(page.get_by_test_id("stSidebar").get_by_text("Trains on")).to_be_visible()
    sent: list[Any] = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(frame)))
    open_film(page, address)
    page.wait_for_function(MEASURED)
    film(page).locator(".stage").press("Home")
    film(page).get_by_role("button", name="Play").click()
    expect(film(page)).to_have_attribute("data-playing", "true")
    seen: set[tuple[int, ...]] = set()

    def steps() -> int:
        now = stands(page)
        seen.add(tuple(int(now[name]) for name in ("step", "patterns", "accuracy", "losses")))
        return len(seen)

    def words_in_three_steps() -> int:
        said, before = len(sent), steps()
        wait_for("three more steps of the film", steps, lambda now: now >= before + 3)
        return len(sent) - said

    wait_for("three steps of the film, without a word to the server", words_in_three_steps, lambda words: words == 0)
    for step, patterns, accuracy, losses in seen:
        assert patterns == accuracy == max(one for one in kept if one <= step)
        assert losses == step  # this run has one loss a step


def test_hands_keys_and_pointing_read_its_numbers_a_step_is_used_everywhere_and_the_saved_film_plays_alone(
    new_page: Callable[..., Page], chromium: Browser, address: str, runs: Path, tmp_path: Path
):
    page = new_page(reduced_motion="reduce")
    open_film(page, address)
    reel = Film.load(runs / "reverse" / "film.npz")
    kept = reel.steps.tolist()
    assert stands(page)["playing"] == "false"  # whoever wants less motion starts it himself
    scrubber = film(page).get_by_role("slider", name="Step of training")
    expect(scrubber).to_have_attribute("aria-valuetext", f"Step {kept[-1]}, {len(kept)} of {len(kept)}")
    scrubber.press("Home")
    assert stands(page)["step"] == "0"
    scrubber.press("ArrowRight")
    assert stands(page)["step"] == str(kept[1])
    stage = film(page).locator(".stage")
    for key, step in [
        ("End", kept[-1]),
        ("ArrowLeft", kept[-2]),
        ("ArrowLeft", kept[-3]),
        ("Home", 0),
        ("ArrowLeft", 0),
    ]:
        stage.press(key)
        assert stands(page)["step"] == str(step), key
    stage.press(" ")
    wait_for("step 2, once Space was pressed", lambda: int(stands(page)["step"]), lambda step: step >= 2)
    stage.press(" ")
    assert stands(page)["playing"] == "false"
    moment = re.search(r"; at step (\d+) it is 0\.\d\d", page.get_by_test_id("stMain").inner_text())
    assert moment is not None
    film(page).get_by_role("button", name="sharpens").click()
    assert stands(page)["patterns"] == moment[1]
    expect(scrubber).to_have_attribute("aria-valuetext", re.compile(f"Step {moment[1]}, .*: head .* sharpens"))
    film(page).get_by_role("button", name="2×").click()
    expect(film(page).get_by_role("button", name="2×")).to_have_attribute("aria-pressed", "true")

    stage.press("Home")

    def point(x: float, y: float) -> str:
        stage.hover(position={"x": x, "y": y})
        return film(page).locator(".sentence").inner_text()

    x, y = film(page).evaluate(
        """host => {
          const { layout, ratio } = host.__film, box = layout.grid.boxes[1];
          return [(box.x + 0.5 * box.step) / ratio, (box.y + 2.5 * box.step) / ratio];
        }"""
    )
    weight = reel.readings["decoder.0.self_attention"].levels[0, 1, 2, 0] / 255
    assert point(x, y) == f"Head 0.1: query '4' at 3 reads key '3' at 1: ≈ {weight:.2f} (at step 0)"
    stage.press("ArrowRight")  # the pointer rests, the film goes on
    expect(film(page).locator(".sentence")).to_contain_text(f"(at step {kept[1]})")
    stage.press("Home")
    x, y = film(page).evaluate(
        """host => {
          const { accuracy } = host.__film.layout.plots;
          return [accuracy.x + accuracy.width * 15.5 / 16, accuracy.y + accuracy.height / 2];
        }"""
    )
    share = reel.correct[0, 15] / reel.sequences
    assert point(x, y).startswith(f"Position 16 (y8): {share:.3f} right in 256 sequences at step 0; ceiling 1.00")
    loss = json.loads((runs / "reverse" / "metrics.jsonl").read_text().splitlines()[-1])
    stage.press("End")
    x, y = film(page).evaluate(
        """host => {
          const { losses } = host.__film.layout.plots;
          return [losses.x + losses.width, losses.y + losses.height / 2];
        }"""
    )
    assert point(x - 0.5, y) == f"Step {loss['step']}: loss {loss['loss']:.3f} nats"

    headline = title(page).inner_text()
    with page.expect_download() as saving:
        page.get_by_role("button", name=re.compile("^Save the film")).click()
    saved = tmp_path / saving.value.suggested_filename
    saving.value.save_as(saved)
    said = re.search(r"\((\d+) kB\)", page.get_by_test_id("stDownloadButton").inner_text())
    assert said is not None
    assert round(saved.stat().st_size / 1000) == int(said[1])
    for scheme in ("light", "dark"):
        with chromium.new_context(offline=True, color_scheme=scheme) as alone:  # type: ignore[arg-type]
            check_alone(alone.new_page(), saved.as_uri(), headline, scheme)

    stage.press("Home")
    film(page).get_by_role("button", name="Use step 0 on every page").click()
    expect(page).to_have_url(query(step="0"))
    go_to(page, "Overview")
    expect(title(page)).to_contain_text("It has not learned it yet: ")


def check_alone(own: Page, address: str, headline: str, scheme: str) -> None:
    """A saved film plays, in the reader's own colours, asks for nothing, complains of nothing, and is accessible."""
    complaints: list[str] = []
    asked: list[str] = []
    own.on("console", lambda message: complaints.append(message.text))
    own.on("pageerror", lambda error: complaints.append(str(error)))
    own.on("request", lambda request: asked.append(request.url))
    own.goto(address)
    expect(own.get_by_role("heading", name=headline)).to_be_visible()
    wait_for("step 1 of the saved film", lambda: int(stands(own)["step"]), lambda step: step >= 1)
    assert stands(own)["playing"] == "true"
    film(own).locator(".stage").press("End")
    assert stands(own)["playing"] == "false"
    assert stands(own)["losses"] == stands(own)["step"]
    ground = own.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", ground))) > 384) == (scheme == "light")
    assert Axe().run(own).response["violations"] == []
    assert asked == [address]
    assert not complaints, complaints
