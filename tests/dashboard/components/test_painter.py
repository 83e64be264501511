"""The painter's Python side: what is sent, what comes back, which rule it is, and the book of masks kept by name."""

import base64
import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dashboard.app_pages.attention.masks import kept_masks
from dashboard.app_pages.attention.masks.answers import change_sentence
from dashboard.app_pages.attention.masks.canvas import as_mask
from dashboard.app_pages.attention.masks.figures.probabilities import probability_dumbbells
from dashboard.app_pages.attention.masks.kept_masks import BookError
from dashboard.components.painter import Painter, Squares, Stroke
from dashboard.components.payload import unpack
from dashboard.theme import DARK, LIGHT
from dashboard.view.link import longest
from transformer import masks
from transformer.foundation.foreign import MOST_WORDS
from transformer.masks.painted import Painted

LOOKS = {"key": "painter", "alt": "A mask."}


def reported(cells: np.ndarray, at: int = 1) -> dict:
    """What the browser says of a mask, with the bits put together one by one."""
    bits = "".join("1" if cell else "0" for cell in cells.ravel())
    bits += "0" * (-len(bits) % 8)
    packed = bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8))
    return {"n": len(cells), "cells": base64.b64encode(packed).decode(), "at": at}


# --- messages


def test_a_mask_and_its_labels_arrive():
    cells = np.random.default_rng(0).integers(0, 2, (5, 5)).astype(bool)
    header, body = unpack(Painter(cells, list("abcde"), list("vwxyz"), link="heads", **LOOKS).pack(LIGHT))
    assert "".join(f"{byte:08b}" for byte in body[:4])[:25] == "".join(str(int(cell)) for cell in cells.ravel())
    assert (header["n"], header["queries"], header["keys"]) == (5, list("abcde"), list("vwxyz"))
    assert (header["alt"], header["link"], header["dark"]) == ("A mask.", "heads", False)
    other, _ = unpack(Painter(cells, list("abcde"), list("vwxyz"), **LOOKS).pack(DARK))
    assert other["colours"] != other["forbidden"] != header["forbidden"]


@pytest.mark.parametrize(
    ("shape", "labels", "alt", "sentence"),
    [
        ((3, 4), "abc", "A.", "3 query labels and 3 key labels for a mask of"),
        ((3, 3), "ab", "A.", "2 query labels"),
        ((3, 3), "abc", " ", "needs alt"),
    ],
)
def test_what_cannot_be_painted_is_refused_in_words(shape, labels, alt, sentence):
    with pytest.raises(ValueError, match=sentence):
        Painter(np.ones(shape, dtype=bool), labels, labels, **{**LOOKS, "alt": alt}).pack(LIGHT)


def test_a_large_mask_is_a_small_message_and_says_its_squares():
    cells, names = np.tri(512, dtype=bool), [str(i) for i in range(512)]
    words = [f"{i}…" for i in range(86)]
    message = Painter(cells, names, names, squares=Squares(6, words, words), refused=3, **LOOKS).pack(LIGHT)
    assert len(message) < 45_000
    header, body = unpack(message)
    assert header["squares"] == {"factor": 6, "queries": words, "keys": words}
    assert (header["queries"], header["refused"], len(body)) == (names, 3, 512 * 512 // 8)
    with pytest.raises(ValueError, match="512 cells a side are not 86 squares of 5"):
        Painter(cells, names, names, squares=Squares(5, words, words), **LOOKS).pack(LIGHT)


@pytest.mark.parametrize("n", [1, 3, 16, 64])
def test_a_stroke_is_read(n):
    cells = np.random.default_rng(n).integers(0, 2, (n, n)).astype(bool)
    stroke = Stroke.read(reported(cells, at=17))
    assert stroke is not None
    np.testing.assert_array_equal(stroke.mask, cells)
    assert stroke.at == 17


def test_what_is_no_stroke_is_none():
    sides = {0: "", -1: "gA==", 3: "8A==", 10**9: "8A==", float("inf"): "8A=="}
    told = [{"n": n, "cells": cells, "at": 1} for n, cells in (*sides.items(), (2, "?"), (2, 7))]
    for said in (None, "causal", {}, {"n": 2, "cells": "8A==", "at": None}, *told):
        assert Stroke.read(said) is None, said
    assert Stroke.read({"n": 2, "cells": "8A==", "at": 1}) is not None


# --- which mask it is


RULES = {
    12: ("anti-causal", "causal", "full", "block:3", "prefix:5", "sliding-window:0"),
    512: ("block:511", "hide:300", "prefix:511", "recent:400", "sliding-window:301", "causal"),
}


@pytest.mark.parametrize(("n", "text"), [(n, text) for n, texts in RULES.items() for text in texts])
def test_a_painted_rule_is_called_by_its_name(n, text):
    found = as_mask(masks.parse(text).matrix(n))
    np.testing.assert_array_equal(found.matrix(n), masks.parse(text).matrix(n))
    assert found.longest is None


@pytest.mark.parametrize(
    ("n", "cell"), [(12, (4, 2)), *((512, cell) for cell in ((300, 2), (0, 5), (511, 0), (256, 256)))]
)
def test_one_cell_more_or_less_is_no_rule_and_painted(n, cell):
    cells = np.tri(n, dtype=bool)
    cells[cell] = ~cells[cell]
    np.testing.assert_array_equal(as_mask(cells).matrix(n), cells)
    assert n > 100 or as_mask(cells) == Painted.of(cells)


# --- what is said


LOW, HIGH = np.array([0.95, 0.1, 0.7]), np.array([0.9, 0.5, 0.99])


@pytest.mark.parametrize(
    ("before", "after", "flips", "sentence"),
    [
        (HIGH, LOW, [False, True, False], "1 of 3 predictions flips. The right token's probability falls most at "
         "token 2 of the answer ('1'): 0.50 before, 0.10 after."),
        (LOW, HIGH, [True, True, False], "2 of 3 predictions flip. The right token's probability rises most at "
         "token 2 of the answer ('1'): 0.10 before, 0.50 after."),
        (HIGH, HIGH - [0, 0.0049, 0], [False] * 3, "0 of 3 predictions flip. No right token's probability moves by "
         "0.005 or more."),
        (HIGH, HIGH - [0, 0.0051, 0], [False] * 3, "0 of 3 predictions flip. The right token's probability falls most "
         "at token 2 of the answer ('1'): 0.50 before, 0.49 after."),
    ],
)  # fmt: skip
def test_the_sentence_counts_flips_and_names_the_largest_change(before, after, flips, sentence):
    assert change_sentence(before, after, ["3", "1", "4"], np.array(flips)) == sentence


def test_the_dumbbells_stand_at_the_probabilities():
    before, after = np.array([0.9, 0.5, 0.99]), np.array([0.95, 0.1, 0.7])
    figure = probability_dumbbells(before, after, ["3", "<b>", "4"], np.array([False, True, False]), 0.1)
    drawn = {trace.name: trace for trace in figure.data}
    np.testing.assert_allclose(drawn["before"].y, before, rtol=1e-6)
    np.testing.assert_allclose(drawn["after"].y, after, rtol=1e-6)
    assert list(drawn["the prediction flips"].x) == [1]
    said = "token 2 of the answer ('&lt;b&gt;'): 0.50 before, 0.10 after, the prediction flips"
    assert drawn["after"].hovertext[1] == said
    for i in range(3):
        assert list(drawn["change"].x[3 * i : 3 * i + 2]) == [i, i]
        np.testing.assert_allclose(drawn["change"].y[3 * i : 3 * i + 2], [before[i], after[i]], rtol=1e-6)
    calm = probability_dumbbells(before, before, ["3", "1", "4"], np.zeros(3, dtype=bool), 0.1)
    assert "the prediction flips" not in {trace.name for trace in calm.data}


# --- kept by name

HOLE = Painted.of(~np.eye(6, dtype=bool))


def test_a_kept_mask_comes_back_and_goes(tmp_path):
    assert kept_masks.kept(tmp_path) == {}
    kept_masks.keep(tmp_path, "hole in the middle", HOLE)
    kept_masks.keep(tmp_path, "Fenster – 窓", masks.parse("sliding-window:3"))
    book = kept_masks.kept(tmp_path)
    assert {name: masks.parse(text) for name, text in book.items()} == {
        "hole in the middle": HOLE,
        "Fenster – 窓": masks.parse("sliding-window:3"),
    }
    assert kept_masks.drop(tmp_path, "hole in the middle") == HOLE
    assert list(kept_masks.kept(tmp_path)) == ["Fenster – 窓"]
    with pytest.raises(BookError, match="the mask “hole in the middle” was already deleted"):
        kept_masks.drop(tmp_path, "hole in the middle")
    assert [path.name for path in tmp_path.iterdir()] == [kept_masks.FILE]


def test_a_full_book_of_the_longest_masks_is_still_read(tmp_path):
    """As long as a link may say them; the text of each is tried by another test."""
    assert kept_masks.MOST * (longest("mask") + 4 * kept_masks.MOST_LETTERS + 10) < MOST_WORDS
    noise = Painted.of(np.random.default_rng(0).random((265, 265)) < 0.5)
    assert 11_000 < len(str(noise)) < longest("mask")
    kept_masks.keep(tmp_path, "noise", noise)
    assert kept_masks.drop(tmp_path, "noise") == noise


def test_a_name_that_is_none_or_taken_and_one_mask_too_many_are_refused(tmp_path):
    for name in ("", " ", "a\nb", " a", "a" * 41, "a\x00"):
        with pytest.raises(BookError, match=r"a name (needs at least one letter|may have 40 letters at most)"):
            kept_masks.keep(tmp_path, name, HOLE)
    assert not list(tmp_path.iterdir())
    kept_masks.keep(tmp_path, "one", HOLE)
    with pytest.raises(BookError, match="there is a mask “one” already"):
        kept_masks.keep(tmp_path, "one", masks.parse("full"))
    assert kept_masks.kept(tmp_path) == {"one": str(HOLE)}
    full = {f"mask {i}": "full" for i in range(kept_masks.MOST)}
    (tmp_path / kept_masks.FILE).write_text(json.dumps({"masks": full}))
    with pytest.raises(BookError, match="100 masks are kept already"):
        kept_masks.keep(tmp_path, "one more", HOLE)


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000),
        b'{"masks": []}',
        b'{"masks": {"a": 1}}',
        b'{"masks": {"a": "no such mask"}}',
        b'{"masks": {"a": "painted:4:AAAAA"}}',
        b'{"masks": {"": "full"}}',
        b'{"masks": {}}' + b" " * MOST_WORDS,
    ],
    ids=lambda content: content[:30],
)
def test_a_file_that_is_no_book_is_left_as_it_is(tmp_path, content):
    (tmp_path / kept_masks.FILE).write_bytes(content)
    for use in (kept_masks.kept, lambda at: kept_masks.keep(at, "hole", HOLE), lambda at: kept_masks.drop(at, "a")):
        with pytest.raises(BookError, match=r"masks\.json .*; it was left as it is$"):
            use(tmp_path)
    assert (tmp_path / kept_masks.FILE).read_bytes() == content


def test_a_book_that_cannot_be_written_says_so(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(BookError, match=r"masks\.json cannot be"):
        kept_masks.keep(tmp_path / "file", "hole", HOLE)


def test_masks_kept_at_once_are_all_kept(tmp_path):
    names = [f"mask {i}" for i in range(20)]
    with ThreadPoolExecutor(len(names)) as threads:
        list(threads.map(lambda name: kept_masks.keep(tmp_path, name, masks.parse("full")), names))
    assert set(kept_masks.kept(tmp_path)) == set(names)
