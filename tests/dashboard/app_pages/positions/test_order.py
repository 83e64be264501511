"""Positions at work, the page: its numbers worked out anew, its controls, and models that are told otherwise."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

from dashboard import theme
from dashboard.app_pages.positions.order.figures.interventions import intervention_bars
from dashboard.app_pages.positions.order.figures.terms import pattern_pair, share_bars, term_heatmaps
from dashboard.parts import claims
from tests.dashboard.app_pages.conftest import Made
from tests.kit.pages import PI, answer, array, figures, laid_out, link, network, open_page, trace, words
from transformer.analysis.heads.score_terms import TERMS, measure_shares, split_question

KNOWN = slice(8, None)
"""What a reversal can know of its answer: the second half."""


def test_the_title_and_the_bars_are_the_shares_over_many_sequences() -> None:
    """The library's own tests hold what it measures against covariances worked out by hand."""
    model, config = network("reverse-aligned")
    found = measure_shares(model, config.build_task())
    app = open_page("order", run="reverse-aligned")
    for i, name in enumerate(TERMS):
        np.testing.assert_allclose(array(trace(app, "order-shares", name)["y"]), found.share[:, i], atol=1e-4)
    assert app.title[0].value == claims.map_of("head 0.1", "position–position", found.share[1, 3])
    moves = f"Over {found.sequences} sequences, {found.distance[1]:.2f} of the attention moves to other keys"
    assert moves in words(app)


def test_the_maps_are_the_terms_of_this_input_each_row_about_its_mean() -> None:
    """The library's own tests hold the terms against products of vectors."""
    model, config = network("reverse")
    said = np.array(answer(model, config, PI))
    found = split_question(model, config.build_task(), np.array(PI), "decoder.0.self_attention", said=said)
    app = open_page("order", run="reverse", head="decoder.0.self_attention.3")
    for name, apart in zip(TERMS, found.apart[:, 3], strict=True):
        drawn = array(trace(app, "order-terms", name)["z"])
        np.testing.assert_allclose(drawn, np.where(found.mask, apart, np.nan), atol=1e-4)
    for name, pattern in (("everything", found.pattern[3]), ("positions alone", found.alone[3])):
        drawn = array(trace(app, "order-patterns", name)["z"])
        np.testing.assert_allclose(drawn[found.mask], pattern[found.mask], atol=1e-4)


@torch.no_grad()
def counted(swaps: list[int]) -> np.ndarray:
    """Accuracy by position when each slot gets the vector of another: the table's own rows are changed."""
    model, config = network("reverse")
    table = model.positions.get_parameter("table")
    table.copy_(table[swaps].clone())
    rng = np.random.default_rng([config.training.seed + 1, 1])
    tokens, _, targets = laid_out(config, rng.integers(0, 10, (1024, 8)))
    return (model(tokens).argmax(-1).numpy() == targets).mean(axis=0)


def test_accuracy_after_a_swap_is_that_of_a_model_whose_table_was_changed() -> None:
    order = list(range(16))
    before = counted(order)
    order[1], order[9] = 9, 1
    after = counted(order)
    app = open_page("order", run="reverse", order="swap:2,10")
    np.testing.assert_allclose(array(trace(app, "order-accuracy", "after")["y"]), after, atol=2e-3)
    np.testing.assert_allclose(array(trace(app, "order-accuracy", "before")["y"]), before, atol=2e-3)
    was, now = before[KNOWN].mean(), after[KNOWN].mean()
    said = next(m.value for m in app.markdown if "swapped" in m.value)
    numbers = [float(number) for number in re.findall(r"\d\.\d\d", said)]
    np.testing.assert_allclose(numbers, [was, now], atol=0.006)
    bars = trace(app, "order-summary", "after")
    turned = [counted([(i + by) % 16 for i in range(16)])[KNOWN].mean() for by in (-3, 1)]
    np.testing.assert_allclose(array(bars["y"])[[0, 3]], turned, atol=2e-3)


def test_the_intervention_is_chosen_by_kind_and_number_and_lives_in_the_link(alone: Made) -> None:
    alone({"length": 4}, n_layers=1, positions="sinusoidal")
    app = open_page("order", run="one")
    assert any(m.value.startswith("**With positions shifted by +1") for m in app.markdown)
    for kind, begins, field, number, order in (
        ("swap", "swap:1,8", "first", 4, "swap:4,8"),
        ("swap", "swap:4,8", "first", 8, "swap:8,4"),
        ("places-turn", "places-turn:1", "by", 0, "places-turn:-1"),
        ("places-shuffle", "places-shuffle:0", "seed", 7, "places-shuffle:7"),
    ):
        app.button_group(key="control-order").set_value(kind).run()
        assert link(app)["order"] == begins
        app.number_input(key=f"control-order-{field}").set_value(number).run()
        assert link(app)["order"] == order
        if order == "swap:4,8":
            assert any(m.value.startswith("**With positions 4 and 8 swapped") for m in app.markdown)
    app.button_group(key="control-order").set_value("unplaced").run()
    assert link(app)["order"] == "unplaced"
    assert any(m.value.startswith("**With no positions, accuracy on the answer ") for m in app.markdown)


@pytest.mark.daily(2)
@pytest.mark.parametrize(
    ("order", "sentence"),
    [
        ("places-shift:1", "A learned table has no position 9: it ends at 1 and at 8. Use a cyclic shift"),
        ("swap:3,99", "there are only positions 1 to 8"),
        ("places-turn:8", "changed no number"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(order: str, sentence: str, alone: Made) -> None:
    alone({"length": 4}, n_layers=1)
    app = open_page("order", run="one", order=order)
    said = [box.value for box in (*app.info, *app.warning)]
    assert [sentence in each for each in said] == [True]
    assert len(figures(app)) == 5


def test_a_head_that_reads_what_attention_wrote_is_not_split_and_stays_in_the_view() -> None:
    app = open_page("order", run="reverse", head="decoder.1.self_attention.3")
    assert any("cannot be taken apart" in caption.value for caption in app.caption)
    assert app.title[0].value.startswith("Head 0.2 is")
    assert link(app)["head"] == "decoder.1.self_attention.3"


def test_rotary_positions_have_no_terms_and_take_no_notice_of_a_shift(alone: Made) -> None:
    alone({"length": 4}, n_layers=1, positions="rotary")
    app = open_page("order", run="one")
    assert re.fullmatch(
        r"Without positions, accuracy on the answer (stays at|(falls|rises) from 0\.\d\d to) 0\.\d\d\.",
        app.title[0].value,
    )
    assert ["each head turns its queries and keys by angles" in info.value for info in app.info] == [True]
    assert list(figures(app)) == ["order-accuracy", "order-summary"]
    assert any("All distances are unchanged, and nothing is lost" in c.value for c in app.caption)
    before, after = (array(trace(app, "order-accuracy", name)["y"]) for name in ("before", "after"))
    np.testing.assert_array_equal(before, after)


def test_a_model_of_the_mask_alone_has_nothing_to_show_and_alibis_terms_of_position_are_0(alone: Made) -> None:
    """Without vectors nothing of a score is position but the bias, the same for all tokens."""
    alone({"length": 4}, n_layers=1, positions="alibi", norm="post")
    app = open_page("order", run="one")
    assert len(figures(app)) == 5
    drawn = array(trace(app, "order-terms", "content–position")["z"])
    np.testing.assert_allclose(drawn[np.isfinite(drawn)], 0, atol=1e-6)
    assert np.isfinite(drawn[:, 0]).all()
    alone({"length": 4}, "without", n_layers=1, positions="none", norm="post")
    app = open_page("order", run="without")
    assert app.title[0].value.startswith("This model has no positional encoding")
    assert figures(app) == {}


# --- figures


@pytest.mark.parametrize("palette", [theme.LIGHT, theme.DARK])
def test_figures_draw_what_they_are_given_on_one_scale(palette: theme.Palette) -> None:
    rng, mask = np.random.default_rng(0), np.tril(np.ones((5, 5), dtype=bool))
    values, names = rng.normal(size=(4, 5, 5)), [str(i) for i in range(5)]
    maps = term_heatmaps(values, TERMS, mask, names, names, palette=palette)
    drawn = [each for each in maps.data if each.name in TERMS]
    most = np.abs(values[:, mask]).max()
    assert {(each.zmin, each.zmax) for each in drawn} == {(-most, most)}
    assert sum(each.showscale is not False for each in drawn) == 1
    assert [each.xaxis for each in drawn] == ["x", "x2", "x3", "x4"]
    pair = pattern_pair(np.abs(values[:2]), ("a", "b"), mask, names, names, palette=palette)
    assert {(each.zmin, each.zmax) for each in pair.data if each.name in "ab"} == {(0, 1)}
    share = np.array([[0.2, 0.1, -0.1, 0.8], [np.nan] * 4])
    bars = share_bars(share, TERMS, ["0.0", "0.1"], focus=0, palette=palette)
    assert bars.layout.yaxis.range[0] < -0.1
    after = intervention_bars(
        np.array([0.5, np.nan]),
        ["+1", "+2"],
        ["half", "no place"],
        title="by",
        unit="accuracy",
        before=1.0,
        against=(0.1, "chance"),
        palette=palette,
    )
    crosses = next(each for each in after.data if each.name == "cannot be made")
    assert list(crosses.x) == [1]
    assert list(crosses.hovertext) == ["no place"]
