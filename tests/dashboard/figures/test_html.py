"""Tables of coloured numbers, the strip of steps, shapes, code, and circuits: what they draw, said by hand."""

from __future__ import annotations

import re

import numpy as np
import pytest

from dashboard.app_pages.attention.inside.figures import circuit_heatmap
from dashboard.figures.html.number_table import AXES, Block, Label, axis_colour, number_table, shaded
from dashboard.figures.html.step_strip import Shape, Thumb, code_excerpt, shape_line, step_strip
from dashboard.figures.kit.notation import lowered, lowered_html
from dashboard.figures.kit.numbers import tiny, written
from dashboard.theme import DARK, LIGHT, contrast

HOSTILE = "<script>alert('1')</script>\"&"


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [(1.005, 1, "1.0"), (-2.25, 1, "−2.2"), (-0.004, 2, "0.00"), (-0.0, 2, "0.00"), (0.0051, 2, "0.01"),
     (1264.911, 0, "1265"), (float("nan"), 4, "")],
)  # fmt: skip
def test_a_number_is_rounded_and_minus_zero_is_zero(value: float, decimals: int, text: str) -> None:
    assert written(value, decimals) == text


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_every_number_is_legible_on_its_colour(palette) -> None:
    for signed, anchors, low in ((True, palette.signed, -1), (False, palette.scale, 0)):
        for shade in np.linspace(low, 1, 200):
            ground, ink = shaded(shade, anchors, signed)
            assert contrast(ground, ink) >= 4.5
    assert shaded(-1, palette.signed, True)[0] == palette.signed[0]
    assert shaded(0, palette.scale, False)[0] == palette.scale[0]
    assert shaded(7, palette.scale, False)[0] == palette.scale[-1]


def test_a_table_has_its_numbers_and_hatches_what_is_forbidden() -> None:
    block = Block(
        ("a", "b"), (("1.0", ""), ("0.0", "5.0")), np.array([[1.0, np.nan], [0.0, -1.0]]),
        forbidden=np.array([[False, False], [True, False]]), axis="d_head",
    )  # fmt: skip
    text = number_table([Label("x", 1), Label("Σ", above=True)], [block], axis="key", spoken="Two rows")
    cells = re.findall(r'<td style="([^"]*)">([^<]*)</td>', text)
    assert [number for _, number in cells] == ["1.0", "", "0.0", "5.0"]
    styles = [style for style, _ in cells]
    assert [("repeating" in style) for style in styles] == [False, False, True, False]
    assert LIGHT.signed[-1] in styles[0]
    assert "background" not in styles[1]
    assert LIGHT.signed[0] in styles[3]
    assert "border-top" in styles[2]
    assert axis_colour("d_head") in text
    assert 'aria-label="Two rows"' in text


def test_the_first_column_has_room_for_its_words_and_their_places() -> None:
    block = Block(("a",), (("1.0",), ("2.0",)), np.zeros((2, 1)), axis="d_head")

    def width(*labels: Label) -> int:
        text = number_table(labels, [block], axis="query", spoken="Two rows")
        (found,) = re.findall(r'<colgroup><col style="width:(\d+)px">', text)
        (least,) = re.findall(r"min-width:(\d+)px", text)
        assert int(least) == max(640, int(found) + 520)  # a projector shows it whole, and the numbers keep their room
        return int(found)

    assert width(Label("3", 8), Label("SEP", 9)) == 78
    # Half a letter's height or more for each of its letters and of its place's.
    assert width(Label("inquire", 38), Label("x", 1)) >= 14 * 0.5 * len("inquire at 38") + 12
    assert width(Label("satisfy", 124), Label("x", 1)) > width(Label("satisfy", 4), Label("x", 1))
    long = number_table([Label("incarnadinest", 500)] * 2, [block], axis="query", spoken="Two rows")
    assert "<b>incarn…inest</b>" in long
    assert ">at 500</span>" in long


def test_the_column_that_a_step_computes_stays_in_sight_and_the_frame_goes_over_it() -> None:
    """As on a phone, where the table scrolls. What it covers must not shine through."""
    before = Block(("q · k",), (("1.0",), ("2.0",), ("3.0",)), np.zeros((3, 1)))
    now = Block(
        ("mask",), (("yes",), ("",), ("no",)), np.array([[np.nan], [np.nan], [1.0]]), present=True,
        forbidden=np.array([[False], [False], [True]]),
    )  # fmt: skip
    labels = [Label("x", 1, chosen=True), Label("y", 2), Label("z", 3)]
    text = number_table(labels, [before, now], axis="key", spoken="Three rows")
    styles = re.findall(r'<td style="([^"]*)">', text.partition("<tbody>")[2])
    assert [("sticky" in style, "background" in style) for style in styles] == [(False, True), (True, True)] * 3
    assert [LIGHT.accent in style for style in styles] == [False, True, False, False, False, False]
    (heading,) = re.findall(r'<th scope="col" style="([^"]*)">mask</th>', text)
    assert "sticky" in heading
    assert f"background:{LIGHT.background}" in heading
    wide = Block(("0", "1"), (("1.0", "2.0"),), np.zeros((1, 2)), present=True)  # all of them would cover the rest
    assert "sticky" not in number_table([Label("x", 1)], [wide], axis="key", spoken="One row")


def test_foreign_texts_stay_texts() -> None:
    block = Block((HOSTILE,), ((HOSTILE,),), np.zeros((1, 1)))
    thumb = Thumb(HOSTILE, np.zeros((1, 1)))
    for html in (
        number_table([Label(HOSTILE, 1)], [block], axis="key", spoken=HOSTILE),
        step_strip([thumb], 0),
        shape_line([Shape(HOSTILE, (("key", 3),))]),
        code_excerpt(HOSTILE, [HOSTILE], 1, 0),
    ):
        assert "<script" not in html
        assert HOSTILE not in html


def test_axes_have_a_colour_each() -> None:
    for palette in (LIGHT, DARK):
        assert len({axis_colour(axis, palette) for axis in AXES}) == len(AXES)


def test_the_strip_frames_one_step_and_hides_no_forbidden_cell() -> None:
    thumbs = [Thumb("q", np.array([[1.0, -1.0]])), Thumb("p", np.array([[np.nan], [1.0]]), signed=False)]
    text = step_strip(thumbs, 1)
    assert text.count(f"solid {LIGHT.accent}") == 1
    assert "Step 2 of 2: p" in text
    assert f"linear-gradient(90deg,{LIGHT.signed[-1]} 0 50%,{LIGHT.signed[0]} 0 100%)" in text
    assert LIGHT.forbidden in text


def test_shapes_end_in_what_comes_out() -> None:
    text = re.sub(r"<[^>]*>", "", shape_line([Shape("q", (("d_head", 16),)), Shape("K", (("key", 9),)), Shape("Σ")]))
    assert text == "q [dhead 16], K [key 9] → Σ [one number]"


def test_the_line_that_does_it_is_marked_with_its_number() -> None:
    text = code_excerpt("f", ["a = 1", "b = a < 2"], 10, 1)
    assert "f, line 11" in text
    assert re.findall(r"font-weight:700[^>]*>([^<]*)<", text) == ["b = a &lt; 2"]


def test_a_circuit_is_centred_on_zero() -> None:
    values = np.array([[1.0, -3.0], [0.0, 2.0]])
    figure = circuit_heatmap(
        values, ["<b>", "1"], ["0", "1"], titles=("row", "column"), sentence=lambda r, c: f"{r}, {c}"
    )
    (heatmap,) = figure.data
    np.testing.assert_array_equal(heatmap.z, values)
    assert (heatmap.zmin, heatmap.zmax) == (-3, 3)
    assert heatmap.text[1][0] == "1, 0"
    assert figure.layout.yaxis.ticktext[0] == "&lt;b&gt;"
    assert figure.layout.yaxis.range == (1.5, -0.5)
    assert circuit_heatmap(np.zeros((1, 1)), ["a"], ["b"], titles=("", ""), sentence=lambda r, c: "").data[0].zmax == 1


# --- symbols with an index


@pytest.mark.parametrize(
    ("written", "drawn"),
    [
        ("d_model", "d<sub>model</sub>"),
        ("z W_O", "z W<sub>O</sub>"),
        ("q_0k_1", "q<sub>0</sub>k<sub>1</sub>"),
        ("tanh_1", "tanh<sub>1</sub>"),
        ("α_12", "α<sub>12</sub>"),
        ("self_attention", "self_attention"),
        ("k_3, 28°", "k<sub>3</sub>, 28°"),
        ("[c ; s]", "[c ; s]"),
    ],
)
def test_an_index_stands_below_the_line(written: str, drawn: str) -> None:
    assert lowered(written) == drawn
    assert lowered_html(written).replace(' style="line-height:0;font-size:0.75em"', "") == drawn
    assert lowered_html(f"<i>{written}").startswith("&lt;i&gt;")


def test_blocks_side_by_side_along_one_axis_share_its_name() -> None:
    cells, ground = (("1", "2"),), np.zeros((1, 2))
    along = [Block((f"{name}_0", f"{name}_1"), cells, ground, axis="d_model") for name in "hv"]
    table = number_table([Label("corner", 1)], [Block(("x", "y"), cells, ground), *along], axis="key", spoken="Two.")
    assert re.findall(r'colspan="(\d)"[^>]*>([^<]*)<', table) == [("2", ""), ("4", "d")]
    assert table.count(">model</sub>") == 1


def test_a_deviation_of_broken_weights_is_said_too() -> None:
    assert [tiny(value) for value in (0.0, 4.4e-16, float("nan"), float("inf"))] == [
        "0",
        "4.4 × 10⁻¹⁶",
        "no number",
        "∞",
    ]
