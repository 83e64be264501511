"""The page "Inside a block", LayerNorm: one token's numbers against the formula, and gradients against PyTorch's."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from torch.nn import functional

from dashboard.app_pages.look_inside.block import measured, norm
from dashboard.app_pages.look_inside.block.figures.norm import STEPS, norm_panels
from dashboard.app_pages.look_inside.block.norm import MARKS
from dashboard.parts.prose import code_around
from tests.kit.heads_by_hand import double, normed, read_by_hand
from tests.kit.models import untrained
from tests.kit.pages import PI, answer, array, figures, link, network, open_page, trace
from tests.kit.waiting import PATIENCE
from transformer import observe
from transformer.analysis.batches import questions
from transformer.config import TaskConfig
from transformer.model import build

DEPTHS = (2, 3)
CASES = {
    "reverse": ("reverse", "decoder.1", "self_attention", "resid_pre", 11),
    "feed-forward": ("reverse", "decoder.0", "feed_forward", "resid_mid", 4),
    "across": ("reverse-translate", "decoder.1", "cross_attention", "resid_mid", 3),
    "after crossing": ("reverse-translate", "decoder.0", "feed_forward", "resid_cross", 5),
    "encoder": ("reverse-translate", "encoder.1", "self_attention", "resid_pre", 8),
    "text": ("shakespeare", "decoder.3", "self_attention", "resid_pre", 17),
}


@pytest.fixture(autouse=True)
def _shallow(monkeypatch):
    """Two depths, measured before a page is opened."""
    monkeypatch.setattr(norm, "DEPTHS", DEPTHS)
    measured.gradients(DEPTHS).result(PATIENCE)


def pass_of(run):
    """Model, and every site of a pass over its sample, laid out here."""
    model, config = network(run)
    if config.task.task == "text":
        task = config.build_task()
        tokens, source = torch.tensor([[task.separator, *task.example[:-1]]]), None
    else:
        tokens, source = read_by_hand(config.task.task, PI, answer(model, config, PI))
    return model, observe(model, tokens, source=source)


@pytest.mark.daily(3)
@pytest.mark.parametrize("case", CASES)
def test_the_bars_and_the_sentences_are_the_formula(case):
    run, block, kind, reads, place = CASES[case]
    model, seen = pass_of(run)
    x = double(seen[f"{block}.{reads}"])[0, place - 1]
    around = {"self_attention": "around_self", "cross_attention": "around_cross"}.get(kind, "around_feed_forward")
    layer = getattr(model.get_submodule(block), around).before
    app = open_page("block", run=run, part="norm", block=block, sublayer=kind, query=str(place))
    mean, spread = sum(x) / len(x), np.sqrt(sum((each - sum(x) / len(x)) ** 2 for each in x) / len(x))
    bars = [array(each["y"]) for each in figures(app)["norm"]["data"]]
    right = x, x - mean, (x - mean) / np.sqrt(spread**2 + 1e-5), normed(x, layer)
    for drawn, values in zip(bars, right, strict=True):
        np.testing.assert_allclose(drawn, values, atol=2e-4)
    said = re.fullmatch(
        r"LayerNorm subtracts the mean (−?\d+\.\d\d) from '.*' at (\d+) and divides by (\d+\.\d\d)\.",
        app.title[0].value.replace("\\", ""),
    )
    assert said
    assert float(said[1].replace("−", "-")) == pytest.approx(mean, abs=0.006)
    assert int(said[2]) == place
    assert float(said[3]) == pytest.approx(spread, abs=0.006)
    text = " ".join(each.value for each in app.markdown)
    assert f"= {mean:.4f}" in text or f"= {mean + 1e-4:.4f}" in text or f"= {mean - 1e-4:.4f}" in text
    i = int(np.abs(x - mean).argmax())
    whole = next(each.value for each in app.markdown if each.value.startswith(f"In dimension {i}, the one farthest"))
    four = [float(each.replace(" ", "")) for each in re.findall(r"(?:(?<= )[-+] |-)?\d+\.\d{4}", whole)]
    np.testing.assert_allclose(four, [x[i], -mean, np.sqrt(spread**2 + 1e-5), right[2][i]], atol=2e-4)
    rest = next(
        each.value for each in app.markdown if each.value.startswith(f"In dimension {i}, ") and "gain" in each.value
    )
    four = [float(each.replace("−", "-")) for each in re.findall(r"−?\d+\.\d{4}", rest)]
    gain, shift = double(layer.weight)[i], double(layer.bias)[i]
    np.testing.assert_allclose(four, [right[2][i], gain, shift, right[3][i]], atol=2e-4)


@pytest.mark.daily(2)
@pytest.mark.parametrize("run", ["reverse", "reverse-translate", "shakespeare"])
def test_the_token_that_a_norm_changes_most_is_shown_first_and_its_mean_and_spread_are_said(run):
    model, seen = pass_of(run)
    crossed = run == "reverse-translate"
    reads = {"self_attention": "resid_pre", "feed_forward": "resid_cross" if crossed else "resid_mid"}
    stacks = [f"encoder.{i}" for i in range(len(model.encoder))] if crossed else []
    far = {}
    for block in [*stacks, *(f"decoder.{i}" for i in range(len(model.decoder)))]:
        own = reads | {"cross_attention": "resid_mid"} if crossed and block.startswith("decoder") else reads
        if block.startswith("encoder"):
            own = own | {"feed_forward": "resid_mid"}
        for name, stream in own.items():
            for place, x in enumerate(double(seen[f"{block}.{stream}"])[0]):
                far[block, name, place] = abs(x.mean()) + abs(x.std() - 1)
    block, name, place = max(far, key=far.__getitem__)
    app = open_page("block", run=run, part="norm")
    assert link(app) == {"run": run, "part": "norm"}
    there = open_page("block", run=run, part="norm", block=block, sublayer=name, query=str(place + 1))
    assert link(there) == {"run": run, "part": "norm", "block": block, "sublayer": name, "query": str(place + 1)}
    picture = figures(app)["norm"]
    panels = [array(each["y"]).astype(float) for each in picture["data"]]
    np.testing.assert_array_equal(panels[0], array(figures(there)["norm"]["data"][0]["y"]))
    headings = [re.sub("<.*?>", "", each["text"]) for each in picture["layout"]["annotations"]]
    for number, (heading, step, values) in enumerate(zip(headings, STEPS, panels, strict=True), 1):
        said = re.fullmatch(rf"{number} {re.escape(step)}  μ = (−?\d+\.\d\d), σ = (\d+\.\d\d)", heading)
        assert said
        numbers = [float(each.replace("−", "-")) for each in said.groups()]
        np.testing.assert_allclose(numbers, [values.mean(), values.std()], atol=0.006)
    task = network(run)[1].build_task()
    read = [str(each) for each in PI] if block.startswith("encoder") else None
    if run == "shakespeare":
        read = [task.vocabulary[each] for each in (task.separator, *task.example[:-1])]
    stack, number = block.split(".")
    where = f"{name.replace('_', '-')} of {f'{stack} block' if crossed else 'block'} {number}"
    for each in (
        app,
        open_page("block", run=run, part="norm", block="decoder.0", sublayer="self_attention", query="2"),
    ):
        (said,) = [found.value.replace("\\", "") for found in each.markdown if "The page opens where" in found.value]
        named = re.fullmatch(
            rf"The page opens where LayerNorm has most to do: '(.+)' at {place + 1}, {where}\. Its numbers are "
            r"farthest from mean 0 and spread 1\.",
            re.sub(r":\w+\[(.*?)\]", r"\1", said),
        )
        assert named
        assert read is None or named[1] == read[place]


def test_panels_side_by_side_have_one_scale_and_every_bar_is_in_it():
    rng = np.random.default_rng(0)
    x = 3 + 7 * rng.normal(size=32)
    panels = [x, x - x.mean(), (x - x.mean()) / x.std(), 0.01 * x]
    figure = norm_panels(*panels)
    layout = figure.layout
    axes = [layout.yaxis, layout.yaxis2, layout.yaxis3, layout.yaxis4]
    for drawn, axis, values in zip(figure.data, axes, panels, strict=True):
        np.testing.assert_allclose(drawn.y, values, rtol=1e-5)
        assert np.abs(values).max() <= axis.range[1] == -axis.range[0]
    for one, other in ((0, 1), (2, 3)):
        assert axes[one].range == axes[other].range
        assert axes[one].domain == axes[other].domain
    assert axes[2].domain[1] < axes[0].domain[0]
    means = [line.y0 for line in layout.shapes if line.type == "line"]
    np.testing.assert_allclose(means, [values.mean() for values in panels], atol=1e-12)
    bands = [(band.y0, band.y1) for band in layout.shapes if band.type == "rect"]
    for (low, high), values in zip(bands, panels, strict=True):
        np.testing.assert_allclose([low, high], [values.mean() - values.std(), values.mean() + values.std()])


@pytest.mark.daily(1)
@pytest.mark.parametrize("residual", [True, False])
def test_a_post_norm_model_normalises_the_sum(residual, tmp_path, monkeypatch):
    untrained(tmp_path / "post", TaskConfig(length=4), norm="post", residual=residual)
    monkeypatch.setattr("dashboard.models.menu.ROOT", tmp_path)
    monkeypatch.setattr("dashboard.models.menu.FIRST", "post")
    app = open_page("block", run="post", part="norm", query="2")
    after = array(figures(app)["norm"]["data"][3]["y"])
    assert after.mean() == pytest.approx(0, abs=1e-5)  # gain 1 and shift 0 before training
    assert after.std() == pytest.approx(1, abs=1e-3)
    assert "**Post-norm (this model)**" in [each.value for each in app.markdown]
    gone = any("no residual connections" in each.value for each in app.caption)
    assert gone != residual


def test_a_model_without_norms_says_so_and_still_shows_where_norms_stand():
    app = open_page("block", run="compiled", part="norm")
    assert app.title[0].value == "compiled has no LayerNorm: each sub-layer reads the stream as it is."
    assert "norm" not in figures(app)
    assert "**No norm (this model)**" in [each.value for each in app.markdown]
    assert {"norm-gradients", "norm-ratios"} <= set(figures(app))


def test_the_gradients_are_those_of_pytorch():
    app = open_page("block", run="reverse", part="norm")
    ends = {}
    for name, words in measured.NORMS.items():
        for depth in DEPTHS:
            config = measured.small(name, depth)
            model, task = build(config).eval(), config.build_task()
            batch, _ = questions(task, 64, 4, 0)
            logits, answers = model(torch.from_numpy(batch.tokens)), batch.is_answer
            functional.cross_entropy(logits[answers], torch.from_numpy(batch.targets)[answers]).backward()
            norms = [
                np.sqrt(sum(float((each.grad.double() ** 2).sum()) for each in block.parameters()))
                for block in model.decoder
            ]
            ends[name, depth] = norms[0], norms[-1]
            if depth == DEPTHS[-1]:
                np.testing.assert_allclose(array(trace(app, "norm-gradients", words)["y"]), norms, rtol=1e-3)
        drawn = trace(app, "norm-ratios", words)
        np.testing.assert_allclose(
            array(drawn["y"]), [one / other for one, other in (ends[name, d] for d in DEPTHS)], 1e-3
        )
        assert list(drawn["x"]) == list(DEPTHS)
    said = next(each.value for each in app.caption if "divided by the last layer's" in each.value)
    shown = [float(each) for each in re.findall(r"(\d+\.?\d*) with", said)]
    np.testing.assert_allclose(shown, [ends[name, 3][0] / ends[name, 3][1] for name in measured.NORMS], rtol=0.006)
    said = next(each.value for each in app.caption if each.value.startswith("At 3 layers: "))
    much = ends["post", 3][1] / ends["pre", 3][1]
    assert ("times as large with post-norm" in said) == (much > norm.LARGER)


@pytest.mark.parametrize("kind", MARKS)
def test_the_line_of_each_norm_stands_in_the_block(kind):
    lines, _, marked = code_around(norm.BLOCK, MARKS[kind])
    assert "norm." in " ".join(lines[marked : marked + 2])
    assert ("before" if kind[0] == "pre" else "after") in " ".join(lines[marked : marked + 2])
