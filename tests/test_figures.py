"""Figures say what their arrays say: asserted on the data that the browser gets, not on pictures."""

import base64
import json
import tomllib
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import pytest

from dashboard import theme
from dashboard.figures.accuracy import accuracy_by_position_bars
from dashboard.figures.encodings import encoding_heatmap, encoding_waves, similarity_heatmap
from dashboard.figures.patterns import MOST_SENTENCES, mask_heatmap, pattern_heatmap, scores_heatmap
from dashboard.figures.token_axis import token_axis
from dashboard.figures.tokens import Token, token_strip
from dashboard.figures.training import accuracy_curve, loss_curve

TOKENS = ["3", "1", "3", "SEP", "3"]
N = len(TOKENS)
CAUSAL = np.tril(np.ones((N, N), dtype=bool))
PATTERN = np.where(CAUSAL, np.linspace(0, 1, N * N).reshape(N, N), 0.0)
PALETTES = [theme.LIGHT, theme.DARK]


def sent(figure: go.Figure, name: str) -> dict:
    """The trace of that name as the browser gets it."""
    return next(trace for trace in json.loads(figure.to_json())["data"] if trace["name"] == name)


def decoded(array: dict | list) -> np.ndarray:
    """A typed array as plotly.js reads it."""
    if isinstance(array, list):
        return np.array(array, dtype=float)
    flat = np.frombuffer(base64.b64decode(array["bdata"]), dtype=array["dtype"])
    return flat.reshape([int(n) for n in array["shape"].split(",")]) if "shape" in array else flat


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

    def test_values_travel_as_float32(self) -> None:
        assert sent(pattern_heatmap(PATTERN, CAUSAL, TOKENS, TOKENS), "values")["z"]["dtype"] == "f4"

    def test_scale_is_fixed_whatever_the_values(self) -> None:
        trace = sent(pattern_heatmap(PATTERN * 0.1, None, TOKENS, TOKENS), "values")
        assert (trace["zmin"], trace["zmax"]) == (0, 1)

    def test_rows_are_queries_downwards_and_columns_are_keys(self) -> None:
        figure = pattern_heatmap(PATTERN[:2], None, TOKENS[:2], TOKENS)
        assert figure.layout.xaxis.title.text == "key: looked at"
        assert figure.layout.yaxis.title.text == "query: who looks"
        assert figure.layout.yaxis.range == (1.5, -0.5)
        assert figure.layout.xaxis.range == (-0.5, 4.5)
        assert figure.layout.yaxis.scaleanchor == "x"

    def test_equal_tokens_keep_ticks_of_their_own(self) -> None:
        axis = pattern_heatmap(PATTERN, None, TOKENS, TOKENS).layout.xaxis
        assert axis.tickvals == (0, 1, 2, 3, 4)
        assert axis.ticktext == tuple(TOKENS)

    @pytest.mark.parametrize(
        ("predicts", "sentence"),
        [
            (None, "query '3' at 5 reads '3' at 1: 0.83"),
            (["1", "3", "SEP", "3", "9"], "output '9' at 5 reads '3' at 1: 0.83"),
        ],
    )
    def test_hover_is_a_sentence(self, predicts: list[str] | None, sentence: str) -> None:
        figure = pattern_heatmap(PATTERN, CAUSAL, TOKENS, TOKENS, predicts=predicts)
        assert sent(figure, "values")["text"][4][0] == sentence

    def test_hover_of_a_forbidden_cell_says_so(self) -> None:
        figure = pattern_heatmap(PATTERN, CAUSAL, TOKENS, TOKENS)
        assert sent(figure, "forbidden")["text"][0][3] == "query '3' at 1 may not see 'SEP' at 4"

    def test_tokens_are_not_markup(self) -> None:
        figure = pattern_heatmap(np.ones((1, 1)), None, ["<s>"], ["<s>"])
        assert sent(figure, "values")["text"] == [["query '&lt;s&gt;' at 1 reads '&lt;s&gt;' at 1: 1.00"]]
        assert figure.layout.xaxis.ticktext == ("&lt;s&gt;",)

    def test_without_a_mask_nothing_is_hatched(self) -> None:
        names = {trace.name for trace in pattern_heatmap(PATTERN, None, TOKENS, TOKENS).data}
        assert names == {"values"}

    def test_hatching_runs_through_the_forbidden_cells_along_diagonals(self) -> None:
        hatching = sent(pattern_heatmap(PATTERN, CAUSAL, TOKENS, TOKENS), "hatching")
        assert segments(hatching) == [(d - 0.5, -0.5, 4.5, 4.5 - d) for d in range(1, 5)]

    def test_hatching_of_a_scattered_mask_stays_inside_it(self) -> None:
        mask = np.random.default_rng(0).random((6, 9)) < 0.5
        hatching = sent(mask_heatmap(mask, ["a"] * 6, ["b"] * 9), "hatching")
        hatched = np.zeros_like(mask)
        for x0, y0, x1, y1 in segments(hatching):
            assert x1 - x0 == y1 - y0 > 0
            for k in range(int(x1 - x0)):
                hatched[int(y0 + 0.5) + k, int(x0 + 0.5) + k] = True
        assert (hatched == ~mask).all()

    def test_marks_frame_the_expected_cells(self) -> None:
        marks = np.zeros((N, N), dtype=bool)
        marks[4, 1] = True
        frame = sent(pattern_heatmap(PATTERN, CAUSAL, TOKENS, TOKENS, marks=marks), "expected")
        x, y = decoded(frame["x"])[:5], decoded(frame["y"])[:5]
        assert (round(x.mean()), round(y.mean())) == (1, 4)
        assert x.max() < 1.5
        assert y.min() > 3.5

    def test_link_is_carried(self) -> None:
        assert pattern_heatmap(PATTERN, None, TOKENS, TOKENS, link="a").layout.meta == {"link": "a"}
        assert pattern_heatmap(PATTERN, None, TOKENS, TOKENS).layout.meta is None

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

    def test_forbidden_scores_can_be_shown(self) -> None:
        figure = scores_heatmap(np.full((N, N), 2.0), CAUSAL, TOKENS, TOKENS, show_forbidden=False)
        assert [trace.name for trace in figure.data] == ["values"]
        assert (decoded(sent(figure, "values")["z"]) == 2).all()

    def test_a_mask_has_two_states_and_no_scale(self) -> None:
        figure = mask_heatmap(CAUSAL, TOKENS, TOKENS)
        assert sent(figure, "values")["showscale"] is False
        assert sent(figure, "values")["text"][1][0] == "query '1' at 2 may see '3' at 1"
        assert sent(figure, "forbidden")["text"][0][1] == "query '3' at 1 may not see '1' at 2"

    def test_nothing_may_be_seen(self) -> None:
        figure = scores_heatmap(np.full((2, 2), -np.inf), np.zeros((2, 2), dtype=bool), TOKENS[:2], TOKENS[:2])
        assert np.isnan(decoded(sent(figure, "values")["z"])).all()


class TestTokenAxis:
    def test_more_than_forty_labels_are_thinned_out(self) -> None:
        axis = token_axis("", ["7"] * 41)
        assert axis["tickvals"] == list(range(0, 41, 2))

    def test_a_lone_long_token_goes_a_line_lower_and_many_stand_on_end(self) -> None:
        lone = token_axis("", ["7"] * 16 + ["SEP"] + ["7"] * 16, upright=False)
        assert lone["ticktext"][16] == "<br>SEP"
        assert lone["tickangle"] == 0
        assert token_axis("", ["word"] * 30, upright=False)["tickangle"] == -90

    def test_very_long_tokens_are_cut(self) -> None:
        assert token_axis("", ["x" * 50])["ticktext"] == ["x" * 11 + "…"]


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
        assert sent(figure, "values")["text"][1] == "<b>✗ 0.55</b>"

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

    def test_nothing_measured_yet(self) -> None:
        nothing = np.full(3, np.nan)
        figure = accuracy_by_position_bars(nothing, nothing, nothing, self.ceiling, 0.1, self.labels)
        assert sent(figure, "values")["text"] == []


class TestTraining:
    def test_loss_stands_between_guessing_and_the_floor(self) -> None:
        figure = loss_curve(np.arange(3), np.array([2.4, 1.0, 0.3]), floor=0.21, chance=2.3026, solved_at=2)
        np.testing.assert_allclose(decoded(sent(figure, "measured")["y"]), [2.4, 1.0, 0.3], atol=1e-6)
        assert {"guessing: 2.30", "loss floor: 0.21", "✓ solved at 2"} == set(words(figure))
        assert {2.3026, 0.21} <= {shape.y0 for shape in figure.layout.shapes}

    def test_before_the_first_step_there_are_words_and_reference_lines(self) -> None:
        figure = loss_curve(np.array([]), np.array([]), floor=0.0, chance=2.3)
        assert {"guessing: 2.30", "loss floor: 0.00", "waiting for the first step"} == set(words(figure))

    def test_a_single_step_is_a_dot(self) -> None:
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

    def test_accuracy_runs_from_nothing_to_everything(self) -> None:
        figure = accuracy_curve(np.array([1, 2]), np.array([0.1, 0.9]), 0.1)
        assert figure.layout.yaxis.range == (0, 1.05)
        assert words(figure) == ["guessing: 0.10"]
        assert "waiting for the first step" in words(accuracy_curve(np.array([]), np.array([]), 0.1))


class TestEncodings:
    def test_positions_count_from_one_and_zero_is_the_middle(self) -> None:
        figure = encoding_heatmap(np.array([[0.5, -2.0], [1.0, 0.0]]))
        trace = sent(figure, "values")
        assert (trace["zmin"], trace["zmax"], trace["y0"], trace["x0"]) == (-2, 2, 1, 0)
        assert figure.layout.yaxis.range == (2.5, 0.5)
        assert words(figure) == ["−2", "2"]

    @pytest.mark.parametrize("n", [1, 2, 512])
    def test_similarity_of_any_size(self, n: int) -> None:
        trace = sent(similarity_heatmap(np.eye(n) * 12.3), "values")
        assert decoded(trace["z"]).shape == (n, n)
        assert trace["z"]["dtype"] == "f4"
        assert trace["hovertemplate"] == "position %{y} and position %{x}: %{z:.1f}<extra></extra>"
        assert (trace["x0"], trace["y0"]) == (1, 1)

    def test_waves_differ_in_more_than_colour(self) -> None:
        table = np.arange(12.0).reshape(4, 3)
        figure = encoding_waves(table, [2, 0], ["dim 2", "dim 0"])
        assert list(decoded(sent(figure, "dim 2")["y"])) == [2, 5, 8, 11]
        assert list(decoded(sent(figure, "dim 2")["x"])) == [1, 2, 3, 4]
        assert len({trace.line.dash for trace in figure.data}) == 2

    def test_a_table_of_zeros_has_a_scale(self) -> None:
        assert sent(encoding_heatmap(np.zeros((3, 2))), "values")["zmax"] == 1


class TestTokens:
    def test_every_token_is_escaped(self) -> None:
        strip = token_strip({"<b>": [Token("<script>"), Token('"', "wrong", "<i>")]})
        assert "<script" not in strip
        assert "&lt;script&gt;" in strip
        assert "<i>" not in strip
        assert 'aria-label="&lt;b&gt;: &lt;script&gt;, &quot; wrong, it is &lt;i&gt;."' in strip

    def test_verdicts_have_marks(self) -> None:
        strip = token_strip({"out": [Token("6", "right"), Token("4", "wrong", "5"), Token("1", "open")]}, theme.DARK)
        assert all(strip.count(mark) == 1 for mark in "✓✗·")
        assert 'aria-label="out: 6 right, 4 wrong, it is 5, 1, which cannot be known."' in strip


@pytest.mark.parametrize("palette", PALETTES, ids=["light", "dark"])
class TestTheme:
    @pytest.mark.parametrize("name", ["text", "muted", "accent", "right", "wrong", "chance", "ceiling"])
    def test_words_are_legible(self, palette: theme.Palette, name: str) -> None:
        for ground in (palette.background, palette.surface):
            assert theme.contrast(getattr(palette, name), ground) >= 4.5

    def test_lines_and_bars_stand_out(self, palette: theme.Palette) -> None:
        assert len(set(palette.categorical)) >= 10
        for colour in (*palette.categorical, palette.measured):
            assert theme.contrast(colour, palette.background) >= 3

    def test_scale_of_patterns_is_perceptually_even(self, palette: theme.Palette) -> None:
        table = theme.pattern_colours(palette.dark)
        assert table.shape == (256, 3)
        assert table.dtype == np.uint8
        lab = np.array([theme._to_oklab(tuple(colour)) for colour in table[::15].tolist()])
        steps = np.linalg.norm(np.diff(lab, axis=0), axis=1)
        assert steps.max() / steps.min() < 1.3
        lightness = np.diff(lab[:, 0])
        assert (lightness > 0).all() if palette.dark else (lightness < 0).all()

    def test_forbidden_is_no_colour_of_the_scale(self, palette: theme.Palette) -> None:
        forbidden = theme._to_oklab(theme.rgb(palette.forbidden))
        for anchors in (palette.scale, palette.signed):
            lab = np.array([theme._to_oklab(colour) for colour in theme._ramp(anchors, 256)])
            assert np.linalg.norm(lab - forbidden, axis=1).min() > 0.04

    def test_streamlit_has_the_same_colours(self, palette: theme.Palette) -> None:
        config = tomllib.loads((Path(__file__).parents[1] / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
        ours = config["theme"]["dark" if palette.dark else "light"]
        assert ours["backgroundColor"] == palette.background
        assert ours["secondaryBackgroundColor"] == palette.surface
        assert ours["textColor"] == palette.text
        assert ours["chartCategoricalColors"] == list(palette.categorical)
        assert len(ours["chartSequentialColors"]) == len(ours["chartDivergingColors"]) == 10
        assert ours["chartSequentialColors"][0] == palette.scale[0]
        assert ours["chartDivergingColors"][-1] == palette.signed[-1]
        assert theme.contrast(ours["primaryColor"], palette.background) >= 3

    def test_axes_are_quiet_and_large(self, palette: theme.Palette) -> None:
        layout = theme.template(palette).layout
        assert layout.font.size >= 14
        assert layout.xaxis.zeroline is False
        assert layout.paper_bgcolor == "rgba(0,0,0,0)"
