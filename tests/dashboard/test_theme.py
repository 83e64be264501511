"""The palettes are what they promise: legible in both themes, even to the eye, and told apart without guessing."""

import base64
import io
import re
import tomllib
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dashboard.theme import DARK, LIGHT, colour_scale, contrast, icon, palette, pattern_colours, rgb, template

PALETTES = pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
CONFIG = tomllib.loads((Path(__file__).parents[2] / ".streamlit" / "config.toml").read_text())

# The test's own arithmetic: the WCAG's luminance, and Ottosson's Oklab.


def light(colour):
    """Linear light of sRGB, 0 to 255."""
    share = np.asarray(colour, dtype=float) / 255
    return np.where(share > 0.04045, ((share + 0.055) / 1.055) ** 2.4, share / 12.92)


def ratio(one, other):
    dark, bright = sorted(0.05 + light(rgb(c)) @ [0.2126, 0.7152, 0.0722] for c in (one, other))
    return bright / dark


def oklab(colour):
    """Lightness, green to red, blue to yellow: distances are about as large as they look."""
    r, g, b = np.moveaxis(light(colour), -1, 0)
    long = np.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b)
    middle = np.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b)
    short = np.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b)
    return np.stack(
        [
            0.2104542553 * long + 0.7936177850 * middle - 0.0040720468 * short,
            1.9779984951 * long - 2.4285922050 * middle + 0.4505937099 * short,
            0.0259040371 * long + 0.7827717662 * middle - 0.8086757660 * short,
        ],
        axis=-1,
    )


def apart(one, other):
    return np.linalg.norm(oklab(one) - oklab(other), axis=-1)


def stops(anchors):
    """A Plotly colour scale as numbers: the places, and their colours."""
    scale = colour_scale(anchors)
    return np.array([place for place, _ in scale]), np.array([re.findall(r"\d+", c) for _, c in scale], dtype=float)


def test_oklab_here_is_oklab():
    """Ottosson's own check values: white, and that greys have no hue."""
    assert oklab((255, 255, 255)) == pytest.approx([1, 0, 0], abs=1e-4)
    assert oklab((0, 0, 0)) == pytest.approx([0, 0, 0], abs=1e-9)
    assert oklab((119, 119, 119))[1:] == pytest.approx([0, 0], abs=1e-4)
    assert oklab((255, 0, 0)) == pytest.approx([0.62796, 0.22486, 0.12585], abs=1e-4)


# --- legible


@PALETTES
@pytest.mark.parametrize("ground", ["background", "surface"])
@pytest.mark.parametrize("ink", ["text", "muted", "right", "wrong", "chance", "ceiling", "accent"])
def test_what_is_written_can_be_read(colours, ink, ground):
    """WCAG 2.2, level AA: 4.5 to 1 for text."""
    assert ratio(getattr(colours, ink), getattr(colours, ground)) >= 4.5


@PALETTES
def test_what_is_drawn_can_be_seen(colours):
    """WCAG 2.2, 1.4.11: 3 to 1 for what carries meaning."""
    for mark in (colours.measured, *colours.categorical):
        assert ratio(mark, colours.background) >= 3, mark


def test_the_contrast_ratio_is_the_wcags():
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)
    for one, other in combinations([*LIGHT.categorical, *DARK.categorical], 2):
        assert contrast(one, other) == contrast(other, one) == pytest.approx(ratio(one, other))


@PALETTES
def test_streamlit_has_the_same_colours(colours):
    theme = CONFIG["theme"]["dark" if colours.dark else "light"]
    assert theme["backgroundColor"] == colours.background
    assert theme["secondaryBackgroundColor"] == colours.surface
    assert theme["textColor"] == colours.text
    assert theme["chartCategoricalColors"] == list(colours.categorical)
    for charts, anchors in (("chartSequentialColors", colours.scale), ("chartDivergingColors", colours.signed)):
        places, shown = stops(anchors)
        assert len(theme[charts]) == 10
        for place, colour in zip(np.linspace(0, 1, 10), theme[charts], strict=True):
            expected = [np.interp(place, places, shown[:, channel]) for channel in range(3)]
            assert np.abs(np.array(rgb(colour)) - expected).max() <= 3, (charts, colour)
    assert ratio(theme["primaryColor"], colours.background) >= 3


def test_a_theme_has_its_palette():
    assert palette(dark=True) is DARK
    assert palette(dark=False) is LIGHT
    assert DARK.dark
    assert not LIGHT.dark


# --- the scale of patterns


@PALETTES
def test_the_scale_of_patterns_is_a_table_between_its_anchors(colours):
    table = pattern_colours(colours.dark)
    assert table.dtype == np.uint8
    assert table.shape == (256, 3)
    assert tuple(table[0]) == rgb(colours.scale[0])
    assert tuple(table[-1]) == rgb(colours.scale[-1])
    for anchor in colours.scale:
        assert apart(table, rgb(anchor)).min() < 0.01, anchor


@PALETTES
def test_more_attention_is_further_from_the_background_at_every_step(colours):
    lightness = oklab(pattern_colours(colours.dark))[:, 0]
    steps = np.diff(lightness) * (1 if colours.dark else -1)
    assert (steps > 0).all()
    assert np.ptp(lightness) > 0.65


@PALETTES
def test_equal_steps_of_attention_look_equal(colours):
    """Over sixteenths of the scale: a single step is about as large as the rounding to whole numbers."""
    table = oklab(pattern_colours(colours.dark))
    seen = np.linalg.norm(table[16:] - table[:-16], axis=1)
    assert seen.max() / seen.min() < 1.15
    lightness = np.abs(table[16:, 0] - table[:-16, 0])
    assert lightness.max() / lightness.min() < 1.4


@PALETTES
def test_the_canvas_and_plotly_show_the_same_colours(colours):
    """The canvas has 256 entries, Plotly 33 stops with straight lines between them."""
    table = pattern_colours(colours.dark).astype(float)
    places, shown = stops(colours.scale)
    assert places[[0, -1]].tolist() == [0, 1]
    entries = np.linspace(0, 1, 256)
    for channel in range(3):
        assert np.abs(np.interp(places, entries, table[:, channel]) - shown[:, channel]).max() <= 2
        assert np.abs(np.interp(entries, places, shown[:, channel]) - table[:, channel]).max() <= 2


@PALETTES
def test_nothing_looked_at_is_nearly_the_background(colours):
    assert apart(rgb(colours.scale[0]), rgb(colours.background)) < 0.1


# --- the signed scale


@PALETTES
def test_the_signed_scale_is_centred_and_its_sides_are_told_apart(colours):
    places, shown = stops(colours.signed)
    middle = len(places) // 2
    assert places[middle] == 0.5
    assert tuple(shown[middle]) == rgb(colours.signed[len(colours.signed) // 2])
    lightness = oklab(shown)[:, 0] * (1 if colours.dark else -1)
    assert (np.diff(lightness[: middle + 1]) < 0).all()
    assert (np.diff(lightness[middle:]) > 0).all()
    for step in range(middle // 4, middle + 1):
        assert apart(shown[middle - step], shown[middle + step]) > 0.06
    # Equally far from zero is about equally strong.
    for step in range(1, middle + 1):
        strengths = apart(shown[[middle - step, middle + step]], shown[middle])
        assert strengths.max() / strengths.min() < 1.35


# --- forbidden, and lines


@PALETTES
def test_forbidden_is_no_colour_of_a_scale(colours):
    """0.02 is about the least difference that is noticed side by side; the hatching comes on top."""
    forbidden = rgb(colours.forbidden)
    assert apart(pattern_colours(colours.dark), forbidden).min() > 0.05
    assert apart(stops(colours.signed)[1], forbidden).min() > 0.04
    assert apart(rgb(colours.scale[0]), forbidden) > 0.1
    assert apart(rgb(colours.signed[len(colours.signed) // 2]), forbidden) > 0.1
    assert apart(rgb(colours.background), forbidden) > 0.1
    assert apart(rgb(colours.hatch), forbidden) > 0.1


@PALETTES
def test_lines_are_told_apart(colours):
    assert len(set(colours.categorical)) >= 10
    for one, other in combinations(colours.categorical, 2):
        assert apart(rgb(one), rgb(other)) > 0.07, (one, other)
    for one, other in zip(colours.categorical, colours.categorical[1:], strict=False):
        assert apart(rgb(one), rgb(other)) > 0.1, (one, other)


@PALETTES
def test_right_and_wrong_are_told_apart(colours):
    assert apart(rgb(colours.right), rgb(colours.wrong)) > 0.15


# --- what is made of them


@PALETTES
def test_the_template_writes_in_the_palette_on_nothing(colours):
    layout = template(colours).layout
    assert layout.font.color == colours.text
    assert layout.font.size >= 14
    assert layout.xaxis.zeroline is layout.yaxis.zeroline is False
    assert layout.colorway == colours.categorical
    assert layout.paper_bgcolor == layout.plot_bgcolor == "rgba(0,0,0,0)"
    assert layout.hoverlabel.bgcolor == colours.surface
    assert layout.hoverlabel.font.color == colours.text


def test_the_icon_is_the_anti_diagonal():
    kind, _, content = icon().partition(",")
    assert kind == "data:image/png;base64"
    picture = np.array(Image.open(io.BytesIO(base64.b64decode(content))))
    assert picture.shape == (32, 32, 3)
    cells = picture[4::8, 4::8]
    strong = (cells == np.array(rgb(LIGHT.scale[3]), dtype=np.uint8)).all(axis=-1)
    assert np.array_equal(strong, np.eye(4, dtype=bool)[:, ::-1])
