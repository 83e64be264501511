"""The page "Inside a block", LayerNorm: one token's numbers against the formula, and gradients against PyTorch's."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

from dashboard.app_pages.whole_model.block import measured, norm
from dashboard.app_pages.whole_model.block.figures.norm import norm_panels, panels_without_reach
from dashboard.app_pages.whole_model.block.norm import MARKS
from dashboard.parts.prose import code_around
from tests.kit import strangers
from tests.kit.heads_by_hand import double, normed
from tests.kit.pages import PI, array, figures, link, network, open_page, sample, shown, trace, words
from tests.kit.waiting import PATIENCE
from transformer import observe
from transformer.norms import NORMS

DEPTHS = (2, 3)
STEPS = ("before", "− mean", "÷ spread", "× gain + shift")
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
    measured.gradients(DEPTHS, "layer").result(PATIENCE)


def pass_of(run):
    """Model, and every site of a pass over its sample."""
    model, _, tokens, source = sample(run)
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
    mean, spread = x.mean(), np.sqrt(((x - x.mean()) ** 2).mean())
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
    assert any(f"= {mean + rounding:.4f}" in text for rounding in (-1e-4, 0, 1e-4))
    i = int(np.abs(x - mean).argmax())
    one, other = [each.value for each in app.markdown if each.value.startswith(f"In dimension {i}, ")]
    four = [float(each.replace(" ", "")) for each in re.findall(r"(?:(?<= )[-+] |-)?\d+\.\d{4}", one)]
    np.testing.assert_allclose(four, [x[i], -mean, np.sqrt(spread**2 + 1e-5), right[2][i]], atol=2e-4)
    four = [float(each.replace("−", "-")) for each in re.findall(r"−?\d+\.\d{4}", other)]
    gain, shift = double(layer.weight)[i], double(layer.bias)[i]
    np.testing.assert_allclose(four, [right[2][i], gain, shift, right[3][i]], atol=2e-4)


@pytest.mark.daily(2)
@pytest.mark.parametrize("run", ["reverse", "reverse-translate", "shakespeare"])
def test_the_token_that_a_norm_changes_most_is_shown_first_and_its_mean_and_spread_are_said(run):
    _, seen = pass_of(run)
    streams = {"self_attention": "resid_pre", "cross_attention": "resid_mid"}
    far = {}
    for block in (site.removesuffix(".resid_pre") for site in seen.sites if site.endswith(".resid_pre")):
        crosses = f"{block}.resid_cross" in seen.sites
        for name in ("self_attention", *(["cross_attention"] if crosses else []), "feed_forward"):
            stream = streams.get(name, "resid_cross" if crosses else "resid_mid")
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
    where = f"{name.replace('_', '-')} of {f'{stack} block' if run == 'reverse-translate' else 'block'} {number}"
    for each in (app, there):
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
    sizes = [each.std() for each in panels]
    figure = norm_panels(dict(zip(STEPS, panels, strict=True)), sizes, "σ", centres=True)
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


SIZES = {
    "spread": (True, True, lambda x: x.std()),
    "root mean square": (False, True, lambda x: np.sqrt((x**2).mean())),
    "mean absolute value": (False, True, lambda x: np.abs(x).mean()),
    "greatest absolute value": (False, True, lambda x: np.abs(x).max()),
    "length": (False, False, lambda x: np.sqrt((x**2).sum())),
    "range": (True, False, np.ptp),
}
"""By what a norm may divide: whether it centres, and whether some number is as far from the middle as that."""


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("seed", range(5))
def test_a_band_is_drawn_where_some_bar_reaches_its_end(name, seed):
    centres, reaches, size = SIZES[name]
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=16) * 10 ** rng.uniform(-2, 2) + rng.normal()).astype(np.float32)
    centred = x - x.mean() if centres else x
    steps = {"before": x} | ({"− mean": centred} if centres else {}) | {"÷": centred / size(centred)}
    sizes = [float(np.float32(size(each))) for each in steps.values()]
    beyond = panels_without_reach(steps, sizes, centres=centres)
    assert beyond == ([] if reaches else [*range(1, len(steps) + 1)])
    drawn = norm_panels(steps, sizes, "s", centres=centres).layout.shapes
    assert [each.type for each in drawn] == (["rect", "line"] if reaches else ["line"]) * len(steps)


@pytest.mark.parametrize("kind", ["euclidean", "mean-absolute"])
def test_a_stranger_s_band_is_drawn_or_its_absence_is_said(kind, alone, monkeypatch):
    strangers.lend(monkeypatch, NORMS, kind)
    monkeypatch.setattr(norm, "_depth", lambda model: None)
    alone({"length": 4}, norm_kind=kind)
    app = open_page("block", run="one", part="norm")
    bands = [each for each in figures(app)["norm"]["layout"]["shapes"] if each["type"] == "rect"]
    said = {
        "euclidean": "Dashed: 0. No band: in panels 1, 2 and 3 the length is larger than the distance of any number "
        "from that line.",
        "mean-absolute": "Dashed: 0. Band: one mean absolute value (a) to either side.",
    }
    assert said[kind] in words(app)
    assert len(bands) == (0 if kind == "euclidean" else 3)


@pytest.mark.parametrize("residual", [True, False])
def test_a_post_norm_model_normalises_the_sum(residual, alone):
    alone({"length": 4}, norm="post", residual=residual)
    app = open_page("block", run="one", part="norm", query="2")
    after = array(figures(app)["norm"]["data"][3]["y"])
    assert after.mean() == pytest.approx(0, abs=1e-5)  # gain 1 and shift 0 before training
    assert after.std() == pytest.approx(1, abs=1e-3)
    assert "**Post-norm (this model)**" in [each.value for each in app.markdown]
    gone = any("no residual connections" in each.value for each in app.caption)
    assert gone != residual


RMS_STEPS = ("before", "÷ RMS", "× gain")


@pytest.mark.parametrize("place", ["pre", "post"])
def test_an_rms_norm_is_shown_as_what_it_is(place, alone):
    """No mean is taken off and nothing is added: neither in the panels, nor in the formulas, nor in the words."""
    measured.gradients(DEPTHS, "rms").result(PATIENCE)
    model, config = alone({"length": 4}, norm=place, norm_kind="rms", d_ff=0)
    tokens = torch.from_numpy(config.build_task().encode([np.array([3, 1, 4, 1])]).tokens)
    app = open_page("block", run="one", part="norm", block="decoder.1", query="2", input="3 1 4 1")
    seen = observe(model, tokens)
    x = double(seen["decoder.1.resid_pre"] + (place == "post") * seen["decoder.1.self_attention.out"])[0, 1]
    rms = np.sqrt((x**2).mean())
    drawn = figures(app)["norm"]
    assert [each["name"] for each in drawn["data"]] == list(RMS_STEPS)
    for bars, values in zip(drawn["data"], (x, x / rms, x / rms), strict=True):  # gain 1 before training
        np.testing.assert_allclose(array(bars["y"]), values, atol=1e-4)
    headings = [re.sub("<.*?>", "", each["text"]) for each in drawn["layout"]["annotations"]]
    numbers = [
        f"{number} {step}  RMS = {size:.2f}"
        for number, step, size in zip((1, 2, 3), RMS_STEPS, (rms, 1, 1), strict=True)
    ]
    assert headings == numbers
    lines = [line["y0"] for line in drawn["layout"]["shapes"] if line["type"] == "line"]
    assert lines == [0, 0, 0]
    title = shown(app.title[0].value)
    assert title == f"RMSNorm divides the numbers of '1' at 2 by {rms:.2f}, their root mean square."
    text = words(app)
    for right in (
        r"\mathrm{RMSNorm}(x)_i",
        f"= {rms:.4f}",
        "it has no shift",
        "Small models (d_model 32) with RMSNorm",
    ):
        assert right in text, right
    for wrong in (r"\mu", r"\sigma", r"\mathrm{LN}", "the mean", "spread", "plus the shift", "subtracts"):
        assert wrong not in text, wrong
    assert "LayerNorm" not in text.replace("for LayerNorm, as the reason", "")


@pytest.mark.parametrize(("kind", "named"), [("layer", "LayerNorm"), ("rms", "RMSNorm")])
@pytest.mark.parametrize("place", ["pre", "post"])
def test_every_page_of_a_model_calls_its_norm_by_its_name(place, kind, named, alone):
    alone({"length": 4}, norm=place, norm_kind=kind, n_layers=1)
    views = {
        "inside": [{}, {"operation": "add"}],
        "layers": [{}],
        "order": [{}],
        "block": [{"part": part} for part in ("heads", "logits", "parameters")],
        "machine": [{"zoom": "head", "head": "decoder.0.self_attention.0"}],
    }
    read = {page: " ".join(words(open_page(page, run="one", **query)) for query in views[page]) for page in views}
    other = "LayerNorm" if kind == "rms" else "RMSNorm"
    assert not [page for page, text in read.items() if other in text]
    said = {"inside", "layers", "block"} | ({"order", "machine"} if place == "pre" else set())
    assert {page for page, text in read.items() if named in text} >= said
    kept = {"LayerNorm": "Centring and gain of each LayerNorm on that path are kept."}
    kept["RMSNorm"] = "The gain of each RMSNorm on that path is kept."
    assert (kept[named] in read["inside"]) == (place == "post")


def test_a_model_without_norms_says_so_and_still_shows_where_norms_stand():
    app = open_page("block", run="compiled", part="norm")
    assert app.title[0].value == "compiled has no norm: each sub-layer reads the stream as it is."
    assert "norm" not in figures(app)
    assert "**No norm (this model)**" in [each.value for each in app.markdown]
    assert {"norm-gradients", "norm-ratios"} <= set(figures(app))


def test_the_gradients_of_models_that_differ_in_their_norm_are_drawn_and_divided():
    app = open_page("block", run="compiled", part="norm")
    gradients = measured.gradients(DEPTHS, "layer").result(PATIENCE)
    ratios = {each: layers[0] / layers[-1] for each, layers in gradients.items()}
    for name, called in measured.NORMS.items():
        assert [measured.small(name, "layer", depth).model.norm for depth in DEPTHS] == [name] * 2
        drawn = trace(app, "norm-gradients", called)["y"]
        np.testing.assert_allclose(array(drawn), gradients[name, DEPTHS[-1]], rtol=1e-3)
        drawn = trace(app, "norm-ratios", called)
        np.testing.assert_allclose(array(drawn["y"]), [ratios[name, depth] for depth in DEPTHS], rtol=1e-3)
        assert list(drawn["x"]) == list(DEPTHS)
    said = next(each.value for each in app.caption if "divided by the last layer's" in each.value)
    shown = [float(each) for each in re.findall(r"(\d+\.?\d*) with", said)]
    np.testing.assert_allclose(shown, [ratios[name, 3] for name in measured.NORMS], rtol=0.006)
    said = next(each.value for each in app.caption if each.value.startswith("At 3 layers: "))
    much = gradients["post", 3][-1] / gradients["pre", 3][-1]
    assert ("times as large with post-norm" in said) == (much > norm.LARGER)


@pytest.mark.parametrize("kind", MARKS)
def test_the_line_of_each_norm_stands_in_the_block(kind):
    lines, _, marked = code_around(norm.BLOCK, MARKS[kind])
    assert "norm." in " ".join(lines[marked : marked + 2])
    assert ("before" if kind[0] == "pre" else "after") in " ".join(lines[marked : marked + 2])
