"""Figures say what their arrays say: asserted on the data that the browser gets, not on pictures."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import pytest

from dashboard import figures, theme
from dashboard.app_pages.text.reading.figures import (
    Curve,
    distance_bars,
    distance_heatmap,
    likeliest_bars,
    loss_by_place_line,
    repetition_lines,
)
from dashboard.figures.accuracy import accuracy_by_position_bars
from dashboard.figures.encodings import encoding_heatmap, encoding_waves, similarity_heatmap
from dashboard.figures.html.tokens import Token, token_strip
from dashboard.figures.kit.labels import ink
from dashboard.figures.kit.lines import frame, level, upright
from dashboard.figures.kit.token_axis import token_axis
from dashboard.figures.loss import loss_curve
from dashboard.figures.patterns import MOST_SENTENCES, mask_heatmap, pattern_heatmap, scores_heatmap
from tests.kit.figures import decoded, frozen, nothing_but_numbers, sent
from tests.kit.waiting import PATIENCE

TOKENS = ["3", "1", "3", "SEP", "3"]
N = len(TOKENS)
CAUSAL = np.tril(np.ones((N, N), dtype=bool))
PATTERN = np.where(CAUSAL, np.linspace(0, 1, N * N).reshape(N, N), 0.0)
PALETTES = [theme.LIGHT, theme.DARK]


def segments(trace: dict) -> list[tuple[float, ...]]:
    """The lines of a trace whose pieces are parted by NaN: (x0, y0, x1, y1)."""
    x, y = decoded(trace["x"]).reshape(-1, 3), decoded(trace["y"]).reshape(-1, 3)
    assert np.isnan(x[:, 2]).all()
    assert np.isnan(y[:, 2]).all()
    return [(float(a[0]), float(b[0]), float(a[1]), float(b[1])) for a, b in zip(x, y, strict=True)]


def words(figure: go.Figure) -> list[str]:
    return [annotation.text for annotation in figure.layout.annotations]


class TestPattern:
    def test_forbidden_cells_are_absent_from_the_values_and_present_in_a_layer_of_their_own(self) -> None:
        figure = pattern_heatmap(PATTERN, CAUSAL, TOKENS, TOKENS)
        values, forbidden = decoded(sent(figure, "values")["z"]), decoded(sent(figure, "forbidden")["z"])
        assert (np.isnan(values) == ~CAUSAL).all()
        assert (np.isnan(forbidden) == CAUSAL).all()
        np.testing.assert_allclose(values[CAUSAL], PATTERN[CAUSAL], atol=1e-6)

    def test_without_a_mask_and_marks_there_are_values_alone_on_a_fixed_scale(self) -> None:
        nobody = np.zeros((N, N), dtype=bool)
        figure = pattern_heatmap(PATTERN * 0.1, None, TOKENS, TOKENS, marks=nobody, link="a")
        assert {trace.name for trace in figure.data} == {"values"}
        trace = sent(figure, "values")
        assert (trace["zmin"], trace["zmax"], trace["z"]["dtype"]) == (0, 1, "f4")
        assert figure.layout.meta["link"] == "a"

    def test_rows_are_queries_downwards_and_columns_are_keys(self) -> None:
        figure = pattern_heatmap(PATTERN[:2], None, TOKENS[:2], TOKENS)
        assert figure.layout.xaxis.title.text == "key: looked at"
        assert figure.layout.yaxis.title.text == "query: who looks"
        assert figure.layout.yaxis.range == (1.5, -0.5)
        assert figure.layout.xaxis.range == (-0.5, 4.5)
        assert figure.layout.xaxis.tickvals == (0, 1, 2, 3, 4)
        assert figure.layout.xaxis.ticktext == tuple(TOKENS)  # equal tokens keep ticks of their own
        assert figure.layout.yaxis.scaleanchor == "x"

    @pytest.mark.parametrize(
        ("predicts", "sentence"),
        [
            (None, "query '3' at 5 reads '3' at 1: 0.83"),
            (["1", "3", "SEP", "3", "9"], "output '9' at 5 reads '3' at 1: 0.83"),
        ],
    )
    def test_hover_is_a_sentence_and_tokens_are_no_markup(self, predicts: list[str] | None, sentence: str) -> None:
        hostile = pattern_heatmap(np.ones((1, 1)), None, ["<s>"], ["<s>"])
        assert sent(hostile, "values")["text"] == [["query '&lt;s&gt;' at 1 reads '&lt;s&gt;' at 1: 1.00"]]
        assert hostile.layout.xaxis.ticktext == ("&lt;s&gt;",)
        figure = pattern_heatmap(PATTERN, CAUSAL, TOKENS, TOKENS, predicts=predicts)
        assert sent(figure, "values")["text"][4][0] == sentence
        assert sent(figure, "forbidden")["text"][0][3].endswith(" at 1 may not see 'SEP' at 4")

    def test_hatching_of_a_scattered_mask_stays_inside_it(self) -> None:
        mask = np.random.default_rng(0).random((6, 9)) < 0.5
        hatching = sent(mask_heatmap(mask, ["a"] * 6, ["b"] * 9), "hatching")
        hatched = np.zeros_like(mask)
        for x0, y0, x1, y1 in segments(hatching):
            assert x1 - x0 == y1 - y0 > 0
            for k in range(int(x1 - x0)):
                hatched[int(y0 + 0.5) + k, int(x0 + 0.5) + k] = True
        assert (hatched == ~mask).all()

    def test_frames_stand_around_the_marked_cells_and_no_others(self) -> None:
        marks = np.random.default_rng(1).random((4, 7)) < 0.4
        figure = pattern_heatmap(np.zeros((4, 7)), None, ["a"] * 4, ["b"] * 7, marks=marks)
        frame = sent(figure, "expected")
        x, y = decoded(frame["x"]).reshape(-1, 6), decoded(frame["y"]).reshape(-1, 6)
        assert np.isnan(x[:, 5]).all()
        framed = [(round(row), round(column)) for row, column in zip(y[:, :4].mean(1), x[:, :4].mean(1), strict=True)]
        assert framed == [tuple(cell) for cell in np.argwhere(marks).tolist()]
        for across, down, (row, column) in zip(x, y, framed, strict=True):
            corners = {(float(a), float(b)) for a, b in zip(across[:5], down[:5], strict=True)}
            assert len(corners) == 4
            assert all(0.4 < abs(a - column) < 0.5 and 0.4 < abs(b - row) < 0.5 for a, b in corners)

    def test_large_patterns_carry_positions_in_place_of_sentences(self) -> None:
        n = int(MOST_SENTENCES**0.5) + 1
        figure = pattern_heatmap(np.eye(n), np.eye(n, dtype=bool), ["7"] * n, ["7"] * n)
        trace = sent(figure, "values")
        assert "text" not in trace
        assert list(decoded(trace["customdata"])[2, 8]) == [3, 9]
        assert trace["hovertemplate"].startswith("query at %{customdata[0]} reads %{customdata[1]}")
        assert len(figure.layout.xaxis.tickvals) <= 40


class TestScoresAndMasks:
    def test_scores_are_centred_on_zero_and_reach_the_largest_visible_one(self) -> None:
        scores = np.where(CAUSAL, -2.0, 50.0)
        scores[2, 0] = 3.5
        trace = sent(scores_heatmap(scores, CAUSAL, TOKENS, TOKENS), "values")
        assert (trace["zmin"], trace["zmax"]) == (-3.5, 3.5)
        assert trace["text"][2][0] == "score of query '3' at 3 with key '3' at 1: 3.50"

    def test_infinite_scores_are_forbidden_and_zeros_have_a_scale(self) -> None:
        figure = scores_heatmap(np.where(CAUSAL, 0.0, -np.inf), None, TOKENS, TOKENS)
        assert (np.isnan(decoded(sent(figure, "values")["z"])) == ~CAUSAL).all()
        assert sent(figure, "values")["zmax"] == 1
        nothing = scores_heatmap(np.full((2, 2), -np.inf), np.zeros((2, 2), dtype=bool), TOKENS[:2], TOKENS[:2])
        assert np.isnan(decoded(sent(nothing, "values")["z"])).all()

    def test_a_mask_has_two_states_and_no_scale(self) -> None:
        figure = mask_heatmap(CAUSAL, TOKENS, TOKENS)
        assert sent(figure, "values")["showscale"] is False
        assert sent(figure, "values")["text"][1][0] == "query '1' at 2 may see '3' at 1"
        assert sent(figure, "forbidden")["text"][0][1] == "query '3' at 1 may not see '1' at 2"

    def test_the_scale_of_scores_is_the_visible_and_finite_ones_alone(self) -> None:
        scores = np.array([[1.0, 90.0], [-2.5, np.inf]])
        trace = sent(scores_heatmap(scores, np.array([[True, False], [True, True]]), ["a", "b"], ["a", "b"]), "values")
        assert (trace["zmin"], trace["zmax"]) == (-2.5, 2.5)
        assert np.isnan(decoded(trace["z"])).tolist() == [[False, True], [False, True]]
        places, colours = zip(*trace["colorscale"], strict=True)
        assert colours[places.index(0.5)] == f"rgb{theme.rgb(theme.LIGHT.signed[2])}".replace(" ", "")


class TestTokenAxis:
    def test_many_labels_are_thinned_out_or_stand_on_end_and_long_ones_go_a_line_lower_or_are_cut(self) -> None:
        assert token_axis("", ["7"] * 41)["tickvals"] == list(range(0, 41, 2))
        assert token_axis("", ["word"] * 30, upright=False)["tickangle"] == -90
        lone = token_axis("", ["7"] * 8 + ["SEP"] + ["7"] * 8, upright=False)
        assert (lone["ticktext"][8], lone["tickangle"]) == ("<br>SEP", 0)
        assert token_axis("", ["x" * 50])["ticktext"] == ["xxxxxx…xxxxx"]


class TestAccuracy:
    accuracy = np.array([0.1, 0.55, 0.998])
    low, high = np.array([0.09, 0.53, 0.995]), np.array([0.12, 0.57, 0.999])
    ceiling = np.array([0.1, 1.0, 1.0])
    labels = ("x1", "y1", "y2")

    def bars(self, **options: object) -> go.Figure:
        options = {"sequences": 4096} | options
        return accuracy_by_position_bars(self.accuracy, self.low, self.high, self.ceiling, 0.1, self.labels, **options)

    def test_heights_and_intervals(self) -> None:
        trace = sent(self.bars(), "measured")
        np.testing.assert_allclose(decoded(trace["y"]), self.accuracy, atol=1e-6)
        np.testing.assert_allclose(decoded(trace["error_y"]["array"]), self.high - self.accuracy, atol=1e-6)
        np.testing.assert_allclose(decoded(trace["error_y"]["arrayminus"]), self.accuracy - self.low, atol=1e-6)

    def test_ceiling_is_behind_the_bars_and_chance_is_named(self) -> None:
        figure = self.bars()
        names = [trace.name for trace in figure.data]
        assert names.index("ceiling") < names.index("measured")
        np.testing.assert_allclose(decoded(sent(figure, "ceiling")["y"]), self.ceiling, atol=1e-6)
        assert [line[1] for line in segments(sent(figure, "rim"))] == pytest.approx(list(self.ceiling))
        assert figure.layout.shapes[0].y0 == 0.1
        assert {"chance<br>0.10", "ceiling"} <= set(words(figure))

    def test_hover_is_a_sentence(self) -> None:
        assert sent(self.bars(), "measured")["hovertext"][2] == (
            "position 3 (y2): 0.998 right in 4,096 sequences, 95 % interval 0.995 to 0.999<br>ceiling 1.00, chance 0.10"
        )

    def test_numbers_stand_above_bars_intervals_and_lines(self) -> None:
        values = sent(self.bars(), "values")
        assert values["text"] == ["0.10", "0.55", "1.00"]
        assert (decoded(values["y"]) >= np.maximum(self.high, [0.1, 0, 1.0])).all()

    def test_many_numbers_are_shorter_and_very_many_are_left_out(self) -> None:
        def of(n: int) -> go.Figure:
            share = np.full(n, 0.997)
            return accuracy_by_position_bars(share, share, share, np.ones(n), 0.1, ["y"] * n)

        assert set(sent(of(16), "values")["text"]) == {"1.0"}
        assert "values" not in {trace.name for trace in of(21).data}

    def test_a_leak_is_told_by_hatching_and_a_mark(self) -> None:
        figure = self.bars(leaks=np.array([False, True, False]))
        assert sent(figure, "measured")["marker"]["pattern"]["shape"] == ["", "x", ""]
        assert sent(figure, "values")["text"][1] == "<b>✕ 0.55</b>"

    def test_before_and_after_stand_side_by_side(self) -> None:
        figure = self.bars(before=np.array([0.1, 0.9, 1.0]))
        before, after = sent(figure, "before"), sent(figure, "after")
        np.testing.assert_allclose(decoded(before["y"]), [0.1, 0.9, 1.0], atol=1e-6)
        assert (decoded(before["x"]) + before["width"] / 2 <= decoded(after["x"]) - after["width"] / 2 + 1e-9).all()
        assert before["hovertext"][1] == "position 2 (y1): 0.900 right before"

    def test_groups_are_named_over_their_bars(self) -> None:
        figure = self.bars(groups=["first", "second half", "second half"])
        centre = {annotation.text: annotation.x for annotation in figure.layout.annotations}
        assert centre["second half"] == 1.5

    @pytest.mark.parametrize("known", [[], [0, 2]])
    def test_what_is_not_measured_yet_has_no_number(self, known: list[int]) -> None:
        share = np.full(3, np.nan)
        share[known] = 0.9
        figure = accuracy_by_position_bars(share, share, share, self.ceiling, 0.1, self.labels, sequences=512)
        measured, values = sent(figure, "measured"), sent(figure, "values")
        for array in (measured["y"], measured["error_y"]["array"], measured["error_y"]["arrayminus"]):
            assert np.flatnonzero(~np.isnan(decoded(array))).tolist() == known
        assert values["text"] == ["0.90"] * len(known)
        assert decoded(values["x"]).tolist() == known
        np.testing.assert_allclose(decoded(sent(figure, "ceiling")["y"]), self.ceiling, atol=1e-6)

    def test_an_interval_never_reaches_to_the_wrong_side(self) -> None:
        """Rounding may put a bound a hair past the share it belongs to."""
        share = np.array([1.0, 0.0])
        figure = accuracy_by_position_bars(share, share + 1e-9, share - 1e-9, share, 0.1, ["a", "b"], sequences=9)
        bars = sent(figure, "measured")["error_y"]
        assert (decoded(bars["array"]) >= 0).all()
        assert (decoded(bars["arrayminus"]) >= 0).all()
        assert bars["visible"]

    def test_without_a_sample_size_there_is_no_interval(self) -> None:
        trace = sent(self.bars(sequences=None), "measured")
        assert not trace["error_y"]["visible"]
        assert "interval" not in trace["hovertext"][0]

    def test_labels_are_not_markup(self) -> None:
        share = np.array([0.5])
        figure = accuracy_by_position_bars(share, share, share, share, 0.1, ["<y1>"], groups=["<i>"])
        assert figure.layout.xaxis.ticktext == ("&lt;y1&gt;",)
        assert "<y1>" not in sent(figure, "measured")["hovertext"][0]
        assert "&lt;i&gt;" in words(figure)


class TestTraining:
    def test_loss_stands_between_guessing_and_the_floor(self) -> None:
        figure = loss_curve(np.arange(3), np.array([2.4, 1.0, 0.3]), floor=0.21, chance=2.3026, solved_at=2)
        np.testing.assert_allclose(decoded(sent(figure, "measured")["y"]), [2.4, 1.0, 0.3], atol=1e-6)
        assert {"guessing: 2.30", "loss floor: 0.21", "✓ solved at 2"} == set(words(figure))
        assert {2.3026, 0.21} <= {shape.y0 for shape in figure.layout.shapes}
        assert [shape.x0 for shape in figure.layout.shapes if shape.x0 == shape.x1] == [2]
        unsolved = loss_curve(np.arange(3), np.array([2.4, 1.0, 0.3]), floor=0.21, chance=2.3026)
        assert not [shape for shape in unsolved.layout.shapes if shape.x0 == shape.x1]

    def test_a_loss_above_guessing_stays_in_sight(self) -> None:
        figure = loss_curve(np.array([1, 2]), np.array([8.0, 2.0]), floor=0.2, chance=2.3)
        low, high = figure.layout.yaxis.range
        assert low < 0.2 < 8.0 < high
        assert figure.layout.xaxis.range[1] >= 2

    def test_before_the_first_step_there_are_words_and_a_single_step_is_a_dot(self) -> None:
        figure = loss_curve(np.array([]), np.array([]), floor=0.0, chance=2.3)
        assert {"guessing: 2.30", "loss floor: 0.00", "waiting for the first step"} == set(words(figure))
        assert len(decoded(sent(loss_curve(np.array([1]), np.array([2.9]), floor=0, chance=2.3), "now")["y"])) == 1

    def test_range_is_steady_while_the_curve_grows(self) -> None:
        loss = 2.4 * np.exp(-np.arange(50) / 10)
        ranges = {loss_curve(np.arange(n), loss[:n], floor=0.0, chance=2.3).layout.yaxis.range for n in (0, 1, 10, 50)}
        assert len(ranges) == 1

    def test_names_of_the_levels_never_meet(self) -> None:
        figure = loss_curve(np.arange(90), np.full(90, 2.35), floor=2.2, chance=2.3)
        guessing, floor = figure.layout.annotations
        assert (guessing.yanchor, floor.yanchor) == ("bottom", "top")
        assert guessing.y >= 2.35
        assert floor.y == 2.2


class TestEncodings:
    def test_positions_count_from_one_and_zero_is_the_middle(self) -> None:
        figure = encoding_heatmap(np.array([[0.5, -2.0], [1.0, 0.0]]))
        trace = sent(figure, "values")
        assert (trace["zmin"], trace["zmax"], trace["y0"], trace["x0"]) == (-2, 2, 1, 0)
        assert figure.layout.yaxis.range == (2.5, 0.5)
        assert words(figure) == ["−2", "2"]
        assert sent(encoding_heatmap(np.zeros((3, 2))), "values")["zmax"] == 1

    @pytest.mark.parametrize("n", [1, 128])
    def test_similarity_of_any_size(self, n: int) -> None:
        trace = sent(similarity_heatmap(np.eye(n) * 12.3), "values")
        assert decoded(trace["z"]).shape == (n, n)
        assert trace["z"]["dtype"] == "f4"
        assert trace["hovertemplate"] == "position %{y} and position %{x}: %{z:.1f}<extra></extra>"
        assert (trace["x0"], trace["y0"]) == (1, 1)
        similarity = np.array([[3.0, -5.0], [-5.0, 2.0]])
        trace = sent(similarity_heatmap(similarity), "values")
        assert (trace["zmin"], trace["zmax"]) == (-5, 5)
        assert decoded(trace["z"]).tolist() == similarity.tolist()

    def test_waves_differ_in_more_than_colour(self) -> None:
        table = np.arange(12.0).reshape(4, 3)
        figure = encoding_waves(table, [2, 0], ["dim 2", "dim 0"])
        assert list(decoded(sent(figure, "dim 2")["y"])) == [2, 5, 8, 11]
        assert list(decoded(sent(figure, "dim 2")["x"])) == [1, 2, 3, 4]
        assert len({trace.line.dash for trace in figure.data}) == 2
        assert encoding_waves(np.zeros((2, 1)), [0], ["<b>"]).data[0].name == "&lt;b&gt;"

    @pytest.mark.parametrize("n", [1, 512])
    def test_a_table_of_any_length_passes_through(self, n: int) -> None:
        table = np.random.default_rng(n).normal(size=(n, 6))
        trace = sent(encoding_heatmap(table), "values")
        np.testing.assert_allclose(decoded(trace["z"]), table, atol=1e-6)
        assert trace["zmax"] == -trace["zmin"] == np.abs(table).max()
        wave = encoding_waves(table, [5], ["dim 5"])
        np.testing.assert_allclose(decoded(sent(wave, "dim 5")["y"]), table[:, 5], atol=1e-6)

    def test_what_is_never_negative_has_a_scale_from_zero(self) -> None:
        trace = sent(encoding_heatmap(np.array([[0.5, 4.0]]), signed=False), "values")
        assert (trace["zmin"], trace["zmax"]) == (0, 4)


class TestTokens:
    def test_every_token_is_escaped(self) -> None:
        strip = token_strip({"<b>": [Token("<script>"), Token('"', "wrong", "<i>")]})
        assert "<script" not in strip
        assert "&lt;script&gt;" in strip
        assert "<i>" not in strip
        assert 'aria-label="&lt;b&gt;: &lt;script&gt;, &quot; wrong, it is &lt;i&gt;."' in strip

    def test_verdicts_have_marks(self) -> None:
        strip = token_strip({"out": [Token("6", "right"), Token("4", "wrong", "5"), Token("1", "open")]}, theme.DARK)
        assert all(strip.count(mark) == 1 for mark in "✓✕·")
        assert 'aria-label="out: 6 right, 4 wrong, it is 5, 1, which cannot be known."' in strip

    def test_right_and_wrong_look_different_and_a_wrong_one_says_what_is_right(self) -> None:
        boxes = {
            verdict: token_strip({"": [Token("6", verdict, "5" if verdict == "wrong" else None)]})
            for verdict in ("given", "right", "wrong", "open")
        }
        assert len(set(boxes.values())) == 4
        assert re.search(r"is <b[^>]*>5</b>", boxes["wrong"])
        assert not any(re.search(r"is <b", boxes[verdict]) for verdict in ("given", "right", "open"))
        assert theme.LIGHT.right in boxes["right"]
        assert theme.LIGHT.wrong in boxes["wrong"]

    def test_every_row_has_its_sentence(self) -> None:
        strip = token_strip({"in": [Token("3"), Token("1")], "out": [Token("1", "right")]})
        assert re.findall(r'aria-label="([^"]*)"', strip) == ["in: 3, 1.", "out: 1 right."]


# Laws: of every figure there is.

SHARE = np.array([0.1, 0.9, 1.0])
EVERY: dict[str, Callable[[theme.Palette], go.Figure]] = {
    "pattern": lambda p: pattern_heatmap(
        frozen(PATTERN), frozen(CAUSAL), TOKENS, TOKENS, marks=frozen(CAUSAL), palette=p
    ),
    "scores": lambda p: scores_heatmap(frozen(PATTERN - 1), frozen(CAUSAL), TOKENS, TOKENS, palette=p),
    "mask": lambda p: mask_heatmap(frozen(CAUSAL), TOKENS, TOKENS, palette=p),
    "accuracy": lambda p: accuracy_by_position_bars(
        *(frozen(SHARE) for _ in range(4)),
        0.1,
        ["a", "b", "c"],
        groups=["first half", "second half", "second half"],
        leaks=frozen(SHARE > 0.5),
        sequences=100,
        palette=p,
    ),
    "before and after": lambda p: accuracy_by_position_bars(
        *(frozen(SHARE) for _ in range(4)), 0.1, ["a", "b", "c"], before=frozen(SHARE), sequences=100, palette=p
    ),
    "loss": lambda p: loss_curve(frozen(np.arange(3)), frozen(SHARE), floor=0.1, chance=2.3, solved_at=2, palette=p),
    "encoding": lambda p: encoding_heatmap(frozen(PATTERN), palette=p),
    "similarity": lambda p: similarity_heatmap(frozen(PATTERN), palette=p),
    "likeliest": lambda p: likeliest_bars(["a", "b", "c"], frozen(SHARE), "d", 0.01, palette=p),
    "loss by place": lambda p: loss_by_place_line(["1", "2", "3–4"], curve(), 2.0, palette=p),
    "repetition": lambda p: repetition_lines([curve(), curve()], together=4, palette=p),
    "distances": lambda p: distance_heatmap(
        frozen(PATTERN[:, :3]), TOKENS, [(0, 0), (1, 1), (2, 3)], focus=1, palette=p
    ),
    "a head's distances": lambda p: distance_bars(
        frozen(SHARE), frozen(SHARE), [(0, 0), (1, 1), (2, 3)], "head 0.1", palette=p
    ),
    "waves": lambda p: encoding_waves(frozen(PATTERN), [0, 1], ["0", "1"], palette=p),
}


def curve() -> Curve:
    return Curve("first", frozen(SHARE), frozen(SHARE - 0.1), frozen(SHARE + 0.1))


@pytest.mark.parametrize("palette", PALETTES, ids=["light", "dark"])
@pytest.mark.parametrize("draw", EVERY.values(), ids=EVERY)
def test_every_figure_is_json_in_the_colours_of_its_palette(
    draw: Callable[[theme.Palette], go.Figure], palette: theme.Palette
) -> None:
    text = draw(palette).to_json()
    json.loads(text, parse_constant=nothing_but_numbers)
    own = {value for value in vars(palette).values() if isinstance(value, str)}
    own |= {*palette.scale, *palette.signed, *palette.categorical}
    assert set(re.findall(r"#[0-9a-f]{6}\b", text)) <= own
    assert text == draw(palette).to_json()


@pytest.mark.daily(5)
@pytest.mark.parametrize("draw", EVERY.values(), ids=EVERY)
def test_what_is_changed_in_a_figure_is_not_changed_in_the_next(draw: Callable[[theme.Palette], go.Figure]) -> None:
    """The template and the scales are worked out once and handed to every figure: each has a copy."""
    before, figure = draw(theme.LIGHT).to_json(), draw(theme.LIGHT)
    figure.layout.template.layout.font.size = 99
    figure.layout.template.layout.xaxis.tickfont.size = 99
    figure.update_traces(marker_color="#010203", selector={"type": "bar"})
    figure.update_traces(colorscale=[[0, "#010203"], [1, "#010203"]], selector={"type": "heatmap"})
    assert figure.to_json() != before
    assert draw(theme.LIGHT).to_json() == before


def test_lines_are_those_that_plotly_draws() -> None:
    """A line handed over with the figure is the one that Plotly's own functions would add to it afterwards."""
    line = {"color": theme.LIGHT.chance, "width": 2}
    added = go.Figure(go.Scatter(x=[0, 1], y=[0, 1]))
    added.add_hline(y=0.3, line=line)
    added.add_vline(x=0.7, line=line)
    added.add_shape(type="rect", x0=-1, y0=-2, x1=3, y1=4, line=line)
    shapes = [level(0.3, line), upright(0.7, line), frame(-1, -2, 3, 4, line)]
    assert go.Figure(layout={"shapes": shapes}).layout.shapes == added.layout.shapes


def test_figures_are_made_in_one_go() -> None:
    """Whatever is added afterwards, Plotly checks and copies anew: a click then takes four times the milliseconds."""
    folder = Path(next(iter(figures.__path__)))
    later = re.compile(r"\.(add_(trace|traces|[hv](line|rect)|annotation|shape|bar|scatter|heatmap)|update_\w+)\(")
    found = {path.name: match[0] for path in folder.glob("*.py") if (match := later.search(path.read_text("utf-8")))}
    assert found == {}


def test_figures_import_neither_pytorch_nor_streamlit_nor_the_library() -> None:
    """They draw arrays, whoever made them; and a page that only draws does not wait for PyTorch."""
    code = (
        "import importlib, pkgutil, sys, dashboard.figures as figures\n"
        "for module in pkgutil.iter_modules(figures.__path__):\n"
        "    importlib.import_module(f'dashboard.figures.{module.name}')\n"
        "print(*({'torch', 'streamlit', 'transformer', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ""


def test_what_is_no_number_is_written_in_the_page_s_own_ink() -> None:
    """It has no colour of the scale: weights that are no numbers give such cells."""
    for each in (theme.LIGHT, theme.DARK):
        assert ink(float("nan"), each.scale, each) == each.text
