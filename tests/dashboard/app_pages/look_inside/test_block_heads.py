"""The page "Inside a block", heads side by side: its columns, rows and sentences against attention written anew."""

from __future__ import annotations

import inspect
import pkgutil
import re

import numpy as np
import pytest
import torch

from dashboard.app_pages.look_inside.block.heads import SCALES, STAGES
from dashboard.app_pages.look_inside.block.measured import WIDE
from dashboard.app_pages.look_inside.block.sections import PARTS
from dashboard.figures.kit.numbers import share_text, signed
from tests.kit.heads_by_hand import by_hand, double, normed, read_by_hand
from tests.kit.models import untrained
from tests.kit.pages import PI, answer, array, figures, link, network, open_page, press_counted
from transformer import observe
from transformer.analysis.findings import Head
from transformer.config import TaskConfig
from transformer.masks.painted import Painted
from transformer.model import build

CASES = {
    "reverse": ("reverse", "decoder.1", "self_attention", 11),
    "across": ("reverse-translate", "decoder.1", "cross_attention", 3),
    "encoder": ("reverse-translate", "encoder.0", "self_attention", 8),
    "compiled": ("compiled", "decoder.0", "self_attention", 12),
    "text": ("shakespeare", "decoder.2", "self_attention", 17),
}
EACH = pytest.mark.parametrize("case", CASES)


def read(run):
    """Model, tokens and source of a run's sample, laid out here."""
    model, config = network(run)
    if config.task.task == "text":
        task = config.build_task()
        return model, torch.tensor([[task.separator, *task.example[:-1]]]), None
    return model, *read_by_hand(config.task.task, PI, answer(model, config, PI))


def truth(case):
    """Every head of a case, by hand; and the vector that they read."""
    run, block, kind, place = CASES[case]
    model, tokens, source = read(run)
    site = f"{block}.{kind}"
    heads = [by_hand(model, tokens, source, Head(site, i), place - 1) for i in range(model.get_submodule(site).n_heads)]
    seen = observe(model, tokens, source=source)
    stream = double(seen[f"{block}.{'resid_mid' if kind == 'cross_attention' else 'resid_pre'}"])[0, place - 1]
    around = model.get_submodule(block)
    around = around.around_cross if kind == "cross_attention" else around.around_self
    return model.get_submodule(site), heads, normed(stream, around.before)


def opened(case, **more):
    run, block, kind, place = CASES[case]
    return open_page("block", run=run, block=block, sublayer=kind, query=str(place), **more)


def columns(app):
    """The heights of the columns by head, and where they stand."""
    traces = figures(app)["split"]["data"]
    return [np.array([array(trace[axis]) for trace in traces]) for axis in ("y", "x")]


@pytest.mark.daily(1)
@EACH
def test_the_columns_of_each_step_are_the_model_s_numbers(case):
    module, heads, x = truth(case)
    n, d = len(heads), module.d_head
    query = (double(module.query.weight) @ x + double(module.query.bias)).reshape(n, d)
    z = np.array([each["z"] for each in heads])
    right = {"read": x, "project": query, "split": query, "attend": z, "join": z}
    for stage, values in right.items():
        app = opened(case, **({"joint": stage} if stage != "read" else {}))
        heights, places = columns(app)
        np.testing.assert_allclose(heights, values.reshape(n, d), atol=2e-4)
        assert (np.diff(places.ravel()) > 0).all()
        steps = np.diff(places, axis=1)
        np.testing.assert_allclose(steps, 1, atol=1e-4)
        apart = places[1:, 0] - places[:-1, -1]
        np.testing.assert_allclose(apart, 1 + (0.3 * d if stage in ("split", "attend") else 0), atol=1e-3)
        top = figures(app)["split"]["layout"]["yaxis"]["range"][1]
        assert top == pytest.approx(1.05 * max(np.abs(right[each]).max() for each in SCALES[stage]), rel=1e-4)


@EACH
def test_each_number_of_z_meets_its_row_of_w_o_and_the_columns_add_up_to_the_output(case):
    module, heads, _ = truth(case)
    n, d = len(heads), module.d_head
    app = opened(case, joint="mix")
    drawn = figures(app)["output-weights"]
    bars, maps, (sums,) = drawn["data"][:n], drawn["data"][n : 2 * n], drawn["data"][2 * n :]
    raw = double(module.out.weight).T  # PyTorch keeps it as [out, in]
    np.testing.assert_allclose([array(each["x"]) for each in bars], [each["z"] for each in heads], atol=2e-4)
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
        assert f"head {head} adds {signed(shares[head])} of it" in said
        assert f"{signed(added[best] - shares[head])}." in said


@EACH
def test_rows_shares_and_title_are_those_of_the_weights(case):
    module, heads, _ = truth(case)
    app = opened(case)
    drawn = figures(app)
    rows = drawn["head-attention"]["data"]
    pattern = np.array([each["pattern"] for each in heads])
    visible = np.array([each["visible"] for each in heads])
    np.testing.assert_allclose(array(rows[0]["z"]), np.where(visible, pattern, np.nan), atol=1e-4)
    assert (len(rows) == 2) == (not visible.all())
    if len(rows) == 2:
        np.testing.assert_array_equal(np.isfinite(array(rows[1]["z"])), ~visible)
    cells, bars = drawn["head-vectors"]["data"]
    written = np.array([each["written"] for each in heads])
    bias = double(module.out.bias)
    expected = np.vstack([written, bias, written.sum(axis=0) + bias])
    np.testing.assert_allclose(array(cells["z"]), expected, atol=2e-4)
    lengths = np.sqrt((written**2).sum(axis=1))
    np.testing.assert_allclose(array(bars["x"]), lengths / lengths.sum(), atol=1e-4)
    title = app.title[0].value
    if len(heads) == 1:
        assert title == f"There is one head: all {module.d_head} numbers stay together, and it alone writes."
    else:
        whole = len(heads) * module.d_head
        assert title.startswith(f"{whole} = {len(heads)} × {module.d_head}: head {lengths.argmax()} writes the longest")
        said = next(each.value for each in app.caption if "cancel each other" in each.value)
        numbers = re.findall(r"add up to (\d+\.\d\d), but the output has length (\d+\.\d\d)", said)[0]
        expected = lengths.sum(), np.sqrt((expected[-1] ** 2).sum())
        np.testing.assert_allclose(np.array(numbers, dtype=float), expected, atol=0.006)


def test_512_numbers_in_8_heads_are_those_of_an_untrained_model():
    model = build(WIDE).eval()
    question = WIDE.build_task().example.tolist()
    assert len(question) == 30
    tokens = torch.tensor([[*question, 10, *question[:0:-1]]])
    assert tokens.shape[1] == 60
    app = open_page("block", run="reverse", wide="1", wide_query="33", joint="attend")
    heights, _ = columns(app)
    assert heights.shape == (8, 64)
    for head in range(8):
        right = by_hand(model, tokens, None, Head("decoder.0.self_attention", head), 32)
        np.testing.assert_allclose(heights[head], right["z"], atol=2e-4)
    assert app.title[0].value.startswith("Untrained, 512 = 8 × 64: head ")
    app = app.toggle(key="control-wide").set_value(False).run()
    assert not app.exception
    assert link(app) == {"run": "reverse", "joint": "attend", "wide_query": "33"}


@pytest.mark.daily(6)
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("case", ["across", "compiled"])
def test_each_step_says_what_it_does_and_shows_its_line(case, stage):
    module, heads, _ = truth(case)
    app = opened(case, joint=stage)
    (said,) = [each.value for each in app.markdown if each.value in _sentences(module, heads, stage, app)]
    assert said
    marked = " ".join(each.body for each in app.get("html") if "font-weight:700" in each.body)
    mark = {"read": "norm", "project": "query", "split": "unflatten", "attend": "pattern @ value"}
    mark |= {"join": "flatten", "mix": "_merge"}
    assert mark[stage] in re.sub(r"<[^>]*>", "", marked)


def _sentences(module, heads, stage, app):
    """What could be said truly of a step: every sentence on the page that names a number of it."""
    n, d = len(heads), module.d_head
    words = {"read": f"{n * d} numbers", "project": f"{n * d} new numbers", "mix": f"ach of the {n * d} outputs"}
    words["split"] = f"{n * d} = {n} × {d}" if n > 1 else f"all {n * d} numbers stay together"
    words["join"] = f"{n} × {d} = {n * d} numbers" if n > 1 else f"its {d} numbers are all of z"
    best = max(range(n), key=lambda head: heads[head]["pattern"].max())
    words["attend"] = f"with {share_text(heads[best]['pattern'].max())}"
    return [each.value for each in app.markdown if words[stage] in each.value]


def test_parts_are_stepped_through_by_buttons():
    app = open_page("block", run="reverse")
    titles = [app.title[0].value]
    for _ in range(2):
        press_counted(app, "part-on")
        titles.append(app.title[0].value)
    assert len(set(titles)) == 3
    assert "part" in link(app)
    press_counted(app, "part-back", times=2)
    assert app.title[0].value == titles[0]
    assert link(app) == {"run": "reverse"}


def test_a_token_that_may_see_nothing_and_a_single_block_open(tmp_path, monkeypatch):
    cells = np.tril(np.ones((8, 8), dtype=bool), -1)  # nobody sees itself, so the first sees nothing
    untrained(tmp_path / "blind", TaskConfig(length=4), n_layers=1, mask=str(Painted.of(cells)), norm="post")
    monkeypatch.setattr("dashboard.models.menu.ROOT", tmp_path)
    monkeypatch.setattr("dashboard.models.menu.FIRST", "blind")
    app = open_page("block", run="blind", query="1", joint="attend")
    assert "This token may see nothing, so every z is 0." in [each.value for each in app.markdown]
    assert np.isnan(array(figures(app)["head-attention"]["data"][0]["z"]).astype(float)).all()


def test_the_code_of_each_part_is_there():
    for part in PARTS:
        for name in part.code:
            assert inspect.getsource(inspect.unwrap(pkgutil.resolve_name(name)))
