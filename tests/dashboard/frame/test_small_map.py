"""The small map: as many boxes as the model has, the page's part filled, and a way to the machine."""

from __future__ import annotations

import re
from urllib.parse import unquote

import pytest

from dashboard import theme
from dashboard.figures.html.small_map import small_map
from dashboard.frame.small_map import NAMES, RECURRENT, rows
from dashboard.view.pages import PAGES
from tests.kit.pages import open_page
from transformer.config import ModelConfig


def test_every_part_has_a_name() -> None:
    parts = {page.part for page in PAGES.values() if page.part}
    assert parts <= set(NAMES)
    assert {RECURRENT.get(part, part) for part in parts} <= {*NAMES, ""}


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ({"architecture": "decoder"}, [["tokens", "positions", "block", "block", "output"]]),
        ({"architecture": "encoder", "positions": "rotary", "n_layers": 1}, [["tokens", "block", "output"]]),
        (
            {"architecture": "encoder-decoder", "n_layers": 1},
            [["tokens", "positions", "block"], ["tokens", "positions", "block", "output"]],
        ),
        ({"architecture": "gru", "n_layers": 1}, [["tokens", "state"], ["tokens", "state", "output"]]),
    ],
)
def test_it_has_the_models_boxes(shape: dict[str, object], expected: list[list[str]]) -> None:
    assert rows(ModelConfig(**shape)) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize("palette", [theme.LIGHT, theme.DARK])
def test_what_is_shown_is_filled_and_nothing_else(palette: theme.Palette) -> None:
    stacks = [["tokens", "positions", "block", "block", "output"]]

    def drawn(shown: str) -> str:
        markup = small_map(stacks, 4, shown, "It <says> this.", palette=palette)
        assert 'alt="It &lt;says&gt; this."' in markup
        return unquote(re.findall(r"svg\+xml,([^\"]+)", markup)[0])

    for shown, count in (("tokens", 1), ("block", 2), ("output", 1)):
        assert len(re.findall(rf'<rect [^>]*fill="{palette.accent}"', drawn(shown))) == count
    assert len(re.findall(rf'<circle [^>]*fill="{palette.accent}"', drawn("attention"))) == 8
    assert f'stroke="{palette.accent}"' in drawn("stream")
    assert palette.accent not in drawn("")


def test_a_page_that_shows_a_part_says_so_and_others_do_not() -> None:
    def said(page: str, run: str) -> list[str]:
        app = open_page(page, run=run)
        return [html.value for html in app.sidebar.get("html") if "in small" in html.value]

    assert "This page shows the positions." in said("positions", "reverse")[0]
    assert "This page shows the states." in said("heads", "bottleneck-gru")[0]
    assert not said("runs", "reverse")
