"""Tokens and windows: known answers of a small text, and the page's numbers worked out here by other means."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.app_pages.text.tokens import words
from dashboard.app_pages.text.tokens.cut import Cut, cut, vocabulary_of
from dashboard.app_pages.text.tokens.figures import Numbered, context_bars, numbered_tokens, window_table
from tests.kit import texts
from tests.kit.pages import array, falls_back, is_off, link, open_page, press, press_counted, trace
from transformer import checkpoints
from transformer.text.task import Text
from transformer.training.runs import Run

ROOT = Path(__file__).resolve().parents[4]
OWN = "Who sees the crow?\n  The xyzzy sees it, and the rain."


def task_of(config: Any) -> Text:
    task = config.build_task()
    assert isinstance(task, Text)
    return task


@pytest.fixture(scope="module")
def small() -> Text:
    return task_of(texts.config())


@pytest.fixture(scope="module")
def shipped() -> Text:
    return task_of(checkpoints.load(Run(ROOT / "checkpoints" / "shakespeare").snapshot())[1])


# --- the same, worked out by hand


def cut_by_hand(text: str, by: str) -> list[str]:
    """A run of letters, digits and underscores is a token, and so is a run of anything else."""
    if by == "characters":
        return list(text)
    return [found[0] for found in re.finditer(r"\w+|\W+", text)]


def starts_by_hand(tokens: int, length: int) -> list[int]:
    """One token is left out after each window of even length."""
    found, start = [], 0
    while start + length <= tokens:
        found.append(start)
        start += length + (length % 2 == 0)
    return found


def boxes(app: AppTest) -> list[tuple[int, str, int, bool, int | None]]:
    """The tokens of the row: place, text, id, whether it is unknown, and its window."""
    (body,) = (each.proto.body for each in app.get("html") if 'title="token ' in each.proto.body)
    found = re.findall(r'title="token (\d+): (.*?), id (\d+)(, unknown)?, in (no window|window (\d+))"', body)
    return [
        (int(place), html.unescape(text), int(number), bool(unknown), int(window) if window else None)
        for place, text, number, unknown, _, window in found
    ]


def rows(app: AppTest) -> dict[str, list[str]]:
    """The rows of the window in view, their cells as text; a token and its id with a blank between."""
    (body,) = (each.proto.body for each in app.get("html") if "tokens seen" in each.proto.body)
    found: dict[str, list[str]] = {}
    for row in re.findall(r"<tr>(.*?)</tr>", body):
        name, *cells = (
            html.unescape(re.sub(r"(<[^>]*>)+", " ", cell)).strip() for cell in re.findall(r"<t[hd].*?</t[hd]>", row)
        )
        found.setdefault(name, []).extend(cells)
    return found


def said(app: AppTest) -> str:
    return "\n".join(each.value for each in (*app.title, *app.caption))


# --- cutting


def test_a_small_text_has_the_tokens_and_windows_that_are_counted_by_hand(small: Text) -> None:
    found = cut(small, "To see, to touch", "words", 2)
    assert found.tokens == ("To", " ", "see", ", ", "to", " ", "touch")
    assert found.ids.tolist() == [small.known.vocabulary.tokens.index(token) for token in found.tokens]
    assert found.places.tolist() == [[0, 1], [3, 4]]
    to, blank, comma, other = (int(found.ids[place]) for place in (0, 1, 3, 4))
    assert found.read.tolist() == [[small.separator, to], [small.separator, comma]]
    assert found.predicted.tolist() == [[to, blank], [comma, other]]
    assert found.window.tolist() == [0, 0, -1, 1, 1, -1, -1]
    assert (found.seen.tolist(), found.left_out) == ([0, 1], 3)
    odd = cut(small, "To see, to touch", "words", 3)
    assert (odd.places.tolist(), odd.left_out) == ([[0, 1, 2], [3, 4, 5]], 1)


@pytest.mark.parametrize("by", ["words", "characters"])
@pytest.mark.parametrize("length", [2, 3, 8, 64])
def test_windows_do_not_overlap_and_targets_are_shifted_by_one(small: Text, by: str, length: int) -> None:
    text = texts.TEXT[300:900]
    found = cut(small, text, by, length)
    assert list(found.tokens) == cut_by_hand(text, by)
    starts = starts_by_hand(len(found.tokens), length)
    assert found.places.tolist() == [list(range(start, start + length)) for start in starts]
    assert np.array_equal(found.predicted, found.ids[found.places])
    assert np.array_equal(found.read[:, 1:], found.predicted[:, :-1])
    assert (found.read[:, 0] == found.separator).all()
    assert found.left_out == len(found.tokens) - length * len(starts)
    assert found.seen.tolist() == list(range(length))


def test_what_is_read_is_what_training_reads(small: Text) -> None:
    """The rows of the task's own batch are among the windows of its own text."""
    parts = [cut(small, small.typed(part), "words", small.length) for part in small.known.held_out]
    windows = {tuple(row) for part in parts for row in part.read.tolist()}
    assert {tuple(row) for row in small.fresh(np.random.default_rng(0), 3).tokens.tolist()} <= windows


def test_another_way_to_cut_has_a_vocabulary_made_by_the_same_rule(small: Text) -> None:
    known = small.known.vocabulary
    assert vocabulary_of(small, "words") is known
    made = vocabulary_of(small, "characters")
    tokens = (known.tokens[token] for part in small.known.held_out for token in part if token < known.unknown)
    counted = Counter(letter for token in tokens for letter in token)
    assert set(made.tokens) == {letter for letter, times in counted.items() if times >= small.min_count}
    assert [counted[token] for token in made.tokens] == sorted((counted[token] for token in made.tokens), reverse=True)


def test_the_sign_of_the_unknown_is_one_token(small: Text) -> None:
    for by in ("words", "characters"):
        found = cut(small, "see ⟨unk⟩", by, 2)
        assert found.tokens[-1] == "⟨unk⟩"
        assert found.unknown.tolist()[-1]


# --- sentences


def of(count: int, length: int = 2, unknown: int = 0, by: str = "words") -> Cut:
    """A text of so many tokens, the last of them unknown."""
    task = task_of(texts.config())
    known = ["see", " "] if by == "words" else ["e", " "]
    text = "".join(known[i % 2] for i in range(count))
    found = cut(task, text, by, length)
    found.ids[len(found.ids) - unknown :] = found.vocabulary.unknown
    return found


def test_sentences_are_true_of_their_numbers() -> None:
    assert words.headline(of(1)) == "1 token: too few for a window of 2."
    assert words.headline(of(7, length=3)) == "7 tokens: none is predicted from more than 2 before it."
    assert "This text has 2 different tokens. None occurs more often than ‘see’: 4 times." in words.numbered(of(7))
    assert words.windowed(of(2)) == "1 window of 2 tokens. No token is left out."
    assert words.windowed(of(6, length=3)) == "2 windows of 3 tokens, no token in two of them. No token is left out."
    assert "1 token stands in no window (faint)." in words.windowed(of(3))
    assert "not all windows begin with a word" in words.windowed(of(5))
    assert "begin with a word" not in words.windowed(of(5, by="characters"))
    for found, said in ((of(3), False), (of(5, by="characters"), True), (of(7, length=3), False)):
        assert ("As in training" in words.windowed(found)) == said
    assert "No token is unknown." in words.numbered(of(4))
    unknown = of(5, length=3, unknown=2)
    told = f"2 tokens are unknown (dashed) and read as ⟨unk⟩, id {unknown.vocabulary.unknown}."
    assert told in words.numbered(unknown)
    assert words.lost_letters(["\x07"]) == "1 character that cannot be shown was left out: U+0007."
    told = "3 characters that cannot be shown were left out: U+0007, U+200B."
    assert words.lost_letters(list("\x07\x07\u200b")) == told


# --- figures


def test_tokens_are_escaped_and_the_unknown_and_left_out_are_marked() -> None:
    row = [Numbered("<b>", 3, 1), Numbered("x", 9, None, True)]
    body = numbered_tokens(row, first=5, chosen=1, spoken='a "row"')
    assert "<b>" not in body
    assert 'title="token 5: &lt;b&gt;, id 3, in window 1"' in body
    assert 'title="token 6: x, id 9, unknown, in no window"' in body
    assert 'aria-label="a &quot;row&quot;"' in body
    assert body.count("dashed") == 1
    assert "<b>x" not in window_table(row, row, [0, 1], spoken="a window")


def test_the_bars_are_the_tokens_seen_and_the_line_those_that_stand_before() -> None:
    window, seen = np.array([1, 1, 0, 2, 2]), np.array([0, 1, 0, 0, 1])
    figure = context_bars(window, seen, list("abcde"), chosen=2)
    bars, line = figure.data
    assert (list(bars.x), list(bars.y)) == ([1, 2, 4, 5], [0, 1, 0, 1])
    assert list(line.y) == [0, 1, 2, 3, 4]
    assert bars.marker.color[0] == bars.marker.color[1] != bars.marker.color[2]


# --- the page


@pytest.fixture(autouse=True)
def _no_corpus(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the shipped run nothing is at hand but what was kept with it."""
    if "shipped" in request.fixturenames:
        monkeypatch.setenv("ATTENTION_LAB_CACHE", str(tmp_path))


@pytest.mark.daily(2)
@pytest.mark.parametrize(
    ("text", "by", "length", "at"), [("", "words", 8, 1), (OWN, "words", 5, 2), (OWN, "characters", 12, 3)]
)
def test_the_numbers_on_the_page_are_worked_out_here(shipped: Text, text: str, by: str, length: int, at: int) -> None:
    chosen = {"cut_text": text.replace("\n", "↵"), "cut_by": by if by != "words" else "", "cut_window": str(length)}
    view = {name: value for name, value in chosen.items() if value} | ({"cut_at": str(at)} if at > 1 else {})
    app = open_page("tokens", run="shakespeare", **view)
    assert not app.warning
    vocabulary: Sequence[str] = shipped.known.vocabulary.tokens
    if by == "characters":
        counted = Counter(
            "".join(vocabulary[i] for part in shipped.known.held_out for i in part if i < len(vocabulary))
        )
        often = [(-times, letter) for letter, times in counted.items() if times >= shipped.min_count]
        vocabulary = [letter for _, letter in sorted(often)]
    if text:
        tokens = cut_by_hand(text, by)
    else:
        tokens = [vocabulary[i] if i < len(vocabulary) else "⟨unk⟩" for i in shipped.example]
    ids = [vocabulary.index(token) if token in vocabulary else len(vocabulary) for token in tokens]
    starts = starts_by_hand(len(tokens), length)
    windows: dict[int, int] = {place: i + 1 for i, start in enumerate(starts) for place in range(start, start + length)}
    visible = [token.replace(" ", "␣").replace("\n", "↵") for token in tokens]
    expected = [(i + 1, visible[i], ids[i], ids[i] == len(vocabulary), windows.get(i)) for i in range(len(tokens))]
    assert boxes(app) == expected
    shown, start = rows(app), starts[at - 1]
    signs = [visible[i] if ids[i] < len(vocabulary) else "⟨unk⟩" for i in range(len(tokens))]
    cells = [f"{signs[i]} {ids[i]}" for i in range(start, start + length)]
    assert shown["to predict"] == cells
    assert shown["reads"] == [f"SEP {len(vocabulary) + 1}", *cells[:-1]]
    assert shown["tokens seen"] == [str(i) for i in range(length)]
    bars = trace(app, "cut-context", "in its window")
    assert (array(bars["x"]) - 1).tolist() == sorted(windows)
    assert array(bars["y"]).tolist() == [i for _ in starts for i in range(length)]
    unknown = ids.count(len(vocabulary))
    told = f"{len(tokens)} tokens: none is predicted from more than {length - 1} before it."
    assert app.title[0].value == told
    often = Counter(visible).most_common(1)[0][1]
    assert re.search(rf"This text has {len({*tokens})} different tokens?\. None occurs .*: {often} times?\.", said(app))
    assert (f"{unknown} token" in said(app)) == bool(unknown)
    assert f"{len(tokens) - len(windows)} tokens stand in no window" in said(app)
    before = np.mean(sorted(windows))
    assert f"predicted from {np.mean(range(length)):.1f} tokens, and {before:.1f} stand before it" in said(app)
    assert f"vocabulary of {len(vocabulary):,} {by}" in said(app)


def test_without_a_model_the_shipped_one_is_opened_and_a_law_is_told_so(shipped: Text) -> None:
    app = open_page("tokens")
    assert link(app) == {"run": "shakespeare"}
    assert not app.warning
    said_beside = [caption.value for caption in app.sidebar.caption]
    assert (
        ":material/info: “Tokens and windows” needs a model that reads text, so shakespeare is open here."
        in said_beside
    )
    app = open_page("tokens", run="reverse")
    assert app.title[0].value.startswith("“Tokens and windows” needs a model that reads text.")
    assert link(press(app, "Look at shakespeare")) == {"run": "shakespeare"}


def test_windows_are_gone_through_and_begin_anew_with_another_length(shipped: Text) -> None:
    app = press_counted(open_page("tokens", run="shakespeare"), "window-on")
    assert link(app) == {"run": "shakespeare", "cut_at": "2"}
    assert rows(app)["to predict"][0].endswith(str(shipped.example[9]))
    assert link(press_counted(app, "window-back")) == {"run": "shakespeare"}
    assert is_off(app, "window-back")
    next(s for s in press_counted(app, "window-on", 2).slider if s.label == "Window length").set_value(9).run()
    assert link(app) == {"run": "shakespeare", "cut_window": "9"}


def test_own_text_is_cut_and_what_cannot_be_shown_is_named(shipped: Text) -> None:
    app = open_page("tokens", run="shakespeare", cut_at="2")
    area = next(area for area in app.text_area if area.label == "Text")
    area.set_value("the\x07 king,\nand 𝄞 *you* <i>").run()
    assert not app.exception
    assert link(app) == {"run": "shakespeare", "cut_text": "the king,↵and 𝄞 *you* <i>"}
    assert [warning.value for warning in app.warning] == ["1 character that cannot be shown was left out: U+0007."]
    assert [text for _, text, *_ in boxes(app)] == [
        "the", "␣", "king", ",↵", "and", "␣𝄞␣*", "you", "*␣<", "i", ">",
    ]  # fmt: skip
    area = next(area for area in app.text_area if area.label == "Text")
    area.set_value("").run()
    assert link(app) == {"run": "shakespeare"}
    assert not app.warning


def test_a_long_text_is_cut_off_and_only_some_of_it_drawn(shipped: Text) -> None:
    app = open_page("tokens", run="shakespeare", cut_by="characters")
    next(area for area in app.text_area if area.label == "Text").set_value("ab " * 400).run()
    assert [warning.value for warning in app.warning] == ["The text has 1,200 characters. The first 1,000 are used."]
    assert len(link(app)["cut_text"]) == 1000
    assert "Tokens 1 to 200 of 1000 are drawn." in said(app)
    next(s for s in app.slider if s.label == "Window").set_value(100).run()
    places = [place for place, *_ in boxes(app)]
    assert (len(places), {window for *_, window in boxes(app)} >= {100}) == (200, True)


def test_what_a_link_names_in_vain_falls_back_with_a_notice_each(shipped: Text) -> None:
    nonsense = {
        "cut_by": ("syllables", "There is no cut into “syllables” here; this is words."),
        "cut_at": ("9", "Window must be 1 to 4 here, in steps of 1, not 9; this is 1."),
        "cut_window": ("1", "it must be a whole number from 2 to 64. Its default 8 stands instead."),
        "cut_text": ("x" * 1001, "it must be a text of at most 1000 letters. It was left out."),
    }
    falls_back("tokens", nonsense, run="shakespeare")


def test_a_text_too_short_for_a_window_is_said_to_be(shipped: Text) -> None:
    app = open_page("tokens", run="shakespeare", cut_text="   ")
    assert app.title[0].value == "1 token: too few for a window of 8."
    assert not app.warning
    assert len(boxes(app)) == 1


def test_a_passage_is_drawn_from_what_was_held_out(shipped: Text) -> None:
    app = press(open_page("tokens", run="shakespeare"), "Draw a passage")
    assert len(boxes(app)) == 64
    ids = [number for _, _, number, *_ in boxes(app)]
    held = [part.tolist() for part in shipped.known.held_out]
    assert any(part[at : at + 64] == ids for part in held for at in range(len(part)) if part[at] == ids[0])
