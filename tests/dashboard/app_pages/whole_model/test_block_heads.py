"""The page "Inside a block", heads side by side: its columns, rows and sentences are what all heads do at a token."""

from __future__ import annotations

import inspect
import pkgutil
import re
from functools import lru_cache

import numpy as np
import pytest

from dashboard.app_pages.whole_model.block.heads import SCALES, STAGES, _headline, looking_sentence, surest
from dashboard.app_pages.whole_model.block.measured import WIDE
from dashboard.app_pages.whole_model.block.sections import PARTS
from dashboard.figures.kit.numbers import share_text, signed
from tests.kit.heads_by_hand import double
from tests.kit.pages import PI, answer, array, figures, link, network, open_page, page_to_read, press_counted
from transformer.analysis.heads.side_by_side import SideBySide, look_at_all_heads
from transformer.masks.painted import Painted
from transformer.model import build

CASES = {
    "across": ("reverse-translate", "decoder.1", "cross_attention", 3),
    "reverse": ("reverse", "decoder.1", "self_attention", 11),
    "encoder": ("reverse-translate", "encoder.0", "self_attention", 8),
    "text": ("shakespeare", "decoder.2", "self_attention", 17),
    "compiled": ("compiled", "decoder.0", "self_attention", 12),
}
EACH = pytest.mark.parametrize("case", CASES)
LINES = {
    "read": "norm",
    "project": "query",
    "split": "unflatten",
    "attend": "pattern @ value",
    "join": "flatten",
    "mix": "_merge",
}


@lru_cache(maxsize=1)
def truth(case):
    """An attention, and what all its heads do at a token: the library's own tests hold that against the weights."""
    run, block, kind, place = CASES[case]
    model, config = network(run)
    task, site = config.build_task(), f"{block}.{kind}"
    said = np.array(answer(model, config, PI)) if task.lawful else None
    return model.get_submodule(site), look_at_all_heads(model, task, task.example, site, place - 1, said=said)


def opened(case, stage="read"):
    run, block, kind, place = CASES[case]
    joint = {} if stage == "read" else {"joint": stage}
    return page_to_read("block", run=run, block=block, sublayer=kind, query=str(place), **joint)


def columns(app):
    """The heights of the columns by head, and where they stand."""
    traces = figures(app)["split"]["data"]
    return [np.array([array(trace[axis]) for trace in traces]) for axis in ("y", "x")]


@pytest.mark.daily(2)
@EACH
def test_each_step_shows_the_models_numbers_a_sentence_with_one_of_them_and_its_line(case):
    _, found = truth(case)
    n, d = found.z.shape
    right = {"read": found.read, "project": found.query, "split": found.query, "attend": found.z, "join": found.z}
    says = {
        "read": f"{n * d} numbers",
        "project": f"{n * d} new numbers",
        "split": f"{n * d} = {n} × {d}" if n > 1 else f"all {n * d} numbers stay together",
        "attend": f"with {share_text(found.pattern.max())}",
        "join": f"{n} × {d} = {n * d} numbers" if n > 1 else f"its {d} numbers are all of z",
        "mix": f"ach of the {n * d} outputs",
    }
    for stage in STAGES:
        app = opened(case, stage)
        assert any(says[stage] in each.value for each in app.markdown), stage
        marked = " ".join(each.body for each in app.get("html") if "font-weight:700" in each.body)
        assert LINES[stage] in re.sub(r"<[^>]*>", "", marked)
        if stage == "mix":
            continue
        heights, places = columns(app)
        np.testing.assert_allclose(heights, right[stage].reshape(n, d), atol=2e-4)
        np.testing.assert_allclose(np.diff(places, axis=1), 1, atol=1e-4)
        apart = places[1:, 0] - places[:-1, -1]
        np.testing.assert_allclose(apart, 1 + (0.3 * d if stage in ("split", "attend") else 0), atol=1e-3)
        top = figures(app)["split"]["layout"]["yaxis"]["range"][1]
        assert top == pytest.approx(1.05 * max(np.abs(right[each]).max() for each in SCALES[stage]), rel=1e-4)


@pytest.mark.daily(3)
@EACH
def test_each_number_of_z_meets_its_row_of_w_o_and_the_columns_add_up_to_the_output(case):
    module, found = truth(case)
    n, d = found.z.shape
    app = opened(case, "mix")
    drawn = figures(app)["output-weights"]
    bars, maps, (sums,) = drawn["data"][:n], drawn["data"][n : 2 * n], drawn["data"][2 * n :]
    raw = double(module.out.weight).T  # PyTorch keeps it as [out, in]
    np.testing.assert_allclose([array(each["x"]) for each in bars], found.z, atol=2e-4)
    for head, (bar, cells) in enumerate(zip(bars, maps, strict=True)):
        rows = range(head * d, (head + 1) * d)
        assert array(bar["y"]).tolist() == list(rows)
        assert (cells["y0"], cells["dy"]) == (head * d, 1)
        np.testing.assert_allclose(array(cells["z"]), raw[rows], atol=1e-6)
        assert bar["marker"]["color"] == drawn["layout"]["shapes"][head]["fillcolor"]
    weight = np.stack([array(each["z"]) for each in maps])
    z = np.stack([array(each["x"]) for each in bars])
    added = np.einsum("hd,hdm->m", z, weight) + double(module.out.bias)
    np.testing.assert_allclose(array(sums["y"]), added, atol=2e-4)
    best = int(np.abs(added).argmax())
    framed = [shape for shape in drawn["layout"]["shapes"] if shape["x0"] == best - 0.5]
    assert [shape["x1"] for shape in framed] == [best + 0.5] * 2
    said = next(each.value for each in app.markdown if f"in dimension {best}" in each.value)
    shares = np.einsum("hd,hd->h", z, weight[:, :, best])
    head = int(np.abs(shares).argmax())
    if n > 1:
        assert f"To the output in dimension {best} head {head} adds {signed(shares[head])}," in said
        assert f"{signed(added[best] - shares[head])}." in said


@pytest.mark.daily(3)
@EACH
def test_rows_shares_and_title_are_those_of_the_weights(case):
    _, found = truth(case)
    app = opened(case)
    drawn = figures(app)
    rows = drawn["head-attention"]["data"]
    visible = np.broadcast_to(found.visible, found.pattern.shape)
    np.testing.assert_allclose(array(rows[0]["z"]), np.where(visible, found.pattern, np.nan), atol=1e-4)
    assert (len(rows) == 2) == (not visible.all())
    if len(rows) == 2:
        np.testing.assert_array_equal(np.isfinite(array(rows[1]["z"])), ~visible)
    cells, bars = drawn["head-vectors"]["data"]
    np.testing.assert_allclose(array(cells["z"]), np.vstack([found.written, found.bias, found.out]), atol=2e-4)
    np.testing.assert_allclose(array(bars["x"]), found.shares, atol=1e-4)
    title = app.title[0].value
    n, d = found.z.shape
    if n == 1:
        assert title == f"There is one head: all {d} numbers stay together, and it alone writes."
    else:
        assert title.startswith(f"{n * d} = {n} × {d}: head {found.lengths.argmax()} writes the longest")
        said = next(each.value for each in app.caption if "cancel each other" in each.value)
        numbers = re.findall(r"add up to (\d+\.\d\d), but the output has length (\d+\.\d\d)", said)[0]
        expected = found.lengths.sum() + np.linalg.norm(found.bias), np.linalg.norm(found.out)
        np.testing.assert_allclose(np.array(numbers, dtype=float), expected, atol=0.006)


def test_512_numbers_in_8_heads_are_those_of_an_untrained_model():
    task = WIDE.build_task()
    found = look_at_all_heads(build(WIDE).eval(), task, task.example, "decoder.0.self_attention", 32)
    assert len(found.queries) == 60
    app = open_page("block", run="reverse", wide="1", wide_query="33", joint="attend")
    heights, _ = columns(app)
    assert heights.shape == (8, 64)
    np.testing.assert_allclose(heights, found.z, atol=2e-4)
    assert app.title[0].value.startswith("Untrained, 512 = 8 × 64: head ")
    app = app.toggle(key="control-wide").set_value(False).run()
    assert not app.exception
    assert link(app) == {"run": "reverse", "joint": "attend", "wide_query": "33"}


def test_parts_are_stepped_through_by_buttons():
    app = open_page("block", run="compiled")
    title = app.title[0].value
    press_counted(app, "part-on", times=2)
    assert app.title[0].value != title
    assert link(app) == {"run": "compiled", "part": PARTS[2].name}
    press_counted(app, "part-back", times=2)
    assert app.title[0].value == title
    assert link(app) == {"run": "compiled"}


def test_a_token_that_may_see_nothing_and_a_single_block_open(alone):
    cells = np.tril(np.ones((8, 8), dtype=bool), -1)  # nobody sees itself, so the first sees nothing
    alone({"length": 4}, n_layers=1, mask=str(Painted.of(cells)), norm="post")
    app = open_page("block", run="one", query="1", joint="attend")
    assert "This token may see nothing, so every z is 0." in [each.value for each in app.markdown]
    assert np.isnan(array(figures(app)["head-attention"]["data"][0]["z"]).astype(float)).all()


def made(pattern: list[list[float]], lengths: list[float]) -> SideBySide:
    """An attention of so many heads at its third token, of which each writes a vector so long."""
    n, names = len(pattern), tuple("abcdefg"[: len(pattern[0])])
    written = np.zeros((n, 2 * n))
    written[:, 0] = lengths
    return SideBySide(
        "decoder.0.self_attention", 2, names, names, np.zeros(2 * n), np.zeros((n, 2)), np.array(pattern) >= 0,
        np.maximum(np.array(pattern), 0), np.zeros((n, 2)), written, np.zeros(2 * n), written.sum(axis=0), "",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "looking", "sure"),
    [
        ([[0.2, 0.8, 0]], "The head looks most at 'b' at 2: 0.80.", "It looks at 'b' at 2 with 0.80."),
        (
            [[0.5, 0.5, 0]],
            "The head looks most at 'a' at 1 and 'b' at 2: 0.50 each.",
            "It looks at 'a' at 1 with 0.50.",
        ),
        ([[0.2] * 5], "The head looks most at 5 of 5 tokens: 0.20 each.", "It looks at 'a' at 1 with 0.20."),
        (
            [[0.2, 0.8, 0], [0.1, 0.9, 0]],
            "Both heads look most at the same token, 'b' at 2.",
            "Head 1 is the surest: it looks at 'b' at 2 with 0.90.",
        ),
        (
            [[0.5, 0.5, 0], [0.5, 0.5, 0]],
            "Both heads look most at the same 2 tokens, at each of them alike.",
            "Both heads are as sure: each gives 0.50 to one token.",
        ),
        (
            [[0.2, 0.8, 0], [0.8, 0.2, 0], [0.1, 0.1, 0.8]],
            "The 3 heads look most at 3 different tokens.",
            "All 3 heads are as sure: each gives 0.80 to one token.",
        ),
        (
            [[0.5, 0.5, 0], [0.8, 0.2, 0], [0.1, 0.1, 0.8]],
            "The 3 heads look most at 3 different tokens, some at several alike.",
            "Heads 1 and 2 are the surest: each gives 0.80 to one token.",
        ),
        (
            [[1.0, 0, 0]] * 5 + [[0.9, 0.1, 0]],
            "All 6 heads look most at the same token, 'a' at 1.",
            "5 of 6 heads are the surest: each gives 1.00 to one token.",
        ),
    ],
)
def test_heads_and_tokens_that_no_digit_tells_apart_are_named_together(
    pattern: list[list[float]], looking: str, sure: str
) -> None:
    found = made(pattern, [1.0] * len(pattern))
    assert looking_sentence(found) == looking
    assert surest(found) == sure


@pytest.mark.parametrize(
    ("lengths", "says"),
    [
        ([1.0, 2.0], "head 1 writes the longest of 2 vectors at 'c' at 3."),
        ([2.001, 2.0], "both heads write equally long vectors at 'c' at 3."),
        ([2.0, 2.0, 1.0], "heads 0 and 1 write the longest of 3 vectors at 'c' at 3, equally long."),
        ([2.0, 2.0, 2.0, 2.0, 2.0, 1.0], "5 heads write the longest of 6 vectors at 'c' at 3, equally long."),
        ([0.0, 0.0], "no head writes anything at 'c' at 3, which may see nothing."),
    ],
)
def test_vectors_that_no_digit_tells_apart_are_equally_long(lengths: list[float], says: str) -> None:
    n = len(lengths)
    assert _headline(made([[0.2, 0.8, 0]] * n, lengths), False) == f"{2 * n} = {n} × 2: {says}"


def test_the_code_of_each_part_is_there():
    for part in PARTS:
        for name in part.code:
            assert inspect.getsource(inspect.unwrap(pkgutil.resolve_name(name)))
