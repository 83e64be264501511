"""Pictures of positional encodings say what their arrays say: asserted on the data that the browser gets."""

import json
import math
import re

import numpy as np
import plotly.graph_objects as go
import pytest

from dashboard import theme
from dashboard.app_pages.positions.positions.figures.alibi import bias_heatmap, fading_lines, slope_bars
from dashboard.app_pages.positions.positions.figures.norms import Strip, norm_strips
from dashboard.app_pages.positions.positions.figures.rotation import Clock, shift_heatmap, turning_circles
from dashboard.figures.encodings import distance_profile, encoding_heatmap, encoding_waves, similarity_heatmap
from tests.kit.figures import decoded, frozen, nothing_but_numbers, sent

TABLE = np.linspace(-1, 1, 24).reshape(4, 6)


def shapes(figure: go.Figure, kind: str) -> list[tuple[float, ...]]:
    """The corners of all shapes of a kind."""
    return [
        (s["x0"], s["y0"], s["x1"], s["y1"])
        for s in json.loads(figure.to_json())["layout"].get("shapes", [])
        if s["type"] == kind
    ]


def test_the_cursor_frames_its_row() -> None:
    assert shapes(encoding_heatmap(TABLE, cursor=3), "rect") == [(-0.5, 2.5, 5.5, 3.5)]
    assert shapes(encoding_heatmap(TABLE), "rect") == []


def test_columns_have_names_ticks_and_lines_between_their_pairs() -> None:
    names = [f"{i} <{i // 2}>" for i in range(6)]
    figure = encoding_heatmap(TABLE, columns=names, ticks={0: "0\n6.28", 4: "4\n628"})
    assert sent(figure, "values")["x"] == [f"{i} &lt;{i // 2}&gt;" for i in range(6)]
    assert figure.layout.xaxis.type == "category"
    assert figure.layout.xaxis.tickvals == (0, 4)
    assert figure.layout.xaxis.ticktext == ("0<br>6.28", "4<br>628")
    assert [x for x, *_ in shapes(figure, "line")] == [1.5, 3.5]
    assert json.loads(figure.to_json())["layout"]["meta"] == {"places": {"x": [0, 1, 2, 3, 4, 5]}}
    np.testing.assert_allclose(decoded(sent(figure, "values")["z"]), TABLE, atol=1e-6)


def test_many_pairs_are_not_parted() -> None:
    assert shapes(encoding_heatmap(np.zeros((2, 66)), ticks={0: "0"}), "line") == []


def test_the_cursor_stands_on_the_waves_and_marks_them() -> None:
    figure = encoding_waves(TABLE, [0, 5], ["a", "b"], cursor=2)
    assert shapes(figure, "line") == [(2, 0, 2, 1)]
    assert [list(trace.marker.size) for trace in figure.data] == [[7, 12, 7, 7]] * 2
    long = encoding_waves(np.zeros((100, 1)), [0], ["a"], cursor=100)
    assert list(long.data[0].marker.size) == [0] * 99 + [12]


def curves(figure: go.Figure) -> list[np.ndarray]:
    """The curves below a matrix."""
    return [decoded(trace["y"]) for trace in json.loads(figure.to_json())["data"] if trace.get("yaxis") == "y2"]


def test_the_framed_row_stands_below_its_matrix_as_curves_and_can_be_dragged() -> None:
    names = [f"{i}" for i in range(6)]
    figure = encoding_heatmap(TABLE, columns=names, ticks={0: "0"}, cursor=3, parts=("sine", "cosine"))
    np.testing.assert_allclose(curves(figure), [TABLE[2, ::2], TABLE[2, 1::2]], atol=1e-6)
    assert sent(figure, "cosine")["x"] == ["1", "3", "5"]
    layout = json.loads(figure.to_json())["layout"]
    cursor = layout["meta"]["cursor"]
    assert (cursor["axis"], cursor["at"], cursor["most"]) == ("y", 3, 4)
    assert layout["shapes"][cursor["shape"]]["y0"] == 2.5
    assert (
        layout["annotations"][cursor["words"]["annotation"]]["text"] == "position 3: sine (solid) and cosine (dashed)"
    )
    assert [(each["trace"], each["first"], each["step"]) for each in cursor["curves"]] == [(1, 0, 2), (2, 1, 2)]
    low, high = layout["yaxis2"]["range"]
    assert low < TABLE.min() < TABLE.max() < high
    assert layout["meta"]["places"] == {"x": [0, 1, 2, 3, 4, 5]}
    (whole,) = curves(encoding_heatmap(TABLE, cursor=1, parts=("every column",)))
    np.testing.assert_allclose(whole, TABLE[0], atol=1e-6)
    products = TABLE @ TABLE.T
    (like,) = curves(similarity_heatmap(products, cursor=2))
    np.testing.assert_allclose(like, products[1], atol=1e-5)
    assert curves(encoding_heatmap(TABLE, cursor=1)) == curves(similarity_heatmap(products)) == []


def test_one_position_and_one_dimension_make_a_curve_of_one_point() -> None:
    (only,) = curves(similarity_heatmap(np.array([[2.0]]), cursor=1))
    assert only.tolist() == [2]


def test_the_profile_is_a_mean_within_a_band() -> None:
    figure = distance_profile(np.array([3.0, 1.0]), np.array([3.0, -1.0]), np.array([3.0, 2.0]))
    assert {name: decoded(sent(figure, name)["y"]).tolist() for name in ("least", "greatest", "mean")} == {
        "least": [3, -1],
        "greatest": [3, 2],
        "mean": [3, 1],
    }
    assert sent(figure, "greatest")["fill"] == "tonexty"
    assert decoded(sent(figure, "mean")["x"]).tolist() == [0, 1]


def test_the_matrix_of_a_step_frames_its_pairs_on_a_fixed_scale() -> None:
    matrix = np.diag([0.5, 0.5, 0.25, 0.25])
    figure = shift_heatmap(matrix, high=1.0, pairs=True)
    trace = sent(figure, "values")
    assert (trace["zmin"], trace["zmax"], trace["x0"], trace["y0"]) == (-1, 1, 0, 0)
    assert decoded(trace["z"]).tolist() == matrix.tolist()
    assert shapes(figure, "rect") == [(-0.5, -0.5, 1.5, 1.5), (1.5, 1.5, 3.5, 3.5)]
    assert sent(shift_heatmap(matrix), "values")["zmax"] == 0.5
    assert shapes(shift_heatmap(matrix), "rect") == []


def test_hands_point_at_the_cosine_and_the_sine_of_their_angles() -> None:
    clocks = [Clock("pair 0<br>90°", 0.0, math.pi / 2), Clock("pair 3<br>1°", math.pi, 13 * math.pi)]
    figure = turning_circles(clocks, 4, 9)
    middle = figure.layout.shapes[1].x0 + 1
    for name, points in (
        ("position 4", [(1, 0), (middle - 1, 0)]),
        ("position 9", [(0, 1), (middle + 1, 0)]),
    ):
        trace = sent(figure, name)
        np.testing.assert_allclose(np.stack([trace["x"], trace["y"]], axis=1), points, atol=1e-9)
    assert sent(figure, "position 9")["hovertext"][0] == "pair 0 at position 9: 90.0°, cosine 0.000, sine 1.000"
    assert [annotation.text for annotation in figure.layout.annotations] == [clock.name for clock in clocks]
    x, y = (np.array(sent(figure, "turned")[axis], dtype=float) for axis in "xy")
    first, second = np.split(np.stack([x, y], axis=1), np.flatnonzero(np.isnan(x)))[:2]
    # An arc begins and ends in the direction of its two hands: a quarter, and half a round after six whole ones.
    np.testing.assert_allclose((first[0], first[-1]), [(0.45, 0), (0, 0.45)], atol=1e-9)
    np.testing.assert_allclose((second[1], second[-1]), [(middle - 0.45, 0), (middle + 0.45, 0)], atol=1e-9)


def test_slopes_are_bars_with_heads_to_click() -> None:
    bars = sent(slope_bars(np.array([0.25, 0.0625]), chosen=1), "slope")
    assert decoded(bars["y"]).tolist() == [0.25, 0.0625]
    assert bars["customdata"] == [0, 1]
    assert bars["text"] == ["0.25", "0.0625"]
    assert bars["marker"]["color"][1] == theme.LIGHT.measured != bars["marker"]["color"][0]


def test_a_penalty_has_zero_in_the_middle_of_its_scale() -> None:
    trace = sent(bias_heatmap(np.array([[0.0, -3.0], [-3.0, 0.0]])), "values")
    assert (trace["zmin"], trace["zmax"], trace["x0"], trace["y0"]) == (-3, 3, 1, 1)
    assert decoded(trace["z"]).tolist() == [[0, -3], [-3, 0]]


def test_weights_fade_by_the_same_share_each_position() -> None:
    figure = fading_lines(np.array([math.log(2), 0.0]), 4, chosen=0)
    np.testing.assert_allclose(decoded(sent(figure, "head 0")["y"]), [1, 0.5, 0.25, 0.125], rtol=1e-6)
    np.testing.assert_allclose(decoded(sent(figure, "head 1")["y"]), 1)
    assert sent(figure, "head 0")["line"]["width"] > sent(figure, "head 1")["line"]["width"]


def test_norms_stand_side_by_side_on_one_scale() -> None:
    figure = norm_strips(
        [
            Strip("tokens", ["0", "<b>"], np.array([8.0, 6.0]), np.array([1.0, 0.75])),
            Strip("places", ["1"], np.array([5.0])),
        ]
    )
    assert decoded(sent(figure, "tokens")["y"]).tolist() == [8, 6]
    assert decoded(sent(figure, "tokens, scale switched over")["y"]).tolist() == [1, 0.75]
    assert sent(figure, "tokens, mean")["y"] == [7, 7]
    assert sent(figure, "places")["xaxis"] == "x2"
    assert figure.layout.xaxis.domain[1] < figure.layout.xaxis2.domain[0]
    assert figure.layout.yaxis.range == (0, 8.8)
    assert [a.text for a in figure.layout.annotations] == ["tokens: 7.00 on average", "places: 5.00 on average"]
    assert figure.layout.xaxis.ticktext == ("0", "&lt;b&gt;")


@pytest.mark.parametrize("palette", [theme.LIGHT, theme.DARK], ids=["light", "dark"])
def test_every_one_is_json_in_the_colours_of_its_palette(palette: theme.Palette) -> None:
    column = frozen(np.array([1.0, 0.5, 0.2]))
    for figure in (
        encoding_heatmap(frozen(TABLE), columns=list("abcdef"), ticks={0: "0"}, cursor=1, palette=palette),
        encoding_waves(frozen(TABLE), [1], ["1"], cursor=1, palette=palette),
        distance_profile(column, column, column, palette=palette),
        shift_heatmap(frozen(np.eye(4)), pairs=True, palette=palette),
        turning_circles([Clock("pair 0", 0.0, 1.0)], 1, 2, palette=palette),
        slope_bars(column, chosen=0, palette=palette),
        bias_heatmap(frozen(-np.eye(3)), palette=palette),
        fading_lines(column, 5, chosen=0, palette=palette),
        norm_strips([Strip("a", list("abc"), column, column)], palette=palette),
    ):
        text = figure.to_json()
        json.loads(text, parse_constant=nothing_but_numbers)
        own = {value for value in vars(palette).values() if isinstance(value, str)}
        assert set(re.findall(r"#[0-9a-f]{6}\b", text)) <= own | {*palette.categorical, *palette.scale, *palette.signed}
