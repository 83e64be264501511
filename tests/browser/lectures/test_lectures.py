"""A lecture in the browser, alone and in a room: what is marked is in sight, and the lecturer's keys work.

On a phone none of its steps scrolls sideways.
"""

from __future__ import annotations

import re
from dataclasses import replace
from urllib.parse import urlencode

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, ViewportSize, expect
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from dashboard.lectures.lecture import SIDEBAR, Lecture
from dashboard.lectures.shelf import lectures
from tests.browser.conftest import SCREEN
from tests.browser.lectures.conftest import PROJECTOR, expect_followed_to, join, open_room, see_question
from tests.kit.driving import PATIENCE, PHONE, SETTLED, fits_a_phone, query
from tests.kit.waiting import wait_for

WHOLE = "attention"
"""The lecture of which every step is gone through."""
OTHERS = sorted({*lectures().files} - {WHOLE})
TERMS = """() => {
  const glossary = document.querySelector('.al-glossary').__glossary;
  glossary.read();
  return glossary.found.map(({ name }) => name).sort((one, other) => one.localeCompare(other));
}"""
PRESSED = """() => [...document.querySelectorAll(':is(.al-presses, [class*=stButton], .stPopover)')]
  .filter((each) => each.closest('[data-testid=stMain]'))
  .filter((each) => each.checkVisibility() && !each.closest('.st-key-lecture, .st-key-prediction, .st-key-glossary'))
  .map((each) => each.closest('[class*=st-key-]').className)"""
"""What can be pressed on the page itself."""
CUT = """(selector) => {
  const edges = (each) => each.getBoundingClientRect();
  const edge = edges(document.querySelector('.st-key-lecture')).bottom;
  const marked = selector && document.querySelector(selector);
  if (marked && edges(marked).height > innerHeight - edge) return [];
  return [...document.querySelectorAll('[data-testid=stMain] :is(h1, h2, h3, p, li, table, canvas, .js-plotly-plot)')]
    .filter((each) => !each.closest('.st-key-lecture, .st-key-training-dock, .st-key-glossary, .visually-hidden'))
    .filter((each) => edges(each).width > 1)
    .filter((each) => each.checkVisibility({ visibilityProperty: true, opacityProperty: true }))
    .filter((each) => edges(each).top < edge - 3 && edges(each).bottom > edge + 3)
    .map((each) => `${each.tagName} ${each.className} ${each.innerText ?? ''}`.slice(0, 120));
}"""
"""What the lower edge of a step's words cuts; nothing where what is marked is higher than the room below them."""
TOPS = "all => all.map((each) => each.getBoundingClientRect()).filter(({ width }) => width).map(({ top }) => top)"


def when_ready(page: Page, link: str) -> None:
    """Open a step, and wait until it hears keys."""
    page.goto(link)
    page.locator(".al-podium[data-state=ready]").wait_for(state="attached", timeout=PATIENCE)
    expect(page.locator(".st-key-lecture-next button")).to_contain_text("Next", timeout=PATIENCE)
    page.get_by_test_id("stSidebar").get_by_test_id("stBaseButton-primary").wait_for(state="attached")  # bears T
    page.wait_for_function(SETTLED)


def expect_step(page: Page, lecture: Lecture, number: int) -> None:
    """A step on a projector: its name, its question until a key is pressed, its mark, and its buttons in one line."""
    step, way = lecture.steps[number - 1], page.locator(".st-key-lecture-way")
    expect(way).to_contain_text(f"step {number} of {len(lecture.steps)}", timeout=PATIENCE)
    expect(way).to_contain_text(step.title)
    if step.question is not None:
        expect(page.locator(".al-prediction h2")).to_have_text("".join(step.question.words), timeout=PATIENCE)
        expect(page.locator(".st-key-lecture-words")).to_be_hidden()
        see_question(page)
        page.keyboard.press("ArrowRight")
        expect(page.locator(".st-key-lecture-words")).to_be_visible()
        see_question(page)
    if step.look:
        marked = page.locator(f".st-key-{step.look}").first
        expect(marked).to_be_in_viewport(timeout=PATIENCE)
        expect(marked).to_have_css("outline-style", "dashed")
    expect(page.locator(".st-key-lecture")).to_be_in_viewport(ratio=0.5)
    marks = f".st-key-{step.look}" if step.look else ""
    wait_for("its words cut nothing", lambda: page.evaluate(CUT, marks), lambda cut: not cut)
    expect(page.locator(".st-key-lecture-next button")).to_contain_text("Next")
    if not step.controls:
        wait_for("a page without buttons", lambda: page.evaluate(PRESSED), lambda found: not found)
    if SIDEBAR not in step.controls:
        buttons = way.locator("button, [data-testid=stLinkButton] a")
        wait_for(
            "six buttons in one line",
            lambda: buttons.evaluate_all(TOPS),
            lambda tops: len(tops) >= 6 and max(tops) - min(tops) < 10,
        )


def test_the_arrow_keys_alone_lead_through_a_lecture_and_every_step_comes_to_who_follows(
    page: Page, follower: Page, address: str
) -> None:
    lecture = lectures().files[WHOLE]
    page.set_viewport_size(PROJECTOR)
    join(follower, address, open_room(page, f"{address}/?lecture={WHOLE}&sidebar=0"))
    for number, step in enumerate(lecture.steps, 1):
        expect_followed_to(follower, number)
        if step.question is not None:
            expect(follower.get_by_role("heading", name=step.title)).to_have_count(0)  # it may tell the answer
            expect(follower.locator(".al-prediction h2")).to_have_text("".join(step.question.words))
        expect_step(page, lecture, number)
        expect(follower.locator(".lecture h2")).to_have_text(step.title)
        title = page.get_by_role("heading", level=1).first
        expect(title).to_be_visible()
        expect(follower.get_by_role("heading", level=1).first).to_have_text(title.inner_text())
        page.wait_for_function(SETTLED)
        expect(follower.locator("#terms dt")).to_have_text(page.evaluate(TERMS))
        if step.look and step.question is None:  # an answer stands over what was predicted
            expect(follower.locator(f".st-key-{step.look}").first).to_be_in_viewport()
        assert follower.evaluate("() => document.documentElement.scrollWidth") == PHONE["width"], step.title
        if number < len(lecture.steps):
            page.keyboard.press("ArrowRight" if number % 2 else "PageDown")


@pytest.mark.parametrize("name", OTHERS)
def test_the_last_step_of_a_lecture_and_its_first_are_shown_and_fit_a_phone(
    page: Page, address: str, name: str
) -> None:
    lecture, last = lectures().files[name], len(lectures().files[name].steps)
    page.emulate_media(color_scheme="dark" if OTHERS.index(name) % 2 else "light")
    page.set_viewport_size(PROJECTOR)
    step = lecture.steps[-1]
    view = replace(step.view, lecture=name, lecture_step=last).to_query()
    when_ready(page, f"{address}/{step.page}?{urlencode(view)}")
    expect_step(page, lecture, last)
    fits_a_phone(page)
    page.set_viewport_size(PROJECTOR)
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".st-key-lecture-way")).to_contain_text(f"step {last - 1} of", timeout=PATIENCE)
    page.goto(f"{address}/lectures")
    page.locator(f".st-key-start-{name} button").click()
    expect_step(page, lecture, 1)
    fits_a_phone(page)


def test_the_lecturers_keys_black_the_screen_size_the_letters_train_and_return(page: Page, address: str) -> None:
    strip, black = page.locator(".st-key-lecture"), page.locator(".al-podium-black")
    when_ready(page, f"{address}/heads?run=reverse&query=9&lecture=attention&lecture_step=4")
    page.keyboard.press(".")
    expect(black).to_be_visible()
    page.keyboard.press("ArrowRight")  # only brings the screen back
    expect(black).to_have_count(0)
    expect(strip).to_contain_text("step 4 of")
    for expected in (1, 0):
        page.keyboard.press("b")
        expect(black).to_have_count(expected)
    size = "() => parseFloat(getComputedStyle(document.documentElement).fontSize)"
    before = page.evaluate(size)
    page.keyboard.press("+")
    assert page.evaluate(size) == pytest.approx(1.1 * before)
    when_ready(page, page.url)
    assert page.evaluate(size) == pytest.approx(1.1 * before)
    page.keyboard.press("-")
    assert page.evaluate(size) == before
    page.keyboard.press("t")
    expect(page).to_have_url(re.compile("run=(?!reverse&)"), timeout=PATIENCE)
    home = page.locator(".st-key-lecture-return button")
    expect(home).to_be_visible(timeout=PATIENCE)
    page.keyboard.press("r")
    expect(page).to_have_url(query(run="reverse"), timeout=PATIENCE)
    expect(home).to_have_count(0, timeout=PATIENCE)


NAMED = re.compile(r"\b[Pp]ress(?:es|ing)? (?:the key )?\*{0,2}([A-Z]|[.+←→−])\*{0,2}(?![\w*])")
"""A key that a lecture tells people to press."""
HAPPENS = {
    "T": (".st-key-training p", ".st-key-training"),
    "F": (".st-key-{look}", ".st-key-{look}"),
}
"""What is to be seen after each of them, as a selector of what has come, and one of the whole."""


def named() -> list[tuple[str, int, str]]:
    """Each key that a step of a lecture names: the lecture, the step and the key."""
    found = []
    for name, lecture in lectures().files.items():
        for number, step in enumerate(lecture.steps, 1):
            said = " ".join(each for each in (*step.prose, *step.notes) if isinstance(each, str))
            found += [(name, number, key) for key in NAMED.findall(said)]
    return found


def expect_inside(page: Page, selector: str) -> None:
    """Wait until an element stands between a step's words and the lower edge of the window, or fills that room."""
    edges = """(selector) => {
      const edges = (each) => document.querySelector(each)?.getBoundingClientRect();
      const [place, words] = [edges(selector), edges('.st-key-lecture')];
      const room = innerHeight - words.bottom;
      return place && { below: place.top - words.bottom, above: innerHeight - place.bottom, free: room - place.height };
    }"""

    def fits(at: dict[str, float] | None) -> bool:
        return at is not None and at["below"] >= 0 and (at["above"] >= 0 or (at["free"] < 24 and at["below"] < 24))

    wait_for(f"{selector} is in sight", lambda: page.evaluate(edges, selector), fits)


@pytest.mark.parametrize("presents", [False, True], ids=["alone", "presented"])
@pytest.mark.parametrize("size", [SCREEN, PROJECTOR], ids=["wide", "projector"])
@pytest.mark.parametrize(("name", "number", "key"), named())
def test_what_a_key_does_that_a_step_names_is_in_sight(
    page: Page, address: str, name: str, number: int, key: str, size: ViewportSize, presents: bool
) -> None:
    step = lectures().files[name].steps[number - 1]
    page.set_viewport_size(size)
    view = replace(step.view, lecture=name, lecture_step=number).to_query()
    when_ready(page, f"{address}/{'' if step.page == 'overview' else step.page}?{urlencode(view)}")
    if step.look:
        expect(page.locator(f".st-key-{step.look}").first).to_be_in_viewport(timeout=PATIENCE)
    presses = page
    if presents:
        with page.expect_popup() as opened:
            page.get_by_role("link", name="Presenter").first.click()
        presses = opened.value
        expect(presses.locator("#place")).to_contain_text(f"Step {number} of")
    if key == "F":
        page.get_by_role("button", name="Explore from here").click()
        expect(page.locator(".st-key-lecture-return button")).to_be_visible()
        page.wait_for_function(SETTLED)
    before = page.url
    presses.keyboard.press(key.lower())
    come, whole = (each.format(look=step.look) for each in HAPPENS[key])
    expect(page).not_to_have_url(before)
    expect(page.locator(come).first).to_be_visible()
    expect_inside(page, whole)
    page.wait_for_function(SETTLED)
    expect_inside(page, whole)


def test_where_a_key_has_changed_the_page_one_explores_returns_and_leaves_and_b_is_its_buttons(
    page: Page, address: str
) -> None:
    when_ready(page, f"{address}/heads?run=reverse&query=9&lecture=attention&lecture_step=4")
    page.keyboard.press("ArrowRight")  # the next step stands on another page
    expect(page).to_have_url(query(operation="dot", lecture_step="5"), timeout=PATIENCE)
    control = page.locator(".st-key-control-head")
    page.get_by_role("button", name="Explore from here").click()
    expect(control).to_be_visible(timeout=PATIENCE)
    expect(page).to_have_url(query(exploring="1"), timeout=PATIENCE)
    page.keyboard.press("f")
    expect(page).to_have_url(query(operation="scale"), timeout=PATIENCE)
    page.keyboard.press("r")
    expect(page).to_have_url(query(operation="dot"), timeout=PATIENCE)
    expect(control).to_be_hidden(timeout=PATIENCE)
    explore = page.get_by_role("button", name="Explore from here")
    expect(explore).to_be_visible()
    page.wait_for_function(SETTLED)
    for expected in (1, 0):  # no button that bears it is shown
        page.keyboard.press("b")
        expect(page.locator(".al-podium-black")).to_have_count(expected)
    explore.click()
    expect(page.locator(".st-key-lecture-return button")).to_be_visible(timeout=PATIENCE)
    page.wait_for_function(SETTLED)
    back = page.get_by_role("button", name="Back", exact=True).last
    expect(back).to_contain_text("B", timeout=PATIENCE)
    while "operation=" in page.url:  # the first of them is none
        before = page.url
        page.keyboard.press("b")
        expect(page).not_to_have_url(before)
        page.wait_for_function(SETTLED)
    expect(back).to_be_disabled()
    page.keyboard.press("b")  # a button that cannot be pressed bears it all the same
    expect(page.locator(".al-podium-black")).to_have_count(0)
    page.get_by_role("button", name="Leave").click()
    expect(page.locator(".st-key-lecture-way")).to_have_count(0, timeout=PATIENCE)


WATCH = """() => {
  window.seen = [];
  const look = () => {
    const step = document.querySelector('.st-key-lecture-way')?.textContent.match(/step (\\d+) of/)?.[1];
    const box = [...document.querySelectorAll('.st-key-prediction *')].find(({ shadowRoot }) => shadowRoot);
    const asks = box?.shadowRoot.querySelector('h2')?.textContent ?? '';
    const covered = Boolean(asks) && !('predicted' in document.documentElement.dataset);
    const since = performance.timeOrigin + performance.now();
    const last = seen.at(-1), now = { step: Number(step), asks, covered, since };
    if (!last || ['step', 'asks', 'covered'].some((name) => last[name] !== now[name])) seen.push(now);
    requestAnimationFrame(look);
  };
  look();
}"""
"""Notes each state of the lecture that a frame shows, and when it came."""
PRESSES = """() => {
  window.pressed = [];
  window.addEventListener('keydown', ({ timeStamp }) => pressed.push(performance.timeOrigin + timeStamp), true);
}"""
"""Notes when keys are pressed in a window: on a busy machine they come later than they are asked for."""


@pytest.mark.parametrize("by", ["keys", "the presenter", "the presenter of a room"])
@pytest.mark.parametrize("pause", [0, 50, 800])
def test_five_presses_skip_no_question_and_none_that_was_meant_for_what_stood_before_answers_it(
    page: Page, follower: Page, address: str, pause: int, by: str
) -> None:
    lecture = lectures().files["attention"]
    if by == "the presenter of a room":
        join(follower, address, open_room(page, f"{address}/?lecture=attention"))
    else:
        when_ready(page, f"{address}/?lecture=attention")
    presses = page
    if by != "keys":
        with page.expect_popup() as opened:
            page.get_by_role("link", name="Presenter").first.click()
        presses = opened.value
        expect(presses.locator("#place")).to_contain_text("Step 1 of")
        page.bring_to_front()
    page.evaluate(WATCH)
    presses.evaluate(PRESSES)
    for _ in range(5):
        presses.keyboard.press("ArrowRight")
        page.wait_for_timeout(pause)
    first = next(number for number, step in enumerate(lecture.steps, 1) if step.question is not None)
    expect(page.locator(".st-key-lecture-way")).to_contain_text(re.compile(f"step [{first}-9] of"))
    page.wait_for_function(SETTLED)
    seen, pressed = page.evaluate("() => seen"), presses.evaluate("() => pressed")
    assert len(pressed) == 5
    for number in range(2, seen[-1]["step"] + 1):  # every step on the way was reached, and asked what it asks
        asked = lecture.steps[number - 1].question
        there = [each for each in seen if each["step"] == number]
        assert there
        if asked is None:
            continue
        covered = next(each for each in there if each["covered"] and each["asks"] == "".join(asked.words))
        answered = [each for each in seen if not each["covered"] and each["asks"] == covered["asks"]]
        answered = [each for each in answered if each["since"] > covered["since"]]
        assert answered or number == seen[-1]["step"], "a question was left without its answer"
        # After 400 ms, and a frame may be late.
        assert all(each["since"] - covered["since"] > 300 for each in answered), "answered before one could read it"
    asked_at = next(each["since"] for each in seen if each["step"] == first and each["covered"])
    if max(pressed) < asked_at + 300:  # none can have been meant for the question
        assert (seen[-1]["step"], seen[-1]["covered"]) == (first, True)
    if by == "the presenter of a room":  # the room is asked what stands there
        expect_followed_to(follower, seen[-1]["step"])
        asked = lecture.steps[seen[-1]["step"] - 1].question
        expect(follower.locator(".al-prediction h2")).to_have_text("".join(asked.words) if asked else "")


def test_a_press_counts_for_a_step_only_once_the_keys_know_what_it_asks(page: Page, address: str) -> None:
    """Words may take long to measure: what is pressed meanwhile was meant for the step before."""
    drawn: list[str] = []

    def received(frame: bytes | str) -> None:
        assert isinstance(frame, bytes)
        element = ForwardMsg.FromString(frame).delta.new_element
        if element.WhichOneof("type") == "bidi_component":
            drawn.append(element.bidi_component.id)

    page.on("websocket", lambda socket: socket.on("framereceived", received))
    when_ready(page, f"{address}/accuracy?run=reverse&lecture=attention&lecture_step=2")
    see_question(page)
    for _ in range(2):
        page.keyboard.press("ArrowRight")
        see_question(page)
    expect(page.locator(".st-key-lecture-way")).to_contain_text("step 3 of")
    page.wait_for_function(SETTLED)
    order = [name for each in drawn for name in ("podium", "lecture-next") if each.endswith(f"-{name}")]
    assert len(order) >= 4
    assert order == ["podium", "lecture-next"] * (len(order) // 2)


def test_a_press_that_was_told_in_vain_is_told_again_by_the_next(page: Page, address: str) -> None:
    when_ready(page, f"{address}/layers?run=reverse&query=9&lecture=attention&lecture_step=10")
    lost = "button => { const told = button.__presses; told.count = told.told = told.limit; told.begins = -Infinity; }"
    page.locator(".st-key-lecture-next button").evaluate(lost)
    page.keyboard.press("ArrowRight")
    expect(page.locator(".st-key-lecture-way")).to_contain_text("step 11 of")


def test_the_presenters_window_follows_and_leads(page: Page, address: str) -> None:
    steps = lectures().files["attention"].steps
    when_ready(page, f"{address}/accuracy?run=reverse&lecture=attention&lecture_step=2")
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Presenter").first.click(timeout=PATIENCE)
    window = opened.value
    place, state, notes = (window.locator(f"#{name}") for name in ("place", "state", "notes"))
    expect(place).to_have_text(f"Step 2 of {len(steps)}", timeout=PATIENCE)
    expect(notes).to_contain_text("the second half, but not the first")
    expect(window.locator("#next")).to_contain_text(steps[2].title)
    expect(state).to_contain_text("The page is covered")
    see_question(page)
    window.keyboard.press("ArrowRight")
    expect(page.locator(".st-key-lecture-words")).to_be_visible(timeout=PATIENCE)
    expect(state).not_to_contain_text("The page is covered")
    see_question(page)
    window.get_by_role("button", name="Next →").click()
    expect(place).to_have_text(f"Step 3 of {len(steps)}", timeout=PATIENCE)
    expect(page.locator(".st-key-lecture-way")).to_contain_text("step 3 of")
    window.reload()
    expect(place).to_have_text(f"Step 3 of {len(steps)}")
    expect(window.locator("#clock")).to_contain_text("of 20 min")
    assert Axe().run(window).response["violations"] == []
    page.get_by_role("button", name="Leave").click()
    expect(state).to_contain_text("The lecture was left", timeout=PATIENCE)
    window.close()
