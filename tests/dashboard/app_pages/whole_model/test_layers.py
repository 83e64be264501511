"""The page "Through the layers": it draws what the lens, the rollout and the parts of a logit are, and says so."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
import torch

from dashboard import theme
from dashboard.app_pages.whole_model.layers.figures import MOST, block_of, coarse_heatmap, writes_heatmap
from dashboard.app_pages.whole_model.layers.lens import written_for
from dashboard.figures.kit.labels import name_axis
from dashboard.figures.lens import lens_heatmap, stage_line, tokens_bars
from tests.dashboard.app_pages.conftest import Made
from tests.kit.figures import decoded, sent
from tests.kit.pages import (
    PI,
    RUNS,
    answer,
    array,
    figures,
    laid_out,
    link,
    network,
    open_page,
    page_to_read,
    sample,
    trace,
    words,
)
from transformer.analysis.heads.rollout import rollout
from transformer.analysis.sample import sample as observe_one
from transformer.analysis.stream.lens import lens
from transformer.model import Transformer

PALETTES = [theme.LIGHT, theme.DARK]


def asked(run: str) -> tuple[Transformer, torch.Tensor, torch.Tensor | None, np.ndarray]:
    """A model, what it reads of pi when it reads its own words, and the right tokens."""
    model, config, tokens, source = sample(run)
    return model, tokens, source, laid_out(config, np.array([PI]))[2][0]


@lru_cache(maxsize=2)
def stages(run: str) -> np.ndarray:
    """The library's logit lens, by the numbers of the tokens: shares, float [stage, position, token]."""
    model, config = network(run)
    found = lens(model, config.build_task(), np.array(PI), said=np.array(answer(model, config, PI)))
    shares = np.zeros_like(found.shares)
    np.put_along_axis(shares, found.tokens, found.shares, axis=-1)
    return shares


def known(run: str) -> slice:
    """The answers that can be known, of the eight symbols of pi."""
    return {"reverse-aligned-causal": slice(4, 8)}.get(run, slice(-8, None))


@pytest.mark.daily(2)
@pytest.mark.parametrize("run", RUNS)
def test_a_stage_says_what_the_lens_reads_there_and_the_title_where_most_become_right(run: str) -> None:
    shares, targets = stages(run), asked(run)[3]
    right = (shares.argmax(-1) == targets)[:, known(run)]
    app = page_to_read("layers", run=run)
    drawn = array(trace(app, "lens", "values")["z"])
    np.testing.assert_allclose(drawn, shares[:, np.arange(len(targets)), targets], atol=1e-5)
    letters = trace(app, "lens", "letters")
    assert sum("✓" in text for text in letters["text"]) == right.sum()
    vocabulary = [*map(str, range(10)), "SEP", "PAD"]
    said = [vocabulary[token] for token in shares.argmax(-1).ravel()]
    assert [re.sub("<.*?>|✓", "", text) for text in letters["text"]] == said
    counts = right.sum(axis=1)
    leap = int(np.diff(counts).argmax())
    counted = f"{counts[leap + 1]} of {right.shape[1]} are right, and {counts[leap]} before."
    assert counted in app.title[0].value


@pytest.mark.daily(2)
@pytest.mark.parametrize("run", RUNS)
def test_the_cell_that_is_looked_into_is_where_the_first_answer_settles(run: str) -> None:
    targets = asked(run)[3]
    place = range(len(targets))[known(run)][0]
    shares = stages(run)[:, place]
    said = shares.argmax(-1).tolist()
    stage = next(i for i in range(len(said)) if set(said[i:]) == {said[-1]})
    app = page_to_read("layers", run=run)
    assert f"**Position {place + 1}, after the" in words(app)
    bars = trace(app, "lens-tokens", "tokens")
    np.testing.assert_allclose(array(bars["x"]), np.sort(shares[stage])[::-1][:6], atol=1e-5)
    way = trace(app, "lens-way", "right token")
    np.testing.assert_allclose(array(way["x"]), shares[:, targets[place]], atol=1e-5)


def test_a_link_names_the_cell_and_asks_for_the_likeliest_tokens_shares() -> None:
    shares, right = stages("reverse"), asked("reverse")[3][11]
    app = open_page("layers", run="reverse", query="12", stage="decoder.1.resid_mid", likeliest="1")
    np.testing.assert_allclose(array(trace(app, "lens", "values")["z"]), shares.max(-1), atol=1e-5)
    bars = array(trace(app, "lens-tokens", "tokens")["x"])
    np.testing.assert_allclose(bars, np.sort(shares[3, 11])[::-1][:6], atol=1e-5)
    assert "**Position 12, after the attention of layer 1**" in words(app)
    assert f"The right token '{right}' has {shares[3, 11, right]:.3f}" in words(app)


def test_before_training_there_is_no_answer() -> None:
    model, config = network("reverse", 0)
    right = sum(a == b for a, b in zip(answer(model, config, PI), PI[::-1], strict=True))
    title = open_page("layers", run="reverse", step="0").title[0].value
    none, verb = "Not yet the answer" if right else "No answer yet", "is" if right == 1 else "are"
    assert title == f"{none}: after the feed-forward of layer 1, {right} of 8 {verb} right."


@pytest.mark.daily(2)
@pytest.mark.parametrize("through", [0, 1])
@pytest.mark.parametrize("run", ["reverse", "reverse-aligned", "reverse-translate"])
def test_the_rollout_and_the_layers_own_attention_are_drawn_where_a_path_leads(run: str, through: int) -> None:
    """The rollout is the library's, whose own tests multiply its layers by hand."""
    model, config = network(run)
    task, said = config.build_task(), np.array(answer(model, config, PI))
    seen = observe_one(model, task, np.array(PI), said=said).attentions
    stack = "encoder" if run == "reverse-aligned" else "decoder"
    site = f"{stack}.{through}.{'cross_attention' if task.has_source else 'self_attention'}"
    last = seen[site].pattern.mean(axis=0)
    rolled, n = rollout(seen, through)[:, : last.shape[1]], len(last)
    app = page_to_read("layers", run=run, **({} if through else {"through": "0"}))
    for key, values in (("rollout", rolled), ("rollout-mean", last)):
        drawn = array(trace(app, key, "values")["z"])
        led = np.isfinite(drawn)
        np.testing.assert_allclose(drawn[led], values[led], atol=1e-5)
        assert not values[~led].any()
    pairs = [(n - 8 + i, 7 - i) for i in range(8)]
    share, own = (np.mean([values[pair] for pair in pairs]) for values in (rolled, last))
    comes = f"In the rollout through layer {through}, {share:.2f} of an answer comes from the token it should be"
    assert comes in words(app)
    assert f"Layer {through} alone puts {own:.2f} of its attention there" in words(app)


def test_looking_evenly_is_worked_out_from_the_mask() -> None:
    even = np.tril(np.ones((16, 16))) / np.arange(1, 17)[:, None]
    rolled = np.linalg.matrix_power((even + np.eye(16)) / 2, 2)
    share = np.mean([rolled[8 + i, 7 - i] for i in range(8)])
    assert f"Looking evenly would give {share:.2f}." in words(page_to_read("layers", run="reverse"))


@pytest.mark.daily(2)
@pytest.mark.parametrize("run", RUNS)
def test_what_is_written_adds_up_to_the_logit(run: str) -> None:
    model, tokens, source, targets = asked(run)
    place = range(len(targets))[known(run)][-1]
    with torch.no_grad():
        logits = model(tokens, source)[0, place].numpy()
    lead = logits[targets[place]] - logits.mean()
    app = open_page("layers", run=run, query=str(place + 1))
    said = next(element.value for element in app.markdown if "All parts together" in element.value).replace("−", "-")
    total, embedding, biases = (
        float(re.search(pattern, said)[1])  # type: ignore[index]
        for pattern in (r"its logit ([\d.]+) above", r"embedding adds ([-+][\d.]+) and", r"biases ([-+]\d+\.\d+)")
    )
    table = array(trace(app, "writes", "writes")["z"])
    assert total == pytest.approx(lead, abs=0.006)
    assert np.nansum(table) + embedding + biases == pytest.approx(lead, abs=0.02)
    assert f"{np.nanmax(table):+.2f}" in said.partition("All parts")[0]


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ({"decoder.0.self_attention.0": 0.5}, "head 0.0 writes +0.50 for '3'."),
        (
            {"decoder.0.self_attention.0": 1.001, "decoder.1.feed_forward": 0.999},
            "head 0.0 and the feed-forward of layer 1 write most for '3': +1.00 each.",
        ),
        (
            {"decoder.0.self_attention.0": -0.2, "decoder.0.cross_attention.1": -0.1},
            "no part writes for '3'; head 0.1 (cross-attention) comes closest: −0.10.",
        ),
        (
            {f"decoder.0.self_attention.{head}": 0.001 for head in range(6)},
            "no part writes for '3'; 6 parts come closest: +0.00 each.",
        ),
    ],
)
def test_who_writes_most_is_said_of_all_that_write_as_much(own: dict[str, float], said: str) -> None:
    rest = {"embedding": -3.0, "biases": 0.25}
    total = sum(own.values()) - 2.75
    assert written_for({**own, **rest}, 4, "3") == (
        f"At position 5, {said} All parts together put its logit {-total:.2f} below the mean token's, of which the "
        "embedding adds −3.00 and biases +0.25."
    )


# Any model


@pytest.mark.daily(2)
@pytest.mark.parametrize(
    ("task", "changes"),
    [
        ({"task": "reverse", "length": 3}, {"norm": "post", "positions": "alibi"}),
        ({"task": "reverse-translate", "length": 3, "min_length": 1}, {"d_ff": 0, "norm": "none"}),
        ({"task": "reverse-aligned", "length": 3}, {"positions": "none", "n_layers": 1}),
        ({"task": "copy", "length": 20}, {"positions": "rotary", "n_layers": 4, "mask": "sliding-window:2"}),
        ({"task": "reverse-aligned", "length": 1}, {"architecture": "decoder"}),
    ],
)
def test_it_opens_on_every_kind_of_model(alone: Made, task: dict[str, Any], changes: dict[str, Any]) -> None:
    alone(task, **changes)
    for query in ({}, {"input": "1", "likeliest": "1"}):
        app = open_page("layers", **query)
        assert not app.warning
        assert len(figures(app)) == 6


def test_masks_that_let_nothing_arrive_are_said(alone: Made) -> None:
    """Where each sees itself alone, only the middle of three, its own mirror image, can be known."""
    for name, length in (("odd", 3), ("even", 2)):
        alone({"task": "reverse-aligned", "length": length}, name, mask="sliding-window:0")
    app = open_page("layers", run="even")
    assert app.title[0].value == "No answer can be known here: the mask hides what it depends on."
    assert "no path leads from an answer" in words(app)
    assert " of 1 " in open_page("layers", run="odd").title[0].value


def test_512_tokens_are_drawn_from_less_than_a_megabyte_a_figure(alone: Made) -> None:
    alone({"length": 256}, n_layers=3)
    app = open_page("layers")
    assert len(figures(app)) == 6
    assert max(len(element.proto.bytes) for element in app.get("bidi_component")) < 1_000_000
    assert "512 tokens: each cell drawn is the largest of 6 × 6." in words(app)


def test_another_model_forgets_the_cell() -> None:
    app = open_page("layers", run="reverse", query="12", stage="decoder.1.resid_mid", through="0")
    app.selectbox(key="control-run").set_value("compiled").run()
    assert link(app) == {"run": "compiled"}
    assert not app.warning


# Figures


VALUES = np.array([[0.1, 0.2, 0.3], [0.9, 0.2, 1.0]])
SAID = [["<b>", "2", "3"], ["1", "5", "3"]]
RIGHT = np.array([[False, True, False], [True, False, True]])
KNOWN = np.array([False, True, True])
LABELS = (["embedding", "0 attention"], ["a", "b", "c"], ["1", "2", "3"])


@pytest.mark.parametrize("palette", PALETTES)
def test_letters_are_legible_and_ticked_where_the_answer_is_known_and_right(palette: theme.Palette) -> None:
    figure = lens_heatmap(VALUES, SAID, RIGHT, *LABELS, known=KNOWN, palette=palette)
    letters = sent(figure, "letters")
    assert letters["text"] == ["&lt;b&gt;", "<b>2✓</b>", "3", "1", "5", "<b>3✓</b>"]
    table = theme.pattern_colours(palette.dark)
    for ink, value in zip(letters["textfont"]["color"], VALUES.ravel(), strict=True):
        assert theme.contrast(ink, "#{:02x}{:02x}{:02x}".format(*table[round(255 * value)])) > 3


def test_the_first_stage_is_below_and_the_scale_is_fixed() -> None:
    figure = lens_heatmap(VALUES / 10, SAID, RIGHT, *LABELS, known=KNOWN)
    low, high = figure.layout.yaxis.range
    assert low < high
    assert figure.layout.yaxis.ticktext == ("embedding", "0 attention", "right token")
    values = sent(figure, "values")
    assert (values["zmin"], values["zmax"]) == (0, 1)
    np.testing.assert_allclose(decoded(values["z"]), VALUES / 10, atol=1e-6)
    assert values["text"][1][0] == "0 attention, position 1: would say '1'; right is '1'; 0.09"
    assert values["text"][0][0].startswith("embedding, position 1: would say '&lt;b&gt;'")
    assert sent(figure, "right token")["text"] == ["1", "<b>2</b>", "<b>3</b>"]


def test_a_frame_stands_around_what_can_be_known_and_two_around_the_chosen_cell() -> None:
    figure = lens_heatmap(VALUES, SAID, RIGHT, *LABELS, known=np.array([True, False, True]), chosen=(1, 2))
    corners = [(shape.x0, shape.y0, shape.x1, shape.y1) for shape in figure.layout.shapes]
    assert corners[:2] == [(-0.5, -0.5, 0.5, 1.5), (1.5, -0.5, 2.5, 1.5)]
    assert corners[2] == (1.5, 0.5, 2.5, 1.5)
    assert len({figure.layout.shapes[i].line.color for i in (2, 3)}) == 2


@pytest.mark.parametrize(("stages", "n"), [(2, 40), (30, 3)])
def test_many_positions_or_stages_have_dots_in_place_of_letters(stages: int, n: int) -> None:
    right = np.arange(stages * n).reshape(stages, n) % 7 == 0
    known = np.arange(n) > n // 2
    labels = ([f"stage {i}" for i in range(stages)], ["1"] * n, ["1"] * n)
    figure = lens_heatmap(np.full((stages, n), 0.5), [["1"] * n] * stages, right, *labels, known=known)
    dots = sent(figure, "right")
    found = set(zip(decoded(dots["y"]).tolist(), decoded(dots["x"]).tolist(), strict=True))
    assert found == set(map(tuple, np.argwhere(right & known).tolist()))
    assert "letters" not in {each.name for each in figure.data}


def test_right_tokens_at_the_ends_of_a_long_row_lean_inwards() -> None:
    def sides_of(n: int) -> dict[int, str]:
        nowhere, labels = np.zeros((2, n)), (["a", "b"], ["word"] * n, ["word"] * n)
        figure = lens_heatmap(nowhere, [["1"] * n] * 2, nowhere > 0, *labels, known=np.ones(n, dtype=bool))
        line = sent(figure, "right token")
        return dict(zip(line["x"], line["textposition"], strict=True))

    sides = sides_of(60)
    assert sides[0] == "middle right"
    assert {sides[place] for place in sides if 3 <= place < 57} == {"middle center"}
    assert set(sides_of(3).values()) == {"middle center"}


def test_the_right_token_is_among_the_likeliest_ones_shown() -> None:
    shares = np.array([0.3, 0.05, 0.25, 0.2, 0.02, 0.18])
    figure = tokens_bars(shares, list("abcdef"), 4, most=3)
    assert sent(figure, "tokens")["customdata"] == ["a", "c", "e"]
    assert sent(figure, "tokens")["text"] == ["0.30", "0.25", "0.02 ✓"]
    assert [figure.data[0].marker.color[i] == theme.LIGHT.right for i in range(3)] == [False, False, True]


def test_the_line_runs_upwards_and_rings_the_chosen_stage() -> None:
    figure = stage_line(np.array([0.1, 0.5, 0.9]), ["embedding", "0 attention", "<i>"], 1, 0.25)
    line = sent(figure, "right token")
    np.testing.assert_allclose(decoded(line["x"]), [0.1, 0.5, 0.9], atol=1e-6)
    assert decoded(line["y"]).tolist() == [0, 1, 2]
    assert line["marker"]["size"].index(max(line["marker"]["size"])) == 1
    assert sent(figure, "chance")["x"] == [0.25, 0.25]
    assert figure.layout.yaxis.ticktext[2] == "&lt;i&gt;"


@pytest.mark.parametrize("palette", PALETTES)
def test_what_is_written_is_centred_on_0_and_a_missing_part_stays_empty(palette: theme.Palette) -> None:
    figure = writes_heatmap(np.array([[1.0, -3.0], [0.5, np.nan]]), ["0", "1"], ["head 0", "head 1"], palette=palette)
    cells = sent(figure, "writes")
    assert (cells["zmin"], cells["zmax"]) == (-3, 3)
    np.testing.assert_array_equal(decoded(cells["z"]), [[1, -3], [0.5, np.nan]])
    assert figure.layout.yaxis.ticktext == ("layer 0", "layer 1")
    assert sent(figure, "numbers")["text"] == ["1.0", "−3.0", "0.5"]


@pytest.mark.parametrize("n", [1, 24, 25, 37, 100])
def test_names_stand_at_their_places_the_last_always_and_never_too_many(n: int) -> None:
    axis = name_axis([f"stage {i}" for i in range(n)])
    assert axis["ticktext"] == [f"stage {place}" for place in axis["tickvals"]]
    assert axis["tickvals"][-1] == n - 1
    assert min(n, 12) <= len(axis["tickvals"]) <= 24
    assert len(set(np.diff(axis["tickvals"]))) <= 1


@pytest.mark.parametrize("size", [97, 512, 1000])
def test_a_coarse_pattern_keeps_every_bright_key_and_a_short_one_is_not_coarse(size: int) -> None:
    assert block_of(16, 16) == block_of(1, MOST) == 1
    block = block_of(size, size)
    assert -(-size // block) <= MOST
    pattern, mask = np.zeros((size, size)), np.tril(np.ones((size, size), dtype=bool))
    pattern[size - 1, 3] = 0.7
    names = [f"word{i}" for i in range(size)]
    figure: go.Figure = coarse_heatmap(pattern, mask, block, names, names)
    values = decoded(sent(figure, "values")["z"])
    assert values[-1, 3 // block] == pytest.approx(0.7)
    assert np.nansum(values) == pytest.approx(0.7)
    assert np.isnan(values[0, 1:]).all()
    assert len(figure.to_json()) < 400_000
    first = figure.data[0]
    assert (first.x0, first.dx) == ((1 + block) / 2, block)
    for axis in (figure.layout.xaxis, figure.layout.yaxis):
        assert sorted(axis.range) == [0.5, size + 0.5]
        assert 5 <= len(axis.tickvals) == len(axis.ticktext)
        assert [names[place - 1] for place in axis.tickvals] == list(axis.ticktext)
