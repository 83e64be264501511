"""A model writes, in a real browser: its words are chosen by key and by click, and heads are looked through."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.kit.driving import click_at, colours, plot, query, title, violations

WORD = """(host, index) => {
  const { layout, ratio } = host.__passage, { left, top } = host.getBoundingClientRect();
  const box = layout.boxes.find((each) => each.index === index);
  return box && [left + (box.x + box.width / 2) / ratio, top + (box.y + box.height / 2) / ratio];
}"""
"""Where a word stands on the screen."""


def test_words_come_and_are_chosen_and_heads_are_looked_through(page: Page, address: str, plays: str) -> None:
    page.goto(f"{address}/writing?run={plays}&written=60&prompt=The+crow+that+calls")
    expect(title(page)).to_contain_text("of the 60 tokens that it wrote")
    passage, glances = page.locator(".passage[data-words='68']"), page.locator(".glances[data-heads='8']")
    expect(passage).to_be_visible()
    expect(glances).to_be_visible()
    plot(page, "writing-alternatives").wait_for()
    assert colours(page.locator(".passage canvas.base")) > 8
    assert violations(page) == []
    passage.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.wait_for_url(query(word="3"))
    expect(passage).to_have_attribute("data-chosen", "2")
    click_at(passage, WORD, 12)
    page.wait_for_url(query(word="13"))
    expect(page.get_by_text(re.compile("at 13 was predicted by query 12"))).to_be_visible()
    glances.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.wait_for_url(query(head="decoder.1.self_attention.0"))
    page.get_by_role("button", name="Another seed").click()
    page.wait_for_url(query(writing_seed="1", head="decoder.1.self_attention.0"))
    expect(title(page)).to_contain_text("of the 60 tokens that it wrote")
    assert "word=" not in page.url
